"""What the dimensions of a matrix product or convolution mean, and which of them the matrix unit sees."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from reportgen.profile.hlo import HloModule, Instruction

Roles = tuple[str, ...]


class DimensionRoles(NamedTuple):
    """The role of each dimension of the two operands and of the result, in logical order.

    Convolution: "batch", "feature in", "feature out", "spatial". Dot: "batch", "contracting", "free".
    """

    lhs: Roles
    rhs: Roles
    result: Roles


def dimension_roles(instruction: Instruction) -> DimensionRoles | None:
    """Roles of a dot's or convolution's dimensions; None for any other instruction or one that lacks operands."""
    if len(instruction.operands) < 2:
        return None
    if instruction.opcode == "dot":
        return _dot_roles(instruction)
    if instruction.opcode == "convolution":
        return _convolution_roles(instruction)
    return None


def matrix_instruction(module: HloModule, instruction: Instruction) -> Instruction | None:
    """The dot or convolution that an instruction is or, as a fusion, holds; the one with the largest result."""
    inside = [instruction, *_nested(module, instruction, depth=8)]
    found = [i for i in inside if i.opcode in {"dot", "convolution"} and len(i.operands) >= 2]
    return max(found, key=lambda i: i.shape.element_count, default=None)


def _nested(module: HloModule, instruction: Instruction, depth: int) -> list[Instruction]:
    inside: list[Instruction] = []
    for fused in module.fused_instructions(instruction) if depth else ():
        inside += [fused, *_nested(module, fused, depth - 1)]
    return inside


def _dot_roles(instruction: Instruction) -> DimensionRoles:
    """Result: batch dimensions, free ones of the left operand, free ones of the right."""
    numbers = instruction.proto.dot_dimension_numbers
    lhs, rhs = instruction.operands[:2]
    lhs_roles = _side_roles(lhs.shape.rank, numbers.lhs_batch_dimensions, numbers.lhs_contracting_dimensions)
    rhs_roles = _side_roles(rhs.shape.rank, numbers.rhs_batch_dimensions, numbers.rhs_contracting_dimensions)
    free = lhs_roles.count("free") + rhs_roles.count("free")
    result = ("batch",) * len(numbers.lhs_batch_dimensions) + ("free",) * free
    return DimensionRoles(lhs_roles, rhs_roles, result)


def _side_roles(rank: int, batch: Collection[int], contracting: Collection[int]) -> Roles:
    return tuple("batch" if d in batch else "contracting" if d in contracting else "free" for d in range(rank))


def _convolution_roles(instruction: Instruction) -> DimensionRoles:
    numbers = instruction.proto.convolution_dimension_numbers
    lhs, rhs = instruction.operands[:2]
    lhs_names = {numbers.input_batch_dimension: "batch", numbers.input_feature_dimension: "feature in"}
    rhs_names = {
        numbers.kernel_input_feature_dimension: "feature in",
        numbers.kernel_output_feature_dimension: "feature out",
    }
    result_names = {numbers.output_batch_dimension: "batch", numbers.output_feature_dimension: "feature out"}
    return DimensionRoles(
        _named(lhs.shape.rank, lhs_names),
        _named(rhs.shape.rank, rhs_names),
        _named(instruction.shape.rank, result_names),
    )


def _named(rank: int, names: dict[int, str]) -> Roles:
    return tuple(names.get(dimension, "spatial") for dimension in range(rank))
