"""Timelines: which steps are shown, what stands on their tracks, and which waits nothing hides."""

from __future__ import annotations

import numpy as np
import pytest

from reportgen.analyzers.base import Context, Result
from reportgen.analyzers.timeline import TimelineAnalyzer, TimelinePart
from reportgen.analyzers.timeline_tracks import ROLES, Window, exposed_waits, host_role
from reportgen.document import Lane, Role, Timeline
from reportgen.profile.view import HostView
from reportgen.settings import Settings
from tests.builders import PlaneBuilder, Space

ANALYZER = TimelineAnalyzer()
OPS = {"dot.1": "convolution fusion", "infeed.1": "infeed", "all-reduce.1": "all-reduce", "copy-done.1": "copy-done"}


def add_core(space: Space, number: int) -> PlaneBuilder:
    plane = space.plane(f"/device:TPU:{number}")
    for row, (name, category) in enumerate(OPS.items(), 1):
        plane.metadata(f"%{name}", {"hlo_category": category, "program_id": 1, "symbol_id": row}, display_name=name)
    return plane


def tpu_view(lengths: tuple[int, ...] = (100, 110, 300, 105, 120), host: str = "host0") -> HostView:
    """Steps of these microseconds every 500: infeed 10, then a dot, then a collective 20, then 5 of waiting."""
    space = Space()
    plane = add_core(space, 0)
    steps, ops = plane.line("Steps"), plane.line("XLA Ops")
    for step, length in enumerate(lengths):
        start, end = 500_000 * step, 500_000 * step + 1000 * length
        steps.event(str(step), start, end - start, {"group_id": step})
        ops.event("%infeed.1", start, 10_000)
        ops.event("%dot.1", start + 10_000, end - start - 35_000)
        ops.event("%all-reduce.1", end - 25_000, 20_000)
        ops.event("%copy-done.1", end - 5_000, 5_000)
    threads = space.plane("/host:CPU")
    main = threads.line("main/1")
    for step in range(len(lengths)):
        main.event("PjitFunction(f)", 500_000 * step, 50_000).event(
            "$loader.py:3 __next__", 500_000 * step + 300_000, 100_000
        )
    threads.line("quiet/2").event("nothing much", 10_000_000, 1)
    return space.view(host=host)


def merged(*views: HostView) -> Result:
    parts = [part for view in views if (part := ANALYZER.host(view)) is not None]
    return ANALYZER.merge(parts, Context(Settings(), {}))


def lane(timeline: Timeline, title: str) -> Lane:
    return next(lane for lane in timeline.lanes if lane.title == title)


def events(timeline: Timeline, title: str) -> list[tuple[str, Role, float, float]]:
    found = lane(timeline, title)
    return [
        (timeline.names[name], timeline.roles[role], round(start * 1e6, 6), round(duration * 1e6, 6))
        for name, role, start, duration in zip(found.names, found.roles, found.starts, found.durations, strict=True)
    ]


def test_the_typical_and_the_slowest_step_are_shown_to_the_next_ones_start() -> None:
    result = merged(tpu_view())
    typical, slowest = result.timelines["typical_step"], result.timelines["slowest_step"]
    assert typical.title == "Step 1, a typical one: 110 µs, 500 µs to the next step"
    assert slowest.title == "Step 2, the slowest, 2.73 × the median: 300 µs, 500 µs to the next step"
    assert (slowest.start, slowest.duration) == (0.001, 0.0005)
    assert result.facts.steps == (1, 2)
    assert result.facts.windows == ((500_000_000, 1_000_000_000), (1_000_000_000, 1_500_000_000))


def test_ops_stand_on_their_track_with_their_roles() -> None:
    assert events(merged(tpu_view()).timelines["slowest_step"], "ops") == [
        ("infeed.1", "input", 0, 10),
        ("dot.1", "compute", 10, 265),
        ("all-reduce.1", "collectives", 275, 20),
        ("copy-done.1", "other", 295, 5),
    ]


def test_waits_that_nothing_hides_are_marked_and_summed() -> None:
    result = merged(tpu_view())
    assert sorted(events(result.timelines["slowest_step"], "waits"), key=lambda event: event[2]) == [
        ("waiting for input", "input", 0, 10),
        ("exposed collective", "collectives", 275, 20),
        ("waiting for an asynchronous op", "other", 295, 5),
        ("idle", "idle", 300, 200),
    ]
    table = result.tables["timeline_waits"]
    rows = {str(row[1]): [round(cell, 9) for cell in row[2:] if isinstance(cell, float)] for row in table.rows}
    assert rows["waiting for input"] == [10e-6, 10e-6]
    assert rows["idle"] == [390e-6, 200e-6]
    assert "idle 40.0 %" in result.timelines["slowest_step"].alt


