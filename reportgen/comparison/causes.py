"""What a difference comes from: each op's share of it is given to one cause, so that the causes add up to the whole."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from reportgen.analyzers.classes import step_part_of
from reportgen.comparison.matching import Matched
from reportgen.comparison.op import Op, scopes_of
from reportgen.comparison.steps import Breakdown
from reportgen.units import count, significant

Kind = Literal[
    "type", "size", "work", "added", "removed", "split", "merged", "input", "layout", "time", "other_ops", "idle",
    "between",
]  # fmt: skip
# Kinds that are certain: a program has changed, whatever the times say.
STRUCTURAL: frozenset[Kind] = frozenset(("type", "size", "work", "added", "removed", "split", "merged"))

_ROUNDING = 1e-9
_OTHER_WORK = 0.02
_CONVERSION = "convert"
_NEGLIGIBLE = 1e-3  # share of all changes

Pair = tuple[Op | None, Op | None]


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the difference.

    Attributes:
        kind: What changed: an element type, a size, FLOPs for a result of the same size, ops that are new, gone, split
            or merged, the wait for input, a layout, the time of ops that are otherwise the same; or time outside of
            the ops that the reports list.
        subject: What it is about: "bfloat16 → float32", a scope, an op, a category.
        text: The same as a clause: "12 ops are new in layer_4".
        base, new: Seconds of a step, of all ops concerned, before and after.
        ops: How many ops are concerned, in the report that has more of them.

    """

    kind: Kind
    subject: str
    text: str
    base: float
    new: float
    ops: int

    @property
    def change(self) -> float:
        """Seconds that a step gained."""
        return self.new - self.base

    @property
    def label(self) -> str:
        """A few words, for a chart."""
        return f"{_LABELS[self.kind]}: {self.subject}" if self.kind in _LABELS else self.text


_LABELS: dict[Kind, str] = {
    "type": "type", "size": "size", "work": "FLOPs", "added": "new", "removed": "gone", "split": "split",
    "merged": "fused", "layout": "layout", "time": "same shape",
}  # fmt: skip


@dataclass
class _Group:
    pairs: list[Pair] = field(default_factory=list)

    def times(self) -> tuple[float, float]:
        base = sum(left.time for left, _ in self.pairs if left)
        return base, sum(right.time for _, right in self.pairs if right)


def find_causes(base: Breakdown, new: Breakdown, matched: Matched) -> tuple[Cause, ...]:
    """Return all causes, those that shift most first; their changes add up to that of the whole."""
    groups: dict[tuple[Kind, str], _Group] = defaultdict(_Group)
    for key, pair in _Sorter(base.ops, new.ops, matched).keyed():
        groups[key].pairs.append(pair)
    found = [_cause(kind, subject, group) for (kind, subject), group in groups.items()]
    found += _outside(base, new)
    return tuple(sorted(found, key=lambda one: (-abs(one.change), one.kind, one.subject)))


def _cause(kind: Kind, subject: str, group: _Group) -> Cause:
    before = sum(left is not None for left, _ in group.pairs)
    after = sum(right is not None for _, right in group.pairs)
    base, new = group.times()
    return Cause(
        kind=kind,
        subject=subject,
        text=_TEXTS[kind](subject, before, after, new - base),
        base=base,
        new=new,
        ops=max(before, after),
    )


def _outside(base: Breakdown, new: Breakdown) -> Iterator[Cause]:
    parts: tuple[tuple[Kind, str, float, float], ...] = (
        ("other_ops", "ops that the reports do not list", base.other_ops, new.other_ops),
        ("idle", "idle time in the step", base.idle, new.idle),
        ("between", "time between two steps", base.between, new.between),
    )
    negligible = _ROUNDING * max(abs(base.whole), abs(new.whole))
    for kind, subject, before, after in parts:
        if max(abs(before), abs(after)) > negligible:
            verb = "grew" if after >= before else "shrank"
            yield Cause(kind=kind, subject=subject, text=f"{subject} {verb}", base=before, new=after, ops=0)


def _ops(number: int) -> str:
    return f"{count(number)} op{'' if number == 1 else 's'}"


def _slower(change: float) -> str:
    return "longer" if change >= 0 else "less time"


_TEXTS: dict[Kind, Callable[[str, int, int, float], str]] = {
    "type": lambda subject, _, after, __: f"the element type of {_ops(after)} changed: {subject}",
    "size": lambda subject, _, after, __: f"the sizes of {_ops(after)} changed: {subject}",
    "work": lambda subject, _, after, __: f"the FLOPs of {_ops(after)} changed: {subject}",
    "added": lambda subject, _, after, __: f"{_ops(after)} {'is' if after == 1 else 'are'} new: {subject}",
    "removed": lambda subject, before, _, __: f"{_ops(before)} {'is' if before == 1 else 'are'} gone: {subject}",
    "split": lambda subject, before, after, __: f"fusions were split ({subject}): {_ops(before)} became {count(after)}",
    "merged": lambda subject, before, after, __: f"ops were fused ({subject}): {_ops(before)} became {count(after)}",
    "input": lambda _, __, ___, change: f"the wait for input {'grew' if change >= 0 else 'shrank'} (infeed)",
    "layout": lambda subject, _, after, __: f"the layout of {_ops(after)} changed: {subject}",
    "time": lambda subject, _, after, change: f"{_ops(after)} of the same shape take {_slower(change)}: {subject}",
}


