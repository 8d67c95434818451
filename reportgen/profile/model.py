"""A host's profile: its planes with names resolved, and their events as columns in picoseconds.

Nothing is decoded before it is asked for, and what was decoded is kept for the analyses that share it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reportgen.wire import events as wire_events
from reportgen.wire import xplane_pb2
from reportgen.wire.events import StatColumn
from reportgen.wire.varint import Buffer
from reportgen.wire.xspace import RawLine, RawPlane, RawSpace, metadata_rows, read_space, text

Value = int | float | str | bytes
_PS_PER_NS = 1000
# Line times above this are absolute Unix times rather than counted from the profile's start: one day in nanoseconds.
_ABSOLUTE_NS = 86_400 * 10**9
_TIME_LIMIT = 1 << 61


class Kind(StrEnum):
    """What a plane describes."""

    TPU = "tpu"
    SPARSE_CORE = "sparse_core"
    GPU = "gpu"
    DEVICE = "device"  # parts of a device that run no program, and devices of unknown kind
    HOST = "host"
    METADATA = "metadata"
    ENVIRONMENT = "environment"
    OTHER = "other"


_KINDS = (
    (re.compile(r"/device:TPU:\d+$"), Kind.TPU),
    (re.compile(r"/device:TPU:\d+ SparseCore"), Kind.SPARSE_CORE),
    (re.compile(r"/device:GPU:\d+"), Kind.GPU),
    (re.compile(r"/device:|/virtualdevice:|#Chip"), Kind.DEVICE),
    (re.compile(r"/host:metadata"), Kind.METADATA),
    (re.compile(r"/host:CPU|/host:python-tracer|/host:TPU-runtime"), Kind.HOST),
    (re.compile(r"Task Environment"), Kind.ENVIRONMENT),
)


def kind_of(name: str) -> Kind:
    """Return what a plane of that name describes."""
    return next((kind for pattern, kind in _KINDS if pattern.match(name)), Kind.OTHER)


@dataclass(frozen=True)
class Events:
    """Events of some lines of a plane, as columns.

    Attributes:
        plane: The plane that they belong to.
        lines: Index of each event's line among the plane's lines.
        names: Row of each event's metadata in the plane's `event_names`; -1 where it has none.
        starts: Picoseconds on the profile's clock.
        durations: Picoseconds.
        occurrences: How many events an aggregated event (one without a time) stands for; 0 for an event with a time.
        stats: The statistics that were asked for, by name; absent columns where the plane has none of that name.

    """

    plane: Plane
    lines: NDArray[np.int64]
    names: NDArray[np.int64]
    starts: NDArray[np.int64]
    durations: NDArray[np.int64]
    occurrences: NDArray[np.int64]
    stats: dict[str, StatColumn]

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.names)

    @property
    def ends(self) -> NDArray[np.int64]:
        """Picoseconds on the profile's clock."""
        return self.starts + self.durations

    def where(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> Events:
        """Return the events of these rows."""
        stats = {
            name: StatColumn(column.kinds[rows], column.bits[rows], column.payloads[rows])
            for name, column in self.stats.items()
        }
        return Events(
            self.plane,
            self.lines[rows],
            self.names[rows],
            self.starts[rows],
            self.durations[rows],
            self.occurrences[rows],
            stats,
        )

    def text_codes(self, stat: str) -> tuple[NDArray[np.int64], list[str]]:
        """Return a text statistic as codes into a list of distinct texts; -1 where an event has none.

        Texts by reference to the stat metadata cost one look-up a distinct text.
        """
        column = self.stats[stat]
        codes = np.full(len(self), -1)
        texts: dict[str, int] = {}
        references = column.kinds == wire_events.REFERENCE
        if references.any():
            ids, inverse = np.unique(column.bits[references], return_inverse=True)
            names = [self.plane.stat_names.get(int(ref), "") for ref in ids.view(np.int64)]
            codes[references] = np.array([texts.setdefault(name, len(texts)) for name in names])[inverse]
        for row in np.flatnonzero((column.kinds == wire_events.STRING) | (column.kinds == wire_events.BYTES)):
            start = int(column.payloads[row])
            value = text(self.plane.raw.buffer.bytes(start, start + int(column.bits[row])))
            codes[row] = texts.setdefault(value, len(texts))
        return codes, list(texts)

    def texts(self, stat: str) -> list[str | None]:
        """Return a text statistic per event, None where an event has none."""
        codes, distinct = self.text_codes(stat)
        return [distinct[code] if code >= 0 else None for code in codes.tolist()]


class Plane:
    """A plane of one host's profile."""

    def __init__(self, raw: RawPlane, origin_ns: int = 0) -> None:
        self.raw = raw
        self.kind = kind_of(raw.name)
        self._origin_ns = origin_ns

    @property
    def name(self) -> str:
        """Such as "/device:TPU:0"."""
        return self.raw.name

    @property
    def lines(self) -> tuple[RawLine, ...]:
        """The plane's lines, in the order of the file."""
        return self.raw.lines

    @property
    def event_count(self) -> int:
        """Number of events on all lines."""
        return sum(len(line.starts) for line in self.lines)

    @cached_property
    def ordinal(self) -> int:
        """Number of the device in the plane's name; -1 where it has none."""
        match = re.match(r"/device:\w+:(\d+)", self.name)
        return int(match[1]) if match else -1

    @cached_property
    def stat_names(self) -> dict[int, str]:
        """Names of the plane's statistics by id."""
        return {key: text(entry.name) for key, entry in self.raw.metadata.stat_metadata.items()}

    @cached_property
    def stats(self) -> dict[str, Value]:
        """Statistics of the plane itself."""
        return dict(self.stat_values(self.raw.metadata.stats))

    @cached_property
    def event_metadata(self) -> list[xplane_pb2.XEventMetadata]:
        """Metadata of the plane's events, by id in ascending order; `Events.names` counts in it."""
        entries = self.raw.metadata.event_metadata
        return [entries[key] for key in sorted(entries)]

    @cached_property
    def event_names(self) -> list[str]:
        """Names of the events by metadata row."""
        return [text(entry.name) for entry in self.event_metadata]

    @cached_property
    def display_names(self) -> list[str]:
        """Short names of the events by metadata row, falling back to their names."""
        shown = (text(entry.display_name) for entry in self.event_metadata)
        return [short or name for short, name in zip(shown, self.event_names, strict=True)]

    def stat_values(self, stats: Sequence[xplane_pb2.XStat]) -> list[tuple[str, Value]]:
        """Return names and values of statistics; text as str, references resolved, those without value left out."""
        found = []
        for stat in stats:
            field = stat.WhichOneof("value")
            if field is None:
                continue
            value = getattr(stat, field)
            if field == "ref_value":
                value = self.stat_names.get(value, "")
            elif field == "str_value":
                value = text(value)
            found.append((self.stat_names.get(stat.metadata_id, ""), value))
        return found

    def line_indices(self, *names: str) -> list[int]:
        """Return the indices of the lines of these names, all lines where none is named."""
        return [
            index
            for index, line in enumerate(self.lines)
            if not names or line.name in names or line.display_name in names
        ]

    def stats_of_line(self, line: int) -> list[str]:
        """Return the names of the statistics that a line's events hold themselves.

        Raises:
            WireError: An event is damaged.

        """
        raw = self.lines[line]
        used = wire_events.used_stat_ids(self.raw.buffer, raw.starts, raw.ends)
        return list(dict.fromkeys(self.stat_names.get(key, "") for key in sorted(used)))

    def events(
        self, lines: Sequence[int], stats: Sequence[str] = (), rows: slice | NDArray[np.int64] = slice(None)
    ) -> Events:
        """Decode the events of some lines, one line after the other, each in the order of the file.

        Args:
            lines: Indices of lines.
            stats: Names of the statistics to decode with them.
            rows: Which events of each line; all by default.

        Raises:
            WireError: An event is damaged.

        """
        chosen = [self.lines[index] for index in lines]
        starts, ends = [line.starts[rows] for line in chosen], [line.ends[rows] for line in chosen]
        counts = np.array([len(part) for part in starts], dtype=np.int64)
        ids: dict[str, list[int]] = {name: [] for name in stats}
        for key, name in self.stat_names.items():
            if name in ids:
                ids[name].append(key)
        empty = [np.empty(0, np.int64)]
        columns = wire_events.decode_events(
            self.raw.buffer,
            np.concatenate(starts or empty),
            np.concatenate(ends or empty),
            [key for keys in ids.values() for key in keys],
        )
        bases = np.array([self._line_start(line) for line in chosen], dtype=np.int64)
        known = np.array(sorted(self.raw.metadata.event_metadata), dtype=np.int64)
        # Values beyond 26 days are damage: the clip keeps later sums inside 64 bits.
        offsets = np.clip(columns.offsets, -_TIME_LIMIT, _TIME_LIMIT)
        return Events(
            plane=self,
            lines=np.repeat(np.array(lines, dtype=np.int64), counts),
            names=metadata_rows(columns.metadata_ids, known),
            starts=np.repeat(bases, counts) + offsets,
            durations=np.clip(columns.durations, 0, _TIME_LIMIT),
            occurrences=columns.occurrences,
            stats={
                name: _first_present([columns.stats[key] for key in keys], len(columns)) for name, keys in ids.items()
            },
        )

    def _line_start(self, line: RawLine) -> int:
        start = (line.timestamp_ns - self._origin_ns) * _PS_PER_NS
        return max(-_TIME_LIMIT, min(_TIME_LIMIT, start))


def _first_present(columns: list[StatColumn], count: int) -> StatColumn:
    """Merge columns of one name: a plane may hold several stat ids of the same name."""
    if not columns:
        return StatColumn.absent(count)
    merged = columns[0]
    for column in columns[1:]:
        gap = ~merged.present
        merged = StatColumn(
            np.where(gap, column.kinds, merged.kinds),
            np.where(gap, column.bits, merged.bits),
            np.where(gap, column.payloads, merged.payloads),
        )
    return merged


class HostProfile:
    """What one host recorded.

    Attributes:
        name: The host's name.
        planes: Its planes.
        errors, warnings: What the profiler recorded, and what reading found.
        missing: Share of the file that is missing at its end.

    """

    def __init__(self, name: str, space: RawSpace) -> None:
        self.name = name
        self.errors = space.errors
        self.warnings = space.warnings
        self.missing = space.missing
        origin = _origin_ns(space)
        self.planes = tuple(Plane(raw, origin) for raw in space.planes)

    def of_kind(self, *kinds: Kind) -> list[Plane]:
        """Return the planes of these kinds, in the order of the file."""
        return [plane for plane in self.planes if plane.kind in kinds]

    @cached_property
    def environment(self) -> dict[str, Value]:
        """Statistics of the plane "Task Environment": start and stop of the capture, options."""
        return {name: value for plane in self.of_kind(Kind.ENVIRONMENT) for name, value in plane.stats.items()}

    @cached_property
    def start_ns(self) -> int | None:
        """Start of the capture as Unix time in nanoseconds; None where it was not recorded."""
        value = self.environment.get("profile_start_time")
        return value if isinstance(value, int) else None

    @cached_property
    def stop_ns(self) -> int | None:
        """Stop of the capture as Unix time in nanoseconds; None where it was not recorded."""
        value = self.environment.get("profile_stop_time")
        return value if isinstance(value, int) else None

    @classmethod
    def from_bytes(cls, name: str, content: bytes) -> HostProfile:
        """Read a host's profile from the bytes of an XSpace (see `wire.xspace.read_space`)."""
        return cls(name, read_space(Buffer(content)))


def _origin_ns(space: RawSpace) -> int:
    """Return what line times count from where they are absolute: the earliest line; 0 where they are relative."""
    times = [line.timestamp_ns for plane in space.planes for line in plane.lines if line.timestamp_ns]
    return min(times) if times and min(times) > _ABSOLUTE_NS else 0
