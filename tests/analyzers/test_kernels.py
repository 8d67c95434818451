"""The kernel table, its metrics and its warning."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from reportgen.analyzers.base import Context, Result
from reportgen.analyzers.kernels import KernelAnalyzer, KernelPart
from reportgen.settings import Settings
from tests.builders import Space, Stats

LAUNCH = "regs:32 static_shared:16 dynamic_shared:48 grid:4,2,1 block:128,1,1 occ_pct:50"
HALF_GEMM = "ampere_fp16_s16816gemm_fp16_128x64_nn"


def owned(op: str, launch: str = LAUNCH) -> Stats:
    return {"hlo_op": op, "hlo_module": "jit_f", "program_id": 3, "kernel_details": launch}


def gpu(*events: tuple[str, float, Stats]) -> Space:
    """A GPU that ran these kernels one after the other: name, duration in nanoseconds, statistics."""
    space = Space()
    line = space.plane("/device:GPU:0", {"compute_cap_major": 8}).line("Stream #1(Compute)")
    start = 0.0
    for name, duration, stats in events:
        line.event(name, start, duration, stats)
        start += duration
    return space


def part_of(space: Space) -> KernelPart:
    part = KernelAnalyzer().host(space.view())
    assert part is not None
    return part


def result(*spaces: Space) -> Result:
    parts = [pickle.loads(pickle.dumps(part_of(space))) for space in spaces]
    return KernelAnalyzer().merge(parts, Context(Settings(), {}))


def rows(found: Result) -> list[dict[str, Any]]:
    table = found.tables["kernels"]
    return [dict(zip([column.name for column in table.columns], row, strict=True)) for row in table.rows]


def value(found: Result, metric: str) -> float | None:
    return found.metrics[metric].value


def test_a_row_holds_what_was_captured() -> None:
    found = result(gpu((HALF_GEMM, 300, owned("dot.1")), (HALF_GEMM, 100, owned("dot.1")), ("MemcpyH2D", 100, {})))
    (row,) = rows(found)
    assert row == {
        "kernel": HALF_GEMM, "op": "dot.1", "program": "jit_f(3)", "framework_op": "", "occurrences": 2,
        "total": pytest.approx(4e-7), "average": pytest.approx(2e-7), "shortest": pytest.approx(1e-7),
        "longest": pytest.approx(3e-7), "share": pytest.approx(0.8), "element": "fp16", "matrix_unit": "yes",
        "grid": "4,2,1", "block": "128,1,1", "registers": 32, "static_shared": 16, "dynamic_shared": 48, "shared": 64,
        "occupancy": 0.5,
    }  # fmt: skip
    assert found.tables["kernels"].total_rows is None


def test_what_was_not_captured_is_none() -> None:
    (row,) = rows(result(gpu(("mystery", 10, {}))))
    assert [row[name] for name in ("registers", "shared", "occupancy", "grid", "block", "element")] == [None] * 6
    assert row["matrix_unit"] == "unknown"


def test_rows_differ_by_op_and_by_launch_and_come_by_time() -> None:
    wide = LAUNCH.replace("block:128", "block:256")
    found = rows(
        result(
            gpu(
                ("k", 10, owned("a")), ("k", 20, owned("b")), ("k", 30, owned("a", wide)), ("k", 5, owned("a")),
            )
        )
    )  # fmt: skip
    assert [(row["op"], row["block"], row["occurrences"]) for row in found] == [
        ("a", "256,1,1", 1), ("b", "128,1,1", 1), ("a", "128,1,1", 2)
    ]  # fmt: skip


def test_hosts_are_summed() -> None:
    first, second = gpu(("k", 10, owned("a"))), gpu(("k", 30, owned("a")), ("other", 5, owned("b")))
    found = result(first, second)
    (row, _) = rows(found)
    assert (row["occurrences"], row["total"], row["shortest"], row["longest"]) == (
        2, pytest.approx(4e-8), pytest.approx(1e-8), pytest.approx(3e-8)
    )  # fmt: skip
    assert found.facts.kernel_time == pytest.approx(4.5e-8)


def test_a_long_table_is_cut_and_says_how_many_rows_there_were() -> None:
    table = result(gpu(*[(f"k{number}", 10 + number, owned("a")) for number in range(130)])).tables["kernels"]
    assert (len(table.rows), table.total_rows, table.rows[0][0]) == (100, 130, "k129")
    assert len(set(table.row_ids)) == 100


def test_shares_are_of_the_kernels_time() -> None:
    found = result(
        gpu(
            (HALF_GEMM, 60, owned("a")),
            ("ampere_sgemm_32x32", 20, owned("b")),
            ("mystery", 20, owned("c")),
            ("MemcpyD2H", 900, {}),
        )
    )
    assert value(found, "tensor_core_time_fraction") == pytest.approx(0.6)
    assert value(found, "device_16bit_time_fraction") == pytest.approx(0.6)
    assert found.facts.matrix_unknown_time == pytest.approx(2e-8)
    assert found.facts.element_times == {
        "": pytest.approx(2e-8),
        "f32": pytest.approx(2e-8),
        "fp16": pytest.approx(6e-8),
    }


def test_kernels_of_nobody_are_named_above_five_percent() -> None:
    graph: Stats = {"cuda_graph_id": 4}
    found = result(
        gpu(("k", 80, owned("a")), ("library_kernel", 6, {}), ("graph_kernel", 4, graph), ("Memset", 10, {}))
    )
    assert value(found, "unattributed_device_time") == pytest.approx(0.1)
    (warning,) = found.warnings
    assert warning.startswith("10.0 % of the device time")
    assert "library_kernel, graph_kernel" in warning
    assert "4.00 % ran inside command buffers" in warning


def test_a_few_kernels_of_nobody_are_no_warning() -> None:
    found = result(gpu(("k", 96, owned("a")), ("library_kernel", 4, {})))
    assert value(found, "unattributed_device_time") == pytest.approx(0.04)
    assert found.warnings == ()


def test_a_framework_op_is_an_owner() -> None:
    found = result(gpu(("gemm", 10, {"tf_op": "model/MatMul:MatMul"})))
    assert value(found, "unattributed_device_time") == 0
    assert rows(found)[0]["framework_op"] == "model/MatMul:MatMul"


def test_a_gpu_that_only_copied_has_no_kernel_figures() -> None:
    found = result(gpu(("MemcpyH2D", 10, {})))
    assert value(found, "tensor_core_time_fraction") is None
    assert found.metrics["tensor_core_time_fraction"].reason
    assert value(found, "unattributed_device_time") == 0
    assert rows(found) == []


def test_every_metric_says_how_it_is_computed() -> None:
    metrics = result(gpu(("k", 10, owned("a")))).metrics
    assert set(metrics) == {"tensor_core_time_fraction", "device_16bit_time_fraction", "unattributed_device_time"}
    assert all(metric.definition and metric.unit == "fraction" and metric.better for metric in metrics.values())


def test_tpu_and_cpu_have_no_kernels() -> None:
    tpu = Space()
    ids = {"program_id": 1, "symbol_id": 2}
    plane = tpu.plane("/device:TPU:0")
    plane.metadata("add", ids)
    plane.line("XLA Ops").event("add", 0, 5)
    cpu = Space()
    cpu.plane("/host:CPU").line("thread").event("add", 0, 5, {"hlo_op": "add"})
    idle = Space()
    idle.plane("/device:GPU:0")
    assert [KernelAnalyzer().host(space.view()) for space in (tpu, cpu, idle)] == [None] * 3
