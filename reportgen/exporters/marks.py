"""Marks: findings and the slowest steps as instants on a track of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reportgen.document import Finding, Location
from reportgen.errors import InputError
from reportgen.profile.model import Value
from reportgen.profile.ops import OpRuns
from reportgen.profile.step_spans import StepSpan, slowest
from reportgen.profile.view import HostView
from reportgen.units import picoseconds
from reportgen.wire.varint import WireError

FINDINGS, SLOW_STEPS = "findings", "slowest steps"


@dataclass(frozen=True)
class Mark:
    """An instant.

    Attributes:
        track: FINDINGS or SLOW_STEPS.
        time: Picoseconds on the host's clock.

    """

    track: str
    title: str
    time: int
    args: Mapping[str, Value]


def step_marks(host: str, spans: Sequence[StepSpan]) -> list[Mark]:
    """Return a mark at the start of each of the slowest steps of a host."""
    return [
        Mark(
            SLOW_STEPS,
            f"step {span.id}: {picoseconds(span.duration)}, {ratio:.2f} × the median",
            span.start,
            {"host": host, "core": span.core, "step": str(span.id), "duration_ps": str(span.duration), "rank": rank},
        )
        for rank, (span, ratio) in enumerate(slowest(list(spans)), 1)
    ]


def finding_mark(finding: Finding, time: int) -> Mark:
    """Return the mark of a finding."""
    args: dict[str, Value] = {
        "finding": finding.id,
        "severity": finding.severity,
        "summary": finding.summary,
        **{f"evidence {number}": evidence.text for number, evidence in enumerate(finding.evidence, 1)},
        **{f"action {number}": action.text for number, action in enumerate(finding.actions, 1)},
    }
    return Mark(FINDINGS, finding.title, time, args)


def finding_time(finding: Finding, view: HostView, spans: Sequence[StepSpan]) -> int | None:
    """Return when what a finding points at first happens on a host, in picoseconds; None where it does not."""
    try:
        times = [_location_time(location, view, spans) for location in finding.locations]
    except (WireError, InputError):
        return None
    return next((time for time in times if time is not None), None)


def _location_time(location: Location, view: HostView, spans: Sequence[StepSpan]) -> int | None:
    if location.kind == "step":
        number = re.search(r"\d+", location.name)
        return next((span.start for span in spans if number and span.id == int(number[0])), None)
    if location.kind == "op":
        return min((time for core in view.cores for time in _first_runs(core.runs, location.name)), default=None)
    if location.kind == "core":
        starts = [core.runs.trace_starts for core in view.active_cores if core.id.label == location.name]
        return int(starts[0].min()) if starts else None
    return None


def _first_runs(runs: OpRuns, name: str) -> list[int]:
    """Return when an op first ran on a core, or nothing."""
    ops = [row for row, info in enumerate(runs.infos) if info.name == name]
    starts = runs.trace_starts[np.isin(runs.ops, ops)] if ops else runs.trace_starts[:0]
    return [int(starts.min())] if len(starts) else []
