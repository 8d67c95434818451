"""What became of each finding."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from reportgen.document import Finding, ReportDocument, Severity

State = Literal["new", "worse", "better", "same", "fixed", "unknown"]
_ORDER: tuple[State, ...] = ("new", "worse", "unknown", "same", "better", "fixed")
_RANKS = {name: rank for rank, name in enumerate(get_args(Severity))}  # 0 is critical
# Savings are estimates: a smaller difference between two of them says nothing.
_SAVING_EFFECT = 0.1


class FindingChange(msgspec.Struct, frozen=True, kw_only=True):
    """A finding before and after; "unknown" where it is gone because its rule could no longer tell."""

    state: State
    before: Finding | None
    after: Finding | None

    @property
    def finding(self) -> Finding:
        """The finding as it is now, or was."""
        found = self.after or self.before
        if found is None:
            raise ValueError("a finding stands in one report at least")
        return found


def finding_changes(base: ReportDocument, new: ReportDocument) -> tuple[FindingChange, ...]:
    """Return every finding of both reports: new ones first, then worse ones, fixed ones last."""
    before, after = ({one.id: one for one in document.findings} for document in (base, new))
    blind = {one.rule for one in new.checks if one.status in ("cannot_tell", "error")}
    found = []
    for key in dict.fromkeys((*after, *before)):
        old, now = before.get(key), after.get(key)
        found.append(FindingChange(state=_state(old, now, blind), before=old, after=now))
    return tuple(sorted(found, key=lambda one: _ORDER.index(one.state)))


def _state(old: Finding | None, now: Finding | None, blind: set[str]) -> State:
    if old is None:
        return "new"
    if now is None:
        return "unknown" if old.rule in blind else "fixed"
    if old.severity != now.severity:
        return "worse" if _RANKS[now.severity] < _RANKS[old.severity] else "better"
    if old.saving and now.saving and old.saving.unit == now.saving.unit:
        shift = now.saving.likely - old.saving.likely
        if abs(shift) > _SAVING_EFFECT * max(old.saving.likely, now.saving.likely):
            return "worse" if shift > 0 else "better"
    return "same"
