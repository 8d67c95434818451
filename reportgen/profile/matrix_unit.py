"""How much of a TPU's matrix unit a dot or convolution can use, from its dimensions; and of its operands' tiles.

Two figures with two names. **Useful tile share** is an operand's elements against its elements with the tiles'
padding. **Useful share of the matrix unit** is contracting and output dimensions against the unit's rows and columns.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from reportgen.profile.hlo import Instruction
from reportgen.profile.hlo_roles import DimensionRoles, dimension_roles
from reportgen.profile.shapes import Shape


class LayoutDimension(NamedTuple):
    """A dimension of an operand or result.

    Attributes:
        operand: "left", "right" or "result".
        dimension: Number in logical order.
        role: "batch", "feature in", "feature out", "spatial", "contracting" or "free".
        size, padded_size: Without and with the tile's padding.
        place: 0 for the minor-most dimension.

    """

    operand: str
    dimension: int
    role: str
    size: int
    padded_size: int
    place: int


class MatrixLayout(NamedTuple):
    """The layout of a dot or convolution.

    Attributes:
        instruction: Its name and opcode.
        dimensions: Of both operands and the result.
        tile_shares: Useful tile share of left, right and result.
        unit_share: Useful share of the matrix unit; None where the unit's size is not known.
        element_types: Of left, right and result.

    """

    instruction: str
    opcode: str
    dimensions: tuple[LayoutDimension, ...]
    tile_shares: tuple[float, float, float]
    unit_share: float | None
    element_types: tuple[str, str, str]


def matrix_layout(instruction: Instruction, matrix_unit: int) -> MatrixLayout | None:
    """Return the layout of a dot or convolution; None for other instructions.

    Args:
        instruction: The dot or convolution itself, not the fusion that holds it.
        matrix_unit: Rows and columns of the matrix unit; 0 where not known.

    """
    roles = dimension_roles(instruction)
    if roles is None:
        return None
    lhs, rhs = instruction.operands[:2]
    shapes = (lhs.shape, rhs.shape, instruction.shape)
    dimensions = [
        LayoutDimension(operand, number, role, entry.size, entry.padded_size, entry.place)
        for operand, shape, names in zip(("left", "right", "result"), shapes, roles, strict=True)
        for number, (entry, role) in enumerate(zip(shape.padded_dimensions, names, strict=False))
    ]
    return MatrixLayout(
        instruction=instruction.name,
        opcode=instruction.opcode,
        dimensions=tuple(dimensions),
        tile_shares=(tile_share(shapes[0]), tile_share(shapes[1]), tile_share(shapes[2])),
        unit_share=unit_share(instruction, roles, matrix_unit) if matrix_unit else None,
        element_types=(shapes[0].element_type, shapes[1].element_type, shapes[2].element_type),
    )


def tile_share(shape: Shape) -> float:
    """Return the useful share of a shape's tiles: 4.9 % for bf16[10,32,32,5] with batch and features on T(8,128)."""
    padded = math.prod(entry.padded_size for entry in shape.padded_dimensions)
    return shape.element_count / padded if padded else 1.0


def unit_share(instruction: Instruction, roles: DimensionRoles, size: int) -> float:
    """Return the useful share of the matrix unit: contracting and output dimensions rounded up to its size.

    A convolution contracts its input features and, position by position, its window; the unit's other side holds output
    features or, where they are few, the batch, whichever fills it better.
    """
    lhs, rhs = instruction.operands[:2]
    if instruction.opcode == "dot":
        contracting = _extent(lhs.shape, roles.lhs, "contracting")
        sides = (_extent(lhs.shape, roles.lhs, "free"), _extent(rhs.shape, roles.rhs, "free"))
    else:
        window = math.prod(entry.size for entry in instruction.proto.window.dimensions)
        contracting = _extent(rhs.shape, roles.rhs, "feature in") * window
        sides = (_extent(lhs.shape, roles.lhs, "batch"), _extent(rhs.shape, roles.rhs, "feature out"))
    return _filled(contracting, size) * max(_filled(side, size) for side in sides)


def _extent(shape: Shape, roles: tuple[str, ...], role: str) -> int:
    return math.prod(size for size, name in zip(shape.dimensions, roles, strict=False) if name == role)


def _filled(extent: int, size: int) -> float:
    return extent / (math.ceil(extent / size) * size) if extent else 1.0
