"""XLA ops on host threads as runs of ops."""

from __future__ import annotations

from reportgen.profile.hlo_text import parse_hlo_text
from reportgen.profile.ops import op_table
from tests.builders import Space

MODULE = """HloModule jit_f

body {
  p = f32[8]{0} parameter(0)
  ROOT inner = f32[8]{0} negate(p)
}

ENTRY main {
  p = f32[8]{0} parameter(0)
  ROOT outer = f32[8]{0} call(p), to_apply=body
}
"""


def host() -> Space:
    """An op inside another on one thread, an op beside them on a second, and events that are no ops."""
    space = Space()
    space.hlo("jit_f(4)", 4, parse_hlo_text(MODULE).proto.SerializeToString())
    plane = space.plane("/host:CPU")
    stats: dict[str, str | int] = {"hlo_module": "jit_f", "program_id": 4}
    first = plane.line("tf_XLAEigen/1")
    first.event("ThunkExecutor", 0, 500).event("outer", 10, 100, {"hlo_op": "outer", **stats})
    first.event("inner", 20, 30, {"hlo_op": "inner", **stats})
    plane.line("tf_XLAEigen/2").event("inner", 15, 40, {"hlo_op": "inner", **stats})
    return space


def test_self_time_is_taken_on_each_thread() -> None:
    table = op_table(host().view().cores[0].runs).set_index("name")
    assert table["self_ps"].to_dict() == {"outer": 70_000, "inner": 70_000}
    assert table["time_ps"].to_dict() == {"outer": 100_000, "inner": 70_000}
    assert table["occurrences"].to_dict() == {"outer": 1, "inner": 2}
    assert table["category"].to_dict() == {"outer": "call", "inner": "non-fusion elementwise"}
    assert table["flops"].to_dict() == {"outer": 8, "inner": 16}


def test_busy_time_counts_threads_that_run_at_once_but_once() -> None:
    runs = host().view().cores[0].runs
    assert (runs.busy, runs.span) == (100_000, (10_000, 110_000))


def test_a_host_beside_a_device_is_no_core() -> None:
    space = host()
    space.plane("/device:GPU:0")
    assert [core.id.device for core in space.view().cores] == ["GPU"]
