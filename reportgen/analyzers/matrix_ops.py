"""Dots and convolutions of the profile: their layout, precision and the types that they were made from.

On TPU the compiler writes dots as convolutions; the framework's name of the operation tells which one it was.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from reportgen.analyzers.base import Context, Result, SectionId
from reportgen.profile.hlo import HloModule, Instruction
from reportgen.profile.hlo_roles import matrix_instruction
from reportgen.profile.matrix_unit import MatrixLayout, matrix_layout
from reportgen.profile.ops import op_table
from reportgen.profile.view import HostView

_MOST_OPS = 600
_DEEPEST = 6
_DOT = re.compile(r"dot_general|dot_product|MatMul|matmul|Einsum|einsum|aten::(mm|bmm|addmm|linear)", re.IGNORECASE)
_PRECISIONS = {0: "default", 1: "high", 2: "highest"}

Kind = Literal["dot", "convolution"]
OpKey = tuple[int, str, str]


class MatrixOp(NamedTuple):
    """A dot or convolution, or the fusion that holds it.

    Attributes:
        kind: What the framework asked for.
        layout: Roles, sizes and padding of its dimensions.
        precision: "default", "high" (three passes of the matrix unit on TPU) or "highest" (six).
        source_types: Element types of the operands before conversions inside or just before the op.
        window: Positions of the convolution's window; 1 for a dot.
        unit: Rows and columns of the matrix unit; 0 where not known.

    """

    kind: Kind
    layout: MatrixLayout
    precision: str
    source_types: tuple[str, str]
    window: int
    unit: int


@dataclass(frozen=True)
class MatrixFacts:
    """Dots and convolutions by program, module and op name, as in `OpFacts.details`."""

    ops: dict[OpKey, MatrixOp]


class MatrixOpsAnalyzer:
    """What the HLO tells of dots and convolutions, for rules."""

    id: ClassVar[str] = "matrix-ops"
    title: ClassVar[str] = "Matrix operations"
    section: ClassVar[SectionId] = "ops"

    def host(self, view: HostView) -> dict[OpKey, MatrixOp] | None:
        """Return the matrix ops among the largest ops of one core."""
        cores = view.active_cores
        if not cores or cores[0].id.device == "CPU":
            return None
        largest = op_table(cores[0].runs).nlargest(_MOST_OPS, "self_ps")
        found: dict[OpKey, MatrixOp] = {}
        for program, module_name, name in zip(largest["program"], largest["module"], largest["name"], strict=True):
            module = view.modules.get(int(program))
            instruction = module.by_name.get(name) if module is not None else None
            if module is not None and instruction is not None:
                op = matrix_op(module, instruction, cores[0].peaks.matrix_unit)
                if op is not None:
                    found[(int(program), module_name, name)] = op
        return found

    def merge(self, parts: Sequence[dict[OpKey, MatrixOp]], context: Context) -> Result:  # noqa: ARG002
        """Return the matrix ops of all hosts."""
        ops: dict[OpKey, MatrixOp] = {}
        for part in reversed(parts):
            ops |= part
        return Result(facts=MatrixFacts(ops) if ops else None)


def matrix_op(module: HloModule, instruction: Instruction, matrix_unit: int) -> MatrixOp | None:
    """Return what is known of a dot or convolution, alone or inside a fusion; None for other instructions."""
    matrix = matrix_instruction(module, instruction)
    layout = matrix_layout(matrix, matrix_unit) if matrix is not None else None
    if matrix is None or layout is None:
        return None
    window = math.prod(entry.size for entry in matrix.proto.window.dimensions)
    named = matrix.op_name or instruction.op_name
    is_dot = matrix.opcode == "dot" or not matrix.proto.window.dimensions or bool(_DOT.search(named))
    levels = [int(level) for level in matrix.proto.precision_config.operand_precision]
    return MatrixOp(
        kind="dot" if is_dot else "convolution",
        layout=layout,
        precision=_PRECISIONS.get(max(levels, default=0), "default"),
        source_types=(_source_type(module, matrix.operands[0]), _source_type(module, matrix.operands[1])),
        window=1 if is_dot else window,
        unit=matrix_unit,
    )


def _source_type(module: HloModule, value: Instruction) -> str:
    """Follow a value back through conversions, copies and fusions of them to the type that it had before."""
    for _ in range(_DEEPEST):
        if value.opcode == "fusion":
            called = module.called_computations(value)
            inner = called[0].root if called else None
            if inner is None:
                break
            value = inner
        elif value.opcode in {"convert", "copy", "bitcast", "transpose", "reshape", "copy-done"} and value.operands:
            value = value.operands[0]
        else:
            break
    leaves = value.shape.leaves()
    return leaves[0].element_type if leaves else ""
