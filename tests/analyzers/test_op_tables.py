"""What the op tables say about themselves."""

from __future__ import annotations

import pytest

from reportgen.analyzers.base import Context
from reportgen.analyzers.op_profile import OpProfileAnalyzer
from reportgen.analyzers.steps import StepAnalyzer
from reportgen.settings import Settings
from tests.builders import Space


def test_the_note_tells_that_sums_are_over_the_capture_and_not_over_whole_steps() -> None:
    space = Space()
    plane = space.plane("/device:TPU:0", {"device_type_string": "TPU v5 lite"})
    plane.metadata("a", {"hlo_category": "loop fusion", "program_id": 1, "symbol_id": 1}, "a")
    plane.line("Steps").event("0", 0, 100, {"group_id": 0})
    plane.line("XLA Ops").event("a", 0, 50).event("a", 5_000, 50)
    view, steps, ops = space.view(), StepAnalyzer(), OpProfileAnalyzer()
    results = {"steps": steps.merge([steps.host(view)], Context(Settings(), {}))}
    part = ops.host(view)
    assert part is not None
    table = ops.merge([part], Context(Settings(), results)).tables["hlo_ops"]
    values = dict(zip([column.name for column in table.columns], table.rows[0], strict=True))
    assert values["occurrences"] == 2
    assert table.note.startswith("Sums over the whole capture and 1 core; 1 step was captured whole.")


@pytest.mark.parametrize(
    ("plane", "stats", "capacity", "source"),
    [
        ("/device:TPU:0", {"device_type_string": "TPU v5 lite"}, 16 * 2**30, "catalogue"),
        ("/device:GPU:0", {"gpu_device_name": "NVIDIA H100", "memory_size": 80 * 2**30}, 80 * 2**30, "memory_size"),
        ("/device:TPU:0", {"device_type_string": "TPU v99"}, None, "not in the catalogue"),
    ],
)
def test_the_memory_capacity_is_known_without_a_program_memory(
    plane: str, stats: dict[str, str | int], capacity: int | None, source: str
) -> None:
    space, ops = Space(), OpProfileAnalyzer()
    device = space.plane(plane, stats)
    device.metadata("a", {"hlo_category": "loop fusion", "program_id": 1, "symbol_id": 1}, "a")
    device.line("XLA Ops" if "TPU" in plane else "Stream #1(Compute)").event("a", 0, 50)
    part = ops.host(space.view())
    assert part is not None
    metric = ops.merge([part], Context(Settings(), {})).metrics["memory_capacity"]
    assert metric.value == capacity
    assert source in (metric.source if capacity else metric.reason or "")
