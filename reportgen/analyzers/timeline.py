"""The timeline of a typical step and of the slowest one: what cores and host threads did, and which waits show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from reportgen.analyzers.base import Context, Result, SectionId
from reportgen.analyzers.tables import table_of
from reportgen.analyzers.timeline_tracks import ROLES, WAITS, Thread, Track, Window, add_cores, add_threads, threads_of
from reportgen.document import Block, Column, Lane, Role, Table, TableBlock, Text, Timeline, TimelineBlock
from reportgen.profile.step_spans import StepSpan, step_spans
from reportgen.profile.view import HostView
from reportgen.units import PS_PER_SECOND, percent, picoseconds

TYPICAL, SLOWEST = "typical_step", "slowest_step"
_TABLE_ROWS = 200
# A longer stretch to the next step is cut at so many times the step's own length.
_LONGEST_WINDOW = 10
# Waits below this share of the drawn time are not told.
_SMALLEST_SHARE = 1e-4


@dataclass(frozen=True)
class StepPicture:
    """A step of one host, drawn from its start to the start of the next one, so that the time between them shows.

    Attributes:
        span: The step.
        ratio: Its duration over the median of the host's whole steps.
        followed: Whether the window ends where the next step begins.
        window: What happened.

    """

    span: StepSpan
    ratio: float
    followed: bool
    window: Window


@dataclass(frozen=True)
class TimelinePart:
    """Steps of one host to show, of `steps` whole ones: the typical one, and the slowest where it is another."""

    host: str
    steps: int
    typical: StepPicture
    slowest: StepPicture | None

    @property
    def longest(self) -> int:
        """Duration of the slowest step in picoseconds."""
        return (self.slowest or self.typical).span.duration


@dataclass(frozen=True)
class TimelineFacts:
    """Which steps are shown, of which host.

    Attributes:
        steps: Their numbers, in the order of the report.
        windows: Start and end of what is drawn of each, in picoseconds on the host's clock.

    """

    host: str
    steps: tuple[int, ...]
    windows: tuple[tuple[int, int], ...]


class TimelineAnalyzer:
    """Timelines of a typical and of the slowest step, on the host with the slowest step."""

    id: ClassVar[str] = "timeline"
    title: ClassVar[str] = "Timeline"
    section: ClassVar[SectionId] = "timeline"

    def host(self, view: HostView) -> TimelinePart | None:
        """Return the pictures of one host's steps; None where it has no whole step."""
        spans = step_spans(view)
        whole = [span for span in spans if not span.partial] or [span for span in spans if span.duration > 0]
        if not whole:
            return None
        median = float(np.median([span.duration for span in whole]))
        typical = min(whole, key=lambda span: (abs(span.duration - median), span.id))
        slowest = max(whole, key=lambda span: (span.duration, -span.id))
        threads = threads_of(view)
        return TimelinePart(
            view.profile.name,
            len(whole),
            _picture(view, threads, spans, typical, median),
            _picture(view, threads, spans, slowest, median) if slowest != typical else None,
        )

    def merge(self, parts: Sequence[TimelinePart], context: Context) -> Result:  # noqa: ARG002
        """Return the timelines of the host whose slowest step is the longest of all."""
        part = max(parts, key=lambda entry: entry.longest)
        pictures = {TYPICAL: part.typical} | ({SLOWEST: part.slowest} if part.slowest else {})
        several = f" on {part.host}, the host with the slowest step of {len(parts)} hosts" if len(parts) > 1 else ""
        timelines = {key: _timeline(picture, key == SLOWEST, several) for key, picture in pictures.items()}
        blocks: list[Block] = [Text(_introduction(part, several)), *(TimelineBlock(key) for key in timelines)]
        tables = {"timeline_waits": table} if (table := _waits_table(pictures)) else {}
        blocks += [TableBlock(key) for key in tables]
        facts = TimelineFacts(
            part.host,
            tuple(picture.span.id for picture in pictures.values()),
            tuple((picture.window.start, picture.window.end) for picture in pictures.values()),
        )
        return Result(timelines=timelines, tables=tables, blocks=tuple(blocks), facts=facts)


