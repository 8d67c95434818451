"""Arithmetic of time intervals over columns: nesting, self time, unions, and exact sums by group.

All times are int64 picoseconds; sums stay exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]
Rows = NDArray[np.int64]

_LOW_BITS = 24


class Intervals(NamedTuple):
    """Disjoint intervals in order of time: starts and ends in picoseconds."""

    starts: Times
    ends: Times

    @property
    def total(self) -> int:
        """Their summed length."""
        return int((self.ends - self.starts).sum())


def sum_by(groups: Rows, values: Times, count: int) -> Times:
    """Return the exact sum of whole numbers per group.

    NumPy's weighted count adds doubles; adding high and low halves apart keeps every bit below 2**77 in total.
    """
    low = np.bincount(groups, weights=values & ((1 << _LOW_BITS) - 1), minlength=count).astype(np.int64)
    high = np.bincount(groups, weights=values >> _LOW_BITS, minlength=count).astype(np.int64)
    return (high << _LOW_BITS) + low


def union(starts: Times, ends: Times) -> Intervals:
    """Return the union of intervals in any order; touching ones merge."""
    if not len(starts):
        return Intervals(starts.astype(np.int64), ends.astype(np.int64))
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    begins = np.flatnonzero(np.concatenate([[True], starts[1:] > reach[:-1]]))
    return Intervals(starts[begins], reach[np.concatenate([begins[1:] - 1, [len(reach) - 1]])])


def subtract(first: Intervals, second: Intervals) -> Intervals:
    """Return what `first` covers and `second` does not; both disjoint and in order."""
    if not len(first.starts) or not len(second.starts):
        return first
    reach = slice(
        np.searchsorted(second.ends, first.starts[0], side="right"), np.searchsorted(second.starts, first.ends[-1])
    )
    second = Intervals(second.starts[reach], second.ends[reach])
    points = np.concatenate([*first, *second])
    order = np.argsort(points, kind="stable")  # merges the four runs, each in order already
    points = points[order]
    sizes = (len(first.starts), len(first.starts), len(second.starts), len(second.starts))
    # What begins or ends at each point: +1 and -1 for the first, +2**32 and -2**32 for the second.
    steps = np.repeat(np.array([1, -1, 1 << 32, -(1 << 32)]), sizes)[order]
    kept = (np.cumsum(steps)[:-1] == 1) & (points[1:] > points[:-1])
    return union(points[:-1][kept], points[1:][kept])


def intersect(first: Intervals, second: Intervals) -> Intervals:
    """Return what both cover; both disjoint and in order."""
    return subtract(first, subtract(first, second))


def covers(intervals: Intervals, points: Times) -> NDArray[np.bool_]:
    """Return for each point whether an interval holds it (start included, end not)."""
    if not len(intervals.starts):
        return np.zeros(len(points), dtype=bool)
    at = np.searchsorted(intervals.starts, points, side="right") - 1
    return (at >= 0) & (points < intervals.ends[np.maximum(at, 0)])


def covered_before(intervals: Intervals, points: Times) -> Times:
    """Return how much of the time before each point the intervals cover."""
    if not len(intervals.starts):
        return np.zeros(len(points), dtype=np.int64)
    done = np.concatenate([[0], np.cumsum(intervals.ends - intervals.starts)])
    at = np.searchsorted(intervals.starts, points, side="right")
    last = np.maximum(at - 1, 0)
    unfinished = np.where(at > 0, np.maximum(0, intervals.ends[last] - points), 0)
    return done[at] - unfinished


def covered_within(intervals: Intervals, starts: Times, ends: Times) -> Times:
    """Return how much of each window from start to end the intervals cover."""
    return covered_before(intervals, ends) - covered_before(intervals, starts)


def nesting_order(starts: Times, durations: Times) -> Rows:
    """Return the order in which an event comes before the events inside it."""
    if (starts[1:] > starts[:-1]).all():
        return np.arange(len(starts))
    return np.lexsort((-durations, starts))


def parents(starts: Times, durations: Times) -> Rows:
    """Return the row of the event that directly holds each event, -1 for none.

    An event that only overlaps another is not inside it: it is a sibling, as in XProf's stack.

    Args:
        starts: In nesting order.
        durations: Of the same events.

    """
    ends = starts + durations
    if (starts[1:] >= ends[:-1]).all():
        return np.full(len(starts), -1)
    found = _parents_of_nested(starts, durations)
    children = np.flatnonzero(found >= 0)
    if (ends[children] > ends[found[children]]).any():
        return _parents_of_overlapping(starts, ends)
    return found


def _parents_of_nested(starts: Times, durations: Times) -> Rows:
    """Parents where events are disjoint or nested: level by level.

    The depth of an event is the number of earlier events that have not ended. Times are doubled so that an event
    without length ends just after its start, and so after the events that hold it have begun.
    """
    begin = starts * 2
    end = (starts + durations) * 2 + (durations == 0)
    depth = np.arange(len(starts)) - np.searchsorted(np.sort(end), begin, side="right")
    found = np.full(len(starts), -1)
    above = np.flatnonzero(depth == 0)
    for level in range(1, int(depth.max(initial=0)) + 1):
        rows = np.flatnonzero(depth == level)
        if not len(above):
            break
        at = np.searchsorted(above, rows) - 1
        found[rows] = np.where(at >= 0, above[np.maximum(at, 0)], -1)
        above = rows
    return found


def _parents_of_overlapping(starts: Times, ends: Times) -> Rows:
    """Parents where events may overlap in part: a stack, event by event."""
    found = np.full(len(starts), -1)
    stack: list[int] = []
    for row, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        while stack and not (starts[stack[-1]] <= start and ends[stack[-1]] >= end):
            stack.pop()
        if stack:
            found[row] = stack[-1]
        stack.append(row)
    return found


def self_times(starts: Times, durations: Times) -> Times:
    """Return each event's duration without that of the events directly inside it; any order."""
    order = nesting_order(starts, durations)
    ordered = durations[order]
    above = parents(starts[order], ordered)
    inside = above >= 0
    result = np.empty_like(durations)
    if inside.any():
        ordered = ordered - sum_by(above[inside], ordered[inside], len(ordered))
    result[order] = ordered
    return result
