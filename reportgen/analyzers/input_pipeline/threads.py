"""Host threads as one table of events, and what a thread did at every moment: its innermost event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reportgen.profile.intervals import Intervals, covered_within, nesting_order, parents, self_times, sum_by, union
from reportgen.profile.model import Events, HostProfile, Kind

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
        origins: Plane and line of each thread, as indices among the profile's host planes and the plane's lines.
        labels: Distinct names of events.
        threads: Thread of each event.
        codes: Row in `labels` of each event.
        starts, durations: Picoseconds on the profile's clock.
        parents: Row of the event that directly holds each event; -1 for none.
        ids: The statistic `id` (of an iterator or of a function's run); 0 where an event has none.

    """

    names: tuple[str, ...]
    origins: tuple[tuple[int, int], ...]
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


# PjRt marks the beginning and the end of a wait by two instants, which share a producer's and consumer's id.
_INSTANTS = ("::Await", "::ToLiteral")


def host_threads(profile: HostProfile) -> Threads:
    """Return the events of all threads of a host; a wait that PjRt recorded as two instants becomes an event, too.

    Raises:
        WireError: An event is damaged.

    """
    names: list[str] = []
    labels: list[str] = []
    parts: list[tuple[NDArray[np.int64], ...]] = []
    offset = 0
    origins: list[tuple[int, int]] = []
    for number, plane in enumerate(profile.of_kind(Kind.HOST)):
        base = len(labels)
        labels.extend(plane.event_names)
        instants = np.array([label.endswith(_INSTANTS) for label in plane.event_names] + [False])
        for index, line in enumerate(plane.lines):
            events = plane.events([index], ("id", "_p", "_c"))
            events = events.where((events.occurrences == 0) & (events.names >= 0))
            waits = _waits(events.where(instants[events.names]))
            starts, durations, codes, ids = (
                np.concatenate(columns)
                for columns in zip(
                    (events.starts, events.durations, events.names + base, events.stats["id"].integers(0)),
                    (waits[0], waits[1], waits[2] + base, np.zeros(len(waits[0]), np.int64)),
                    strict=True,
                )
            )
            order = nesting_order(starts, durations)
            starts, durations, codes, ids = starts[order], durations[order], codes[order], ids[order]
            above = parents(starts, durations)
            thread = np.full(len(order), len(names))
            parts.append((thread, codes, starts, durations, np.where(above >= 0, above + offset, -1), ids))
            names.append(line.display_name)
            origins.append((number, index))
            offset += len(order)
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else [np.empty(0, np.int64)] * 6
    return Threads(tuple(names), tuple(origins), tuple(labels), *columns)


def _waits(instants: Events) -> tuple[NDArray[np.int64], NDArray[np.int64], Rows]:
    """Return starts, durations and names of the waits between two instants of one name and id."""
    begins, ends = (np.flatnonzero(instants.stats[stat].present) for stat in ("_p", "_c"))
    opened = dict(
        zip(
            zip(instants.names[begins].tolist(), instants.stats["_p"].bits[begins].tolist(), strict=True),
            begins.tolist(),
            strict=True,
        )
    )
    keys = zip(instants.names[ends].tolist(), instants.stats["_c"].bits[ends].tolist(), strict=True)
    pairs = [(opened[key], end) for key, end in zip(keys, ends.tolist(), strict=True) if key in opened]
    begin, end = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    starts, stops = instants.starts[begin], instants.ends[end]
    kept = stops > starts
    return starts[kept], (stops - starts)[kept], instants.names[begin][kept]
