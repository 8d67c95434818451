"""Ops of a TPU core whose statistics are not of the kind that profilers write."""

from __future__ import annotations

import pytest

from reportgen.profile.ops import OpInfo, tpu_op_runs
from tests.builders import Space, Stats, StatValue

KNOWN: dict[str, StatValue] = {"hlo_category": "loop fusion", "program_id": 1, "symbol_id": 2}


def infos(stats: Stats) -> list[OpInfo]:
    space = Space()
    plane = space.plane("/device:TPU:0")
    plane.metadata("a", KNOWN | dict(stats), "a")
    plane.line("XLA Ops").event("a", 0, 100)
    runs = tpu_op_runs(space.view().cores[0].plane)
    return [runs.infos[index] for index in runs.ops]


@pytest.mark.parametrize("program", ["abc", b"\xff", float("nan"), float("inf"), 7.5])
def test_an_op_without_a_readable_program_is_left_out(program: StatValue) -> None:
    assert infos({"program_id": program}) == []


@pytest.mark.parametrize(("program", "number"), [("77", 77), (-1, 2**64 - 1)])
def test_program_ids_are_read_as_text_and_without_a_sign(program: StatValue, number: int) -> None:
    assert [info.program for info in infos({"program_id": program})] == [number]


@pytest.mark.parametrize("cost", [-5, "many", float("nan"), float("inf"), b"x"])
def test_what_can_be_no_cost_is_not_known_and_not_zero(cost: StatValue) -> None:
    (info,) = infos({"flops": cost, "model_flops": cost, "bytes_accessed": cost})
    assert (info.flops, info.model_flops, info.bytes) == (None, None, None)


def test_a_cost_of_zero_is_known() -> None:
    (info,) = infos({"flops": 0, "bytes_accessed": 64})
    assert (info.flops, info.model_flops, info.bytes, info.hbm_read) == (0, 0, 64, 64)


def test_negative_durations_on_the_device_count_as_none() -> None:
    space = Space()
    plane = space.plane("/device:TPU:0")
    plane.metadata("a", KNOWN, "a")
    plane.line("XLA Ops").event("a", 0, 100, {"device_offset_ps": 5, "device_duration_ps": -7})
    assert tpu_op_runs(space.view().cores[0].plane).durations.tolist() == [0]
