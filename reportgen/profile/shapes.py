"""Shapes of XLA values: element type, dimensions, layout, and the bytes they take with and without padding.

A tiled layout pads. `bf16[256,6]{1,0:T(8,128)(2,1)}` lies in tiles of 8 by 128 elements, dimension 1 (the
minor-most) on the 128 lanes, so the 6 takes the room of 128. The padded size is that of XLA with all tiles applied,
the outermost first over the minor-most dimensions and each further tile inside the one before.
"""

from __future__ import annotations

import dataclasses
import math
import re
from functools import lru_cache
from typing import NamedTuple

from reportgen.errors import InputError
from reportgen.wire import hlo_pb2

POINTER_BYTES = 8
_MAX_DEPTH = 32
_MAX_TEXT = 1 << 20
_MAX_ELEMENTS = 2**62
_COMBINE = -1  # "*" in a tile: the dimension joins the next more minor one
_PROTO_COMBINE = -(2**63)

# Each element type: its name in HLO text, its number in XLA's PrimitiveType, the bits of one element.
_TYPE_TABLE = (
    "pred=1/8 s8=2/8 s16=3/16 s32=4/32 s64=5/64 u8=6/8 u16=7/16 u32=8/32 u64=9/64 f16=10/16 f32=11/32 "
    "f64=12/64 opaque=14/0 c64=15/64 bf16=16/16 token=17/0 c128=18/128 f8e5m2=19/8 f8e4m3fn=20/8 s4=21/4 "
    "u4=22/4 f8e4m3b11fnuz=23/8 f8e5m2fnuz=24/8 f8e4m3fnuz=25/8 s2=26/2 u2=27/2 f8e4m3=28/8 f8e3m4=29/8 "
    "s1=30/1 u1=31/1 f4e2m1fn=32/4 f8e8m0fnu=33/8"
)
_TUPLE_TYPE = 13
_BUFFER_TYPE = 34
_TYPES = re.findall(r"(\w+)=(\d+)/(\d+)", _TYPE_TABLE)
ELEMENT_BITS: dict[str, int] = {name: int(bits) for name, _, bits in _TYPES}
TYPE_NUMBERS: dict[str, int] = {name: int(number) for name, number, _ in _TYPES} | {"tuple": _TUPLE_TYPE}
_NAMES = {number: name for name, number in TYPE_NUMBERS.items()}

_ARRAY = re.compile(r"([a-z][a-z0-9]*)\[([^\]\[]*)\]")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_GROUP = re.compile(r"\(([^()]*)\)")
_MINOR_TO_MAJOR = re.compile(r"[\d,\s]*")


class PaddedDimension(NamedTuple):
    """One logical dimension: its size, its size with the tile's padding, and its place (0 is minor-most)."""

    size: int
    padded_size: int
    place: int


@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
    """How an array lies in memory.

    Attributes:
        minor_to_major: Logical dimensions, the fastest-varying first.
        tiles: Tiles, outermost first, each with its sizes from major to minor; -1 stands for XLA's "*".
        memory_space: 0 is the device's main memory (HBM); 1 is VMEM on TPU; 5 is host memory.
        element_size_in_bits: Bits that one element takes; 0 means its type's own size.
        tail_alignment: The number of elements that the whole is rounded up to a multiple of.

    """

    minor_to_major: tuple[int, ...] = ()
    tiles: tuple[tuple[int, ...], ...] = ()
    memory_space: int = 0
    element_size_in_bits: int = 0
    tail_alignment: int = 1

    def __str__(self) -> str:
        parts = "".join(f"({','.join('*' if t == _COMBINE else str(t) for t in tile)})" for tile in self.tiles)
        text = f"T{parts}" if parts else ""
        text += f"L({self.tail_alignment})" if self.tail_alignment > 1 else ""
        text += f"E({self.element_size_in_bits})" if self.element_size_in_bits else ""
        text += f"S({self.memory_space})" if self.memory_space else ""
        order = ",".join(map(str, self.minor_to_major))
        return f"{{{order}:{text}}}" if text else f"{{{order}}}"


