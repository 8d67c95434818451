"""Host threads: what ran when, and inside what."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from reportgen.analyzers.input_pipeline.threads import Threads
from reportgen.profile.intervals import Intervals
from tests.analyzers.input_pipeline.support import threads_of
from tests.builders import LineBuilder, Space


def thread(*events: tuple[str, float, float]) -> Threads:
    """A thread with events by name, start and length in nanoseconds."""
    space = Space()
    line = space.plane("/host:CPU").line("python")
    for name, start, length in events:
        line.event(name, start, length)
    return threads_of(space.view())


def labels(threads: Threads, rows: Any) -> list[str]:
    return [threads.labels[code] for code in threads.codes[rows]]


def between(start_ns: int, end_ns: int) -> Intervals:
    return Intervals(np.array([start_ns * 1000]), np.array([end_ns * 1000]))


def test_segments_are_what_is_innermost() -> None:
    threads = thread(("outer", 0, 100), ("first", 10, 20), ("deep", 15, 5), ("second", 30, 20), ("apart", 200, 10))
    starts, ends, rows = threads.segments(0)
    assert list(zip(labels(threads, rows), (starts // 1000).tolist(), (ends // 1000).tolist(), strict=True)) == [
        ("outer", 0, 10), ("first", 10, 15), ("deep", 15, 20), ("first", 20, 30), ("second", 30, 50),
        ("outer", 50, 100), ("apart", 200, 210),
    ]  # fmt: skip


def test_segments_tile_what_the_thread_recorded() -> None:
    rng = np.random.default_rng(0)
    space = Space()
    line = space.plane("/host:CPU").line("python")
    nest(line, rng, 0, 100_000, 6)
    threads = threads_of(space.view())
    starts, ends, rows = threads.segments(0)
    assert (starts[1:] >= ends[:-1]).all()
    assert int((ends - starts).sum()) == threads.spans(np.ones(len(threads), dtype=bool)).total
    by_row = np.bincount(rows, weights=ends - starts, minlength=len(threads))
    assert by_row.tolist() == threads.self_times(np.arange(len(threads))).tolist()


def nest(line: LineBuilder, rng: np.random.Generator, start: int, end: int, depth: int) -> None:
    """Fill a stretch with events that hold others."""
    cuts = np.unique(rng.integers(start, end, 6)).tolist()
    for left, right in zip(cuts[::2], cuts[1::2], strict=False):
        line.event(f"depth {depth}", left, right - left)
        if depth and right - left > 10:
            nest(line, rng, left, right, depth - 1)


def test_time_inside_intervals() -> None:
    threads = thread(("outer", 0, 100), ("inner", 40, 20))
    rows, times = threads.time_by_row(0, between(30, 50))
    assert dict(zip(labels(threads, rows), (times // 1000).tolist(), strict=True)) == {"outer": 10, "inner": 10}
    rows, _ = threads.time_by_row(0, between(200, 300))
    assert not len(rows)


def test_nearest_goes_outwards_and_begins_with_itself() -> None:
    threads = thread(("a", 0, 100), ("b", 10, 50), ("c", 20, 10), ("d", 200, 10))
    found = threads.nearest(threads.labelled(lambda label: label in "ab"))
    names = ["" if row < 0 else threads.labels[threads.codes[row]] for row in found]
    assert dict(zip(labels(threads, slice(None)), names, strict=True)) == {"a": "a", "b": "b", "c": "b", "d": ""}


def test_self_time_counts_chosen_events_alone() -> None:
    threads = thread(("Iterator::Map", 0, 100), ("helper", 5, 90), ("Iterator::Map::Range", 10, 30))
    chosen = np.flatnonzero(threads.labelled(lambda label: label.startswith("Iterator")))
    selfs = dict(zip(labels(threads, chosen), (threads.self_times(chosen) // 1000).tolist(), strict=True))
    assert selfs == {"Iterator::Map": 70, "Iterator::Map::Range": 30}


def test_two_instants_of_an_await_become_one_event() -> None:
    space = Space()
    line = space.plane("/host:CPU").line("python")
    line.event("train", 0, 100, {"_r": 1, "step_num": 1})
    line.event("Buffer::Await", 10, 1, {"_p": 7, "_pt": 0})
    line.event("Buffer::Await", 50, 2, {"_c": 7, "_ct": 0})
    line.event("Buffer::Await", 60, 1, {"_p": 8, "_pt": 0})  # its end was not captured
    line.event("Other", 70, 1, {"_p": 9})
    line.event("Other", 80, 1, {"_c": 9})
    threads = threads_of(space.view())
    waits = np.flatnonzero(threads.labelled(lambda label: label == "Buffer::Await"))
    found = zip((threads.starts[waits] // 1000).tolist(), (threads.durations[waits] // 1000).tolist(), strict=True)
    assert sorted(found) == [(10, 1), (10, 42), (50, 2), (60, 1)]
    assert len(threads) == 7


def test_threads_of_several_planes_stay_apart() -> None:
    space = Space()
    space.plane("/host:CPU").line("main").event("same", 0, 10)
    space.plane("/host:python-tracer").line("main").event("same", 5, 10)
    space.plane("/device:TPU:0").line("XLA Ops").event("op", 0, 10)
    threads = threads_of(space.view())
    assert threads.names == ("main", "main")
    assert threads.origins == ((0, 0), (1, 0))
    assert (threads.parents == -1).all()
    assert threads.spans(np.ones(2, dtype=bool)).total == 15_000


def test_aggregated_events_have_no_place_in_time() -> None:
    space = Space()
    line = space.plane("/host:CPU").line("main").event("timed", 0, 10)
    line.aggregate("untimed", 5, 1000)
    threads = threads_of(space.view())
    assert labels(threads, slice(None)) == ["timed"]


@pytest.mark.parametrize("name", ["/device:TPU:0", "/host:metadata"])
def test_profile_without_host_threads(name: str) -> None:
    space = Space()
    space.plane(name)
    threads = threads_of(space.view())
    assert len(threads) == 0
    assert threads.spans(np.empty(0, dtype=bool)).total == 0
