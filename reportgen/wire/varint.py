"""Protocol-buffer wire format over NumPy arrays: many varints and many messages at a time.

A file is held once, as bytes followed by padding, with a view of every eight bytes as one little-endian word;
so one gather reads a tag and its varint. The chain of repeated messages, sequential by nature, is followed by
pointer doubling inside slices that fit the processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
Positions = NDArray[np.int64]

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_PADDING = 16
_SLICE = 1 << 19
_CONTINUES = np.uint64(0x8080808080808080)
_UNREAD = np.uint64(0x80 << 56)
_ONE = np.uint64(1)


class WireError(ValueError):
    """The bytes are no well-formed message."""


class Buffer:
    """A file's bytes, readable one field or a million fields at a time.

    Attributes:
        data: The bytes without the padding.
        size: Their number.

    """

    def __init__(self, content: bytes | bytearray | memoryview) -> None:
        self.size = len(content)
        padded = np.zeros(self.size + _PADDING, dtype=np.uint8)
        padded[: self.size] = np.frombuffer(content, dtype=np.uint8)
        self._padded = padded
        self.data: Bytes = padded[: self.size]
        self._view = memoryview(padded.data)
        self._words: Words = np.ndarray(self.size + _PADDING - 8, dtype="<u8", buffer=padded.data, strides=(1,))

    def bytes(self, start: int, end: int) -> bytes:
        """Return a copy of the bytes from start to end."""
        return self._view[start:end].tobytes()

    def words(self, positions: Positions) -> Words:
        """Return the eight bytes at each position as a little-endian word."""
        return self._words[positions]

    def varint(self, position: int, end: int) -> tuple[int, int]:
        """Return one varint and the position after it.

        Raises:
            WireError: It is longer than ten bytes or runs past `end`.

        """
        value = shift = 0
        for at in range(position, min(end, position + 10)):
            byte = int(self._padded[at])
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFFFFFFFFFFFFFF, at + 1
            shift += 7
        raise WireError(f"a varint at byte {position} has no end")

    def field(self, position: int, end: int) -> tuple[int, int, int, int, int]:
        """Read one field.

        Returns:
            Number, wire type, value (of a varint) or start of the payload, end of the payload, and the position of
            the next field.

        Raises:
            WireError: The field is malformed or runs past `end`.

        """
        tag, at = self.varint(position, end)
        if tag >> 32:
            raise WireError(f"the field at byte {position} has an impossible number")
        number, wire = tag >> 3, tag & 7
        if wire == VARINT:
            value, after = self.varint(at, end)
            return number, wire, value, after, after
        if wire == LENGTH:
            length, at = self.varint(at, end)
        elif wire in (FIXED64, FIXED32):
            length = 8 if wire == FIXED64 else 4
        else:
            raise WireError(f"a field at byte {position} has the unknown wire type {wire}")
        if number == 0 or at + length > end:
            raise WireError(f"the field at byte {position} has no number or runs past the end of its message")
        return number, wire, at, at + length, at + length

    def fields(self, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield number, wire type, value or payload start, and payload end of every field of a message."""
        position = start
        while position < end:
            number, wire, value, stop, position = self.field(position, end)
            yield number, wire, value, stop


def decode(words: Words) -> tuple[Words, NDArray[np.int64]]:
    """Decode the varint at the low end of each word.

    Returns:
        Values and lengths in bytes; the length is 0 where the varint does not end inside its word.

    """
    stops = ~words & _CONTINUES
    lowest = stops & (~stops + _ONE)
    below = lowest - _ONE  # all ones where there is no stop
    lengths = np.where(stops == 0, 0, (np.bitwise_count(below).astype(np.int64) + 1) >> 3)
    groups = words & below & np.uint64(0x7F7F7F7F7F7F7F7F)
    groups = (groups & np.uint64(0x007F007F007F007F)) | ((groups & np.uint64(0x7F007F007F007F00)) >> _ONE)
    groups = (groups & np.uint64(0x00003FFF00003FFF)) | ((groups & np.uint64(0x3FFF00003FFF0000)) >> np.uint64(2))
    groups = (groups & np.uint64(0x000000000FFFFFFF)) | ((groups & np.uint64(0x0FFFFFFF00000000)) >> np.uint64(4))
    return groups, lengths


