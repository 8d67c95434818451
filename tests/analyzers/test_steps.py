"""Steps from each kind of evidence, their parts, partial steps, outliers; values worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from reportgen.analyzers.base import Context, Result
from reportgen.analyzers.step_view import step_table, steps_with_input
from reportgen.analyzers.steps import StepAnalyzer
from reportgen.profile.steps import StepSource
from reportgen.settings import Settings
from tests.builders import PlaneBuilder, Space

MS = 1_000_000  # nanoseconds


def op(plane: PlaneBuilder, name: str, category: str, number: int) -> None:
    plane.metadata(name, {"program_id": 5, "symbol_id": number, "hlo_category": category}, name)


def tpu(space: Space, core: int = 0) -> PlaneBuilder:
    plane = space.plane(f"/device:TPU:{core}", {"device_type_string": "TPU v5 lite"})
    categories = ("fusion", "loop fusion"), ("infeed", "infeed"), ("all-reduce", "all-reduce"), ("while", "while")
    for number, (name, category) in enumerate(categories, 1):
        op(plane, name, category, number)
    return plane


def analyze(*spaces: Space) -> Result:
    analyzer, settings = StepAnalyzer(), Settings()
    parts = [analyzer.host(space.view(settings, f"host{number}")) for number, space in enumerate(spaces)]
    return analyzer.merge(parts, Context(settings, {}))


def value(result: Result, name: str) -> Any:
    return result.metrics[name].value


def with_steps_line(plane: PlaneBuilder, lengths: list[int], gap: int = 1) -> None:
    steps, ops = plane.line("Steps"), plane.line("XLA Ops")
    start = 0
    for number, length in enumerate(lengths):
        steps.event(str(number), start * MS, length * MS, {"group_id": number})
        for part in range(4):
            ops.event("fusion", (start + part * length / 8) * MS, length / 8 * MS)
        ops.event("infeed", (start + length / 2) * MS, length / 4 * MS)
        start += length + gap


def test_step_times_periods_and_parts() -> None:
    space = Space()
    with_steps_line(tpu(space), [8, 8, 16, 8])
    result = analyze(space)
    assert result.facts.source is StepSource.STEPS_LINE
    assert value(result, "step_time_mean") == pytest.approx(0.010)
    assert value(result, "step_time_stddev") == pytest.approx(0.004)
    assert value(result, "step_time_max") == pytest.approx(0.016)
    assert value(result, "step_count") == 4
    # Starts at 0, 9, 18 and 35 ms.
    assert value(result, "step_period_mean") == pytest.approx(0.035 / 3)
    first = result.facts.steps.iloc[0]
    assert (first["compute"], first["input"], first["idle"]) == pytest.approx((0.004, 0.002, 0.002))


def test_consecutive_events_of_one_group_are_one_step() -> None:
    space = Space()
    plane = tpu(space)
    plane.line("Steps").event("0", 0, 2 * MS, {"group_id": 4}).event("0", 3 * MS, MS, {"group_id": 4}).event(
        "1", 5 * MS, 4 * MS, {"group_id": 5}
    )
    plane.line("XLA Ops").event("fusion", 0, MS).event("fusion", 5 * MS, MS)
    result = analyze(space)
    assert value(result, "step_count") == 2
    assert value(result, "step_time_mean") == pytest.approx(0.004)


def test_partial_steps_at_the_edges_are_left_out_and_counted() -> None:
    space = Space()
    plane = tpu(space)
    steps, ops = plane.line("Steps"), plane.line("XLA Ops")
    for number, (length, ops_inside) in enumerate([(3, 4), (10, 20), (10, 20), (10, 20), (0, 0)]):
        steps.event(str(number), number * 10 * MS, length * MS, {"group_id": number})
        for part in range(ops_inside):
            ops.event("fusion", (number * 10 + part * 0.1) * MS, 0.1 * MS)
    result = analyze(space)
    assert value(result, "step_count") == 3
    assert value(result, "step_time_mean") == pytest.approx(0.010)
    assert result.facts.left_out == 2
    assert "2 partial steps" in step_table(result.facts, result.facts.steps).note


def test_a_step_is_as_long_as_on_its_longest_core() -> None:
    space = Space()
    with_steps_line(tpu(space, 0), [8, 8, 8])
    with_steps_line(tpu(space, 1), [8, 8, 12])
    result = analyze(space)
    assert value(result, "step_time_mean") == pytest.approx((8 + 8 + 12) / 3 / 1000)
    assert len(result.facts.by_core) == 6


def test_a_step_that_one_core_lacks_is_left_out() -> None:
    space = Space()
    with_steps_line(tpu(space, 0), [8, 8, 8, 8])
    with_steps_line(tpu(space, 1), [8, 8, 8])
    result = analyze(space)
    assert (value(result, "step_count"), result.facts.left_out) == (3, 1)


def test_without_a_steps_line_the_module_with_the_most_time_defines_steps() -> None:
    space = Space()
    plane = tpu(space)
    modules, ops = plane.line("XLA Modules"), plane.line("XLA Ops")
    for number in range(3):
        modules.event("jit_small(1)", number * 10 * MS, MS, {"run_id": 10 + 2 * number})
        modules.event("jit_train(2)", (number * 10 + 1) * MS, 5 * MS, {"run_id": 11 + 2 * number})
        ops.event("fusion", (number * 10 + 1) * MS, 4 * MS)
    result = analyze(space)
    assert result.facts.source is StepSource.MODULE_RUNS
    assert result.facts.detail == "jit_train(2)"
    assert value(result, "step_time_mean") == pytest.approx(0.005)
    assert value(result, "step_period_mean") == pytest.approx(0.010)
    assert any("no step markers" in warning for warning in result.warnings)


def test_run_ids_that_differ_between_cores_do_not_shift_steps() -> None:
    """Regression: run ids count a device's launches; a core that ran one module more had its steps misaligned."""
    space = Space()
    for core, first in ((0, 6), (1, 4)):
        plane = tpu(space, core)
        modules, ops = plane.line("XLA Modules"), plane.line("XLA Ops")
        for number in range(5):
            modules.event("jit_train(2)", number * 10 * MS, 5 * MS, {"run_id": first + number})
            ops.event("fusion", number * 10 * MS, 5 * MS)
    result = analyze(space)
    assert (value(result, "step_count"), result.facts.left_out) == (5, 0)


