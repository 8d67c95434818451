"""Interval arithmetic against plain loops over small integers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reportgen.profile.intervals import (
    Intervals,
    covered_within,
    intersect,
    nesting_order,
    parents,
    self_times,
    subtract,
    sum_by,
    union,
)

SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=14)


def columns(spans: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    array = np.array(spans, dtype=np.int64).reshape(-1, 2)
    return array[:, 0], array[:, 1]


def points(intervals: Intervals) -> set[int]:
    return {at for start, end in zip(*intervals, strict=True) for at in range(start, end)}


def made(spans: list[tuple[int, int]]) -> Intervals:
    starts, durations = columns(spans)
    return union(starts, starts + durations)


@given(SPANS)
def test_union_covers_the_same_points(spans: list[tuple[int, int]]) -> None:
    expected = {at for start, length in spans for at in range(start, start + length)}
    found = made(spans)
    assert points(found) == expected
    assert found.total == len(expected)
    assert (found.starts[1:] > found.ends[:-1]).all()


@given(SPANS, SPANS)
def test_subtract_and_intersect(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    one, two = made(first), made(second)
    assert points(subtract(one, two)) == points(one) - points(two)
    assert points(intersect(one, two)) == points(one) & points(two)


@given(SPANS, SPANS)
def test_covered_within_windows(spans: list[tuple[int, int]], windows: list[tuple[int, int]]) -> None:
    starts, lengths = columns(windows)
    covered = points(made(spans))
    found = covered_within(made(spans), starts, starts + lengths)
    assert found.tolist() == [len(covered & set(range(s, s + n))) for s, n in windows]


def stack_parents(starts: list[int], durations: list[int]) -> list[int]:
    found, stack = [], []
    for row, (start, duration) in enumerate(zip(starts, durations, strict=True)):
        while stack and not (
            starts[stack[-1]] <= start and start + duration <= starts[stack[-1]] + durations[stack[-1]]
        ):
            stack.pop()
        found.append(stack[-1] if stack else -1)
        stack.append(row)
    return found


@given(SPANS)
def test_self_times_equal_a_stack(spans: list[tuple[int, int]]) -> None:
    starts, durations = columns(spans)
    order = nesting_order(starts, durations)
    above = stack_parents(starts[order].tolist(), durations[order].tolist())
    expected = durations[order].copy()
    for row, parent in enumerate(above):
        if parent >= 0:
            expected[parent] -= durations[order][row]
    assert self_times(starts, durations)[order].tolist() == expected.tolist()


def test_partial_overlap_makes_siblings() -> None:
    assert parents(np.array([0, 5]), np.array([10, 10])).tolist() == [-1, -1]


def test_nested_events_without_length() -> None:
    assert parents(np.array([0, 0, 4]), np.array([4, 0, 0])).tolist()[1] == 0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-(2**60), 2**60)), max_size=8))
def test_sums_are_exact(pairs: list[tuple[int, int]]) -> None:
    groups, values = columns(pairs)
    expected = [sum(value for group, value in pairs if group == wanted) for wanted in range(4)]
    if all(abs(total) < 2**62 for total in expected):
        assert sum_by(groups, values, 4).tolist() == expected
