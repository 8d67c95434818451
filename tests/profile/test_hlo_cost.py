"""FLOPs and bytes against XLA's own cost analysis, and on small modules by hand."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reportgen.profile.hlo_cost import bytes_accessed, cost, flops
from reportgen.profile.hlo_text import parse_hlo_text

LOWER = Path(__file__).parent / "lower_programs.py"

TEXT = """HloModule m

%fused (p: f32[64,128], i: s32[], u: f32[1,128]) -> f32[64,128] {
  %p = f32[64,128]{1,0} parameter(0)
  %i = s32[] parameter(1)
  %u = f32[1,128]{1,0} parameter(2)
  %slice.1 = f32[1,128]{1,0} dynamic-slice(%p, %i, %i), dynamic_slice_sizes={1,128}
  %add.1 = f32[1,128]{1,0} add(%slice.1, %u)
  ROOT %dus = f32[64,128]{1,0} dynamic-update-slice(%p, %add.1, %i, %i)
}

ENTRY %main (x: f32[64,128], i: s32[], u: f32[1,128]) -> f32[64,128] {
  %x = f32[64,128]{1,0} parameter(0)
  %n = s32[] parameter(1)
  %v = f32[1,128]{1,0} parameter(2)
  %custom = f32[8]{0} custom-call(%x), custom_call_target="kernel"
  %copy-start = (f32[64,128]{1,0:S(1)}, f32[64,128]{1,0}, u32[]) copy-start(%x)
  %copy-done = f32[64,128]{1,0:S(1)} copy-done(%copy-start)
  ROOT %fusion = f32[64,128]{1,0} fusion(%x, %n, %v), kind=kLoop, calls=%fused
}
"""


def test_a_fusion_counts_only_the_slices_that_it_touches() -> None:
    module = parse_hlo_text(TEXT)
    fusion = module.by_name["fusion"]
    row = 128 * 4
    index_reads = 4  # one read, shared by all its users
    assert bytes_accessed(module, fusion) == row + row + row + index_reads
    assert flops(module, fusion) == 128


def test_what_is_not_known_is_none() -> None:
    module = parse_hlo_text(TEXT)
    assert flops(module, module.by_name["custom"]) is None
    assert bytes_accessed(module, module.by_name["custom"]) is None
    assert (cost(module, module.by_name["x"]), bytes_accessed(module, module.by_name["x"])) == ((0, 0), 0)


def test_a_copy_reads_and_writes_once() -> None:
    module = parse_hlo_text(TEXT)
    assert bytes_accessed(module, module.by_name["copy-start"]) == 2 * 64 * 128 * 4
    assert bytes_accessed(module, module.by_name["copy-done"]) == 0


@pytest.mark.peer
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
def test_xla_counts_the_same() -> None:
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(LOWER.parents[2])}
    run = subprocess.run([sys.executable, LOWER], env=environment, capture_output=True, text=True, check=True)
    rows = json.loads(run.stdout)
    assert len(rows) > 15
    assert {name: row["ours"] for name, row in rows.items()} == {name: row["xla"] for name, row in rows.items()}
