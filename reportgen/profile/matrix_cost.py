"""How the time of a dot or convolution on TPU changes with the sizes of its dimensions.

A law for ratios, fitted to the compiler's own estimates (`estimated_cycles` of libtpu 0.0.52) for 226 convolutions
and 190 dots of v5e. An op loads and stores whole tiles and feeds the matrix unit; it takes as long as the slower of
both, and a part of the other. Between two shapes of one layout the predicted change is within 25 % of the compiler's
in 94 % of 83 pairs on v5e, in 86 % on v5p and in 66 % on v6e (`tests/planted/test_cycles.py`). It predicts no
absolute times.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from reportgen.profile.matrix_unit import LayoutDimension, MatrixLayout

LANES = 128
SUBLANES = 8
_TILE = LANES * SUBLANES
# Cycles for a tile of each operand; in float32 the compiler counts three quarters of it.
_MOVED = {"left": 9.0, "right": 5.0, "result": 12.0}
_WIDE = 0.75
_UNITS = 4  # matrix units of a core
# A window over a batch on lanes contracts its features position by position, in halves of the unit; other sizes take
# this much longer.
_HALVES = 64
_UNALIGNED = 1.3
_LARGEST_WINDOW = 64
_OVERLAP = 0.3  # part of the shorter activity that the longer one does not hide

Sizes = Mapping[tuple[str, int], int]


def cost(layout: MatrixLayout, window: int, unit: int, sizes: Sizes | None = None, passes: int = 1) -> float:
    """Return the cost of a dot or convolution, in cycles of its own scale: only ratios mean something.

    Args:
        layout: Its dimensions with their places in the tiles.
        window: Positions of a convolution's window; 1 for a dot.
        unit: Rows and columns of the matrix unit.
        sizes: Other sizes, by role and size of the dimensions that change.
        passes: How often the matrix unit goes over the operands: 3 for "high" precision, 6 for "highest".

    """
    new = sizes or {}
    tiles = sum(
        cycles * (_WIDE if element_type == "f32" else 1) * _elements(layout, operand, new) / _TILE
        for (operand, cycles), element_type in zip(_MOVED.items(), layout.element_types, strict=True)
    )
    rows = passes * _rows(layout, window, unit or LANES, new)
    slower = _UNALIGNED if unaligned(layout, window, new) is not None else 1.0
    return slower * (max(tiles, rows) + _OVERLAP * min(tiles, rows))


def unaligned(layout: MatrixLayout, window: int, sizes: Sizes | None = None) -> LayoutDimension | None:
    """Return the contracted features of a convolution whose size costs time although the tile is full; None for none.

    That is so where the batch lies on the lanes and the features on both sides are more than half the unit.
    """
    lanes = {entry.operand: entry.role for entry in layout.dimensions if entry.place == 0}
    if lanes.get("left") != "batch" or not 1 < window <= _LARGEST_WINDOW:
        return None
    roles = {(entry.operand, entry.role): entry for entry in layout.dimensions}
    entry, out = roles.get(("left", "feature in")), roles.get(("result", "feature out"))
    if entry is None or out is None or out.size <= _HALVES:
        return None
    size = (sizes or {}).get((entry.role, entry.size), entry.size)
    return entry if size > _HALVES and size % _HALVES else None


def padded(dimension: LayoutDimension, size: int) -> int:
    """Return a size padded as this dimension's place in the tile pads it."""
    if dimension.place == 0:
        return math.ceil(size / LANES) * LANES
    if dimension.place == 1:
        rows = min(SUBLANES, dimension.padded_size)
        return math.ceil(size / rows) * rows
    return size


def _elements(layout: MatrixLayout, operand: str, new: Sizes) -> int:
    return math.prod(
        padded(entry, new.get((entry.role, entry.size), entry.size))
        for entry in layout.dimensions
        if entry.operand == operand
    )


def _rows(layout: MatrixLayout, window: int, unit: int, new: Sizes) -> float:
    """Return the rows that go through each matrix unit, once for every unit's width of columns and of contraction."""
    columns, rows, contracted = 1, 1, 1
    for entry in layout.dimensions:
        size = new.get((entry.role, entry.size), entry.size)
        if entry.operand == "result" and entry.place == 0:
            columns = math.ceil(size / unit)
        elif entry.operand == "result":
            rows *= padded(entry, size)
        elif entry.operand == "left" and entry.role in ("feature in", "contracting"):
            contracted *= size
    return rows * columns * math.ceil(contracted * window / unit) / _UNITS
