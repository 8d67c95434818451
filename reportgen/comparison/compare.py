"""Compare a report with one or more of before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from reportgen.comparison.causes import Cause, find_causes
from reportgen.comparison.comparable import differences
from reportgen.comparison.findings import FindingChange, finding_changes
from reportgen.comparison.matching import Matched, match
from reportgen.comparison.metrics import MetricChange, metric_changes
from reportgen.comparison.noise import ERROR_RATE, MIN_EFFECT, Decision, decide
from reportgen.comparison.op import Op
from reportgen.comparison.steps import Breakdown, breakdown, step_time, step_whole
from reportgen.document import ReportDocument
from reportgen.errors import UsageError


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How strict a comparison is.

    Attributes:
        error_rate: With three bases or more: the share of repeats of one program that may be called a change.
        min_effect: With fewer: the smallest relative change that is called one.

    """

    error_rate: float = ERROR_RATE
    min_effect: float = MIN_EFFECT


class OpChange(msgspec.Struct, frozen=True, kw_only=True):
    """An op before and after: seconds of a step, None where it is not there."""

    op: Op
    before: Op | None
    base: float | None
    new: float | None

    @property
    def change(self) -> float:
        """Seconds that a step gained."""
        return (self.new or 0.0) - (self.base or 0.0)


@dataclass(frozen=True)
class Comparison:
    """What is different between a report and those of before.

    Attributes:
        bases, new: The reports.
        base: The one of the bases whose step time is the median: ops and findings are compared with it.
        before, after: What a step's time goes to in `base` and in `new`.
        decision: Whether the time of a step changed, None where it is not captured.
        causes: What the difference of the whole comes from, the largest first; they add up to it.
        ops: Every op of both, the largest change first.
        renamed: How many ops have another name and are otherwise the same.
        metrics, findings: What became of each.
        warnings: Why the reports may not be comparable.

    """

    bases: tuple[ReportDocument, ...]
    new: ReportDocument
    base: ReportDocument
    before: Breakdown
    after: Breakdown
    decision: Decision | None
    causes: tuple[Cause, ...]
    ops: tuple[OpChange, ...]
    renamed: int
    metrics: tuple[MetricChange, ...]
    findings: tuple[FindingChange, ...]
    warnings: tuple[str, ...]

    @property
    def change(self) -> float:
        """Seconds that a step gained."""
        return self.after.whole - self.before.whole


def compare(bases: Sequence[ReportDocument], new: ReportDocument, options: Options | None = None) -> Comparison:
    """Compare a report with one or more of before.

    Raises:
        UsageError: There is no base, or an option is out of range.

    """
    options = options or Options()
    if not bases:
        raise UsageError("there is nothing to compare with.", "Give at least one base and the new report.")
    if not (0 < options.error_rate < 1 and options.min_effect >= 0):
        raise UsageError("expected an error rate between 0 and 1 and a minimum effect of 0 or more.")
    base = _typical(bases)
    per_step = all(step_time(one) is not None for one in (base, new))
    before, after = breakdown(base, per_step=per_step), breakdown(new, per_step=per_step)
    matched = match(before.ops, after.ops)
    causes = find_causes(before, after, matched)
    modelled = all(one.profile.timeline_basis == "modelled" for one in (*bases, new))
    wholes = [whole for one in bases if (whole := step_whole(one))]
    decision = None
    if per_step and wholes:
        decision = decide(
            wholes, after.whole, error_rate=options.error_rate, min_effect=options.min_effect, modelled=modelled
        )
    return Comparison(
        bases=tuple(bases),
        new=new,
        base=base,
        before=before,
        after=after,
        decision=decision,
        causes=causes,
        ops=_op_changes(matched),
        renamed=sum(left.name != right.name for left, right in matched.pairs),
        metrics=metric_changes(bases, base, new, options.error_rate, options.min_effect, modelled=modelled),
        findings=finding_changes(base, new),
        warnings=tuple(differences(bases, base, new, causes, per_step=per_step)),
    )


def _typical(bases: Sequence[ReportDocument]) -> ReportDocument:
    """Return the base with the median step time; of two, the faster one."""
    timed = [one for one in bases if step_whole(one) is not None] or list(bases)
    return sorted(timed, key=lambda one: step_whole(one) or 0.0)[(len(timed) - 1) // 2]


def _op_changes(matched: Matched) -> tuple[OpChange, ...]:
    changes = [OpChange(op=new, before=old, base=old.time, new=new.time) for old, new in matched.pairs]
    changes += [OpChange(op=op, before=None, base=None, new=op.time) for op in matched.new]
    changes += [OpChange(op=op, before=op, base=op.time, new=None) for op in matched.gone]
    return tuple(sorted(changes, key=lambda one: (-abs(one.change), one.op.name)))
