"""Lanes: events of one track spread so that on each lane they are disjoint or nested, as slices must be."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]

# Lanes on which an event may nest inside others. Beyond them a lane holds one event at a time, which is found in
# logarithmic time, so that events which all overlap each other cost no quadratic time.
_NESTING_LANES = 16


def lanes(starts: Times, ends: Times) -> NDArray[np.int64]:
    """Return the lane of each event, in any order; lane 0 is filled first.

    Args:
        starts: Whole nanoseconds, or any unit that the drawing program compares in.
        ends: Likewise, none before its start.

    """
    result = np.zeros(len(starts), dtype=np.int64)
    if (starts[1:] >= ends[:-1]).all():
        return result
    order = np.lexsort((starts - ends, starts))
    begins, stops = starts[order], ends[order]
    if (begins[1:] >= stops[:-1]).all():
        return result
    result[order] = _assign(begins.tolist(), stops.tolist())
    return result


def _assign(starts: list[int], ends: list[int]) -> list[int]:
    """Give each event, in nesting order, the first lane whose open events are over or hold it."""
    stacks: list[list[int]] = [[]]
    later = _SingleLanes()
    found = []
    for start, end in zip(starts, ends, strict=True):
        for lane, stack in enumerate(stacks):
            while stack and stack[-1] <= start:
                stack.pop()
            if not stack or stack[-1] >= end:
                stack.append(end)
                found.append(lane)
                break
        else:
            if len(stacks) < _NESTING_LANES:
                stacks.append([end])
                found.append(len(stacks) - 1)
            else:
                found.append(_NESTING_LANES + later.take(start, end))
    return found


class _SingleLanes:
    """Lanes that hold one event at a time."""

    def __init__(self) -> None:
        self._busy: list[tuple[int, int]] = []
        self._free: list[int] = []
        self._count = 0

    def take(self, start: int, end: int) -> int:
        """Return the lowest lane that is free at a start, and keep it until the end."""
        while self._busy and self._busy[0][0] <= start:
            heapq.heappush(self._free, heapq.heappop(self._busy)[1])
        if self._free:
            lane = heapq.heappop(self._free)
        else:
            lane, self._count = self._count, self._count + 1
        heapq.heappush(self._busy, (end, lane))
        return lane
