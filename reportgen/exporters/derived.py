"""Tracks that the capture does not hold and that the ops tell: framework ops, name scopes, source lines, steps.

Neighbouring ops of one framework op, scope or source line inside one step become one slice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reportgen.exporters.args import Heads
from reportgen.exporters.limits import Level
from reportgen.exporters.tracks import Track
from reportgen.profile.intervals import nesting_order, parents
from reportgen.profile.model import Value
from reportgen.profile.ops import OpInfo
from reportgen.profile.steps import Steps

Times = NDArray[np.int64]
Rows = NDArray[np.int64]

_SCOPE_DEPTH = 32
_TEXT_LIMIT = 2000
# Ops further apart are no neighbours: something else went on between them, such as another run of the program.
_LONGEST_GAP_PS = 100_000_000


@dataclass(frozen=True)
class OpEvents:
    """Ops on one line, in nesting order.

    Attributes:
        infos: What is known of each op.
        ops: Index in `infos` of each execution.
        starts, durations: Picoseconds on the profile's clock.
        steps: Index of the step of each execution, -1 for none.
        parents: Row of the execution that directly holds each one, -1 for none.

    """

    infos: Sequence[OpInfo]
    ops: Rows
    starts: Times
    durations: Times
    steps: Rows
    parents: Rows

    @cached_property
    def disjoint(self) -> bool:
        """Whether no two executions overlap."""
        return bool((self.starts[1:] >= (self.starts + self.durations)[:-1]).all())

    @classmethod
    def of(cls, infos: Sequence[OpInfo], ops: Rows, starts: Times, durations: Times, steps: Rows) -> OpEvents:
        """Return executions given in any order."""
        order = nesting_order(starts, durations)
        starts, durations = starts[order], durations[order]
        return cls(infos, ops[order], starts, durations, steps[order], parents(starts, durations))

    def leaves(self) -> OpEvents:
        """Return the executions that hold no other."""
        inner = np.ones(len(self.ops), dtype=bool)
        inner[self.parents[self.parents >= 0]] = False
        if inner.all():
            return self
        none = np.full(int(inner.sum()), -1)
        return OpEvents(self.infos, self.ops[inner], self.starts[inner], self.durations[inner], self.steps[inner], none)

    def codes(self, of: Callable[[OpInfo], str]) -> tuple[Rows, list[str]]:
        """Return a text of each execution's op as a code into the distinct texts; -1 for none."""
        texts: dict[str, int] = {}
        per_op = [texts.setdefault(text, len(texts)) if (text := of(info)) else -1 for info in self.infos]
        return np.array(per_op, dtype=np.int64)[self.ops], list(texts)


def derived_tracks(events: OpEvents, captured: frozenset[str], suffix: str = "") -> list[Track]:
    """Return the tracks that ops tell and the capture lacks.

    Args:
        events: The ops.
        captured: Titles of the tracks that the capture holds.
        suffix: Added to the titles.

    """
    leaves = events.leaves()
    found = []
    if not captured & {"Framework Name Scope", "TensorFlow Name Scope"}:
        found.append(_scopes(leaves))
    if not captured & {"Framework Ops", "TensorFlow Ops"}:
        found.append(_framework_ops(events))
    if "Source code" not in captured:
        found.append(_sources(leaves))
    tracks = [track for track in found if len(track.rows)]
    for track in tracks:
        track.title += f" (derived){suffix}"
    return tracks


def step_track(steps: Steps) -> Track:
    """Return the steps as a track, with the evidence for them."""
    args = [{"evidence": f"{steps.source}{f', {steps.detail}' if steps.detail else ''}"}] * len(steps)
    heads = Heads.of_names(steps.labels, args)
    rows = np.arange(len(steps))
    return Track("Steps (derived)", Level.STEPS, steps.starts, steps.durations, rows, heads, exact=False)


def xla_op_track(events: OpEvents, owned: NDArray[np.bool_], suffix: str) -> Track:
    """Return the HLO ops that a stream's kernels belong to; its kinds are the ops' indices in `events.infos`.

    Args:
        events: The kernels as runs of ops.
        owned: Which of the ops are HLO ops.
        suffix: Added to the title.

    """
    runs = _runs(events, np.where(owned[events.ops], events.ops, -1), None)
    names = [info.name for info in events.infos]
    return _track(
        f"XLA Ops (derived){suffix}", Level.OPS, runs, Heads.of_names(names, [_card(i) for i in events.infos])
    )


