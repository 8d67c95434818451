"""When each value of a scheduled module is in use, and the heap events that follow from it.

XLA's heap simulation runs over the flattened schedule: the computations that a loop, call or conditional runs come
before it. A value is in use from its definition to the last read of it, wherever tuples, bitcasts and calls carry it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from reportgen.profile.hlo import Computation, HloModule, Instruction
from reportgen.wire import hlo_pb2

Position = tuple[str, tuple[int, ...]]
_FORWARD = frozenset({"bitcast", "opt-barrier", "domain", "add-dependency", "after-all"})
_RESULT = {"copy-done": 0, "async-done": 1}  # where the result lies in what the start gave
_RUNS = frozenset({"while", "call", "conditional", "async-start"})
_DEEPEST = 64
_FARTHEST = 100_000


class Range(NamedTuple):
    """The first and the last step at which a value is in use."""

    start: int
    end: int


class Placed(NamedTuple):
    """A value in an allocation."""

    id: int
    position: Position
    offset: int
    size: int


def live_ranges(module: HloModule, defined: frozenset[Position]) -> dict[Position, Range]:
    """Work out when values are in use.

    Args:
        module: A scheduled module.
        defined: The values to follow: instruction and shape index of each. A value's use ends where it is carried into
            another of them (a loop's parameter takes over from the value that it starts with).

    """
    schedule = _Schedule(module)
    return {position: schedule.range_of(position, defined) for position in defined if position[0] in module.by_name}


class _Schedule:
    """The flattened order of a module's instructions."""

    def __init__(self, module: HloModule) -> None:
        self.module = module
        self.order = list(_flattened(module, module.entry, 0))
        self.step = {name: step for step, name in enumerate(self.order)}
        self.runs = {i.id: module.called_computations(i) for i in module if i.opcode in _RUNS}
        self.caller = {c.name: i for i in module if i.opcode in _RUNS for c in self.runs[i.id]}

    def range_of(self, position: Position, defined: frozenset[Position]) -> Range:
        instruction = self.module.by_name[position[0]]
        caller = self.caller.get(instruction.computation)
        begins = caller if caller is not None and caller.opcode == "async-start" else instruction
        start = self.step.get(begins.name, 0)
        end = max([start, *self._uses(position, defined)])
        return Range(start, end)

    def _uses(self, position: Position, defined: frozenset[Position]) -> Iterator[int]:
        """Steps at which a value is read, through all that carries it."""
        waiting, seen = [position], {position}
        while waiting and len(seen) < _FARTHEST:
            name, index = waiting.pop()
            instruction = self.module.by_name.get(name)
            if instruction is None:
                continue
            for user in self.module.users.get(instruction.id, ()):
                yield self.step.get(user.name, 0)
            if self.module.entry.root is instruction:
                yield len(self.order)
            for carried in self._carried(instruction, index):
                if carried not in seen and carried not in defined:
                    seen.add(carried)
                    waiting.append(carried)

    def _carried(self, instruction: Instruction, index: tuple[int, ...]) -> Iterator[Position]:
        """Other positions that hold the same value."""
        for user in self.module.users.get(instruction.id, ()):
            for place, operand in enumerate(user.operands):
                if operand is instruction:
                    yield from self._through(user, place, index)
        computation = self.module.computations[instruction.computation]
        caller = self.caller.get(computation.name)
        if computation.root is instruction and caller is not None:
            yield caller.name, ((1, *index) if caller.opcode == "async-start" else index)

    def _through(self, user: Instruction, place: int, index: tuple[int, ...]) -> Iterator[Position]:
        if user.opcode == "tuple":
            yield user.name, (place, *index)
        elif user.opcode == "get-tuple-element":
            if index[:1] == (user.proto.tuple_index,):
                yield user.name, index[1:]
        elif user.opcode == "copy-start":
            yield user.name, (1, *index)
        elif user.opcode == "async-start":
            yield user.name, (0, place, *index)
        elif user.opcode in _RESULT:
            if index[:1] == (_RESULT[user.opcode],):
                yield user.name, index[1:]
        elif user.opcode in _FORWARD:
            yield user.name, index
        for computation in self.runs.get(user.id, ()):
            yield from _into(user, computation, place, index)


def _into(user: Instruction, computation: Computation, place: int, index: tuple[int, ...]) -> Iterator[Position]:
    """The parameter of a computation that receives an operand; a conditional's branch n takes operand n + 1."""
    parameters = computation.parameters
    if user.opcode in {"while", "conditional"}:
        place = 0
    if place < len(parameters):
        yield parameters[place].name, index


def _flattened(module: HloModule, computation: Computation, depth: int) -> Iterator[str]:
    for instruction in computation.instructions:
        if instruction.opcode in _RUNS and depth < _DEEPEST:
            called = module.called_computations(instruction)
            in_order = reversed(called) if instruction.opcode == "while" else called  # the condition runs first
            for inner in in_order:
                yield from _flattened(module, inner, depth + 1)
        yield instruction.name


def heap_trace(values: list[Placed], ranges: dict[Position, Range]) -> hlo_pb2.HeapSimulatorTrace:
    """Make the heap events of one allocation from the ranges of its values.

    At each step the new values come before those that end, as in XLA. A value that begins where another of the same
    place and size is still in use shares its bytes. Values without a range have no events.
    """
    known = [value for value in values if value.position in ranges]
    starts: dict[int, list[Placed]] = {}
    ends: dict[int, list[Placed]] = {}
    for value in known:
        starts.setdefault(ranges[value.position].start, []).append(value)
        ends.setdefault(ranges[value.position].end, []).append(value)
    trace = hlo_pb2.HeapSimulatorTrace(whole_module_simulation=True)
    in_use: dict[tuple[int, int], dict[int, None]] = {}
    for step in sorted(starts.keys() | ends.keys()):
        for value in starts.get(step, []):
            there = in_use.setdefault((value.offset, value.size), {})
            owner = next(iter(there), None)
            trace.events.append(_event(value, 0 if owner is None else 2, owner))
            there[value.id] = None
        for value in ends.get(step, []):
            trace.events.append(_event(value, 1, None))
            in_use[value.offset, value.size].pop(value.id, None)
    return trace


def _event(value: Placed, kind: int, owner: int | None) -> hlo_pb2.HeapSimulatorTrace.Event:
    return hlo_pb2.HeapSimulatorTrace.Event(
        kind=kind, buffer_id=value.id, instruction_name=value.position[0], share_with_canonical_id=owner or 0
    )
