"""Lanes: on each of them events are disjoint or nested, and nothing is lost."""

from __future__ import annotations

import time

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reportgen.exporters.lanes import lanes

EVENTS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=60)


def crossing(first: tuple[int, int], second: tuple[int, int]) -> bool:
    (start, end), (other_start, other_end) = sorted([first, second], key=lambda event: (event[0], -event[1]))
    return start < other_start < end < other_end


@given(EVENTS)
def test_no_two_events_of_a_lane_cross(events: list[tuple[int, int]]) -> None:
    starts = np.array([start for start, _ in events], dtype=np.int64)
    ends = starts + np.array([duration for _, duration in events], dtype=np.int64)
    found = lanes(starts, ends)
    assert len(found) == len(events)
    for lane in range(int(found.max(initial=-1)) + 1):
        members = [(int(starts[row]), int(ends[row])) for row in np.flatnonzero(found == lane)]
        assert members
        assert not any(crossing(first, second) for at, first in enumerate(members) for second in members[:at])


def test_nested_and_adjacent_events_need_one_lane() -> None:
    starts, ends = np.array([0, 0, 5, 10, 10, 20]), np.array([10, 5, 10, 20, 10, 20])
    assert lanes(starts, ends).tolist() == [0] * 6


def test_an_overlap_opens_a_second_lane_which_is_used_again() -> None:
    starts, ends = np.array([0, 5, 12, 15, 30, 35]), np.array([10, 11, 20, 25, 40, 45])
    assert lanes(starts, ends).tolist() == [0, 1, 0, 1, 0, 1]


def test_a_hundred_thousand_events_that_all_overlap_take_seconds_not_hours() -> None:
    starts = np.arange(100_000)
    begin = time.perf_counter()
    found = lanes(starts, starts + 1_000_000)
    assert time.perf_counter() - begin < 20
    assert len(np.unique(found)) == 100_000
