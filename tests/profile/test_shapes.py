"""Shapes: text form, padding by tiles, damaged input."""

from __future__ import annotations

import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reportgen.errors import InputError
from reportgen.profile.hlo_text import shape_proto
from reportgen.profile.shapes import ELEMENT_BITS, Layout, Shape, parse_prefix

ARRAY_TYPES = sorted(name for name, bits in ELEMENT_BITS.items() if bits >= 8)


@st.composite
def arrays(draw: st.DrawFn) -> Shape:
    dimensions = tuple(draw(st.lists(st.integers(0, 300), max_size=5)))
    order = tuple(draw(st.permutations(range(len(dimensions)))))
    tiles = draw(st.sampled_from([(), ((8, 128),), ((8, 128), (2, 1)), ((1024,), (128,), (2, 1)), ((128,),)]))
    layout = Layout(order, tiles, draw(st.sampled_from([0, 1, 5])), draw(st.sampled_from([0, 4, 8])))
    return Shape(draw(st.sampled_from(ARRAY_TYPES)), dimensions, layout)


shapes = st.recursive(
    arrays(), lambda part: st.lists(part, max_size=4).map(lambda p: Shape("tuple", elements=tuple(p)))
)


@given(shapes)
def test_text_and_proto_give_the_shape_back(shape: Shape) -> None:
    assert Shape.from_proto(shape_proto(shape)) == shape
    assert str(Shape.parse(str(shape))) == str(shape)
    assert Shape.parse(str(shape)).total_bytes == shape.total_bytes
    assert pickle.loads(pickle.dumps(shape)) == shape


@given(arrays())
def test_padding_only_adds_whole_tiles(shape: Shape) -> None:
    assert shape.padded_bytes >= shape.unpadded_bytes
    assert shape.layout is not None
    tile = math.prod(shape.layout.tiles[0]) if shape.layout.tiles else 1
    assert shape.padded_bytes * 8 % (tile * shape.bits) == 0 or shape.bits < 8
    if shape.layout.tiles and shape.rank >= len(shape.layout.tiles[0]):
        padded = math.prod(dimension.padded_size for dimension in shape.padded_dimensions)
        assert -(-padded * shape.bits // 8) == shape.padded_bytes


@pytest.mark.parametrize(
    ("text", "unpadded", "padded"),
    [
        ("f32[5,1024]{1,0:T(8,128)}", 20480, 32768),
        ("bf16[10,32,32,5]{0,3,2,1:T(8,128)(2,1)}", 102400, 2097152),
        ("bf16[256,32,32,64]{0,3,2,1:T(8,128)(2,1)S(1)}", 33554432, 33554432),
        ("f32[]{:T(128)}", 4, 512),
        ("bf16[]{:T(256)}", 2, 512),
        ("bf16[100]{0:T(1024)(128)(2,1)}", 200, 2048),
        ("pred[6,6]{1,0:T(32,128)(4,1)}", 36, 4096),
        ("s4[3,6]{1,0:T(64,128)(8,1)E(4)}", 9, 4096),
        ("f32[6,128]{1,0}", 3072, 3072),
        ("f32[3,5]{1,0:L(64)}", 60, 256),
        ("f32[2,3]{1,0:T(*,128)}", 24, 512),
        ("token[]", 0, 0),
        ("(f32[8]{0}, (s32[], bf16[2]))", 16, 16),
    ],
)
def test_bytes(text: str, unpadded: int, padded: int) -> None:
    shape = Shape.parse(text)
    assert (shape.unpadded_bytes, shape.padded_bytes) == (unpadded, padded)


def test_padding_goes_by_the_place_in_the_layout_not_by_the_role() -> None:
    """The batch of 10 lies on the 128 lanes and the 5 features on the 8 sublanes."""
    dimensions = Shape.parse("bf16[10,32,32,5]{0,3,2,1:T(8,128)(2,1)}").padded_dimensions
    assert [tuple(d) for d in dimensions] == [(10, 128, 0), (32, 32, 3), (32, 32, 2), (5, 8, 1)]


def test_dynamic_sizes_comments_and_unknown_attributes_are_read() -> None:
    shape = Shape.parse("(f32[<=7, 5]{1,0:D(D,C)#(u32)T(8,128)P(f32[8]{0})S(3)}, /*index=1*/b(s32[2]))")
    first, second = shape.elements
    assert (first.dimensions, first.dynamic, first.memory_space) == ((7, 5), (True, False), 3)
    assert first.layout == Layout((1, 0), ((8, 128),), 3)
    assert str(second) == "s32[2]"


def test_a_brace_after_the_shape_that_is_no_layout_is_left_alone() -> None:
    text = "f32[2] {\n"
    assert parse_prefix(text) == (Shape("f32", (2,)), 6)
    assert parse_prefix("f32[2]{devices=[2]}") == (Shape("f32", (2,)), 6)


def test_parts_of_a_tuple() -> None:
    shape = Shape.parse("(f32[8]{0}, (s32[], bf16[2]{0}))")
    assert str(shape.at((1, 1))) == "bf16[2]{0}"
    assert [str(leaf) for leaf in shape.leaves()] == ["f32[8]{0}", "s32[]", "bf16[2]{0}"]
    assert shape.at(()) is shape
    with pytest.raises(InputError, match="no part at index"):
        shape.at((2,))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "f32",
        "f33[2]",
        "f32[-1]",
        "f32[?]",
        "f32[2]{0",
        "f32[2]{1}",
        "f32[2]{0,0}",
        "f32[2,2]{0}",
        "f32[2]{0:T(0)}",
        "f32[2]{0:T(x)}",
        "f32[99999999999999999999]",
        "f32[4000000000,4000000000]",
        "(f32[2]",
        "(f32[2] f32[2])",
        "f32[2] f32[2]",
        "(" * 40 + "f32[2]" + ")" * 40,
        "f32[２]",
    ],
)
def test_garbage_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        Shape.parse(text)


@given(st.text(alphabet="f32bs(){}[],:TSELD*0123456789<= /", max_size=60))
def test_any_text_is_a_shape_or_an_input_error(text: str) -> None:
    try:
        shape = Shape.parse(text)
    except InputError:
        return
    assert shape.total_bytes >= 0


def test_damaged_protos_are_refused() -> None:
    proto = shape_proto(Shape.parse("f32[8,8]{1,0:T(8,128)}"))
    proto.dimensions[0] = -3
    with pytest.raises(InputError, match="impossible"):
        Shape.from_proto(proto)
    proto.dimensions[0] = 8
    proto.element_type = 99
    with pytest.raises(InputError, match="element type 99"):
        Shape.from_proto(proto)
