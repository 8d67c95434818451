"""Replay of heap events: sharing, coming back to life, contradictions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reportgen.memory.replay import replay
from reportgen.wire import hlo_pb2

ALLOCATE, FREE, SHARE = 0, 1, 2
SIZES = {number: (100 * number, 90 * number) for number in range(1, 6)}


def events(*rows: tuple[int, ...]) -> list[hlo_pb2.HeapSimulatorTrace.Event]:
    made = []
    for kind, buffer, *canonical in rows:
        event = hlo_pb2.HeapSimulatorTrace.Event(kind=kind, buffer_id=buffer, instruction_name=f"op{buffer}")
        event.share_with_canonical_id = canonical[0] if canonical else 0
        made.append(event)
    return made


def test_the_peak_is_the_first_highest_point() -> None:
    result = replay(
        events((ALLOCATE, 1), (ALLOCATE, 2), (FREE, 1), (ALLOCATE, 1), (FREE, 1), (FREE, 2)),
        SIZES,
        lambda event: event.instruction_name,
    )
    assert list(result.live) == [0, 100, 300, 200, 300, 200, 0]
    assert list(result.unpadded) == [0, 90, 270, 180, 270, 180, 0]
    assert (result.peak_event, result.at_peak) == (1, (1, 2))
    assert result.instructions[:2] == ("op1", "op2")
    assert result.problems == 0


def test_a_shared_buffer_lives_until_its_last_user_ends() -> None:
    result = replay(events((ALLOCATE, 1), (SHARE, 2, 1), (FREE, 1), (FREE, 2)), SIZES, str)
    assert list(result.live) == [0, 100, 100, 100, 0]
    assert result.spans == {1: (0, 3)}


def test_sharing_brings_a_freed_buffer_back() -> None:
    result = replay(events((ALLOCATE, 1), (FREE, 1), (SHARE, 2, 1), (FREE, 2)), SIZES, str)
    assert list(result.live) == [0, 100, 0, 100, 0]


def test_chains_of_sharing_end_at_the_owner() -> None:
    result = replay(events((ALLOCATE, 1), (SHARE, 2, 1), (SHARE, 3, 2), (FREE, 1), (FREE, 2), (FREE, 3)), SIZES, str)
    assert list(result.live) == [0, 100, 100, 100, 100, 100, 0]


def test_contradictions_are_counted_and_do_no_harm() -> None:
    result = replay(events((FREE, 1), (ALLOCATE, 2), (FREE, 2), (FREE, 2), (SHARE, 2, 2)), SIZES, str)
    assert result.problems == 3
    assert result.live.min() >= 0


def test_buffers_of_other_spaces_change_nothing() -> None:
    result = replay(events((ALLOCATE, 77), (ALLOCATE, 1), (FREE, 77)), SIZES, str)
    assert list(result.live) == [0, 0, 100, 100]


def test_no_events_have_no_peak() -> None:
    result = replay([], SIZES, str)
    assert (result.peak_event, result.at_peak, list(result.live)) == (None, (), [0])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6), st.integers(0, 6)), max_size=60))
def test_any_events_are_replayed(rows: list[tuple[int, int, int]]) -> None:
    result = replay(events(*rows), SIZES, str)
    assert len(result.live) == len(rows) + 1
    if result.peak_event is not None:
        assert result.live[result.peak_event + 1] == result.live.max()
        assert sum(SIZES[buffer][0] for buffer in result.at_peak) == result.live.max()
