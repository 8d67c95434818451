"""Which op of one report is which op of another, although compilers number and fuse anew."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from reportgen.comparison.op import Op


@dataclass(frozen=True)
class Matched:
    """Ops of two reports: those that are the same in both, and those that only one has."""

    pairs: tuple[tuple[Op, Op], ...]
    gone: tuple[Op, ...]
    new: tuple[Op, ...]


Key = Callable[[Op], Hashable]

# What two ops must share, tried in this order: the more, the sooner. None leaves an op to a later one.
_KEYS: tuple[Key, ...] = (
    lambda op: (op.program, op.framework_op, op.line, op.category, op.sizes),
    lambda op: (op.place, op.line, op.category, op.sizes) if op.place else None,  # transformed in another way
    lambda op: (op.place, op.category, op.sizes) if op.place else None,  # a line moved
    lambda op: (op.line, op.category, op.sizes) if op.source else None,  # a scope was renamed
    lambda op: (op.place, op.line, op.category) if op.place else None,  # sizes or types changed
    lambda op: (op.place, op.category) if op.place else None,
    lambda op: (op.place, op.line) if op.place else None,  # fused in another way
    lambda op: (op.program, op.category, op.sizes) if not op.place else None,
    lambda op: (op.program, op.stem, op.category) if not op.place else None,
)


def match(base: Sequence[Op], new: Sequence[Op]) -> Matched:
    """Match the ops of two reports; among ops that look the same, those at the same place in the program."""
    pairs: list[tuple[Op, Op]] = []
    left, right = list(base), list(new)
    for key in _KEYS:
        groups, others = _grouped(left, key), _grouped(right, key)
        found = [pair for name, ops in groups.items() for pair in zip(ops, others.get(name, ()), strict=False)]
        pairs += found
        taken = {id(one) for pair in found for one in pair}
        left = [one for one in left if id(one) not in taken]
        right = [one for one in right if id(one) not in taken]
    return Matched(tuple(pairs), tuple(left), tuple(right))


def _grouped(ops: Sequence[Op], key: Key) -> dict[Hashable, list[Op]]:
    groups: dict[Hashable, list[Op]] = defaultdict(list)
    for op in sorted(ops, key=lambda one: one.position):
        if (name := key(op)) is not None:
            groups[name].append(op)
    return groups
