"""What host threads do inside steps that is no input: compiling, collecting garbage, calling back, running Python."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reportgen.analyzers.base import Context, Result, SectionId
from reportgen.profile.intervals import Intervals, covered_within, nesting_order, self_times, union
from reportgen.profile.model import Events, Kind, Plane
from reportgen.profile.view import HostView
from reportgen.units import PS_PER_SECOND

COMPILE, GARBAGE, CALLBACK = "compile", "garbage", "callback"
# Names that JAX, TensorFlow and PyTorch/XLA give to compilation, tracing and lowering, and to calls from the device's
# program back into the host.
_KINDS = {
    COMPILE: re.compile(
        r"backend_compile|lower_sharding_computation|trace_to_jaxpr|Client::Compile|CompileAndLoad|XlaCompile\b"
        r"|XlaCompilationCache|CompileToLocalExecutable|TpuCompile|XLAGraphExecutor::Compile"
        r"|Compiler::RunBackend|Compiler::Compile|tf\.function-graph_building|func_graph_from_py_func"
    ),
    GARBAGE: re.compile(r"^\$gc collect|PyGC_Collect"),
    CALLBACK: re.compile(
        r"debug_print|debug_callback|pure_callback|io_callback|_wrapped_callback|HostCallback|python_callback|PrintV2"
        r"|EagerPyFunc|\bPyFunc\b|outside_compilation",
        re.IGNORECASE,
    ),
}
# What hands one program to the device, by framework.
_LAUNCH = re.compile(r"LoadedExecutable::ExecuteHelper|EagerKernelExecute|PjRtComputationClient::Execute")
# JAX has Python call this at the begin and at the end of every collection.
_GC_CALLBACK = "_xla_gc_callback"
_PYTHON = re.compile(r"^\$(?P<file>[\w.-]+\.py):(?P<line>\d+) (?P<function>.+)$")
_LIBRARIES = re.compile(
    r"^\$(profiler|pjit|pxla|compiler|core|dispatch|api|traceback_util|array|mlir|partial_eval)\.py"
)
_SHOWN = 8


@dataclass(frozen=True)
class HostEventPart:
    """Host events of one host.

    Attributes:
        times: Picoseconds a step by kind, the union over threads; one entry a step.
        counts: Events by kind and step.
        periods: Picoseconds from each step's start to the next one's; the step's time for the last.
        names: Largest event names by kind, with picoseconds.
        python: Self time of Python functions inside steps, in picoseconds, by "file:line function".
        launches: Programs launched inside all steps.

    """

    host: str
    times: Mapping[str, NDArray[np.int64]]
    counts: Mapping[str, NDArray[np.int64]]
    periods: NDArray[np.int64]
    names: Mapping[str, list[tuple[str, int]]]
    python: list[tuple[str, int]]
    launches: int


@dataclass(frozen=True)
class Activity:
    """One kind of host activity on the host where it takes the largest share.

    Attributes:
        host: Its name.
        share: Of the steps' periods.
        per_step: Seconds a step.
        steps: Number of steps in which it happened, and of all.
        first_only: Whether it happened in the first step only, as warm-up does.
        count: Events in all.
        names: Largest event names with seconds.

    """

    host: str
    share: float
    per_step: float
    steps: tuple[int, int]
    first_only: bool
    count: int
    names: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class HostEventFacts:
    """Host activity by kind; a kind is absent where nothing of it was seen.

    Attributes:
        activities: The worst host's, by kind.
        python: Python functions with seconds of self time a step.
        launches: Programs that a host launched a step; 0 where none was seen.

    """

    activities: Mapping[str, Activity]
    python: tuple[tuple[str, float], ...]
    launches: float


class HostEventsAnalyzer:
    """Compilation, garbage collection, callbacks and Python inside steps."""

    id: ClassVar[str] = "host-events"
    title: ClassVar[str] = "Host activity"
    section: ClassVar[SectionId] = "hosts"

    def host(self, view: HostView) -> HostEventPart | None:
        """Return one host's activity inside its steps."""
        # Host events are on the profile's clock.
        steps = next((found for found in view.steps.values() if len(found) and not found.on_device_clock), None)
        if steps is None and view.annotations is not None:
            steps = view.annotations.steps
        if steps is None or not len(steps):
            return None
        starts = np.asarray(steps.starts)
        ends = np.append(starts[1:], max(int(steps.ends[-1]), int(starts[-1])))
        return _part(view, starts, np.maximum(ends, starts))

    def merge(self, parts: Sequence[HostEventPart], context: Context) -> Result:  # noqa: ARG002
        """Return each kind's activity on its worst host."""
        found: dict[str, Activity] = {}
        for kind in _KINDS:
            activities = [_activity(part, kind) for part in parts if part.times[kind].any()]
            if activities:
                found[kind] = max(activities, key=lambda activity: activity.share)
        python = max((part.python for part in parts), key=lambda names: sum(time for _, time in names))
        steps = max(1, len(parts[0].periods))
        launches = max(part.launches / max(1, len(part.periods)) for part in parts)
        functions = tuple((name, time / PS_PER_SECOND / steps) for name, time in python)
        return Result(facts=HostEventFacts(found, functions, launches))


