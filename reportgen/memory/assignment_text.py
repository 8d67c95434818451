"""XLA's own text account of a buffer assignment: `*-buffer-assignment.txt` and `*-live-range.txt`.

Both are written by default with any dump. Together with `*.after_optimizations.txt` they hold what the HloProto holds:
every allocation and value to the byte, and when each is in use.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from reportgen.errors import InputError
from reportgen.memory.analysis import allocation_type
from reportgen.memory.liveness import Placed, Position, Range, heap_trace, live_ranges
from reportgen.memory.model import TEMPORARY
from reportgen.profile.hlo import HloModule
from reportgen.profile.hlo_text import shape_proto
from reportgen.profile.shapes import parse_prefix
from reportgen.wire import hlo_pb2

_ALLOCATION = re.compile(r"^allocation (\d+): size (\d+)(.*):$")
_PARAMETER = re.compile(r", parameter (\d+)")
_SHAPE_INDEX = re.compile(r"at ShapeIndex \{([\d,]*)\}")
_COLOR = re.compile(r", color (\d+)")
_VALUE = re.compile(r"^ value: <(\d+) (\S+?)(?:\{([\d,]*)\})?(?: \(phi\))? @(\d+)> \(size=(\d+),offset=(\d+)\): ")
_RANGE = re.compile(r"^\s+(\S+)\{([\d,]*)\}:\s*(\d+)-(\d+)\s*$")
_UNKNOWN = "unknown"


class Value(NamedTuple):
    """A line of the assignment: a value, where it lies and the rest of the line, which begins with its shape."""

    id: int
    instruction: str
    place: tuple[int, ...]
    color: int
    size: int
    offset: int
    shape_text: str


def parse_buffer_assignment(text: str, module: HloModule | None, ranges_text: str | None = None) -> HloModule:
    """Attach the assignment in a `*-buffer-assignment.txt` to a module.

    Args:
        text: The file's content.
        module: The module that was read from `*.after_optimizations.txt`; None makes one of the values alone, which has
            shapes and names but no operands and no source lines.
        ranges_text: The content of `*-live-range.txt`; without it the lifetimes are worked out from the module.

    Raises:
        InputError: The text holds no allocation.

    """
    assignment = hlo_pb2.BufferAssignmentProto()
    values: dict[int, list[Value]] = {}
    for line in text.split("\n"):
        if match := _ALLOCATION.match(line):
            _add_allocation(assignment, match)
            values[int(match[1])] = []
        elif assignment.buffer_allocations and (match := _VALUE.match(line)):
            values[assignment.buffer_allocations[-1].index].append(_value(match, line[match.end() :]))
    if not assignment.buffer_allocations:
        raise InputError("The buffer assignment holds no line such as 'allocation 0: size 1024'.")
    everything = [value for found in values.values() for value in found]
    ranges = _parse_ranges(ranges_text) if ranges_text else {}
    if module is not None and not ranges:
        ranges = live_ranges(module, frozenset((value.instruction, value.place) for value in everything))
    module = module or _module_of(everything)
    _add_values(assignment, values, module)
    _add_traces(assignment, values, ranges)
    proto = hlo_pb2.HloProto()
    proto.hlo_module.CopyFrom(module.proto.hlo_module)
    proto.buffer_assignment.CopyFrom(assignment)
    return HloModule(proto)


def _add_allocation(assignment: hlo_pb2.BufferAssignmentProto, match: re.Match[str]) -> None:
    labels = match[3]
    words = {part.strip() for part in re.sub(r"\|.*?\|", "", labels).split(",")}
    color = _COLOR.search(labels)
    allocation = assignment.buffer_allocations.add(
        index=int(match[1]),
        size=int(match[2]),
        color=int(color[1]) if color else 0,
        is_constant="constant" in words,
        is_thread_local="thread-local" in words,
        maybe_live_out="maybe-live-out" in words,
    )
    if parameter := _PARAMETER.search(labels):
        allocation.is_entry_computation_parameter = True
        allocation.parameter_number = int(parameter[1])
        index = _SHAPE_INDEX.search(labels)
        allocation.parameter_shape_index.extend(_index(index[1] if index else ""))


def _value(match: re.Match[str], rest: str) -> Value:
    index = _index(match[3] or "")
    return Value(int(match[1]), match[2], index, int(match[4]), int(match[5]), int(match[6]), rest)


def _index(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)


def _add_values(assignment: hlo_pb2.BufferAssignmentProto, values: dict[int, list[Value]], module: HloModule) -> None:
    aliased = {(alias.parameter, alias.parameter_index) for alias in module.aliases}
    for allocation in assignment.buffer_allocations:
        place = (allocation.parameter_number, tuple(allocation.parameter_shape_index))
        donated = allocation.is_entry_computation_parameter and place in aliased
        allocation.is_parameter_aliased_with_output = donated
        found = values[allocation.index]
        allocation.is_tuple = any(value.shape_text.startswith("(") for value in found)
        for value in found:
            allocation.assigned.add(logical_buffer_id=value.id, offset=value.offset, size=value.size)
            logical = assignment.logical_buffers.add(id=value.id, size=value.size, color=value.color)
            logical.defined_at.shape_index.extend(value.place)
            instruction = module.by_name.get(value.instruction) or module.by_name.get(_whole_name(value))
            if instruction is not None:
                logical.defined_at.instruction_id = instruction.id
            if instruction is not None and instruction.name != value.instruction:
                del logical.defined_at.shape_index[:]


def _whole_name(value: Value) -> str:
    return f"{value.instruction}{{{','.join(map(str, value.place))}}}"


def _module_of(values: list[Value]) -> HloModule:
    """A module that has the values as instructions: for their names and shapes."""
    proto = hlo_pb2.HloProto()
    proto.hlo_module.name = _UNKNOWN
    proto.hlo_module.entry_computation_name = _UNKNOWN
    computation = proto.hlo_module.computations.add(name=_UNKNOWN, id=1)
    for value in values:
        shape, _ = parse_prefix(value.shape_text)
        name = _whole_name(value) if value.place else value.instruction
        opcode = re.sub(r"[.\d]*$", "", value.instruction)
        instruction = computation.instructions.add(name=name, opcode=opcode, id=value.id + 1)
        instruction.shape.CopyFrom(shape_proto(shape))
    return HloModule(proto)


def _parse_ranges(text: str) -> dict[Position, Range]:
    """Read lines such as `copy-start.21{0}:9-13`: a value, its first and its last step."""
    found = (match for line in text.split("\n") if (match := _RANGE.match(line)))
    return {(match[1], _index(match[2])): Range(int(match[3]), int(match[4])) for match in found}


def _add_traces(
    assignment: hlo_pb2.BufferAssignmentProto, values: dict[int, list[Value]], ranges: dict[Position, Range]
) -> None:
    """Add the heap events of every temporary allocation. Tables of tuples are not part of XLA's simulation."""
    for allocation in assignment.buffer_allocations:
        if allocation_type(allocation) != TEMPORARY:
            continue
        arrays = [value for value in values[allocation.index] if not value.shape_text.startswith("(")]
        placed = [Placed(v.id, (v.instruction, v.place), v.offset, v.size) for v in arrays]
        trace = heap_trace(placed, ranges)
        if trace.events:
            trace.buffer_allocation_index = allocation.index
            assignment.heap_simulator_traces.append(trace)
