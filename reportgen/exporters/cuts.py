"""Cut a host's tracks to what was asked for, and say what was cut."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reportgen.errors import UsageError
from reportgen.exporters.limits import Level, TraceLimits, TraceSummary
from reportgen.exporters.tracks import Section, Track, all_tracks
from reportgen.profile.step_spans import StepSpan


def apply_limits(
    host: str, sections: Sequence[Section], spans: Sequence[StepSpan], limits: TraceLimits, summary: TraceSummary
) -> None:
    """Cut the rows of tracks, and whole tracks below the level of detail.

    Raises:
        UsageError: Steps are asked for and the host has none of them.

    """
    tracks = list(all_tracks(sections))
    summary.count_cut("lines are damaged and could not be read whole", sum(section.damaged for section in sections))
    summary.count_cut("aggregated events have no time and are not drawn", sum(track.aggregated for track in tracks))
    for section in sections:
        hidden = [track for track in section.tracks if track.level > limits.level]
        summary.count_cut("events are below the level of detail", sum(len(track.rows) for track in hidden))
        section.tracks = [track for track in section.tracks if track.level <= limits.level]
        section.counters = [counter for counter in section.counters if counter.level <= limits.level]
    tracks = list(all_tracks(sections))
    if limits.steps is not None:
        cut_to_windows(sections, [_window_of(host, spans, limits.steps)], summary)
    if limits.max_events is not None:
        cut_to_number(tracks, limits.max_events, summary)


def _window_of(host: str, spans: Sequence[StepSpan], steps: tuple[int, int]) -> tuple[int, int]:
    chosen = [span for span in spans if steps[0] <= span.id <= steps[1]]
    if not chosen:
        known = f"{spans[0].id} to {spans[-1].id}" if spans else "none"
        raise UsageError(f"{host}: there is no step from {steps[0]} to {steps[1]}; its steps are {known}.")
    return min(span.start for span in chosen), max(span.end for span in chosen)


def cut_to_windows(sections: Sequence[Section], windows: Sequence[tuple[int, int]], summary: TraceSummary) -> None:
    """Keep the events that overlap stretches of time, and the values that hold in them.

    Args:
        sections: What to cut.
        windows: Start and end of each stretch, in picoseconds on the host's clock.
        summary: Told what was cut.

    """
    for track in all_tracks(sections):
        starts = track.starts[track.rows]
        ends = starts + track.durations[track.rows]
        inside = np.zeros(len(starts), dtype=bool)
        for start, end in windows:
            inside |= (starts < end) & (ends >= start)
        summary.count_cut("events are outside the chosen steps", int((~inside).sum()))
        track.rows = track.rows[inside]
    for section in sections:
        for counter in section.counters:
            kept = np.zeros(len(counter.times), dtype=bool)
            for start, end in windows:
                # The last value before the window still holds when it begins.
                first = max(0, int(np.searchsorted(counter.times, start, side="right")) - 1)
                kept[first : int(np.searchsorted(counter.times, end))] = True
            counter.times, counter.values = counter.times[kept], counter.values[kept]


def cut_to_number(tracks: Sequence[Track], most: int, summary: TraceSummary) -> None:
    """Keep the longest events; steps and modules, which are few, come before all others."""
    total = sum(len(track.rows) for track in tracks)
    if total <= most:
        return
    weights = np.concatenate([_weights(track) for track in tracks])
    kept = np.zeros(total, dtype=bool)
    kept[np.argsort(-weights, kind="stable")[:most]] = True
    at = 0
    for track in tracks:
        after = at + len(track.rows)
        track.rows, at = track.rows[kept[at:after]], after
    summary.count_cut("shorter events are over the limit of events", total - most)


def _weights(track: Track) -> NDArray[np.int64]:
    longest = np.int64(1) << 62
    return np.where(track.level == Level.STEPS, longest, 0) + track.durations[track.rows]