def _picture(
    view: HostView, threads: Sequence[Thread], spans: Sequence[StepSpan], step: StepSpan, median: float
) -> StepPicture:
    following = [span.start for span in spans if span.start > step.start]
    end = max(step.end, min(following, default=step.end))
    window = Window(step.start, min(end, step.start + _LONGEST_WINDOW * (step.end - step.start)))
    if window.end < end:
        window.left_out.append(f"{picoseconds(end - window.end)} before the next step")
    add_cores(window, view)
    add_threads(window, threads)
    return StepPicture(step, step.duration / median, window.end in following, window)


def _introduction(part: TimelinePart, several: str) -> str:
    if part.slowest:
        what = f"A typical step and the slowest one{several}"
    else:
        what = (
            f"A step{several}: the slowest takes no longer than a typical one"
            if part.steps > 1
            else "The only whole step"
        )
    return (
        f"{what}. Drawn from the step's start to the start of the next step; below the ops of each core stand its "
        "waits that no work hides. The trace file holds every event of every step."
    )


def _timeline(picture: StepPicture, slow: bool, several: str) -> Timeline:
    window, span = picture.window, picture.span
    length = window.end - window.start
    time = picoseconds(span.duration)
    waits = _total_waits(window)
    waited = {role: time / max(1, len(window.waits)) / length for role, time in waits.items()} if length else {}
    words = ", ".join(f"{WAITS[role]} {percent(share)}" for role, share in waited.items() if share >= _SMALLEST_SHARE)
    between = f", {picoseconds(length)} {'to the next step' if picture.followed else 'over all cores'}"
    which = f"the slowest, {picture.ratio:.2f} × the median" if slow else "a typical one"
    title = f"Step {span.id}, {which}: {time}{between if length > span.duration else ''}"
    alt = f"{title}{several}. Of this time the cores spent on average: {words or 'no exposed wait'}."
    return Timeline(
        title=title,
        alt=alt,
        start=window.start / PS_PER_SECOND,
        duration=length / PS_PER_SECOND,
        lanes=tuple(_lane(track) for track in window.tracks),
        names=tuple(window.names),
        roles=ROLES,
        note=f"Not drawn: {', '.join(window.left_out)}." if window.left_out else "",
    )


def _lane(track: Track) -> Lane:
    return Lane(
        title=track.title,
        group=track.group,
        starts=tuple((track.starts / PS_PER_SECOND).tolist()),
        durations=tuple((track.durations / PS_PER_SECOND).tolist()),
        names=tuple(track.names.tolist()),
        roles=tuple(track.roles.tolist()),
    )


def _total_waits(window: Window) -> dict[Role, int]:
    sums = {role: sum(waits.get(role, 0) for waits in window.waits.values()) for role in WAITS}
    return {role: time for role, time in sums.items() if time}


def _waits_table(pictures: dict[str, StepPicture]) -> Table | None:
    """Return the exposed waits of each core in each of the steps; None where there is no core."""
    kept: dict[tuple[str, Role], None] = {}
    for picture in pictures.values():
        least = _SMALLEST_SHARE * (picture.window.end - picture.window.start)
        for core, waits in picture.window.waits.items():
            kept |= {(core, role): None for role, time in waits.items() if time >= least}
    if not kept:
        return None
    frame = pd.DataFrame(
        [
            {"core": core, "wait": WAITS[role], **{key: _wait(shown, core, role) for key, shown in pictures.items()}}
            for core, role in kept
        ]
    )
    columns = [Column(name="core", title="Core"), Column(name="wait", title="Wait that no work hides")]
    columns += [Column(name=key, unit="seconds", title=f"Step {picture.span.id}") for key, picture in pictures.items()]
    note = f"Within the time drawn above; waits below {percent(_SMALLEST_SHARE)} of it in every step are left out."
    return table_of(frame, "Exposed waits in these steps", columns, note=note, most=_TABLE_ROWS)


def _wait(picture: StepPicture, core: str, role: Role) -> float | None:
    """Return a core's wait in a step in seconds; None where the step does not show the core."""
    waits = picture.window.waits.get(core)
    return None if waits is None else waits.get(role, 0) / PS_PER_SECOND