@dataclasses.dataclass(frozen=True, slots=True)
class Shape:
    """An array, a tuple of shapes, a token or an opaque value.

    Attributes:
        element_type: The type as HLO text writes it ("bf16", "pred"); "tuple" for a tuple.
        dimensions: Sizes of the logical dimensions (upper bounds where dynamic).
        layout: None where none was given.
        elements: The parts of a tuple.
        dynamic: Which dimensions have only an upper bound; empty when none.

    """

    element_type: str
    dimensions: tuple[int, ...] = ()
    layout: Layout | None = None
    elements: tuple[Shape, ...] = ()
    dynamic: tuple[bool, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Shape:
        """Read a shape as HLO text writes it, such as `bf16[256,32]{0,1:T(8,128)(2,1)S(1)}`.

        Raises:
            InputError: The text is not one shape.

        """
        return _parse_whole(text)

    @classmethod
    def from_proto(cls, proto: hlo_pb2.Shape, depth: int = 0) -> Shape:
        """Read an XLA ShapeProto.

        Raises:
            InputError: Tuples nest too deep, a type is unknown, or sizes are impossible.

        """
        if depth > _MAX_DEPTH:
            raise InputError(f"An HLO shape nests more than {_MAX_DEPTH} tuples.")
        if proto.element_type in {_TUPLE_TYPE, _BUFFER_TYPE} or proto.tuple_shapes:
            return cls("tuple", elements=tuple(cls.from_proto(part, depth + 1) for part in proto.tuple_shapes))
        name = _NAMES.get(proto.element_type)
        if name is None:
            raise InputError(f"An HLO shape has the element type {proto.element_type}, which is not known.")
        dynamic = tuple(proto.is_dynamic_dimension)
        layout = _layout_from_proto(proto.layout) if proto.HasField("layout") else None
        return _checked(cls(name, tuple(proto.dimensions), layout, dynamic=dynamic if any(dynamic) else ()))

    @property
    def is_tuple(self) -> bool:
        """Whether this is a tuple."""
        return self.element_type == "tuple"

    @property
    def rank(self) -> int:
        """The number of logical dimensions."""
        return len(self.dimensions)

    @property
    def element_count(self) -> int:
        """Elements of an array; of a tuple, the sum over its parts."""
        return sum(part.element_count for part in self.elements) if self.is_tuple else math.prod(self.dimensions)

    @property
    def bits(self) -> int:
        """Bits that one element takes in memory: the layout's figure, or the type's with at least one byte."""
        if self.layout and self.layout.element_size_in_bits:
            return self.layout.element_size_in_bits
        width = ELEMENT_BITS.get(self.element_type, 0)
        return max(8, width) if width else 0

    @property
    def memory_space(self) -> int:
        """The layout's memory space; 0 where there is no layout."""
        return self.layout.memory_space if self.layout else 0

    @property
    def unpadded_bytes(self) -> int:
        """Bytes of the elements alone. A tuple counts as its table of pointers, as in XLA's buffer assignment."""
        if self.is_tuple:
            return POINTER_BYTES * len(self.elements)
        return -(-self.element_count * self.bits // 8)

    @property
    def padded_bytes(self) -> int:
        """Bytes that the shape takes with its tiles; equal to `unpadded_bytes` where there is no tile."""
        if self.is_tuple or self.layout is None:
            return self.unpadded_bytes
        sizes = self.physical_dimensions
        for tile in self.layout.tiles:
            sizes = _tiled(sizes, tile)
        align = max(1, self.layout.tail_alignment)
        elements = -(-math.prod(sizes) // align) * align
        return -(-elements * self.bits // 8)

    @property
    def total_bytes(self) -> int:
        """Padded bytes of all arrays inside, without the pointers of tuples."""
        return sum(part.total_bytes for part in self.elements) if self.is_tuple else self.padded_bytes

    @property
    def minor_to_major(self) -> tuple[int, ...]:
        """The layout's order, or the default one (the last dimension is minor-most)."""
        if self.layout and len(self.layout.minor_to_major) == self.rank:
            return self.layout.minor_to_major
        return tuple(range(self.rank - 1, -1, -1))

    @property
    def physical_dimensions(self) -> tuple[int, ...]:
        """Sizes from the major-most to the minor-most dimension, without padding."""
        return tuple(self.dimensions[dimension] for dimension in reversed(self.minor_to_major))

    @property
    def padded_dimensions(self) -> tuple[PaddedDimension, ...]:
        """Each logical dimension with the size that the outermost tile rounds it up to."""
        tile = tuple(reversed(self.layout.tiles[0])) if self.layout and self.layout.tiles else ()
        places = {dimension: place for place, dimension in enumerate(self.minor_to_major)}
        result = []
        for dimension, size in enumerate(self.dimensions):
            place = places[dimension]
            step = tile[place] if place < len(tile) and tile[place] > 0 else 1
            result.append(PaddedDimension(size, -(-size // step) * step, place))
        return tuple(result)

    def at(self, index: tuple[int, ...]) -> Shape:
        """Return the part of a tuple at a shape index; the empty index is the shape itself.

        Raises:
            InputError: The index leads outside the tuple.

        """
        shape = self
        for position in index:
            if not 0 <= position < len(shape.elements):
                raise InputError(f"The shape {self} has no part at index {{{','.join(map(str, index))}}}.")
            shape = shape.elements[position]
        return shape

    def leaves(self) -> tuple[Shape, ...]:
        """All arrays, tokens and opaque values inside, in order."""
        return tuple(leaf for part in self.elements for leaf in part.leaves()) if self.is_tuple else (self,)

    def without_layout(self) -> Shape:
        """Return the same logical shape with no layout."""
        return dataclasses.replace(self, layout=None, elements=tuple(part.without_layout() for part in self.elements))

    def __str__(self) -> str:
        if self.is_tuple:
            return f"({', '.join(map(str, self.elements))})"
        flags = self.dynamic or (False,) * self.rank
        sizes = ",".join(f"<={d}" if flag else str(d) for d, flag in zip(self.dimensions, flags, strict=True))
        layout = str(self.layout) if self.layout else ""
        return f"{self.element_type}[{sizes}]{layout if layout != '{}' else ''}"


def parse_prefix(text: str, start: int = 0, depth: int = 0) -> tuple[Shape, int]:
    """Read the shape that begins at a place in a text.

    Returns:
        The shape, and the place after it.

    Raises:
        InputError: No shape begins there.

    """
    if depth > _MAX_DEPTH:
        raise InputError(f"An HLO shape nests more than {_MAX_DEPTH} tuples.")
    start = _skip(text, start)
    if text.startswith("(", start):
        return _parse_tuple(text, start + 1, depth)
    if text.startswith("b(", start):  # a buffer: the array that it holds
        shape, end = parse_prefix(text, start + 2, depth + 1)
        return shape, _expect(text, end, ")")
    match = _ARRAY.match(text, start)
    if match is None or match[1] not in ELEMENT_BITS:
        raise InputError(f"Expected an HLO shape such as f32[8,128]{{1,0}}, found {text[start : start + 40]!r}.")
    dimensions, dynamic = _parse_dimensions(match[2])
    layout, end = _parse_layout(text, match.end())
    return _checked(Shape(match[1], dimensions, layout, dynamic=dynamic)), end


@lru_cache(maxsize=4096)
def _parse_whole(text: str) -> Shape:
    if len(text) > _MAX_TEXT:
        raise InputError(f"An HLO shape of {len(text)} characters is too long.")
    shape, end = parse_prefix(text)
    if _skip(text, end) != len(text):
        raise InputError(f"Expected the HLO shape to end, found {text[end : end + 40]!r}.")
    return shape


def _skip(text: str, place: int) -> int:
    """The place after blanks and comments such as /*index=5*/."""
    while place < len(text):
        if text[place].isspace():
            place += 1
        elif match := _COMMENT.match(text, place):
            place = match.end()
        else:
            break
    return place


def _expect(text: str, place: int, wanted: str) -> int:
    place = _skip(text, place)
    if not text.startswith(wanted, place):
        raise InputError(f"Expected {wanted!r} in an HLO shape, found {text[place : place + 40]!r}.")
    return place + len(wanted)


def _parse_tuple(text: str, place: int, depth: int) -> tuple[Shape, int]:
    parts: list[Shape] = []
    place = _skip(text, place)
    while not text.startswith(")", place):
        if parts:
            place = _expect(text, place, ",")
        shape, place = parse_prefix(text, place, depth + 1)
        parts.append(shape)
        place = _skip(text, place)
    return Shape("tuple", elements=tuple(parts)), place + 1


def _parse_dimensions(text: str) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    parts = [part.strip() for part in _COMMENT.sub("", text).split(",")] if text.strip() else []
    dynamic = tuple(part.startswith("<=") for part in parts)
    digits = [part.removeprefix("<=") for part in parts]
    if not all(part.isascii() and part.isdigit() and len(part) < 20 for part in digits):
        raise InputError(f"Expected the sizes of an HLO shape, found [{text[:40]}].")
    return tuple(map(int, digits)), dynamic if any(dynamic) else ()


def _parse_layout(text: str, place: int) -> tuple[Layout | None, int]:
    """Read `{1,0:T(8,128)(2,1)S(1)}`; a brace that holds anything else is not a layout and is left alone."""
    if not text.startswith("{", place):
        return None, place
    match = _MINOR_TO_MAJOR.match(text, place + 1)
    end = match.end() if match else place + 1
    if not text.startswith((":", "}"), end):
        return None, place
    close = _closing_brace(text, place)
    order = tuple(int(part) for part in text[place + 1 : end].split(",") if part.strip())
    return _with_attributes(order, text[end + 1 : close]), close + 1


def _closing_brace(text: str, place: int) -> int:
    depth = 0
    for end in range(place, min(len(text), place + 4096)):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if depth == 0:
            return end
    raise InputError(f"The layout {text[place : place + 40]!r} of an HLO shape does not end.")


def _with_attributes(order: tuple[int, ...], text: str) -> Layout:
    """Read what follows the colon of a layout; attributes that are not known are skipped."""
    tiles: list[tuple[int, ...]] = []
    numbers: dict[str, int] = {}
    name = ""
    place = 0
    while place < len(text):
        group = _GROUP.match(text, place)
        if group is None:
            name = (name if text[place - 1 : place].isalpha() else "") + text[place]
            place += 1
            continue
        if name == "T":
            tiles.append(_tile_sizes(group[1]))
        elif group[1].strip().isdigit():
            numbers[name] = int(group[1])
        place = group.end()
    return Layout(order, tuple(tiles), numbers.get("S", 0), numbers.get("E", 0), numbers.get("L", 1))


def _tile_sizes(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part == "*" or part.isdigit() for part in parts):
        raise InputError(f"Expected the sizes of a tile, found ({text[:40]}).")
    return tuple(_COMBINE if part == "*" else int(part) for part in parts)


def _layout_from_proto(proto: hlo_pb2.Layout) -> Layout:
    tiles = tuple(tuple(_COMBINE if t == _PROTO_COMBINE else t for t in tile.dimensions) for tile in proto.tiles)
    tail = proto.tail_padding_alignment_in_elements
    return Layout(
        tuple(proto.minor_to_major), tiles, proto.memory_space, proto.element_size_in_bits, tail if tail > 1 else 1
    )


def _checked(shape: Shape) -> Shape:
    """Refuse sizes that no memory holds and layouts that do not fit their dimensions."""
    layout = shape.layout
    impossible = any(size < 0 for size in shape.dimensions) or shape.element_count > _MAX_ELEMENTS
    if impossible or (shape.dynamic and len(shape.dynamic) != shape.rank):
        raise InputError(f"An HLO shape has impossible sizes: {list(shape.dimensions)[:8]}.")
    if layout is None:
        return shape
    if layout.minor_to_major and sorted(layout.minor_to_major) != list(range(shape.rank)):
        raise InputError(f"The layout {layout} does not fit an HLO shape of {shape.rank} dimensions.")
    if any(size == 0 or size < _COMBINE or size > _MAX_ELEMENTS for tile in layout.tiles for size in tile):
        raise InputError(f"The layout {layout} of an HLO shape has a tile of impossible size.")
    return shape


def _tiled(sizes: tuple[int, ...], tile: tuple[int, ...]) -> tuple[int, ...]:
    """Apply one tile to physical sizes (major to minor): counts of tiles, then the sizes inside one."""
    padded = (1,) * (len(tile) - len(sizes)) + sizes
    first = len(padded) - len(tile)
    counts: list[int] = []
    carried = 1
    for size, step in zip(padded[first:], tile, strict=True):
        if step == _COMBINE:
            carried *= size
        else:
            counts.append(-(-carried * size // step))
            carried = 1
    return padded[:first] + tuple(counts) + tuple(step for step in tile if step != _COMBINE)