def test_a_wait_that_one_of_the_steps_lacks_is_zero_there_and_not_uncaptured() -> None:
    space = Space()
    plane = add_core(space, 0)
    steps, ops = plane.line("Steps"), plane.line("XLA Ops")
    for step, length in enumerate((100, 100, 100, 300, 100)):
        start = 500_000 * step
        steps.event(str(step), start, 1000 * length, {"group_id": step})
        ops.event("%dot.1", start, 50_000)
        if length == 300:
            ops.event("%infeed.1", start + 50_000, 250_000)
    table = merged(space.view()).tables["timeline_waits"]
    rows = {str(row[1]): row[2:] for row in table.rows}
    assert list(rows["waiting for input"]) == [0.0, pytest.approx(250e-6)]


def test_what_work_hides_is_no_wait() -> None:
    window = Window(0, 100)
    roles = [ROLES.index(role) for role in ("compute", "collectives", "host_transfer")]
    starts, ends = np.array([0, 20, 50]), np.array([40, 60, 70])
    found = exposed_waits(window, starts, ends, np.array(roles))
    assert {role: (waits.starts.tolist(), waits.ends.tolist()) for role, waits in found.items()} == {
        "host_transfer": ([50], [70]),
        "collectives": ([40], [50]),
        "idle": ([70], [100]),
    }


def test_threads_that_did_something_are_shown() -> None:
    timeline = merged(tpu_view()).timelines["typical_step"]
    assert [lane.title for lane in timeline.lanes] == ["ops", "waits", "main/1"]
    assert events(timeline, "main/1") == [
        ("PjitFunction(f)", "neutral", 0, 50),
        ("$loader.py:3 __next__", "input", 300, 100),
    ]


def test_streams_of_a_gpu_are_tracks() -> None:
    space = Space()
    plane = space.plane("/device:GPU:0")
    plane.line("Steps").event("0", 0, 100_000, {"group_id": 0})
    plane.line("Stream #1(Compute)").event("kernel", 0, 60_000, {"hlo_op": "dot.1", "hlo_module": "m"})
    plane.line("Stream #2(MemcpyH2D)").event("MemcpyH2D", 50_000, 40_000)
    timeline = merged(space.view()).timelines["typical_step"]
    assert [lane.title for lane in timeline.lanes] == ["Stream #1(Compute)", "Stream #2(MemcpyH2D)", "waits"]
    assert events(timeline, "Stream #1(Compute)") == [("dot.1", "compute", 0, 60)]
    assert events(timeline, "waits") == [
        ("transfer with the host", "host_transfer", 60, 30),
        ("idle", "idle", 90, 10),
    ]


def test_many_events_are_joined_and_none_is_forgotten() -> None:
    space = Space()
    plane = add_core(space, 0)
    plane.line("Steps").event("0", 0, 10_000_000, {"group_id": 0})
    ops = plane.line("XLA Ops")
    for number in range(5000):
        ops.event("%dot.1", number * 2000, 1000 + number % 7)
    found = lane(merged(space.view()).timelines["typical_step"], "ops")
    timeline = merged(space.view()).timelines["typical_step"]
    assert len(found.starts) <= 600
    counts = [timeline.names[name] for name in found.names]
    joined = sum(int(name.split()[0].replace(",", "")) for name in counts if name.endswith("short events"))
    assert joined + sum(not name.endswith("short events") for name in counts) == 5000


def test_equal_steps_are_shown_once_and_a_lonely_step_is_called_so() -> None:
    alike = merged(tpu_view((100, 100, 100)))
    assert set(alike.timelines) == {"typical_step"}
    assert "the slowest takes no longer than a typical one" in str(alike.blocks[0])
    assert "The only whole step" in str(merged(tpu_view((100,))).blocks[0])


def test_of_several_hosts_the_one_with_the_slowest_step_is_shown() -> None:
    result = merged(tpu_view((100, 110, 120), "fast"), tpu_view((100, 110, 400), "slow"))
    assert result.facts.host == "slow"
    assert "slow, the host with the slowest step of 2 hosts" in str(result.blocks[0])


def test_without_steps_there_is_nothing_to_show() -> None:
    space = Space()
    space.plane("/host:CPU").line("main/1").event("work", 0, 10)
    assert ANALYZER.host(space.view()) is None


def test_a_part_is_small_whatever_the_profile() -> None:
    space = Space()
    for core in range(20):
        plane = add_core(space, core)
        plane.line("Steps").event("0", 0, 10_000_000, {"group_id": 0})
        ops = plane.line("XLA Ops")
        for number in range(700):
            ops.event("%dot.1", number * 2000, 1000)
    part = ANALYZER.host(space.view())
    assert isinstance(part, TimelinePart)
    assert part.typical.window.left_out == ["12 of 20 cores"]
    assert sum(len(track.starts) for track in part.typical.window.tracks) < 10_000


@pytest.mark.parametrize(
    ("label", "role"),
    [
        ("$loader.py:3 __next__", "input"),
        ("Iterator::Prefetch::Map", "input"),
        ("TransferToDevice", "host_transfer"),
        ("backend_compile", "warning"),
        ("$gc collect", "warning"),
        ("$array.py:3 block_until_ready", "idle"),
        ("PjitFunction(f)", "neutral"),
    ],
)
def test_roles_of_host_events(label: str, role: Role) -> None:
    assert host_role(label) == role