def test_steps_from_host_annotations() -> None:
    space = Space()
    host = space.plane("/host:CPU")
    thread = host.line("python")
    for number in range(4):
        thread.event("train", number * 10 * MS, 6 * MS, {"_r": 1, "step_num": number + 100})
        thread.event("dot.1", (number * 10 + 1) * MS, 3 * MS, {"hlo_op": "dot.1", "hlo_module": "jit_f"})
    result = analyze(space)
    assert result.facts.source is StepSource.ANNOTATIONS
    assert result.facts.steps["label"].tolist() == ["100", "101", "102", "103"]
    assert value(result, "step_time_mean") == pytest.approx(0.006)
    assert value(result, "step_period_mean") == pytest.approx(0.010)
    assert result.facts.steps["compute"].tolist() == pytest.approx([0.003] * 4)


def test_no_steps_are_absent_with_the_line_that_adds_them() -> None:
    space = Space()
    space.plane("/device:TPU:0").line("XLA Ops")
    result = analyze(space)
    assert value(result, "step_time_mean") is None
    assert "annotation" in (result.metrics["step_time_mean"].reason or "")
    assert value(result, "step_count") == 0
    assert "StepTraceAnnotation" in result.blocks[0].code  # type: ignore[union-attr]


@pytest.mark.parametrize("ops", [False, True], ids=["without ops", "of no length"])
def test_marked_steps_without_a_time_are_not_called_unmarked(ops: bool) -> None:
    space = Space()
    plane = tpu(space)
    plane.line("Steps").event("0", 0, 0).event("1", 8 * MS, 0)
    if ops:
        plane.line("XLA Ops").event("fusion", 0, 4 * MS).event("fusion", 8 * MS, 4 * MS)
    result = analyze(space)
    reason = result.metrics["step_time_mean"].reason or ""
    assert value(result, "step_count") == 0
    assert ("none was captured whole" if ops else "no op was captured") in reason
    assert "annotation" not in reason


def test_outliers_are_marked_and_stay_in_the_statistics() -> None:
    space = Space()
    with_steps_line(tpu(space), [100, 10, 10, 10, 10, 10, 10])
    result = analyze(space)
    assert result.facts.steps["outlier"].tolist() == [True] + [False] * 6
    assert value(result, "step_time_mean") == pytest.approx(160 / 7 / 1000)
    assert any("outliers" in warning for warning in result.warnings)


def test_time_inside_a_loop_counts_once() -> None:
    space = Space()
    plane = tpu(space)
    plane.line("Steps").event("0", 0, 10 * MS, {"group_id": 0}).event("1", 10 * MS, 10 * MS, {"group_id": 1})
    ops = plane.line("XLA Ops")
    for step in range(2):
        ops.event("while", step * 10 * MS, 8 * MS)
        ops.event("all-reduce", (step * 10 + 1) * MS, 3 * MS)
    step = analyze(space).facts.steps.iloc[0]
    assert (step["compute"], step["collectives"], step["idle"]) == pytest.approx((0.005, 0.003, 0.002))


def test_streams_that_overlap_count_each_instant_once() -> None:
    space = Space()
    gpu = space.plane("/device:GPU:0")
    gpu.line("Steps").event("0", 0, 10 * MS, {"group_id": 0}).event("1", 10 * MS, 10 * MS, {"group_id": 1})
    compute, copies = gpu.line("Stream #1(Compute)"), gpu.line("Stream #2(MemcpyH2D)")
    for step in range(2):
        compute.event("kernel", step * 10 * MS, 6 * MS, {"correlation_id": step})
        copies.event("MemcpyH2D", (step * 10 + 4) * MS, 4 * MS, {"correlation_id": 10 + step})
    step = analyze(space).facts.steps.iloc[0]
    assert (step["compute"], step["host_transfer"], step["idle"]) == pytest.approx((0.006, 0.002, 0.002))


def test_the_wait_for_input_comes_out_of_idle_and_from_before_the_step() -> None:
    """Parts of a modelled loop: steps of 8 ms with 2 ms idle, a wait of 5 ms of which 3 lie before the step."""
    space = Space()
    with_steps_line(tpu(space), [8, 8, 8], gap=3)
    facts = analyze(space).facts
    waits = pd.DataFrame({"step": [1, 2], "wait_ps": [7_000_000_000] * 2, "device_ps": [2_000_000_000] * 2})
    found = steps_with_input(facts, SimpleNamespace(means=True, steps_from_calls=False, steps=waits))  # type: ignore[arg-type]
    assert found["input"].tolist() == pytest.approx([0.002, 0.007, 0.007])
    assert found["idle"].tolist() == pytest.approx([0.002, 0.0, 0.0])
    assert found["compute"].tolist() == facts.steps["compute"].tolist()
