"""FLOPs and bytes of HLO instructions, counted as XLA's HloCostAnalysis counts them.

A fused multiply-add is two FLOPs. Elementwise operations are one FLOP per element of the result, except the
transcendental ones, which XLA counts apart. A `while` counts one iteration, as in XLA. Bytes are those of the padded
shapes: what moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple
from weakref import WeakKeyDictionary

from reportgen.profile.hlo import ELEMENTWISE, Computation, HloModule, Instruction
from reportgen.profile.shapes import Shape
from reportgen.wire import hlo_pb2

TRANSCENDENTAL = frozenset(
    {"exponential", "log", "logistic", "power", "sqrt", "cbrt", "rsqrt", "tanh", "sine", "cosine"}
    | {"exponential-minus-one", "log-plus-one", "atan2", "tan", "erf", "rng", "rng-bit-generator"}
)
_NO_MEMORY = frozenset(
    {"parameter", "constant", "get-tuple-element", "tuple", "bitcast", "after-all", "add-dependency", "domain"}
    | {"opt-barrier", "partition-id", "replica-id", "async-done", "copy-done"}
)
_NOT_ARITHMETIC = frozenset({"copy", "constant", "map", "rng", "bitcast-convert"})
_DEEPEST = 64
_FMA = 2
# A spatial dimension is counted position by position up to this many kernel positions times outputs.
_MAX_POSITIONS = 1 << 26


class Cost(NamedTuple):
    """FLOPs and transcendental operations of one execution; None where unknown (custom calls, FFTs)."""

    flops: float | None
    transcendentals: float | None

    def __add__(self, other: object) -> Cost:
        if not isinstance(other, Cost):
            return NotImplemented
        return Cost(_sum(self.flops, other.flops), _sum(self.transcendentals, other.transcendentals))

    def times(self, factor: float) -> Cost:
        """The cost of several executions."""
        return Cost(
            None if self.flops is None else self.flops * factor,
            None if self.transcendentals is None else self.transcendentals * factor,
        )


_NOTHING = Cost(0, 0)
# What was counted already: costs of computations by name, bytes read of parameters by id.
_costs: WeakKeyDictionary[HloModule, dict[str, Cost]] = WeakKeyDictionary()
_reads: WeakKeyDictionary[HloModule, dict[int, int]] = WeakKeyDictionary()


def flops(module: HloModule, instruction: Instruction) -> float | None:
    """FLOPs of one execution of an instruction with all that it calls; None where unknown."""
    return cost(module, instruction).flops


def cost(module: HloModule, instruction: Instruction, depth: int = 0) -> Cost:
    """Count the arithmetic of one execution of an instruction with all that it calls."""
    opcode = instruction.opcode
    if opcode in TRANSCENDENTAL:
        return Cost(0, instruction.shape.leaves()[0].element_count if instruction.shape.leaves() else 0)
    if opcode in ELEMENTWISE:
        return Cost(0 if opcode in _NOT_ARITHMETIC else instruction.shape.element_count, 0)
    if opcode in _SIMPLE:
        return Cost(_SIMPLE[opcode](instruction) if instruction.operands else 0, 0)
    if opcode in {"custom-call", "fft"}:  # what a custom call does is not known, nor an FFT's length
        return Cost(None, None)
    if depth < _DEEPEST and instruction.called:
        return _cost_of_called(module, instruction, depth)
    return _NOTHING


def dot_flops(instruction: Instruction) -> float:
    """Two FLOPs per element of the result and element along the contracting dimensions: 2*M*N*K."""
    lhs = instruction.operands[0].shape.dimensions
    contracting = instruction.proto.dot_dimension_numbers.lhs_contracting_dimensions
    width = math.prod(lhs[dimension] for dimension in contracting if dimension < len(lhs))
    return _FMA * instruction.shape.element_count * width


def convolution_flops(instruction: Instruction) -> float:
    """Two FLOPs per feature in, feature out, image and position of the kernel that falls on a real element.

    Positions that fall on padding or between the elements of a dilated input do not count.
    """
    image, kernel = instruction.operands[0].shape, instruction.operands[1].shape
    return convolution_flops_of(instruction.proto, image, kernel, instruction.shape)


def convolution_flops_of(proto: hlo_pb2.HloInstructionProto, image: Shape, filters: Shape, output: Shape) -> float:
    """FLOPs of a convolution whose window and dimension numbers stand in `proto`; see `convolution_flops`."""
    numbers = proto.convolution_dimension_numbers
    lhs, rhs, result = image.dimensions, filters.dimensions, output.dimensions
    positions = 1
    for number, window in enumerate(proto.window.dimensions):
        kernel = rhs[numbers.kernel_spatial_dimensions[number]]
        outputs = result[numbers.output_spatial_dimensions[number]]
        inputs = lhs[numbers.input_spatial_dimensions[number]]
        positions *= _valid_positions(window, kernel, outputs, inputs)
    features_in = lhs[numbers.input_feature_dimension] // max(1, proto.feature_group_count)
    features_out = result[numbers.output_feature_dimension]
    batch = lhs[numbers.input_batch_dimension] // max(1, proto.batch_group_count)
    return _FMA * features_in * features_out * batch * positions


def bytes_accessed(module: HloModule, instruction: Instruction) -> int | None:
    """Bytes that one execution reads and writes; None where XLA cannot know (a custom call, a called computation).

    Slices count what they touch, an update in place counts the update twice, and a fusion reads a parameter that it
    only slices or gathers from as far as it does so (XLA's generic count takes the whole of a gathered parameter).
    """
    opcode = instruction.opcode
    if opcode in _NO_MEMORY:
        return 0
    if opcode in {"custom-call", "while", "call", "conditional", "async-start"}:
        return None
    if opcode == "fusion":
        return _fusion_bytes(module, instruction)
    sizes = [operand.shape.total_bytes for operand in instruction.operands]
    result = instruction.shape.total_bytes
    if opcode == "copy-start":
        return 2 * sum(sizes)
    if opcode in {"slice", "dynamic-slice", "gather"}:
        return 2 * result + sum(sizes[1:2])
    if opcode == "dynamic-update-slice":
        return 2 * sum(sizes[1:2]) + sum(sizes[2:3])
    if opcode == "scatter" and len(sizes) >= 3:
        inputs = len(sizes) // 2
        return 3 * sum(sizes[inputs + 1 :]) + sizes[inputs]
    return result + sum(sizes)


def _cost_of_called(module: HloModule, instruction: Instruction, depth: int) -> Cost:
    called = [
        _cost_of_computation(module, computation, depth + 1) for computation in module.called_computations(instruction)
    ]
    opcode = instruction.opcode
    if opcode in _COUNTS and instruction.operands:
        return called[0].times(_COUNTS[opcode](instruction))
    if opcode == "select-and-scatter" and len(called) > 1 and len(instruction.operands) > 1:
        elements = instruction.operands[1].shape.element_count
        return called[0].times(elements * (_window_elements(instruction) - 1)) + called[1].times(elements)
    if opcode == "conditional":
        return max(called, key=lambda branch: branch.flops or 0)
    if opcode in {"fusion", "call", "while", "async-start"}:
        return _added(called)
    return _NOTHING


def _cost_of_computation(module: HloModule, computation: Computation, depth: int) -> Cost:
    """Count each computation once: fusions may share one, and those of a damaged file may call themselves."""
    known = _costs.setdefault(module, {})
    if computation.name not in known:
        known[computation.name] = _NOTHING
        known[computation.name] = _added(cost(module, instruction, depth) for instruction in computation.instructions)
    return known[computation.name]


def _added(costs: Iterable[Cost]) -> Cost:
    total = _NOTHING
    for one in costs:
        total = total + one
    return total


def _sum(one: float | None, other: float | None) -> float | None:
    """Add, where an unknown part makes the sum unknown."""
    return None if one is None or other is None else one + other


def _first(instruction: Instruction) -> Shape:
    shape = instruction.operands[0].shape
    return shape.leaves()[0] if shape.leaves() else shape


def _result_elements(instruction: Instruction) -> int:
    leaves = instruction.shape.leaves()
    return leaves[0].element_count if leaves else 0


def _reductions(instruction: Instruction) -> int:
    return _first(instruction).element_count - _result_elements(instruction)


def _window_elements(instruction: Instruction) -> int:
    return math.prod(d.size for d in instruction.proto.window.dimensions)


def _window_reductions(instruction: Instruction) -> int:
    return (_window_elements(instruction) - 1) * _result_elements(instruction)


def _scattered(instruction: Instruction) -> int:
    return instruction.operands[-1].shape.element_count


def _sort_flops(instruction: Instruction) -> float:
    elements = _first(instruction).element_count
    return elements * max(0, elements - 1).bit_length()


def _all_reduce_flops(instruction: Instruction) -> float:
    return sum(leaf.element_count for leaf in instruction.shape.leaves())


def _triangular_solve_flops(instruction: Instruction) -> float:
    return _FMA * _first(instruction).dimensions[-1] * instruction.operands[1].shape.element_count


def _cholesky_flops(instruction: Instruction) -> float:
    shape = _first(instruction)
    return shape.dimensions[-1] * shape.element_count // 3


_SIMPLE: dict[str, Callable[[Instruction], float]] = {
    "dot": dot_flops,
    "convolution": convolution_flops,
    "sort": _sort_flops,
    "all-reduce": _all_reduce_flops,
    "all-reduce-start": _all_reduce_flops,
    "triangular-solve": _triangular_solve_flops,
    "cholesky": _cholesky_flops,
}
_COUNTS: dict[str, Callable[[Instruction], float]] = {
    "reduce": _reductions,
    "reduce-window": _window_reductions,
    "scatter": _scattered,
}


def _valid_positions(window: hlo_pb2.WindowDimension, kernel: int, outputs: int, inputs: int) -> int:
    """How often a kernel position meets an element of the input, over all outputs, in one spatial dimension."""
    stride, base, dilation = (max(1, n) for n in (window.stride, window.base_dilation, window.window_dilation))
    if kernel * outputs > _MAX_POSITIONS:
        return kernel * outputs
    count = 0
    for position in range(kernel):
        start = position * dilation - window.padding_low
        count += _hits(start, stride, outputs, base, inputs)
    return count


def _hits(start: int, stride: int, outputs: int, base: int, inputs: int) -> int:
    """How many of start, start+stride, ... (as many as outputs) are a multiple of base below base*inputs."""
    first = max(0, -(start // stride))
    last = min(outputs - 1, (base * (inputs - 1) - start) // stride)
    if last < first:
        return 0
    if base == 1:
        return last - first + 1
    return sum((start + output * stride) % base == 0 for output in range(first, last + 1))


def _fusion_bytes(module: HloModule, fusion: Instruction) -> int:
    computations = module.called_computations(fusion)
    if not computations:
        return fusion.shape.total_bytes + sum(operand.shape.total_bytes for operand in fusion.operands)
    inside = computations[0]
    return _written(inside, fusion) + sum(_read(module, parameter, 0) for parameter in inside.parameters)


def _written(inside: Computation, fusion: Instruction) -> int:
    """Bytes of the results; a result that is an update in place counts the update."""
    root = inside.root
    if root is None:
        return fusion.shape.total_bytes
    results = root.operands if root.opcode == "tuple" else (root,)
    return sum(_updated_part(result).total_bytes for result in results)


def _updated_part(result: Instruction) -> Shape:
    is_update = result.opcode == "dynamic-update-slice" and len(result.operands) > 1
    return result.operands[1].shape if is_update else result.shape


def _read(module: HloModule, value: Instruction, depth: int) -> int:
    """Bytes read of a fusion's parameter, counted once for each."""
    known = _reads.setdefault(module, {})
    if value.id not in known:
        known[value.id] = 0
        known[value.id] = _count_read(module, value, depth)
    return known[value.id]


def _count_read(module: HloModule, value: Instruction, depth: int) -> int:
    """Bytes read of a fusion's parameter: slices as far as they go, anything else the whole, once."""
    whole = value.shape.total_bytes
    seen_whole = module.computations[value.computation].root is value  # a nested fusion that only hands it on
    read = whole if seen_whole else 0
    for user in module.users.get(value.id, ()):
        is_first = bool(user.operands) and user.operands[0] is value
        if user.opcode == "fusion" and depth < _DEEPEST:
            read += _read_by_fusion(module, user, value, depth + 1)
        elif user.opcode in {"slice", "dynamic-slice", "gather"} and is_first:
            read += user.shape.total_bytes
        elif user.opcode != "dynamic-update-slice" or not is_first:
            read += 0 if seen_whole else whole
            seen_whole = True
    return read


def _read_by_fusion(module: HloModule, fusion: Instruction, value: Instruction, depth: int) -> int:
    parameters = [p for computation in module.called_computations(fusion)[:1] for p in computation.parameters]
    used = [p for p, operand in zip(parameters, fusion.operands, strict=False) if operand is value]
    return sum(_read(module, parameter, depth) for parameter in used)
