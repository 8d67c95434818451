"""The overlap rule, on profiles built by hand; times in nanoseconds."""

from __future__ import annotations

from typing import Any

import pytest

from reportgen.analyzers.input_pipeline.waits import CoreWaits, host_waits, worst_of_cores
from tests.analyzers.input_pipeline.support import analyze, input_of
from tests.builders import LineBuilder, PlaneBuilder, Space


class Loop:
    """A loop of steps annotated on a host thread, with a device."""

    def __init__(self, device: str = "/device:GPU:0") -> None:
        self.space = Space()
        self.host = self.space.plane("/host:CPU")
        self.main = self.host.line("python")
        self.device = self.space.plane(device)

    def step(self, number: int, start: float, length: float) -> Loop:
        self.main.event("train", start, length, {"_r": 1, "step_num": number})
        return self

    def steps(self, period: float, length: float, count: int = 3) -> Loop:
        for number in range(count):
            self.step(number, number * period, length)
        return self

    def waits(self) -> list[CoreWaits]:
        view = self.space.view()
        return host_waits(view, input_of(view))

    def rows(self) -> list[dict[str, Any]]:
        frame = worst_of_cores(self.waits())
        numbers = frame.drop(columns="label").astype("int64")
        return [{str(name): value for name, value in row.items()} for row in numbers.to_dict("records")]

    def column(self, name: str) -> list[int]:
        return [row[f"{name}_ps"] // 1000 for row in self.rows()]


def stream(plane: PlaneBuilder, name: str = "Stream #1(Compute)") -> LineBuilder:
    return plane.line(name)


def test_period_reaches_from_end_to_end() -> None:
    loop = Loop().steps(period=100, length=60)
    stream(loop.device).event("kernel", 0, 300)
    assert loop.column("time") == [60, 60, 60]
    assert loop.column("period") == [60, 100, 100]


def test_wait_between_two_annotations_belongs_to_the_step_that_follows() -> None:
    loop = Loop().steps(period=100, length=60)
    loop.main.event("$builtins next", 62, 30)
    stream(loop.device).event("kernel", 100, 60)
    assert loop.column("wait") == [0, 30, 0]


def test_only_exposed_time_is_a_wait_and_the_rest_is_hidden() -> None:
    loop = Loop().steps(period=100, length=60)
    loop.main.event("$builtins next", 60, 40)
    stream(loop.device).event("kernel", 0, 75)
    assert loop.column("wait") == [0, 25, 0]
    assert loop.column("hidden") == [0, 15, 0]


def test_iterators_of_other_threads_are_hidden_work_not_waits() -> None:
    loop = Loop().steps(period=100, length=60)
    loop.host.line("tf_data_iterator_resource").event("Iterator::Root::Prefetch::Map", 0, 90)
    stream(loop.device).event("kernel", 0, 50)
    assert loop.column("wait") == [0, 0, 0]
    assert loop.column("hidden") == [60, 30, 0]


def test_copies_to_a_gpu_count_where_no_kernel_runs_beside_them() -> None:
    loop = Loop().steps(period=100, length=100)
    stream(loop.device).event("kernel", 30, 50)
    stream(loop.device, "Stream #2(MemcpyH2D)").event("MemcpyH2D", 10, 40)
    assert loop.column("wait") == [20, 0, 0]
    assert loop.column("device") == [20, 0, 0]
    assert loop.column("hidden") == [20, 0, 0]


def op(plane: PlaneBuilder, name: str, category: str) -> None:
    plane.metadata(name, {"hlo_category": category, "program_id": 1, "symbol_id": len(plane.proto.event_metadata) + 1})


def tpu(shift: float = 0) -> tuple[Loop, LineBuilder]:
    """A loop on a TPU whose own clock runs `shift` ahead of the profile's."""
    loop = Loop("/device:TPU:0")
    for name, category in (("infeed.1", "infeed"), ("recv", "host recv-done"), ("dot", "dot"), ("loop", "while")):
        op(loop.device, name, category)
    line = loop.device.line("Steps")
    for number in range(3):
        clock = {
            "device_offset_ps": round((number * 100 + shift) * 1000),
            "device_duration_ps": 100_000,
            "group_id": number,
        }
        line.event(str(number), number * 100, 100, clock)
    return loop, loop.device.line("XLA Ops")


def run(line: LineBuilder, name: str, start: float, length: float, shift: float = 0) -> None:
    line.event(
        name,
        start,
        length,
        {"device_offset_ps": round((start + shift) * 1000), "device_duration_ps": round(length * 1000)},
    )


@pytest.mark.parametrize("shift", [0, 12_345])
def test_infeed_and_host_receive_are_waits_of_a_tpu(shift: float) -> None:
    loop, ops = tpu(shift)
    for number in range(3):
        run(ops, "infeed.1", number * 100, 20, shift)
        run(ops, "dot", number * 100 + 20, 70, shift)
        run(ops, "recv", number * 100 + 90, 10, shift)
    assert loop.column("wait") == [30, 30, 30]
    assert loop.column("device") == [30, 30, 30]
    assert loop.column("busy") == [70, 70, 70]


@pytest.mark.parametrize("shift", [0, 12_345])
def test_idle_that_host_input_explains_is_a_wait(shift: float) -> None:
    """The host's clock is the profile's, whatever the device's own says."""
    loop, ops = tpu(shift)
    for number in range(3):
        run(ops, "dot", number * 100 + 30, 70, shift)
        loop.main.event("$builtins next", number * 100, 20)
        loop.main.event("PjitFunction(f)", number * 100 + 21, 9)
    assert loop.column("wait") == [20, 20, 20]
    assert [free // 1000 for free in (core.free.total for core in loop.waits())] == [30]


def test_infeed_inside_a_loop_is_still_a_wait() -> None:
    loop, ops = tpu()
    for number in range(3):
        run(ops, "loop", number * 100, 100)
        run(ops, "infeed.1", number * 100, 25)
        run(ops, "dot", number * 100 + 25, 75)
    assert loop.column("wait") == [25, 25, 25]


def test_the_slowest_core_of_a_host_counts() -> None:
    loop = Loop().steps(period=100, length=100)
    stream(loop.device).event("kernel", 0, 300)
    second = loop.space.plane("/device:GPU:1")
    stream(second).event("kernel", 0, 300)
    stream(second, "Stream #2(MemcpyH2D)").event("MemcpyH2D", 300, 1)
    loop.main.event("$builtins next", 0, 1)
    for plane, start in ((loop.device, 310), (second, 330)):
        stream(plane, "Stream #3(Compute)").event("kernel", start, 60)
    loop.step(3, 300, 100)
    loop.main.event("$builtins next", 300, 40)
    assert loop.column("wait") == [0, 0, 0, 30]


def test_contextlib_calls_next_for_its_own_ends() -> None:
    loop = Loop().steps(period=100, length=60)
    loop.main.event("$contextlib.py:132 __enter__", 60, 20)
    loop.main.event("$builtins next", 61, 18)
    loop.main.event("$train.py:7 next_batch", 85, 10)
    stream(loop.device).event("kernel", 0, 60)
    assert loop.column("wait") == [0, 10, 0]


def test_python_that_gets_batches_on_another_thread_does_not_hold_the_step() -> None:
    loop = Loop().steps(period=100, length=60)
    loop.host.line("loader").event("$loader.py:3 load_batch", 60, 30)
    stream(loop.device).event("kernel", 0, 60)
    assert loop.column("wait") == [0, 0, 0]
    assert loop.column("hidden") == [0, 30, 0]


def test_own_annotation_of_loading_counts() -> None:
    loop = Loop().steps(period=100, length=90)
    loop.main.event("load_batch", 100, 30)
    stream(loop.device).event("kernel", 130, 60)
    assert loop.column("wait") == [0, 30, 0]


def test_await_of_a_transfer_counts_as_a_whole_and_of_a_step_up_to_its_ops() -> None:
    """PjRt marks a wait by two instants; between its end and the transfer's nothing runs but hand-overs."""
    loop = Loop().steps(period=100, length=100)
    for number, (begin, end) in enumerate(((5, 45), (110, 190))):
        loop.main.event("Buffer::Await", begin, 1, {"_p": number, "_pt": 0})
        loop.main.event("Buffer::Await", end - 1, 1, {"_c": number, "_ct": 0})
    pool = loop.host.line("pool")
    pool.event("H2D Dispatch", 15, 20)
    pool.event("H2D Dispatch", 115, 5)
    stream(loop.device).event("kernel", 50, 40).event("kernel", 125, 50)
    # The first wait is for a transfer alone, 5 to 45; the second waits from 110 to the transfer's end at 120.
    assert loop.column("wait") == [40, 10, 0]


def test_program_without_xla_waits_by_its_own_thread() -> None:
    space = Space()
    line = space.plane("/host:CPU").line("python")
    for number in range(4):
        line.event("train", number * 100, 90, {"_r": 1, "step_num": number})
        line.event("TFE_Py_FastPathExecute_C", number * 100, 45)
        line.event("EagerLocalExecute: IteratorGetNext", number * 100 + 2, 40)
        line.event("IteratorGetNextOp::DoCompute", number * 100 + 5, 30)
    facts = analyze(space.view()).facts
    assert facts.means.share == pytest.approx(0.45)
    assert len(facts.steps) == 3


def test_steps_that_nothing_marks_are_taken_from_the_calls_for_batches() -> None:
    """Keras marks no steps: each of its steps asks for one batch."""
    space = Space()
    plane = space.plane("/host:CPU")
    for number in range(5):
        plane.line("tf_data_iterator_get_next").event("IteratorGetNextOp::DoCompute", number * 100, 30)
        plane.line("tf_Compute").event("model/dense/MatMul:MatMul", number * 100 + 30, 60)
    facts = analyze(space.view()).facts
    assert facts.steps_from_calls
    assert list(facts.steps["period_ps"]) == [100_000] * 3
    assert list(facts.steps["wait_ps"]) == [30_000] * 3
    assert list(facts.steps["busy_ps"]) == [60_000] * 3
    assert "Nothing marks the steps" in str(analyze(space.view()).blocks)


def test_ops_of_the_pipeline_do_not_hide_the_wait_for_it() -> None:
    space = Space()
    plane = space.plane("/host:CPU")
    line, pool = plane.line("python"), plane.line("tf_data_private_threadpool/1")
    for number in range(3):
        line.event("train", number * 100, 90, {"_r": 1, "step_num": number})
        line.event("IteratorGetNextOp::DoCompute", number * 100, 40)
        line.event("Iterator::Root::Map", number * 100 + 1, 38).event("cast:Cast", number * 100 + 2, 10)
        pool.event("decode:DecodePng", number * 100 + 15, 20)
        line.event("model:MatMul", number * 100 + 45, 40)
    facts = analyze(space.view()).facts
    assert list(facts.steps["wait_ps"]) == [40_000] * 2
    assert list(facts.steps["busy_ps"]) == [40_000] * 2


def untraced(annotate: bool) -> Space:
    """Steps that leave a third of the time unrecorded, with or without the loading of batches."""
    loop = Loop().steps(period=100, length=60, count=5)
    for number in range(5):
        stream(loop.device, f"Stream #{number}(Compute)").event("kernel", number * 100, 60)
        if annotate:
            loop.main.event("load_batch", number * 100, 1)
    return loop.space


def test_time_without_records_may_be_input_unless_loading_was_recorded() -> None:
    unknown = analyze(untraced(annotate=False).view()).facts
    assert unknown.verdict.level == "cannot tell"
    assert unknown.means.unrecorded_share == pytest.approx(0.4)
    known = analyze(untraced(annotate=True).view()).facts
    assert known.verdict.level == "not"
    assert known.means.unrecorded_share == pytest.approx(0.4)


def test_profile_without_steps_cannot_tell() -> None:
    space = Space()
    space.plane("/host:CPU").line("python").event("Iterator::Root::Map", 0, 10)
    result = analyze(space.view())
    assert result.facts.verdict.level == "cannot tell"
    assert result.metrics["input_wait_fraction"].value is None
    assert "Annotate" in str(result.metrics["input_wait_fraction"].reason)
    assert result.tables["input_ops"].rows[0][0] == "Iterator::Root::Map"


def test_empty_profile() -> None:
    space = Space()
    space.plane("/device:TPU:0")
    result = analyze(space.view())
    assert result.facts.verdict.level == "cannot tell"
    assert "input_ops" not in result.tables
