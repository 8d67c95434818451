"""What a step updates, and what its batch is: found by shapes and by what hangs together."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from reportgen.memory.forecast import Program
from reportgen.memory.model import OUTPUT, PARAMETER, TEMPORARY, Allocation, Buffer
from reportgen.profile.hlo import Instruction


class Pair(NamedTuple):
    """A parameter and the output that replaces it; aliased where they share their buffer already."""

    parameter: Buffer
    output: Buffer
    aliased: bool


@dataclasses.dataclass(frozen=True)
class Batch:
    """The dimension that grows with the batch.

    Attributes:
        group: Its group in the module's dimensions.
        size: Its size on one device.
        parameter: The parameter whose first dimension it is.

    """

    group: int
    size: int
    parameter: str


def state_pairs(program: Program) -> list[Pair]:
    """Match parameters with outputs of the same element type and dimensions, aliased ones first."""
    space = program.space
    if space is None:
        return []
    by_id = {buffer.id: buffer for buffer in space.buffers}
    parameters = [a for a in space.allocations if a.allocation_type == PARAMETER and a.buffers]
    pairs = [Pair(buffer, buffer, aliased=True) for a in parameters if a.aliased and (buffer := _largest(a, by_id))]
    free: dict[tuple[object, ...], list[Buffer]] = {}
    for allocation in parameters:
        buffer = _largest(allocation, by_id)
        if buffer and not allocation.aliased:
            free.setdefault(_key(program, buffer), []).append(buffer)
    for allocation in space.allocations:
        output = _largest(allocation, by_id) if allocation.allocation_type == OUTPUT else None
        if output and (candidates := free.get(_key(program, output))):
            pairs.append(Pair(candidates.pop(0), output, aliased=False))
    return pairs


def find_batch(program: Program) -> Batch | None:
    """Find the batch: the first dimension of the input data that most bytes grow with; None where there is none."""
    space = program.space
    if space is None:
        return None
    state = {pair.parameter.instruction for pair in state_pairs(program)}
    data = [p for p in program.module.entry_parameters if p.name not in state and _leading(program, p)]
    candidates = data or [p for p in program.module.entry_parameters if _leading(program, p)]
    best: tuple[int, Batch] | None = None
    for parameter in candidates:
        group = _leading(program, parameter)
        if group is None:
            continue
        weight = sum(b.size for b in space.peak_buffers if _grows(program, b, group))
        if weight and (best is None or weight > best[0]):
            best = weight, Batch(group, program.dimensions.size(group), parameter.name)
    return best[1] if best else None


def trains(program: Program) -> bool:
    """Whether the module holds a backward pass."""
    return any(is_backward(instruction.op_name) for instruction in program.module)


def is_backward(op_name: str) -> bool:
    """Whether an operation belongs to a backward pass, by JAX's or TensorFlow's scope."""
    return "transpose(" in op_name or "gradient_tape" in op_name or op_name.startswith("gradients")


def is_forward(op_name: str) -> bool:
    """Whether an operation belongs to the forward pass of a program that is differentiated (JAX)."""
    return "jvp(" in op_name and not is_backward(op_name)


def is_temporary(buffer: Buffer) -> bool:
    """Whether a buffer is a temporary."""
    return buffer.allocation_type == TEMPORARY


def _leading(program: Program, parameter: Instruction) -> int | None:
    nodes = program.dimensions.of(parameter)
    return nodes[0] if nodes and program.dimensions.size(nodes[0]) > 1 else None


def _grows(program: Program, buffer: Buffer, group: int) -> bool:
    return any(program.dimensions.contains(node, group) for node in program.nodes(buffer))


def _key(program: Program, buffer: Buffer) -> tuple[object, ...]:
    shape = program.shape(buffer)
    return shape.element_type, shape.dimensions


def _largest(allocation: Allocation, by_id: dict[int, Buffer]) -> Buffer | None:
    found = [by_id[i] for i in allocation.buffers if i in by_id]
    return max(found, key=lambda buffer: buffer.size, default=None)
