"""What a trace shows: sections with tracks of events, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reportgen.exporters.args import ArgsOf, Heads
from reportgen.exporters.limits import Level

Times = NDArray[np.int64]
Rows = NDArray[np.int64]


@dataclass
class Track:
    """Events of one track.

    Attributes:
        title: Its name.
        level: From which level of detail on it is written.
        starts: Picoseconds on the host's clock.
        durations: Picoseconds.
        kinds: Index of each event's kind in `heads`.
        heads: Name and arguments of each kind.
        args: What each event adds to the arguments, for rows of the track; None for nothing.
        exact: Whether the exact picoseconds are written where they are no whole nanoseconds; not for derived events.
        nested: Whether the events are known to be disjoint or nested, so that no lanes have to be looked for.
        asynchronous: Whether the events overlap by nature and go to asynchronous tracks by name.
        line: Index of the plane's line that it shows; -1 for derived tracks.
        rows: Rows that are written; those that limits cut are missing.
        aggregated: How many events of the line have no time and so are not drawn.
        damaged: Whether some arguments could not be read when they were written.

    """

    title: str
    level: Level
    starts: Times
    durations: Times
    kinds: Rows
    heads: Heads
    args: ArgsOf | None = None
    exact: bool = True
    nested: bool = False
    asynchronous: bool = False
    line: int = -1
    rows: Rows = field(init=False)
    aggregated: int = 0
    damaged: bool = False

    def __post_init__(self) -> None:
        """Write all rows until a limit says otherwise."""
        self.rows = np.arange(len(self.starts))


@dataclass
class Counter:
    """Values over time.

    Attributes:
        title: What is counted.
        unit: Of the values.
        times: Picoseconds on the host's clock.
        values: From each time on.

    """

    title: str
    unit: str
    times: Times
    values: NDArray[np.float64]
    level: Level = Level.STEPS


@dataclass(frozen=True)
class FlowEnds:
    """Where flows begin or end on one track.

    Attributes:
        track: The track.
        rows: Rows of the events.
        keys: What joins beginnings and ends.
        out: Whether flows begin here.

    """

    track: Track
    rows: Rows
    keys: Rows
    out: bool


@dataclass
class Section:
    """A device core, or the threads of a host.

    Attributes:
        damaged: How many lines could not be read, or could not be read whole.

    """

    title: str
    tracks: list[Track] = field(default_factory=list)
    counters: list[Counter] = field(default_factory=list)
    flows: list[FlowEnds] = field(default_factory=list)
    damaged: int = 0


def all_tracks(sections: Iterable[Section]) -> Iterator[Track]:
    """Yield the tracks of all sections."""
    for section in sections:
        yield from section.tracks
