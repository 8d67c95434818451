"""Steps of a program on one core: where they begin and end, and which evidence says so.

Evidence, best first: the device's Steps line; runs of the module that takes most of the time; step annotations on
host threads (`StepTraceAnnotation`, `tf.profiler.experimental.Trace`, `StepTrace`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from reportgen.profile.intervals import sum_by
from reportgen.profile.model import Events, Kind, Plane
from reportgen.profile.ops import OpRuns, device_times

STEPS_LINES = ("Steps", "Sparse Core Steps")
MODULES_LINES = ("XLA Modules", "Sparse Core Modules")
# A first or last step with fewer ops than this share of a typical one was cut by the capture's start or stop.
_WHOLE_SHARE = 0.9


class StepSource(StrEnum):
    """Which evidence defines a step."""

    STEPS_LINE = "the device's Steps line"
    MODULE_RUNS = "runs of the module with the most device time"
    ANNOTATIONS = "step annotations on a host thread"
    LAUNCHES = "kernels launched inside step annotations on a host thread"
    NONE = "none"


@dataclass(frozen=True)
class Steps:
    """Steps of one core, in order of time.

    Attributes:
        source: The evidence.
        detail: Name of the module or annotation.
        ids: Number of each step, the same on every core of a host.
        labels: Name of each step as the profile gives it.
        starts, ends: Picoseconds.
        on_device_clock: Whether the times are on the device's clock or on the profile's.

    """

    source: StepSource
    detail: str
    ids: NDArray[np.int64]
    labels: tuple[str, ...]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    on_device_clock: bool = False

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self.ids)

    @property
    def durations(self) -> NDArray[np.int64]:
        """Picoseconds."""
        return self.ends - self.starts

    def of(self, runs: OpRuns) -> NDArray[np.int64]:
        """Return the index of the step in which each execution began, -1 for none."""
        return self.at(runs.starts if self.on_device_clock else runs.trace_starts)

    def at(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the index of the step that holds each time, -1 for none."""
        if not len(self):
            return np.full(len(times), -1)
        index = np.searchsorted(self.starts, times, side="right") - 1
        return np.where((index >= 0) & (times < self.ends[index]), index, -1)

    def partial(self, runs: OpRuns) -> NDArray[np.bool_]:
        """Return which steps the capture cut: a first or last step with no length or far fewer ops than the others."""
        cut = self.durations <= 0
        counts = np.bincount(self.of(runs) + 1, minlength=len(self) + 1)[1:]
        if len(self) > 2:
            typical = float(np.median(counts[1:-1]))
            for edge in (0, -1):
                cut[edge] |= bool(counts[edge] < _WHOLE_SHARE * typical)
        return cut


def steps_of_line(plane: Plane) -> Steps | None:
    """Return the steps of a device's Steps line; None where it has none.

    Consecutive events of one group are one step, as XProf merges them.
    """
    lines = [index for index in plane.line_indices(*STEPS_LINES) if len(plane.lines[index].starts)]
    if not lines:
        return None
    events = plane.events(lines, ("device_offset_ps", "device_duration_ps", "group_id"))
    starts, durations = device_times(events)
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], (starts + durations)[order]
    groups = events.stats["group_id"].integers(-1)[order]
    grouped = bool((groups >= 0).all())
    ids = groups if grouped else np.arange(len(order))
    first = np.concatenate([[True], ids[1:] != ids[:-1]])
    begins = np.flatnonzero(first)
    names = events.names[order][begins]
    on_device = bool(
        events.stats["device_offset_ps"].present.all() and events.stats["device_duration_ps"].present.all()
    )
    return Steps(
        source=StepSource.STEPS_LINE,
        detail="",
        ids=ids[begins],
        labels=tuple(plane.event_names[row] if row >= 0 else "" for row in names.tolist()),
        starts=starts[begins],
        ends=np.maximum.reduceat(ends, begins),
        on_device_clock=on_device,
    )


@dataclass(frozen=True)
class ModuleRuns:
    """Runs of modules on one core: what the line "XLA Modules" holds."""

    events: Events
    run_ids: NDArray[np.int64]

    def total_times(self) -> dict[str, int]:
        """Return the time of each module in picoseconds, by its label "name(program id)"."""
        names = self.events.plane.event_names
        known = self.events.names >= 0
        sums = sum_by(self.events.names[known], self.events.durations[known], len(names))
        found: dict[str, int] = {}
        for row in np.flatnonzero(sums).tolist():
            found[names[row]] = found.get(names[row], 0) + int(sums[row])
        return found


