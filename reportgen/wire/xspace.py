"""An XSpace read lazily: its planes and lines, with the events as columns when asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from reportgen.wire import xplane_pb2
from reportgen.wire.varint import LENGTH, Buffer, Positions, WireError, run_of_messages

_EVENTS_TAG = 4 << 3 | LENGTH


def text(raw: bytes) -> str:
    """Return text from a profile; bytes that are not UTF-8 become replacement characters."""
    return raw.decode("utf-8", errors="replace")


@dataclass(frozen=True)
class RawLine:
    """A line of a plane.

    Attributes:
        id, name, timestamp_ns, duration_ps: As on the wire.
        display_id, display_name: As on the wire, falling back to id and name.
        starts: Where the message of each of its events starts in the file.
        ends: Where it ends.

    """

    id: int
    name: str
    display_id: int
    display_name: str
    timestamp_ns: int
    duration_ps: int
    starts: Positions
    ends: Positions


class RawPlane:
    """A plane of an XSpace; nothing but its name is read before it is asked for."""

    def __init__(self, buffer: Buffer, start: int, end: int) -> None:
        self.buffer = buffer
        self._start, self._end = start, end

    @cached_property
    def name(self) -> str:
        """The plane's name, such as "/device:TPU:0"."""
        for number, wire, value, stop in self.buffer.fields(self._start, self._end):
            if number == 2 and wire == LENGTH:
                return text(self.buffer.bytes(value, stop))
            if number > 2:
                break
        return text(self.metadata.name.encode())

    @cached_property
    def _layout(self) -> tuple[list[tuple[int, int]], bytes]:
        """Spans of the lines, and the plane's message without them."""
        buffer, position, end = self.buffer, self._start, self._end
        lines: list[tuple[int, int]] = []
        rest: list[bytes] = []
        while position < end:
            tag = int(buffer.data[position])
            if tag & 7 == LENGTH and tag < 0x80:
                starts, ends, after = run_of_messages(buffer, position, end)
            else:
                after = buffer.field(position, end)[-1]
            if tag == 3 << 3 | LENGTH:
                lines += zip(starts.tolist(), ends.tolist(), strict=True)
            else:
                rest.append(buffer.bytes(position, after))
            position = after
        return lines, b"".join(rest)

    @cached_property
    def metadata(self) -> xplane_pb2.XPlane:
        """The plane without its lines: metadata of events and stats, and the plane's own stats.

        Raises:
            WireError: The metadata is damaged.

        """
        try:
            return xplane_pb2.XPlane.FromString(self._layout[1])
        except DecodeError as error:
            raise WireError(f"the metadata of a plane is damaged ({error})") from None

    @cached_property
    def lines(self) -> tuple[RawLine, ...]:
        """The plane's lines, in the order of the file.

        Raises:
            WireError: A line is damaged.

        """
        return tuple(_read_line(self.buffer, start, end) for start, end in self._layout[0])


def _read_line(buffer: Buffer, start: int, end: int) -> RawLine:
    numbers = dict.fromkeys((1, 3, 9, 10), 0)
    names = {2: "", 11: ""}
    starts: list[Positions] = []
    ends: list[Positions] = []
    position = start
    while position < end:
        if buffer.data[position] == _EVENTS_TAG:
            first, last, position = run_of_messages(buffer, position, end)
            starts.append(first)
            ends.append(last)
            continue
        number, wire, value, stop, position = buffer.field(position, end)
        if number in names and wire == LENGTH:
            names[number] = text(buffer.bytes(value, stop))
        elif number in numbers and wire == 0:
            numbers[number] = value - (1 << 64) if value >> 63 else value
    return RawLine(
        id=numbers[1],
        name=names[2],
        display_id=numbers[10] or numbers[1],
        display_name=names[11] or names[2],
        timestamp_ns=numbers[3],
        duration_ps=numbers[9],
        starts=_joined(starts),
        ends=_joined(ends),
    )


def _joined(parts: list[Positions]) -> Positions:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


@dataclass(frozen=True)
class RawSpace:
    """An XSpace.

    Attributes:
        planes: Its planes, those that are whole.
        errors, warnings: What the profiler itself recorded.
        hostnames: May be empty.
        missing: Share of the file's bytes that belong to no whole plane because the file ends too early; 0 when whole.

    """

    planes: tuple[RawPlane, ...]
    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    hostnames: tuple[str, ...]
    missing: float


def read_space(buffer: Buffer) -> RawSpace:
    """Read the outline of an XSpace.

    A file that ends in the middle of a plane gives the planes before it and the share that is missing.

    Raises:
        WireError: The bytes are no XSpace.

    """
    planes: list[RawPlane] = []
    texts: dict[int, list[str]] = {2: [], 3: [], 4: []}
    position = 0
    while position < buffer.size:
        try:
            number, wire, value, stop, after = buffer.field(position, buffer.size)
        except WireError:
            if buffer.data[position] not in (0x0A, 0x12, 0x1A, 0x22):
                raise
            break
        if number == 1 and wire == LENGTH:
            planes.append(RawPlane(buffer, value, stop))
        elif number in texts and wire == LENGTH:
            texts[number].append(text(buffer.bytes(value, stop)))
        position = after
    missing = (buffer.size - position) / buffer.size if buffer.size else 0.0
    return RawSpace(tuple(planes), tuple(texts[2]), tuple(texts[3]), tuple(texts[4]), missing)


def metadata_rows(metadata_ids: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row in `known` (sorted ids) of each id, -1 for ids that have no entry."""
    if not len(known):
        return np.full(len(metadata_ids), -1)
    if known[0] >= 0 and known[-1] < 4 * len(known) + 1024:  # dense ids, as profilers write them: one look-up each
        table = np.full(int(known[-1]) + 2, -1)
        table[known] = np.arange(len(known))
        return table[np.where((metadata_ids < 0) | (metadata_ids > known[-1]), known[-1] + 1, metadata_ids)]
    rows = np.minimum(np.searchsorted(known, metadata_ids), len(known) - 1)
    return np.where(known[rows] == metadata_ids, rows, -1)