def _part(view: HostView, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> HostEventPart:
    spans: dict[str, list[Intervals]] = {kind: [] for kind in _KINDS}
    names: dict[str, dict[str, int]] = {kind: {} for kind in _KINDS}
    counts = {kind: np.zeros(len(starts), np.int64) for kind in _KINDS}
    python: dict[str, int] = {}
    launches: dict[str, int] = {}
    for plane in view.profile.of_kind(Kind.HOST):
        kinds = {kind: np.array([bool(pattern.search(name)) for name in plane.event_names] + [False])
                 for kind, pattern in _KINDS.items()}  # fmt: skip
        callback = np.array([_GC_CALLBACK in name for name in plane.event_names] + [False])
        functions = [_python_name(name) for name in plane.event_names]
        for line in range(len(plane.lines)):
            events = plane.events([line])
            for kind, wanted in kinds.items():
                hits = np.flatnonzero(wanted[events.names])
                _note(events, hits, plane, names[kind])
                spans[kind].append(union(events.starts[hits], events.ends[hits]))
                counts[kind] += _count(events.starts[hits], starts, ends)
            spans[GARBAGE].append(_collections(events, np.flatnonzero(callback[events.names])))
            _note_python(events, functions, starts, ends, python)
            _note_launches(events, plane, starts, ends, launches)
    times = {kind: covered_within(_joined(parts), starts, ends) for kind, parts in spans.items()}
    return HostEventPart(
        view.profile.name, times, counts, ends - starts, {kind: _largest(found) for kind, found in names.items()},
        _largest(python), max(launches.values(), default=0),
    )  # fmt: skip


def _joined(parts: Sequence[Intervals]) -> Intervals:
    if not parts:
        return Intervals(np.empty(0, np.int64), np.empty(0, np.int64))
    return union(np.concatenate([part.starts for part in parts]), np.concatenate([part.ends for part in parts]))


def _note(events: Events, hits: NDArray[np.int64], plane: Plane, names: dict[str, int]) -> None:
    for row in hits.tolist():
        name = plane.event_names[int(events.names[row])]
        names[name] = names.get(name, 0) + int(events.durations[row])


def _note_launches(
    events: Events, plane: Plane, starts: NDArray[np.int64], ends: NDArray[np.int64], found: dict[str, int]
) -> None:
    """Count launches inside steps by name: a launch may hold events of several names."""
    rows = [row for row, name in enumerate(plane.event_names) if _LAUNCH.search(name)]
    for row in rows:
        hits = events.starts[events.names == row]
        name = plane.event_names[row]
        found[name] = found.get(name, 0) + int(_count(hits, starts, ends).sum())


def _count(times: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    index = np.searchsorted(starts, times, side="right") - 1
    inside = (index >= 0) & (times < ends[index])
    return np.bincount(index[inside], minlength=len(starts))


def _collections(events: Events, calls: NDArray[np.int64]) -> Intervals:
    """Return garbage collections from the calls at their begin and end: every other span between two calls.

    A capture may start inside a collection; the shorter one of both ways to pair the calls is the collections'.
    """
    order = calls[np.argsort(events.starts[calls], kind="stable")]
    ways = [order[shift : shift + (len(order) - shift) // 2 * 2] for shift in ((0, 1) if len(order) > 2 else (0,))]
    spans = [union(events.starts[way[0::2]], events.ends[way[1::2]]) for way in ways]
    return min(spans, key=lambda found: found.total)


def _python_name(name: str) -> str:
    """Return "file:line function" of a Python call that is the user's; "" for others."""
    match = _PYTHON.match(name)
    if match is None or _LIBRARIES.match(name):
        return ""
    return f"{match['file']}:{match['line']} {match['function']}"


def _note_python(
    events: Events,
    functions: Sequence[str],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    found: dict[str, int],
) -> None:
    """Add the self time of Python functions that begin inside steps."""
    if not any(functions) or not len(events.names):
        return
    order = nesting_order(events.starts, events.durations)
    ordered = events.where(order)
    own = self_times(ordered.starts, ordered.durations)
    index = np.searchsorted(starts, ordered.starts, side="right") - 1
    inside = (index >= 0) & (ordered.starts < ends[index])
    sums = pd.Series(own[inside]).groupby(ordered.names[inside]).sum()
    for row, time in sums.items():
        name = functions[int(str(row))] if int(str(row)) >= 0 else ""
        if name:
            found[name] = found.get(name, 0) + int(time)


def _largest(times: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(times.items(), key=lambda item: (-item[1], item[0]))[:_SHOWN]


def _activity(part: HostEventPart, kind: str) -> Activity:
    times = part.times[kind]
    total, period = int(times.sum()), max(1, int(part.periods.sum()))
    steps = int((times > 0).sum())
    return Activity(
        host=part.host,
        share=total / period,
        per_step=total / len(times) / PS_PER_SECOND,
        steps=(steps, len(times)),
        first_only=steps == 1 and bool(times[0] > 0),
        count=int(part.counts[kind].sum()),
        names=tuple((name, time / PS_PER_SECOND) for name, time in part.names[kind]),
    )
