"""Which dimensions go together: the batch is found under other names and products, not where a size is the same."""

from __future__ import annotations

import pytest

from reportgen.memory.dimensions import Dimensions
from reportgen.memory.fixes.state import find_batch
from reportgen.memory.forecast import Program
from reportgen.profile.hlo_text import parse_hlo_text
from reportgen.profile.shapes import Shape

from .conftest import compiled_program

ENTRY = "HloModule m, is_scheduled=true\n\nENTRY %main (x: f32[8,6,4]) -> f32[8] {{\n{}\n}}\n"


def tied(body: str, name: str) -> str:
    """B for each dimension of a value that goes with the first of x, - for the others."""
    module = parse_hlo_text(ENTRY.format(body))
    dimensions = Dimensions(module)
    batch = dimensions.of(module.by_name["x"])[0]
    nodes = dimensions.of(module.by_name[name])
    return "".join("B" if dimensions.contains(node, batch) else "-" for node in nodes)


DOT = "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={2}"
X = "  %x = f32[8,6,4]{2,1,0} parameter(0)\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%y = f32[8,6,4]{2,1,0} negate(%x)", "B--"),
        ("%y = f32[4,8,6]{2,1,0} transpose(%x), dimensions={2,0,1}", "-B-"),
        ("%y = f32[48,4]{1,0} reshape(%x)", "B-"),
        ("%y = f32[8,24]{1,0} reshape(%x)", "B-"),
        ("%y = f32[2,4,24]{2,1,0} reshape(%x)", "---"),
        ("%y = f32[6,8,4]{2,0,1} bitcast(%x)", "-B-"),
        ("%y = f32[4]{0} reduce(%x, %x), dimensions={0,1}, to_apply=%main", "-"),
        ("%y = f32[8]{0} reduce(%x, %x), dimensions={1,2}, to_apply=%main", "B"),
        ("%y = f32[8,8,6,4]{3,2,1,0} broadcast(%x), dimensions={1,2,3}", "-B--"),
        ("%y = f32[16,6,4]{2,1,0} concatenate(%x, %x), dimensions={0}", "---"),
        ("%y = f32[8,12,4]{2,1,0} concatenate(%x, %x), dimensions={1}", "B--"),
        ("%y = f32[8,3,4]{2,1,0} slice(%x), slice={[0:8], [0:3], [0:4]}", "B--"),
        ("%y = f32[8,6,6]{2,1,0} dot(%x, %x), " + DOT, "B--"),
    ],
)
def test_operations_tie_dimensions(line: str, expected: str) -> None:
    assert tied(f"{X}  ROOT {line}", "y") == expected


def test_a_product_that_is_split_again_gives_its_factors_back() -> None:
    body = f"{X}  %y = f32[48,4]{{1,0}} reshape(%x)\n  ROOT %z = f32[8,6,4]{{2,1,0}} reshape(%y)"
    assert tied(body, "z") == "B--"


@pytest.mark.parametrize(
    ("program", "size", "scaled"),
    [
        ("attention", 8, "f32[4,8,1024,1024]"),  # heads and batch are both 8
        ("dense", 16384, "f32[8192,2048]"),
        ("conv", 256, "f32[128,64,64,64]"),
        ("scan", 8192, "bf16[16,4096,4096]"),
        ("lookup", 1024, "bf16[512,65536]"),  # the width is 1024 too
    ],
)
def test_the_batch_of_real_programs(program: str, size: int, scaled: str) -> None:
    compiled = compiled_program(program)
    found = Program(compiled.module, compiled.memory)
    batch = find_batch(found)
    assert batch is not None
    assert batch.size == size
    space = found.space
    assert space is not None
    halved = {
        str(found.dimensions.scaled(found.shape(b), found.nodes(b), batch.group, 0.5).without_layout())
        for b in space.peak_buffers
        if b.size > 2**20
    }
    assert scaled in halved


def test_a_scaled_shape_keeps_its_layout() -> None:
    module = parse_hlo_text(ENTRY.format("  ROOT %x = f32[8,6,4]{0,1,2:T(8,128)} parameter(0)"))
    dimensions = Dimensions(module)
    nodes = dimensions.of(module.by_name["x"])
    shape = dimensions.scaled(module.by_name["x"].shape, nodes, nodes[0], 0.25)
    assert str(shape) == "f32[2,6,4]{0,1,2:T(8,128)}"
    assert dimensions.scaled(Shape("f32", (8,)), nodes, nodes[0], 0.5) == Shape("f32", (8,))


def test_a_module_without_main_memory_has_no_batch() -> None:
    compiled = compiled_program("dense")
    bare = Program(compiled.module, type(compiled.memory)(**{**vars(compiled.memory), "spaces": {}}))
    assert find_batch(bare) is None
