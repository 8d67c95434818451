"""FLOPs and bytes of HLO instructions on GPU: library calls too, and FLOPs normalised to 16-bit operands.

XLA's cost analysis does not look into custom calls. Matrix products of cuBLAS and hipBLAS(Lt) and convolutions of cuDNN
and MIOpen are custom calls that keep the dimension numbers of the dot or convolution which they replaced, so that
their FLOPs are exact: 2*M*N*K, and `hlo_cost.convolution_flops`. Their bytes are those of operands and results
without the workspace.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from reportgen.profile.hlo import HloModule, Instruction
from reportgen.profile.hlo_cost import bytes_accessed, convolution_flops_of, flops
from reportgen.profile.shapes import ELEMENT_BITS, Shape

# As XProf: matrix units run 8-bit operands twice and 4-bit operands four times as fast as 16-bit ones.
_SPEED_UP = {8: 2, 4: 4}
_FMA = 2


class GpuCost(NamedTuple):
    """Cost of one execution; None where unknown.

    Attributes:
        flops: Normalised to the peak for 16-bit operands.
        model_flops: The true count.
        bytes: Bytes read and written.

    """

    flops: float | None
    model_flops: float | None
    bytes: int | None


def gpu_cost(module: HloModule, instruction: Instruction) -> GpuCost:
    """Return the cost of one execution of an instruction on GPU; unknown where the instruction is damaged."""
    try:
        count, moved = _cost(module, instruction)
    except IndexError:  # fewer operands or dimensions than its kind needs
        return GpuCost(None, None, None)
    return GpuCost(None if count is None else count / _speed_up(instruction), count, moved)


def _cost(module: HloModule, instruction: Instruction) -> tuple[float | None, int | None]:
    if instruction.opcode != "custom-call":
        return flops(module, instruction), bytes_accessed(module, instruction)
    count = library_flops(instruction)
    moved = sum(shape.total_bytes for shape in (*_operands(instruction), _result(instruction)))
    return count, None if count is None else moved


def library_flops(instruction: Instruction) -> float | None:
    """Return the FLOPs of a custom call that is a library's matrix product or convolution; None for any other."""
    operands = _operands(instruction)
    if len(operands) < 2:
        return None
    config = instruction.backend_config.get("gemm_backend_config")
    if isinstance(config, dict):
        return _gemm_flops(config, operands[0], _result(instruction))
    return _convolution_flops(instruction, operands[0], operands[1], _result(instruction))


def _gemm_flops(config: Mapping[str, Any], left: Shape, result: Shape) -> float | None:
    """2*M*N*K; JSON writes the dimension numbers as text."""
    numbers = config.get("dot_dimension_numbers")
    contracting = numbers.get("lhs_contracting_dimensions", []) if isinstance(numbers, dict) else []
    sizes = [left.dimensions[int(n)] for n in contracting if re.fullmatch("[0-9]{1,3}", str(n)) and int(n) < left.rank]
    return _FMA * result.element_count * math.prod(sizes) if sizes else None


def _convolution_flops(instruction: Instruction, first: Shape, second: Shape, result: Shape) -> float | None:
    """The window and dimension numbers are those of the forward convolution; the call's operands differ by its kind."""
    target = instruction.proto.custom_call_target
    if not target.startswith("__cudnn$conv"):
        return None
    if "BackwardInput" in target:
        image, filters, output = result, second, first
    elif "BackwardFilter" in target:
        image, filters, output = first, result, second
    else:
        image, filters, output = first, second, result
    return convolution_flops_of(instruction.proto, image, filters, output)


def _operands(instruction: Instruction) -> tuple[Shape, ...]:
    return tuple(operand.shape for operand in instruction.operands)


def _result(instruction: Instruction) -> Shape:
    """The result proper: further results of a library call are workspace."""
    leaves = instruction.shape.leaves()
    return leaves[0] if leaves else instruction.shape


def _speed_up(instruction: Instruction) -> int:
    """How much faster than at 16 bits the widest operand's type runs."""
    kinds = [shape.element_type for shape in _operands(instruction)]
    widths = [ELEMENT_BITS.get(kind, 0) for kind in kinds if kind != "pred"]
    if instruction.opcode == "custom-call":
        widths = widths[:1]
    return _SPEED_UP.get(max(widths, default=0), 1)
