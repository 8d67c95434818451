"""All others, explained: what the host did when nothing ran and no input was waited for."""

from __future__ import annotations

import pytest

from reportgen.analyzers.input_pipeline.activity import NOTHING_RECORDED
from tests.analyzers.input_pipeline.support import analyze
from tests.builders import Space


def busy_host() -> Space:
    """Steps of 100 ns: a kernel for 40, a wait for input of 10, and a host that does many things in the other 50."""
    space = Space()
    line, device = space.plane("/host:CPU").line("python"), space.plane("/device:GPU:0").line("Stream #1(Compute)")
    for number in range(4):
        start = number * 100
        line.event("$train.py:20 loop", start, 95)
        line.event("train", start, 95, {"_r": 1, "step_num": number})
        line.event("$builtins next", start, 10)
        line.event("PjitFunction(f)", start + 10, 8)
        line.event("$gc collect", start + 20, 5)
        line.event("$log.py:3 write", start + 25, 15).event("$io write", start + 30, 6)
        line.event("XlaCompile", start + 40, 4)
        device.event("kernel", start + 50, 40)
    return space


def test_every_moment_is_named() -> None:
    facts = analyze(busy_host().view()).facts
    frame = facts.activity
    total = dict(frame.groupby("group")["time_ps"].sum())
    # The first step has no gap before it; the others have one of 5 ns.
    assert total == {
        "launch": 32_000,
        "garbage collection": 20_000,
        "Python": 4 * (15 + 2 + 6 + 5) * 1000,
        "compilation": 16_000,
        NOTHING_RECORDED: 15_000,
    }
    assert int(frame["time_ps"].sum()) == (4 * 95 - 4 * 50 + 3 * 5) * 1000
    written = frame[frame["event"] == "$io write"]
    assert list(written["function"]) == ["$log.py:3 write"]


def test_table_is_per_step_and_adds_up_to_all_others() -> None:
    result = analyze(busy_host().view())
    table = result.tables["host_activity"]
    names = [column.name for column in table.columns]
    times = [row[names.index("time")] for row in table.rows]
    assert sum(float(time) for time in times if time is not None) == pytest.approx(result.facts.means.other_s)
    assert result.metrics["host_other_fraction"].value == pytest.approx(0.5)
    assert {row[names.index("group")] for row in table.rows} >= {"launch", "garbage collection", "compilation"}


def test_waiting_for_the_device_is_told_from_python() -> None:
    space = Space()
    line, device = space.plane("/host:CPU").line("python"), space.plane("/device:GPU:0").line("Stream #1(Compute)")
    for number in range(3):
        line.event("train", number * 100, 100, {"_r": 1, "step_num": number})
        line.event("Buffer::Await", number * 100 + 10, 1, {"_p": number, "_pt": 0})
        line.event("Buffer::Await", number * 100 + 99, 1, {"_c": number, "_ct": 0})
        device.event("kernel", number * 100 + 30, 50)
    groups = analyze(space.view()).facts.activity.groupby("group")["time_ps"].sum()
    assert groups["waiting for the device"] == 3 * 40_000