def module_runs(plane: Plane) -> ModuleRuns:
    """Return the runs of modules on a core."""
    events = plane.events(plane.line_indices(*MODULES_LINES), ("run_id",))
    return ModuleRuns(events, events.stats["run_id"].integers(-1))


def steps_of_modules(cores: Sequence[ModuleRuns]) -> list[Steps] | None:
    """Return for each core of a host the runs of the module with the most time over all cores; None without modules."""
    totals: dict[str, int] = {}
    for core in cores:
        for name, time in core.total_times().items():
            totals[name] = totals.get(name, 0) + time
    if not totals:
        return None
    main = max(sorted(totals), key=lambda name: totals[name])
    chosen = [_runs_of(core, main) for core in cores]
    # Run ids count the launches of each device, other modules included: they name the same launch on two cores only
    # where both saw the same ids. Elsewhere cores run in lock-step, and the order tells.
    numbers = np.unique(np.concatenate([core.run_ids for core in chosen]))
    numbered = bool(len(numbers) and numbers[0] >= 0) and all(np.array_equal(core.run_ids, numbers) for core in chosen)
    return [_steps_of_runs(core, main, numbers if numbered else None) for core in chosen]


def _runs_of(core: ModuleRuns, module: str) -> ModuleRuns:
    names = core.events.plane.event_names
    rows = {row for row, name in enumerate(names) if name == module}
    hits = np.flatnonzero(np.isin(core.events.names, list(rows)))
    hits = hits[np.argsort(core.events.starts[hits], kind="stable")]
    return ModuleRuns(core.events.where(hits), core.run_ids[hits])


def _steps_of_runs(core: ModuleRuns, module: str, numbers: NDArray[np.int64] | None) -> Steps:
    """Number the runs by the rank of their run id on the host, or by their order where they have none."""
    count = len(core.run_ids)
    ids = np.arange(count) if numbers is None else np.searchsorted(numbers, core.run_ids)
    labels = tuple(str(run) for run in (ids if numbers is None else core.run_ids).tolist())
    return Steps(StepSource.MODULE_RUNS, module, ids, labels, core.events.starts, core.events.ends)


@dataclass(frozen=True)
class Annotations:
    """Step annotations of a host: the outermost root events of the thread that has most of them."""

    steps: Steps
    thread: str


def annotated_steps(planes: Sequence[Plane]) -> Annotations | None:
    """Return the step annotations of a host; None where there are none.

    An annotation is an event with the statistic `_r` (the root that JAX, TensorFlow and PyTorch/XLA set) and a step
    number, or one whose name tells (`train`, `test`, `TraceContext` without "/") and that has a step number.
    """
    best: tuple[int, Plane, int, Events, NDArray[np.int64]] | None = None
    for plane in planes:
        if plane.kind is not Kind.HOST:
            continue
        if not {"step_num", "iter_num"} & set(plane.stat_names.values()):
            continue
        events = plane.events(plane.line_indices(), ("_r", "step_num", "iter_num"))
        numbers = np.where(
            events.stats["step_num"].present,
            events.stats["step_num"].integers(-1),
            events.stats["iter_num"].integers(-1),
        )
        named = np.array([_names_a_step(name) for name in plane.event_names] + [False], dtype=bool)[events.names]
        roots = (numbers >= 0) & ((events.stats["_r"].integers(0) > 0) | named)
        for line in np.unique(events.lines[roots]).tolist():
            hits = np.flatnonzero(roots & (events.lines == line))
            hits = _most_frequent_name(events, hits)
            if best is None or len(hits) > best[0]:
                best = (len(hits), plane, line, events.where(hits), numbers[hits])
    if best is None:
        return None
    _, plane, line, events, numbers = best
    order = np.argsort(events.starts, kind="stable")
    steps = Steps(
        StepSource.ANNOTATIONS,
        plane.event_names[int(events.names[0])],
        numbers[order],
        tuple(str(number) for number in numbers[order].tolist()),
        events.starts[order],
        events.ends[order],
    )
    return Annotations(steps, plane.lines[line].display_name)


def _names_a_step(name: str) -> bool:
    return name.startswith(("train", "test", "TraceContext", "step")) and "/" not in name


def _most_frequent_name(events: Events, hits: NDArray[np.int64]) -> NDArray[np.int64]:
    names, counts = np.unique(events.names[hits], return_counts=True)
    return np.compress(events.names[hits] == names[np.argmax(counts)], hits)
