"""Where a value comes from in the user's program, when its own instruction does not say.

XLA inserts copies, tuples and empty buffers without metadata. A copy stands for what it copies; the buffer that a loop
fills for what the loop writes into it.
"""

from __future__ import annotations

from reportgen.profile.hlo import HloModule, Instruction

_MOVES = frozenset(
    {"copy", "copy-start", "copy-done", "bitcast", "get-tuple-element", "reshape", "slice", "dynamic-slice"}
    | {"async-start", "async-done", "slice-start", "slice-done", "convert", "transpose", "opt-barrier"}
)
_EMPTY = frozenset({"AllocateBuffer", "CreateBuffer"})
_FARTHEST = 12


def origin(module: HloModule, instruction: Instruction) -> Instruction:
    """The instruction whose metadata tells where a value comes from; the instruction itself where none does."""
    found: Instruction | None = instruction
    for _ in range(_FARTHEST):
        if found is None:
            break
        if found.op_name or found.source:
            return found
        found = _before(module, found)
    return instruction


def _before(module: HloModule, instruction: Instruction) -> Instruction | None:
    if instruction.opcode in _MOVES and instruction.operands:
        return instruction.operands[0]
    if instruction.proto.custom_call_target in _EMPTY:
        return _filled_by_loop(module, instruction)
    if instruction.is_fusion:
        return _inside(module, instruction)
    return None


def _inside(module: HloModule, fusion: Instruction) -> Instruction | None:
    """What a fusion computes: the last instruction inside that has metadata."""
    inside = [i for i in module.fused_instructions(fusion) if i.op_name or i.source]
    return inside[-1] if inside else None


def _filled_by_loop(module: HloModule, buffer: Instruction) -> Instruction | None:
    """What a while loop writes into a buffer that it carries."""
    for carried in module.users.get(buffer.id, ()):
        if carried.opcode != "tuple":
            continue
        position = next(place for place, operand in enumerate(carried.operands) if operand is buffer)
        for loop in module.users.get(carried.id, ()):
            if loop.opcode == "while":
                return _written(module, loop, position)
    return None


def _written(module: HloModule, loop: Instruction, position: int) -> Instruction | None:
    """The value that a turn of a loop writes at a place of what it carries."""
    for computation in module.called_computations(loop):
        root = computation.root
        if root is not None and root.opcode == "tuple" and position < len(root.operands):
            return _update(module, root.operands[position])
    return loop


def _update(module: HloModule, value: Instruction) -> Instruction:
    """What is written into a slice, through the fusions and tuples around it; the value itself where nothing is."""
    found = value
    for _ in range(_FARTHEST):
        inner = _inner(module, found)
        if inner is None:
            break
        found = inner
    return found if found.op_name or found.source else value


def _inner(module: HloModule, value: Instruction) -> Instruction | None:
    if value.opcode == "dynamic-update-slice" and len(value.operands) > 1:
        return value.operands[1]
    if value.opcode == "get-tuple-element" and value.operands and value.operands[0].is_fusion:
        root = _root(module, value.operands[0])
        place = value.proto.tuple_index
        return root.operands[place] if root is not None and place < len(root.operands) else None
    if value.is_fusion:
        return _root(module, value)
    moves = value.opcode in _MOVES or value.opcode == "broadcast"
    return value.operands[0] if moves and value.operands else None


def _root(module: HloModule, fusion: Instruction) -> Instruction | None:
    return next((computation.root for computation in module.called_computations(fusion)), None)