class Fields:
    """One field each of many messages: what stands at a cursor into each of them.

    Attributes:
        tags: Number and wire type, as on the wire.
        values: The varint's value; the payload's length for a length-delimited field; raw bits for fixed ones.
        payloads: Where the payload starts.
        following: Where the next field starts.

    """

    __slots__ = ("following", "payloads", "tags", "values")

    def __init__(self, buffer: Buffer, cursors: Positions, ends: Positions) -> None:
        words = buffer.words(cursors)
        self.tags: NDArray[np.int64] = (words & np.uint64(0xFF)).astype(np.int64)
        # The byte shifted in must not look like a varint's last byte.
        self.values, lengths = decode((words >> np.uint64(8)) | _UNREAD)
        self.payloads: Positions = cursors + 1 + lengths
        wires = self.tags & 7
        plain = (self.tags < 0x80) & (lengths > 0) & ((wires == VARINT) | (wires == LENGTH))
        self.following: Positions = self.payloads + np.where(wires == LENGTH, self.values.astype(np.int64), 0)
        # A long varint, a fixed-width value or a field number above 15.
        for index in np.flatnonzero(~plain):
            self._read_alone(buffer, int(index), int(cursors[index]), int(ends[index]))
        if (self.following > ends).any() or (self.following <= cursors).any():
            raise WireError("a field runs past the end of its message")

    def _read_alone(self, buffer: Buffer, index: int, cursor: int, end: int) -> None:
        number, wire, value, stop, following = buffer.field(cursor, end)
        self.tags[index] = number << 3 | wire
        if wire == VARINT:
            self.values[index], self.payloads[index] = value, following
        else:
            self.payloads[index], self.values[index] = value, stop - value
        if wire in (FIXED64, FIXED32):
            self.values[index] = int.from_bytes(buffer.bytes(value, stop), "little")
        self.following[index] = following


def run_of_messages(buffer: Buffer, start: int, end: int) -> tuple[Positions, Positions, int]:
    """Follow the repeated messages of one field that begin at `start`, as long as the same tag follows.

    Args:
        buffer: The file.
        start: Position of the first message's tag, a single byte.
        end: End of the message that holds them.

    Returns:
        Start and end of each message's payload, and the position after the last one.

    Raises:
        WireError: A message runs past `end`.

    """
    starts: list[Positions] = []
    ends: list[Positions] = []
    tag, position = buffer.data[start], start
    while position < end and buffer.data[position] == tag:
        first, last = _slice_of_messages(buffer, position, end)
        starts.append(first)
        ends.append(last)
        position = int(last[-1])
    return np.concatenate(starts), np.concatenate(ends), position


def _slice_of_messages(buffer: Buffer, start: int, end: int) -> tuple[Positions, Positions]:
    """Follow the chain from `start` to the first message that begins outside a slice of fixed size."""
    stop = min(end, start + _SLICE)
    candidates = np.flatnonzero(buffer.data[start:stop] == buffer.data[start])
    at = candidates + (start + 1)
    sizes, lengths = decode(buffer.words(at))
    payloads = at + lengths
    # A false candidate may hold a size of any magnitude; the bound keeps the sum in range.
    afters = payloads + np.minimum(sizes, np.uint64(1 << 62)).astype(np.int64)
    broken = (lengths == 0) | (afters > end)
    count = len(candidates)
    index = np.full(stop - start + 1, count, dtype=np.int32)
    index[candidates] = np.arange(count, dtype=np.int32)
    jumps = np.full(count + 1, count, dtype=np.int32)
    jumps[:count] = np.where(broken, count, index[np.minimum(afters, stop) - start])
    chain = _chain(jumps)
    if broken[chain].any():
        raise WireError("a repeated message runs past the end of the message that holds it")
    return payloads[chain], afters[chain]


def _chain(jumps: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the nodes met from node 0 on, in order; the last node stands for the end and points at itself.

    Each round doubles both the length of the chain and the reach of a jump, so that n messages take log2(n) rounds.
    """
    end = len(jumps) - 1
    chain = np.zeros(1, dtype=np.int32)
    while True:
        further = jumps[chain]
        chain = np.concatenate([chain, further])
        if further[-1] == end:
            return chain[chain < end]
        jumps = jumps[jumps]
