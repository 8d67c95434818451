"""Host threads as one table of events, and what a thread did at every moment: its innermost event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reportgen.profile.intervals import Intervals, covered_within, nesting_order, parents, self_times, sum_by, union
from reportgen.profile.model import HostProfile, Kind

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Segments(NamedTuple):
    """Stretches of one thread's time, each with the row of the innermost event in it."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    rows: Rows


@dataclass(frozen=True)
class Threads:
    """Events of all host threads, thread by thread, each in nesting order; aggregated events are left out.

    Attributes:
        names: Name of each thread.
        labels: Distinct names of events.
        threads: Thread of each event.
        codes: Row in `labels` of each event.
        starts, durations: Picoseconds on the profile's clock.
        parents: Row of the event that directly holds each event; -1 for none.
        ids: The statistic `id` (of an iterator or of a function's run); 0 where an event has none.

    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    threads: Rows
    codes: Rows
    starts: NDArray[np.int64]
    durations: NDArray[np.int64]
    parents: Rows
    ids: NDArray[np.int64]

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.codes)

    @property
    def ends(self) -> NDArray[np.int64]:
        """Picoseconds on the profile's clock."""
        return self.starts + self.durations

    def labelled(self, accepts: Callable[[str], bool]) -> Mask:
        """Return which events have an accepted label; each distinct label is looked at once."""
        return np.array([*map(accepts, self.labels), False], dtype=bool)[self.codes]

    def spans(self, rows: Mask | Rows) -> Intervals:
        """Return the time in which at least one of these events ran, on any thread."""
        return union(self.starts[rows], self.ends[rows])

    def self_times(self, chosen: Rows) -> NDArray[np.int64]:
        """Return each chosen event's time without the chosen events directly inside it on its thread."""
        result = np.empty(len(chosen), np.int64)
        for thread in np.unique(self.threads[chosen]):
            at = np.flatnonzero(self.threads[chosen] == thread)
            result[at] = self_times(self.starts[chosen[at]], self.durations[chosen[at]])
        return result

    def nearest(self, chosen: Mask) -> Rows:
        """Return for each event the row of its nearest chosen ancestor or itself; -1 where there is none."""
        above = np.append(np.where(chosen, np.arange(len(self)), self.parents), -1)
        fixed = np.append(chosen, True)
        while True:
            step = np.where(fixed[above], above, above[above])
            if (step == above).all():
                return above[:-1]
            above = step

    def segments(self, thread: int) -> Segments:
        """Return what a thread did at every moment at which an event of it ran."""
        rows = np.flatnonzero(self.threads == thread)
        rows = rows[self.durations[rows] > 0]
        count = len(rows)
        # Boundaries in time; ends come before starts, and of equal ends the inner event's comes first.
        times = np.concatenate([self.starts[rows], self.ends[rows]])
        is_start = np.repeat([1, 0], count)
        rank = np.concatenate([np.arange(count), -np.arange(count)])
        order = np.lexsort((rank, is_start, times))
        inner = np.concatenate([rows, self.parents[rows]])[order]
        times = times[order]
        kept = (times[1:] > times[:-1]) & (inner[:-1] >= 0)
        return Segments(times[:-1][kept], times[1:][kept], inner[:-1][kept])

    def time_by_row(self, thread: int, within: Intervals) -> tuple[Rows, NDArray[np.int64]]:
        """Return the events of a thread that were innermost during some intervals, and for how long in each event."""
        starts, ends, rows = self.segments(thread)
        time = covered_within(within, starts, ends)
        hit = time > 0
        distinct, inverse = np.unique(rows[hit], return_inverse=True)
        return distinct, sum_by(inverse, time[hit], len(distinct))

    @cached_property
    def thread_rows(self) -> dict[str, list[int]]:
        """Indices of the threads of each name."""
        found: dict[str, list[int]] = {}
        for index, name in enumerate(self.names):
            found.setdefault(name, []).append(index)
        return found


def host_threads(profile: HostProfile) -> Threads:
    """Return the events of all threads of a host.

    Raises:
        WireError: An event is damaged.

    """
    names: list[str] = []
    labels: list[str] = []
    parts: list[tuple[NDArray[np.int64], ...]] = []
    offset = 0
    for plane in profile.of_kind(Kind.HOST):
        base = len(labels)
        labels.extend(plane.event_names)
        stats = ("id",) if any("Iterator" in label for label in plane.event_names) else ()
        for index, line in enumerate(plane.lines):
            events = plane.events([index], stats)
            events = events.where((events.occurrences == 0) & (events.names >= 0))
            order = nesting_order(events.starts, events.durations)
            starts, durations = events.starts[order], events.durations[order]
            above = parents(starts, durations)
            ids = events.stats["id"].integers(0)[order] if stats else np.zeros(len(order), np.int64)
            thread = np.full(len(order), len(names))
            codes = events.names[order] + base
            parts.append((thread, codes, starts, durations, np.where(above >= 0, above + offset, -1), ids))
            names.append(line.display_name)
            offset += len(order)
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else [np.empty(0, np.int64)] * 6
    return Threads(tuple(names), tuple(labels), *columns)
