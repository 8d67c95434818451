"""Events of an XSpace as columns: ids, times and the statistics that were asked for, no object per event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reportgen.wire.varint import FIXED64, LENGTH, VARINT, Buffer, Fields, Positions

# Events decoded at a time, so that the columns in work stay inside the processor's cache.
_CHUNK = 1 << 15

_METADATA_ID = 1 << 3 | VARINT
_OFFSET = 2 << 3 | VARINT
_DURATION = 3 << 3 | VARINT
_STAT = 4 << 3 | LENGTH
_OCCURRENCES = 5 << 3 | VARINT

_STAT_ID = 1 << 3 | VARINT
ABSENT = 0
DOUBLE = 2 << 3 | FIXED64
UINT64 = 3 << 3 | VARINT
INT64 = 4 << 3 | VARINT
STRING = 5 << 3 | LENGTH
BYTES = 6 << 3 | LENGTH
REFERENCE = 7 << 3 | VARINT
_STAT_VALUES = (DOUBLE, UINT64, INT64, STRING, BYTES, REFERENCE)


@dataclass(frozen=True)
class StatColumn:
    """One statistic of many events.

    Attributes:
        kinds: ABSENT, DOUBLE, UINT64, INT64, STRING, BYTES or REFERENCE, per event.
        bits: The value's bits; the payload's length for STRING and BYTES; a stat metadata id for REFERENCE.
        payloads: Where the payload of STRING and BYTES starts in the file.

    """

    kinds: NDArray[np.uint8]
    bits: NDArray[np.uint64]
    payloads: Positions

    @classmethod
    def absent(cls, count: int) -> StatColumn:
        """Return a column without any value."""
        return cls(np.zeros(count, np.uint8), np.zeros(count, np.uint64), np.zeros(count, np.int64))

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which events have the statistic."""
        return np.not_equal(self.kinds, ABSENT)

    def integers(self, default: int = 0) -> NDArray[np.int64]:
        """Return whole numbers, `default` where there is none; doubles are cut to whole numbers."""
        values = self.bits.view(np.int64)
        doubles = self.kinds == DOUBLE
        if doubles.any():
            values = values.copy()
            values[doubles] = np.nan_to_num(self.bits[doubles].view(np.float64)).astype(np.int64)
        known = doubles | (self.kinds == UINT64) | (self.kinds == INT64) | (self.kinds == REFERENCE)
        return np.where(known, values, default)


@dataclass
class EventColumns:
    """Events of one or more lines, in the order of the file.

    Attributes:
        metadata_ids: Id of each event's metadata entry.
        offsets: Picoseconds from the start of the event's line; 0 for aggregated events.
        durations: Picoseconds.
        occurrences: How many events an aggregated event stands for; 0 for an event with a time.
        stats: A column for each statistic that was asked for, by stat metadata id.

    """

    metadata_ids: NDArray[np.int64]
    offsets: NDArray[np.int64]
    durations: NDArray[np.int64]
    occurrences: NDArray[np.int64]
    stats: dict[int, StatColumn] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.metadata_ids)


def decode_events(buffer: Buffer, starts: Positions, ends: Positions, stat_ids: Sequence[int] = ()) -> EventColumns:
    """Decode events.

    Args:
        buffer: The file.
        starts: Where each event's message starts.
        ends: Where it ends.
        stat_ids: Ids of the statistics to decode; others are skipped.

    Raises:
        WireError: An event is malformed.

    """
    count = len(starts)
    ids, offsets, durations, occurrences = np.zeros((4, count), np.int64)
    stats = {stat_id: StatColumn.absent(count) for stat_id in stat_ids}
    columns = EventColumns(ids, offsets, durations, occurrences, stats)
    for first in range(0, count, _CHUNK):
        last = min(count, first + _CHUNK)
        _decode_chunk(buffer, columns, np.arange(first, last), starts[first:last], ends[first:last])
    return columns


def used_stat_ids(buffer: Buffer, starts: Positions, ends: Positions) -> set[int]:
    """Return the ids of the statistics that events hold.

    Raises:
        WireError: An event is malformed.

    """
    found: set[int] = set()
    for first in range(0, len(starts), _CHUNK):
        cursors, stops = starts[first : first + _CHUNK], ends[first : first + _CHUNK]
        while len(cursors := cursors[more := cursors < stops]):
            stops = stops[more]
            fields = Fields(buffer, cursors, stops)
            hits = fields.tags == _STAT
            found |= _ids_of_stats(buffer, fields.payloads[hits], fields.following[hits])
            cursors = fields.following
    return found


def _ids_of_stats(buffer: Buffer, cursors: Positions, stops: Positions) -> set[int]:
    """Return the ids of statistics: the first field that is one, which profilers write first."""
    found: set[int] = set()
    while len(cursors := cursors[more := cursors < stops]):
        stops = stops[more]
        fields = Fields(buffer, cursors, stops)
        known = fields.tags == _STAT_ID
        found |= set(np.unique(fields.values[known]).view(np.int64).tolist())
        cursors, stops = fields.following[~known], stops[~known]
    return found


def _decode_chunk(buffer: Buffer, columns: EventColumns, rows: Positions, cursors: Positions, ends: Positions) -> None:
    """Read one field of every event at a time until all of them are used up."""
    while True:
        if not (more := cursors < ends).all():
            rows, cursors, ends = rows[more], cursors[more], ends[more]
        if not len(rows):
            return
        fields = Fields(buffer, cursors, ends)
        for tag, column in (
            (_METADATA_ID, columns.metadata_ids),
            (_DURATION, columns.durations),
            (_OFFSET, columns.offsets),
            (_OCCURRENCES, columns.occurrences),
        ):
            if (hits := fields.tags == tag).any():
                column[rows[hits]] = fields.values[hits].view(np.int64)
                if tag == _OFFSET:  # offset and occurrences exclude each other: the last one on the wire counts
                    columns.occurrences[rows[hits]] = 0
                elif tag == _OCCURRENCES:
                    columns.offsets[rows[hits]] = 0
        if columns.stats and (hits := fields.tags == _STAT).any():
            _decode_stats(buffer, columns, rows[hits], fields.payloads[hits], fields.following[hits])
        cursors = fields.following


def _decode_stats(buffer: Buffer, columns: EventColumns, rows: Positions, cursors: Positions, ends: Positions) -> None:
    """Read one statistic each of many events and keep those that were asked for."""
    count = len(rows)
    ids = np.zeros(count, np.int64)
    found = StatColumn.absent(count)
    at = np.arange(count)
    while True:
        if not (more := cursors < ends).all():
            at, cursors, ends = at[more], cursors[more], ends[more]
        if not len(at):
            break
        fields = Fields(buffer, cursors, ends)
        if (hits := fields.tags == _STAT_ID).any():
            ids[at[hits]] = fields.values[hits].view(np.int64)
        if (hits := np.isin(fields.tags, _STAT_VALUES)).any():
            found.kinds[at[hits]] = fields.tags[hits]
            found.bits[at[hits]] = fields.values[hits]
            found.payloads[at[hits]] = fields.payloads[hits]
        cursors = fields.following
    for stat_id, column in columns.stats.items():
        if (hits := (ids == stat_id) & found.present).any():
            column.kinds[rows[hits]] = found.kinds[hits]
            column.bits[rows[hits]] = found.bits[hits]
            column.payloads[rows[hits]] = found.payloads[hits]
