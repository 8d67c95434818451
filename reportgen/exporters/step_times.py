"""Steps on the profile's clock, which is the clock of a trace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

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

    """

    id: int
    start: int
    end: int
    duration: int
    core: str


def step_spans(view: HostView) -> list[StepSpan]:
    """Return the steps of a host in the order of their numbers."""
    found: dict[int, StepSpan] = {}
    for label, steps in _steps_by_core(view):
        for number, start, end in zip(steps.ids.tolist(), steps.starts.tolist(), steps.ends.tolist(), strict=True):
            span = StepSpan(number, start, end, end - start, label)
            if (other := found.get(number)) is not None:
                longest = max(other, span, key=lambda entry: entry.duration)
                span = replace(longest, start=min(other.start, start), end=max(other.end, end))
            found[number] = span
    return [found[number] for number in sorted(found)]


def _steps_by_core(view: HostView) -> Iterable[tuple[str, Steps]]:
    if not view.cores and view.annotations:
        return [(view.annotations.thread, view.annotations.steps)]
    return [(core.id.label, trace_steps(core)) for core in view.cores]


def slowest(spans: list[StepSpan]) -> list[tuple[StepSpan, float]]:
    """Return the slowest steps, the slowest first, each with its duration over the median; none where all are alike."""
    if len(spans) < 2:
        return []
    median = float(np.median([span.duration for span in spans]))
    ranked = sorted(spans, key=lambda span: -span.duration)[:_SLOWEST]
    return [(span, span.duration / median) for span in ranked if span.duration > _SLOW_RATIO * median > 0]
