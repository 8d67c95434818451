"""Events of a track as text, many at a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

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
    openings = map(prefixes.__getitem__, placement.lanes[part].tolist())
    heads = map(track.heads.texts.__getitem__, track.kinds[placement.rows[part]].tolist())
    arguments = _arguments(track, placement, part)
    if not arguments:
        columns = zip(openings, starts, start_fractions, durations, duration_fractions, heads, strict=True)
        return "".join([f"{a}{b}{c}{d}{e}{f}}}}}" for a, b, c, d, e, f in columns])
    # Heads may be long: here each is copied once, where formatting would copy it twice.
    texts = (openings, map(str, starts), start_fractions, map(str, durations), duration_fractions, heads, *arguments)
    return "".join(chain.from_iterable(zip(*texts, ["}}"] * len(begins), strict=True)))


def async_texts(track: Track, placement: Placement, part: slice, first_id: int) -> str:
    """Return some of a track's rows as pairs of asynchronous begin and end, each pair with an id of its own."""
    begins = placement.begins[part]
    starts, start_fractions = microseconds(begins)
    ends, end_fractions = microseconds(placement.ends[part])
    columns = zip(
        range(first_id, first_id + len(begins)),
        starts,
        start_fractions,
        ends,
        end_fractions,
        track.kinds[placement.rows[part]].tolist(),
        map("".join, zip([""] * len(begins), *_arguments(track, placement, part), strict=True)),
        strict=True,
    )
    place = f'"cat":"async","pid":{placement.process},"tid":{placement.threads.start}'
    texts, names = track.heads.texts, track.heads.names
    return "".join(
        [
            f',\n{{"ph":"b",{place},"id2":{{"local":"{number:#x}"}},"ts":{start}{a}{texts[kind]}{args}}}}}'
            f',\n{{"ph":"e",{place},"id2":{{"local":"{number:#x}"}},"ts":{end}{b},"name":{names[kind]}}}'
            for number, start, a, end, b, kind, args in columns
        ]
    )


def _arguments(track: Track, placement: Placement, part: slice) -> list[Iterable[str]]:
    """Return columns of what each row adds to its arguments; exact picoseconds where they are no whole nanoseconds."""
    rows = placement.rows[part]
    columns = _own_arguments(track, rows)
    starts, durations = track.starts[rows] + placement.offset, track.durations[rows]
    if track.exact and ((starts % PS_PER_NS).any() or (durations % PS_PER_NS).any()):
        exact = zip(starts.tolist(), durations.tolist(), strict=True)
        columns.append([f',"start_ps":"{start}","duration_ps":"{length}"' for start, length in exact])
    bare = track.heads.bare[track.kinds[rows]]
    if not columns or not bare.any():
        return columns
    joined = map("".join, zip(*columns, strict=True))
    return [[text[1:] if alone else text for text, alone in zip(joined, bare.tolist(), strict=True)]]


def _own_arguments(track: Track, rows: Rows) -> list[Iterable[str]]:
    try:
        return track.args(rows) if track.args else []
    except WireError:
        track.damaged = True
        return []
