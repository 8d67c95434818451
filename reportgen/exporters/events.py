"""Events of a track as text, many at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reportgen.exporters.json_text import PS_PER_NS, microseconds, whole_nanoseconds
from reportgen.exporters.lanes import lanes
from reportgen.exporters.tracks import Track
from reportgen.wire.varint import WireError

Times = NDArray[np.int64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Placement:
    """Where the written rows of a track stand in the trace.

    Attributes:
        process: Number of its section.
        threads: Number of each lane.
        lanes: Lane of each written row.
        begins, ends: Whole nanoseconds of each written row.
        early: How many began before time 0 and are drawn from there.
        rows: The written rows, ascending.
        offset: Picoseconds from the host's clock to the trace's.

    """

    process: int
    threads: range
    lanes: Rows
    begins: Times
    ends: Times
    early: int
    rows: Rows
    offset: int

    @property
    def lane_count(self) -> int:
        """Number of lanes."""
        return len(self.threads)

    def of_rows(self, rows: Rows) -> tuple[Rows, Rows, Times]:
        """Return process, thread and start in nanoseconds of rows of the track; thread -1 for rows not written."""
        at = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        threads = np.where(self.rows[at] == rows, self.threads.start + self.lanes[at], -1)
        return np.full(len(rows), self.process), threads, self.begins[at]


def place(track: Track, offset: int, process: int, first_thread: int) -> Placement:
    """Spread a track's rows over lanes."""
    begins, ends = whole_nanoseconds(track.starts[track.rows] + offset, track.durations[track.rows])
    early = int((begins < 0).sum())
    begins, ends = np.maximum(begins, 0), np.maximum(ends, 0)
    alone = track.asynchronous or track.nested
    found = np.zeros(len(begins), dtype=np.int64) if alone else lanes(begins, ends)
    threads = range(first_thread, first_thread + int(found.max(initial=0)) + 1)
    return Placement(process, threads, found, begins, ends, early, track.rows, offset)


def slice_texts(track: Track, placement: Placement, part: slice) -> str:
    """Return some of a track's rows as complete events."""
    begins = placement.begins[part]
    prefixes = [f',\n{{"ph":"X","pid":{placement.process},"tid":{thread},"ts":' for thread in placement.threads]
    starts, start_fractions = microseconds(begins, ',"dur":')
    durations, duration_fractions = microseconds(placement.ends[part] - begins)
    kinds = track.kinds[placement.rows[part]].tolist()
    columns = zip(
        map(prefixes.__getitem__, placement.lanes[part].tolist()),
        starts,
        start_fractions,
        durations,
        duration_fractions,
        map(track.heads.texts.__getitem__, kinds),
        _arguments(track, placement, part),
        strict=True,
    )
    return "".join([f"{a}{b}{c}{d}{e}{f}{g}}}}}" for a, b, c, d, e, f, g in columns])


def async_texts(track: Track, placement: Placement, part: slice, first_id: int) -> str:
    """Return some of a track's rows as pairs of asynchronous begin and end, each pair with an id of its own."""
    begins = placement.begins[part]
    starts, start_fractions = microseconds(begins)
    ends, end_fractions = microseconds(placement.ends[part])
    kinds = track.kinds[placement.rows[part]].tolist()
    place = f'"cat":"async","pid":{placement.process},"tid":{placement.threads.start}'
    columns = zip(
        range(first_id, first_id + len(begins)),
        starts,
        start_fractions,
        ends,
        end_fractions,
        kinds,
        _arguments(track, placement, part),
        strict=True,
    )
    texts, names = track.heads.texts, track.heads.names
    return "".join(
        [
            f',\n{{"ph":"b",{place},"id2":{{"local":"{number:#x}"}},"ts":{start}{a}{texts[kind]}{args}}}}}'
            f',\n{{"ph":"e",{place},"id2":{{"local":"{number:#x}"}},"ts":{end}{b},"name":{names[kind]}}}'
            for number, start, a, end, b, kind, args in columns
        ]
    )


def _arguments(track: Track, placement: Placement, part: slice) -> list[str]:
    """Return what each row adds to its arguments; exact picoseconds where they are no whole nanoseconds."""
    rows = placement.rows[part]
    if track.args is None and not track.exact:
        return [""] * len(rows)
    texts = _own_arguments(track, rows)
    starts, durations = track.starts[rows] + placement.offset, track.durations[rows]
    if track.exact and ((starts % PS_PER_NS).any() or (durations % PS_PER_NS).any()):
        columns = zip(texts, starts.tolist(), durations.tolist(), strict=True)
        texts = [f'{text},"start_ps":"{start}","duration_ps":"{length}"' for text, start, length in columns]
    bare = track.heads.bare[track.kinds[rows]]
    if bare.any():
        texts = [text[1:] if alone else text for text, alone in zip(texts, bare.tolist(), strict=True)]
    return texts


def _own_arguments(track: Track, rows: Rows) -> list[str]:
    try:
        return track.args(rows) if track.args else [""] * len(rows)
    except WireError:
        track.damaged = True
        return [""] * len(rows)