def xla_module_track(events: OpEvents, suffix: str) -> Track:
    """Return the modules that a stream's kernels belong to."""
    codes, names = events.codes(lambda info: f"{info.module}({info.program})" if info.module else "")
    return _track(f"XLA Modules (derived){suffix}", Level.STEPS, _runs(events, codes, None), Heads.of_names(names))


def _card(info: OpInfo) -> dict[str, Value]:
    texts = {
        "category": info.category,
        "expression": info.expression[:_TEXT_LIMIT],
        "shape": info.shape[:_TEXT_LIMIT],
        "source": info.source,
        "framework_op": framework_name(info),
        "program": str(info.program),
    }
    costs = {"flops": info.flops, "bytes": info.bytes}
    return {
        **{key: text for key, text in texts.items() if text},
        **{key: cost for key, cost in costs.items() if cost is not None},
    }


def framework_name(info: OpInfo) -> str:
    """Return the name of an op's framework op without its type: "scope/scope/add" of "scope/scope/add:Add"."""
    return info.framework_op.partition(":")[0].rstrip("/")


def _framework_ops(events: OpEvents) -> Track:
    codes, names = events.codes(framework_name)
    inside = events.parents >= 0
    repeats = np.zeros(len(codes), dtype=bool)
    repeats[inside] = codes[inside] == codes[events.parents[inside]]  # an op and its body are one framework op
    runs = _runs(events, np.where(repeats, -1, codes), events.parents)
    labels = [name.rpartition("/")[2] or name for name in names]
    heads = Heads.of_names(labels, [{"framework_op": name} for name in names])
    return _track("Framework Ops", Level.OPS, runs, heads, events.disjoint)


def _scopes(events: OpEvents) -> Track:
    codes, names = events.codes(lambda info: framework_name(info).rpartition("/")[0])
    paths = [name.split("/")[:_SCOPE_DEPTH] for name in names]
    prefixes: dict[tuple[str, ...], int] = {}
    depth = max((len(path) for path in paths), default=0)
    table = np.full((depth, len(paths) + 1), -1)
    for code, path in enumerate(paths):
        for level in range(len(path)):
            table[level, code] = prefixes.setdefault(tuple(path[: level + 1]), len(prefixes))
    runs = [_runs(events, table[level][codes], None) for level in range(depth)]
    joined = tuple(np.concatenate(parts) for parts in zip(*runs, strict=True)) or (np.empty(0, np.int64),) * 3
    heads = Heads.of_names([path[-1] for path in prefixes])
    return _track("Framework Name Scope", Level.OPS, joined, heads, events.disjoint)


def _sources(events: OpEvents) -> Track:
    codes, names = events.codes(lambda info: info.source)
    return _track("Source code", Level.ALL, _runs(events, codes, None), Heads.of_names(names), events.disjoint)


def _runs(events: OpEvents, codes: Rows, above: Rows | None) -> tuple[Times, Times, Rows]:
    """Return starts, durations and codes of neighbouring executions of one code, step and parent; those of -1 not.

    An execution and those inside it follow each other in nesting order, so that their gaps are negative.
    """
    if not len(codes):
        return events.starts, events.durations, codes
    gaps = events.starts[1:] - (events.starts + events.durations)[:-1]
    change = (codes[1:] != codes[:-1]) | (events.steps[1:] != events.steps[:-1]) | (gaps > _LONGEST_GAP_PS)
    if above is not None:
        change |= above[1:] != above[:-1]
    firsts = np.flatnonzero(np.concatenate([[True], change]))
    ends = np.maximum.reduceat(events.starts + events.durations, firsts)
    kept = codes[firsts] >= 0
    firsts, ends = firsts[kept], ends[kept]
    return events.starts[firsts], ends - events.starts[firsts], codes[firsts]


def _track(title: str, level: Level, runs: tuple[Times, ...], heads: Heads, nested: bool = False) -> Track:
    starts, durations, kinds = runs
    return Track(title, level, starts, durations, kinds, heads, exact=False, nested=nested)
