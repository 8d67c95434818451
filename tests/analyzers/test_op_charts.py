"""Rooflines: one for each memory with a known peak that ops use; marks and roofs where a calculation puts them."""

from __future__ import annotations

import pytest

from reportgen.analyzers.base import Context, Result
from reportgen.analyzers.op_profile import OpProfileAnalyzer
from reportgen.settings import Settings
from reportgen.wire import xplane_pb2
from tests.builders import Space

PEAKS = {
    "device_type_string": "TPU v6 Lite", "peak_teraflops_per_second": 100.0, "peak_hbm_bw_gigabytes_per_second": 1000.0,
}  # fmt: skip
VMEM = {"peak_vmem_rd_bw_gigabytes_per_second": 10_000.0, "peak_vmem_wr_bw_gigabytes_per_second": 5_000.0}


def profile_of(peaks: dict[str, object]) -> Result:
    """One op of 1 µs: 20 MFLOP, 100 kB of HBM and 400 kB of VMEM read."""
    space = Space()
    plane = space.plane("/device:TPU:0", peaks)  # type: ignore[arg-type]
    breakdown = xplane_pb2.MemoryAccessBreakdown()
    breakdown.memory_accessed.add(operation_type=1, memory_space=1, bytes_accessed=100_000)
    breakdown.memory_accessed.add(operation_type=1, memory_space=3, bytes_accessed=400_000)
    stats = {
        "program_id": 1, "symbol_id": 1, "hlo_category": "convolution fusion", "flops": 20_000_000,
        "bytes_accessed": 500_000, "memory_access_breakdown": breakdown.SerializeToString(),
    }  # fmt: skip
    plane.metadata("%fusion = f32[] fusion()", stats, "fusion")
    plane.line("XLA Ops").event("%fusion = f32[] fusion()", 0, 1000)
    analyzer, settings = OpProfileAnalyzer(), Settings()
    part = analyzer.host(space.view(settings))
    assert part is not None
    return analyzer.merge([part], Context(settings, {}))


def test_a_roofline_for_hbm_and_one_for_what_is_read_on_chip() -> None:
    charts = profile_of(PEAKS | VMEM).charts
    assert sorted(charts) == ["op_categories", "roofline", "roofline_onchip_read"]
    for name, intensity, ridge in (("roofline", 200.0, 100.0), ("roofline_onchip_read", 50.0, 10.0)):
        op, program = charts[name].series
        assert op.x == program.x == pytest.approx((intensity,))
        assert op.y == pytest.approx((20e12,))
        assert op.row_ids == ("op-fusion",)
        slope, top = (guide.points for guide in charts[name].guides)
        assert slope[1] == top[0] == pytest.approx((ridge, 100e12))
        assert slope[0][1] / slope[0][0] == pytest.approx(100e12 / ridge)


def test_no_roofline_for_a_memory_without_a_known_peak() -> None:
    assert sorted(profile_of(PEAKS).charts) == ["op_categories", "roofline"]


def test_no_roofline_at_all_for_an_unknown_device() -> None:
    result = profile_of({"device_type_string": "TPU v99"})
    assert sorted(result.charts) == ["op_categories"]
    assert any("No roofline" in getattr(block, "text", "") for block in result.blocks)
