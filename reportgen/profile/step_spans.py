"""Steps over the cores of a host, on the profile's clock, which is that of host threads and of a trace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reportgen.profile.ops import device_times
from reportgen.profile.steps import STEPS_LINES, Steps
from reportgen.profile.view import Core, HostView

_SLOWEST = 3
_SLOW_RATIO = 1.02


def trace_steps(core: Core) -> Steps:
    """Return a core's steps with their times on the profile's clock.

    Steps of the device's own line are timed by the device; the plain offsets of the same events give the profile's
    time.
    """
    steps = core.steps
    if not steps.on_device_clock or not len(steps):
        return steps
    plane = core.plane
    lines = [index for index in plane.line_indices(*STEPS_LINES) if len(plane.lines[index].starts)]
    events = plane.events(lines, ("device_offset_ps", "device_duration_ps"))
    device_starts, _ = device_times(events)
    order = np.argsort(device_starts, kind="stable")
    firsts = np.searchsorted(device_starts[order], steps.starts)
    ends = np.maximum.reduceat(events.ends[order], firsts)
    return replace(steps, starts=events.starts[order][firsts], ends=ends, on_device_clock=False)


@dataclass(frozen=True)
class StepSpan:
    """A step over all cores of a host, on the profile's clock.

    Attributes:
        id: Number of the step.
        start, end: Picoseconds: first start and last end over the cores.
        duration: Picoseconds: the longest over the cores.
        core: Label of the core on which it took longest.
        partial: Whether the capture cut it on a core, or it has no length.

    """

    id: int
    start: int
    end: int
    duration: int
    core: str
    partial: bool = False


def step_spans(view: HostView) -> list[StepSpan]:
    """Return the steps of a host in the order of their numbers."""
    found: dict[int, StepSpan] = {}
    for label, steps, partial in _steps_by_core(view):
        columns = (steps.ids.tolist(), steps.starts.tolist(), steps.ends.tolist(), partial.tolist())
        for number, start, end, cut in zip(*columns, strict=True):
            span = StepSpan(number, start, end, end - start, label, cut)
            found[number] = _joined(found[number], span) if number in found else span
    return [found[number] for number in sorted(found)]


def _joined(first: StepSpan, second: StepSpan) -> StepSpan:
    longest = max(first, second, key=lambda span: span.duration)
    start, end = min(first.start, second.start), max(first.end, second.end)
    return replace(longest, start=start, end=end, partial=first.partial or second.partial)


def _steps_by_core(view: HostView) -> Iterable[tuple[str, Steps, NDArray[np.bool_]]]:
    if not view.active_cores and view.annotations:
        steps = view.annotations.steps
        return [(view.annotations.thread, steps, steps.durations <= 0)]
    return [(core.id.label, trace_steps(core), core.steps.partial(core.runs)) for core in view.active_cores]


def slowest(spans: list[StepSpan]) -> list[tuple[StepSpan, float]]:
    """Return the slowest whole steps, slowest first, with their duration over the median; none where all are alike."""
    whole = [span for span in spans if not span.partial]
    if len(whole) < 2:
        return []
    median = float(np.median([span.duration for span in whole]))
    ranked = sorted(whole, key=lambda span: -span.duration)[:_SLOWEST]
    return [(span, span.duration / median) for span in ranked if span.duration > _SLOW_RATIO * median > 0]
