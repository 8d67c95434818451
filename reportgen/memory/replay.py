"""Replay of XLA's heap simulation: what is in use before and after each event, and at the peak."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection

import numpy as np
from numpy.typing import NDArray

from reportgen.wire import hlo_pb2

_ALLOCATE, _FREE, _SHARE = 0, 1, 2
_LONGEST_CHAIN = 1000


@dataclasses.dataclass
class Replay:
    """The result of a replay.

    Attributes:
        live: Bytes in use before each event and after the last.
        unpadded: The same for the elements alone.
        instructions: The instruction of each event.
        peak_event: The first event after which the most bytes are in use; None where none ever are.
        at_peak: Ids of the buffers in use after that event, in the order they were allocated.
        spans: For each allocated buffer the event that allocates it and the one that frees it (or the last one).
        problems: Events that contradict the ones before.

    """

    live: NDArray[np.int64]
    unpadded: NDArray[np.int64]
    instructions: tuple[str, ...]
    peak_event: int | None
    at_peak: tuple[int, ...]
    spans: dict[int, tuple[int, int]]
    problems: int


class _Heap:
    """The state between two events: who is in use, and who shares with whom."""

    def __init__(self, sizes: dict[int, tuple[int, int]], last_event: int) -> None:
        self.sizes = sizes
        self.last_event = last_event
        self.references: dict[int, int] = {}
        self.shares: dict[int, int] = {}
        self.in_use: dict[int, None] = {}
        self.spans: dict[int, tuple[int, int]] = {}
        self.live = 0
        self.unpadded = 0
        self.problems = 0

    def owner(self, buffer: int) -> int:
        """The buffer whose bytes this one uses, through chains of sharing."""
        for _ in range(_LONGEST_CHAIN):
            if buffer not in self.shares:
                break
            buffer = self.shares[buffer]
        return buffer

    def apply(self, event: hlo_pb2.HeapSimulatorTrace.Event, number: int) -> None:
        if event.kind == _ALLOCATE:
            self._count(event.buffer_id, 1)
            self._add(event.buffer_id)
            self.spans[event.buffer_id] = (number, self.last_event)
        elif event.kind == _FREE:
            self._free(self.owner(event.buffer_id), number)
        elif event.kind == _SHARE and event.share_with_canonical_id in self.sizes:
            self._share(event.buffer_id, event.share_with_canonical_id)

    def _free(self, buffer: int, number: int) -> None:
        left = self._count(buffer, -1)
        if left < 0 or (left == 0 and buffer not in self.in_use):
            self.problems += 1
        elif left == 0:
            self._remove(buffer, number)

    def _share(self, buffer: int, canonical: int) -> None:
        """Use another buffer's bytes; one that was freed before comes back to life."""
        if self.owner(canonical) == buffer:
            self.problems += 1
            return
        self.shares[buffer] = canonical
        if self._count(self.owner(canonical), 1) == 1:
            self._add(canonical)

    def _count(self, buffer: int, change: int) -> int:
        self.references[buffer] = self.references.get(buffer, 0) + change
        return self.references[buffer]

    def _add(self, buffer: int) -> None:
        if buffer in self.in_use:
            self.problems += 1
            return
        size, unpadded = self.sizes[buffer]
        self.in_use[buffer] = None
        self.live += size
        self.unpadded += unpadded

    def _remove(self, buffer: int, number: int) -> None:
        size, unpadded = self.sizes[buffer]
        self.in_use.pop(buffer, None)
        self.live -= size
        self.unpadded -= unpadded
        if buffer in self.spans:
            self.spans[buffer] = (self.spans[buffer][0], number)


def replay(
    events: Collection[hlo_pb2.HeapSimulatorTrace.Event],
    sizes: dict[int, tuple[int, int]],
    name_of: Callable[[hlo_pb2.HeapSimulatorTrace.Event], str],
) -> Replay:
    """Replay the events of one heap simulation.

    Args:
        events: The events in order. Those of buffers that are not in `sizes` change nothing.
        sizes: For each buffer its bytes and the bytes of its elements alone.
        name_of: Names the instruction of an event.

    """
    heap = _Heap(sizes, len(events) - 1)
    live = np.zeros(len(events) + 1, np.int64)
    unpadded = np.zeros(len(events) + 1, np.int64)
    for number, event in enumerate(events):
        if event.buffer_id in sizes:
            heap.apply(event, number)
        live[number + 1], unpadded[number + 1] = heap.live, heap.unpadded
    peak = int(np.argmax(live)) - 1 if len(events) and live.max() > 0 else None
    return Replay(
        live=live,
        unpadded=unpadded,
        instructions=tuple(name_of(event) for event in events),
        peak_event=peak,
        at_peak=_in_use_after(events, sizes, peak),
        spans=heap.spans,
        problems=heap.problems,
    )


def _in_use_after(
    events: Collection[hlo_pb2.HeapSimulatorTrace.Event], sizes: dict[int, tuple[int, int]], peak: int | None
) -> tuple[int, ...]:
    if peak is None:
        return ()
    heap = _Heap(sizes, len(events) - 1)
    for number, event in zip(range(peak + 1), events, strict=False):
        if event.buffer_id in sizes:
            heap.apply(event, number)
    return tuple(heap.in_use)