class _Sorter:
    """Gives each pair of ops, and each op that is new or gone, to a cause."""

    def __init__(self, base: Sequence[Op], new: Sequence[Op], matched: Matched) -> None:
        self._matched = matched
        self._scopes = _prefixes(base), _prefixes(new)
        self._recomputed = any(op.recomputed for op in base), any(op.recomputed for op in new)
        before, after = _element_types(base), _element_types(new)
        self._new_types = after - before, before - after
        holders = _holders(base), _holders(new)
        self._split = {id(holder) for op in matched.new if (holder := holders[0].get(op.path))}
        self._split |= {id(op) for op in matched.new if op.path in holders[0]}
        self._merged = {id(holder) for op in matched.gone if (holder := holders[1].get(op.path))}
        self._merged |= {id(op) for op in matched.gone if op.path in holders[1]}
        self._names = {
            "split": _some([op.name for op in base if id(op) in self._split]),
            "merged": _some([op.name for op in new if id(op) in self._merged]),
        }

    def keyed(self) -> Iterator[tuple[tuple[Kind, str], Pair]]:
        """Yield the cause of each pair."""
        for op in self._matched.new:
            yield self._single(op, 0, "added"), (None, op)
        for op in self._matched.gone:
            yield self._single(op, 1, "removed"), (op, None)
        for left, right in self._matched.pairs:
            yield self._of_pair(left, right), (left, right)

    def _single(self, op: Op, other: int, kind: Kind) -> tuple[Kind, str]:
        """Return the cause of an op that only one report has; `other` is the report that lacks it."""
        if step_part_of(op.category) == "input":
            return "input", ""
        types = self._new_types[other]
        if types and (types & {element for element, _ in op.leaves} or _CONVERSION in op.stem):
            return "type", f"{', '.join(sorted(types))} {'is new' if kind == 'added' else 'is gone'}"
        if op.recomputed and not self._recomputed[other]:
            return kind, "the recomputation of checkpointed code"
        known = self._scopes[other]
        for depth in range(1, len(op.scopes) + 1):
            if op.scopes[:depth] not in known:
                return kind, "/".join(op.scopes[:depth])
        if fused := self._fused(op, op):
            return fused
        return kind, "/".join(op.scopes) or op.line or op.category

    def _fused(self, left: Op, right: Op) -> tuple[Kind, str] | None:
        if id(left) in self._split or id(right) in self._split:
            return "split", self._names["split"]
        if id(left) in self._merged or id(right) in self._merged:
            return "merged", self._names["merged"]
        return None

    def _of_pair(self, left: Op, right: Op) -> tuple[Kind, str]:
        if step_part_of(right.category) == "input":
            return "input", ""
        if change := _types(left, right) or _sizes(left, right) or self._fused(left, right) or _work(left, right):
            return change
        if left.shape != right.shape:
            return "layout", left.category
        return "time", left.category


def _some(names: Sequence[str]) -> str:
    """Return up to three names, and how many more there are."""
    more = f" and {count(len(names) - 3)} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _element_types(ops: Iterable[Op]) -> set[str]:
    return {element for op in ops for element, _ in op.leaves}


def _prefixes(ops: Iterable[Op]) -> set[tuple[str, ...]]:
    """Return all scopes that ops stand in, also ops inside fusions, and the scopes around them."""
    scopes = {op.scopes for op in ops} | {scopes_of(path) for op in ops for path in op.inside}
    return {scope[:depth] for scope in scopes for depth in range(1, len(scope) + 1)}


def _holders(ops: Iterable[Op]) -> dict[str, Op]:
    """Return the fusion that each framework op stands in; an op of its own is in none."""
    own = {op.path for op in ops}
    return {path: op for op in ops for path in op.inside if path not in own}


def _types(left: Op, right: Op) -> tuple[Kind, str] | None:
    for (old, _), (new, _) in zip(left.leaves, right.leaves, strict=False):
        if old != new:
            return "type", f"{old} → {new}"
    return None


def _sizes(left: Op, right: Op) -> tuple[Kind, str] | None:
    for (_, old), (_, new) in zip(left.leaves, right.leaves, strict=False):
        changed = [(one, other) for one, other in zip(old, new, strict=False) if one != other]
        if changed and len(old) == len(new):
            before, after = changed[0]
            return "size", f"{before} → {after}"
    return None


def _work(left: Op, right: Op) -> tuple[Kind, str] | None:
    if left.flops and right.flops and abs(right.flops / left.flops - 1) > _OTHER_WORK:
        return "work", f"× {significant(right.flops / left.flops, 2)}"
    return None


def ranked(causes: Sequence[Cause], most: int) -> tuple[Cause, ...]:
    """Return the causes worth showing; what is left of the difference is one last cause of its own."""
    total = sum(abs(one.change) for one in causes)
    shown = [one for one in causes if abs(one.change) > _NEGLIGIBLE * total][:most]
    rest = [one for one in causes if one not in shown]
    if not any(one.change for one in rest):
        return tuple(shown)
    text = "everything else"
    base, new = sum(one.base for one in rest), sum(one.new for one in rest)
    return *shown, Cause(
        kind="other_ops", subject=text, text=text, base=base, new=new, ops=sum(one.ops for one in rest)
    )


def common_size(causes: Sequence[Cause]) -> Cause | None:
    """Return the change of sizes that concerns most ops."""
    counts = Counter({one: one.ops for one in causes if one.kind == "size"})
    return counts.most_common(1)[0][0] if counts else None
