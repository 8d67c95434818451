"""Ops that only move or convert data: which ones, and whether they stand at the edge of the program.

A program's arguments and results have layouts that its caller sees. Where the compiler computes in other layouts it
copies at the edges; that is no fault of the program's own code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from reportgen.analyzers.base import Context, Result, SectionId
from reportgen.analyzers.matrix_ops import OpKey
from reportgen.profile.hlo import ELEMENTWISE, HloModule, Instruction
from reportgen.profile.hlo_roles import matrix_instruction
from reportgen.profile.ops import op_table
from reportgen.profile.view import HostView

_MOST_OPS = 600
_DEEPEST = 8
_FORMATTING = frozenset({"copy", "transpose", "reshape", "dynamic-reshape"})
_CONVERSION = frozenset({"convert", "bitcast-convert"})
_HANDED_ON = frozenset(
    {"bitcast", "tuple", "get-tuple-element", "copy-start", "copy-done", "async-start", "async-done", "parameter"}
)
_ASKED_FOR = frozenset(
    {"transpose", "reshape", "squeeze", "expand_dims", "copy", "rev", "Transpose", "Reshape", "Squeeze", "ExpandDims"}
)

_LIGHT = ELEMENTWISE | _FORMATTING | _CONVERSION | {"broadcast", "iota"}

Content = Literal["formatting", "conversion"]


class Movement(NamedTuple):
    """An op that computes nothing.

    Attributes:
        content: Whether it changes layout or type.
        at_edge: Whether the compiler put it between an argument or a result and the rest, for its layout.
        beside: Name of the dot or convolution that reads or wrote what it moves; "" for none.
        operand: Which of its operands ("left", "right", "result") that is, as far as sizes tell; "" for none.

    """

    content: Content
    at_edge: bool
    beside: str
    operand: str


@dataclass(frozen=True)
class MovementFacts:
    """Moving ops by program, module and op name; `modules` are the programs that were looked at."""

    ops: dict[OpKey, Movement]
    programs: frozenset[int]


class DataMovementAnalyzer:
    """Ops that only move or convert data, for rules."""

    id: ClassVar[str] = "data-movement"
    title: ClassVar[str] = "Data movement"
    section: ClassVar[SectionId] = "ops"

    def host(self, view: HostView) -> MovementFacts | None:
        """Return the moving ops among the largest ops of one core."""
        cores = view.active_cores
        if not cores or cores[0].id.device == "CPU":
            return None
        largest = op_table(cores[0].runs).nlargest(_MOST_OPS, "self_ps")
        found: dict[OpKey, Movement] = {}
        programs = set()
        for program, module_name, name in zip(largest["program"], largest["module"], largest["name"], strict=True):
            module = view.modules.get(int(program))
            instruction = module.by_name.get(name) if module is not None else None
            if module is None or instruction is None:
                continue
            programs.add(int(program))
            if (movement := movement_of(module, instruction)) is not None:
                found[int(program), module_name, name] = movement
        return MovementFacts(found, frozenset(programs))

    def merge(self, parts: Sequence[MovementFacts], context: Context) -> Result:  # noqa: ARG002
        """Return the moving ops of all hosts."""
        ops: dict[OpKey, Movement] = {}
        for part in reversed(parts):
            ops |= part.ops
        return Result(facts=MovementFacts(ops, frozenset().union(*(part.programs for part in parts))))


def movement_of(module: HloModule, instruction: Instruction) -> Movement | None:
    """Return what an op moves; None for an op that computes."""
    content = _content(module, instruction)
    if content is None:
        return None
    at_edge = content == "formatting" and not asked_for(instruction) and _at_edge(module, instruction)
    return Movement(content, at_edge, *_beside(module, instruction))


def asked_for(instruction: Instruction) -> bool:
    """Whether the framework's operation is itself a change of layout."""
    return instruction.op_name.rstrip(":").rpartition("/")[2].partition("[")[0] in _ASKED_FOR


def _content(module: HloModule, instruction: Instruction) -> Content | None:
    if not instruction.is_fusion:
        opcode = instruction.opcode
        return "formatting" if opcode in _FORMATTING else "conversion" if opcode in _CONVERSION else None
    inside = {one.opcode for one in _members(module, instruction, _DEEPEST)} - _HANDED_ON - {"constant", "fusion"}
    if inside and inside <= _FORMATTING:
        return "formatting"
    if inside & _CONVERSION and inside <= _FORMATTING | _CONVERSION:
        return "conversion"
    # A fusion of elementwise ops around a transposition takes the time of the transposition.
    transposes = "transpose" in inside or asked_for(instruction)
    return "formatting" if transposes and inside <= _LIGHT else None


def _members(module: HloModule, fusion: Instruction, depth: int) -> Iterator[Instruction]:
    for one in module.fused_instructions(fusion) if depth else ():
        yield one
        yield from _members(module, one, depth - 1)


def _at_edge(module: HloModule, instruction: Instruction) -> bool:
    """Whether it reads nothing but an argument of the program, or writes nothing but a result."""
    if instruction.computation != module.entry.name:
        return False
    sources = list(_sources(instruction, _DEEPEST))
    if sources and all(source.opcode in ("parameter", "constant") for source in sources):
        return True
    return _only_returned(module, instruction, _DEEPEST)


def _sources(instruction: Instruction, depth: int) -> Iterator[Instruction]:
    """Yield what an op reads, seen through ops that only hand a value on."""
    for operand in instruction.operands:
        if operand.opcode in _HANDED_ON and operand.operands and depth:
            yield from _sources(operand, depth - 1)
        else:
            yield operand


def _only_returned(module: HloModule, instruction: Instruction, depth: int) -> bool:
    if module.entry.root is instruction:
        return True
    users = module.users.get(instruction.id, ())
    return bool(users and depth) and all(
        user.opcode in _HANDED_ON and _only_returned(module, user, depth - 1) for user in users
    )


def _beside(module: HloModule, instruction: Instruction) -> tuple[str, str]:
    """Return the dot or convolution next to an op, and which of its operands the op moves."""
    sources = [one for one in _sources(instruction, _DEEPEST) if matrix_instruction(module, one) is not None]
    if sources:
        return sources[0].name, "result"
    for user in module.users.get(instruction.id, ()):
        matrix = matrix_instruction(module, user)
        if matrix is not None:
            elements = [operand.shape.element_count for operand in matrix.operands[:2]]
            size = instruction.shape.leaves()[0].element_count if instruction.shape.leaves() else 0
            return user.name, "left" if size == elements[0] else "right"
    return "", ""
