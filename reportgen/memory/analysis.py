"""The memory of a module from XLA's buffer assignment: per space what is allocated, live at the peak, and when.

"Allocated" is the sum of the space's allocations, the `Total bytes` of XLA's memory-usage report. "Live peak" is the
most that is in use at once by XLA's heap simulation, with what lives throughout: parameters, outputs and constants. It
is the `peak_memory_in_bytes` of `memory_analysis()` and the peak of XProf's memory viewer.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect, insort
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from reportgen.errors import InputError
from reportgen.memory.model import (
    ALLOCATION_TYPES,
    CONSTANT,
    OUTPUT,
    PARAMETER,
    TEMPORARY,
    THREAD_LOCAL,
    Allocation,
    Buffer,
    Curve,
    ModuleMemory,
    SpaceMemory,
    space_name,
)
from reportgen.memory.origin import origin
from reportgen.memory.replay import Replay, replay
from reportgen.profile.hlo import HloModule, Instruction, category
from reportgen.wire import hlo_pb2

Trace = hlo_pb2.HeapSimulatorTrace
BufferAllocation = hlo_pb2.BufferAllocationProto


class _Lasting(NamedTuple):
    """Buffers that live throughout, with the bytes of their allocations and of their elements alone."""

    buffers: list[Buffer]
    size: int
    unpadded_size: int


def analyze_memory(module: HloModule) -> ModuleMemory:
    """Account for a module's memory.

    Raises:
        InputError: The module has no buffer assignment.

    """
    assignment = module.proto.buffer_assignment
    if not assignment.buffer_allocations:
        raise InputError(
            f"The HLO module {module.name} has no buffer assignment, so its memory is not known.",
            "XLA writes it into *.after_optimizations.hlo.pb (--xla_dump_hlo_as_proto) and *-buffer-assignment.txt.",
        )
    reader = _Reader(module)
    colors = sorted({allocation.color for allocation in assignment.buffer_allocations if allocation.size})
    spaces = {color: reader.space(color) for color in colors}
    scoped = max(module, key=lambda instruction: instruction.scoped_vmem_bytes)
    return ModuleMemory(
        name=module.name,
        id=module.id,
        entry=module.entry.name,
        spaces=spaces,
        scoped_vmem_bytes=scoped.scoped_vmem_bytes or None,
        scoped_vmem_instruction=scoped.name if scoped.scoped_vmem_bytes else "",
        notes=tuple(reader.notes),
    )


def allocation_type(allocation: BufferAllocation) -> str:
    """The type of an allocation; where several hold, the first of parameter, output, thread-local, constant."""
    if allocation.is_entry_computation_parameter:
        return PARAMETER
    if allocation.maybe_live_out:
        return OUTPUT
    if allocation.is_thread_local:
        return THREAD_LOCAL
    return CONSTANT if allocation.is_constant else TEMPORARY


class _Reader:
    """Looks things up in one module's buffer assignment."""

    def __init__(self, module: HloModule) -> None:
        self.module = module
        assignment = module.proto.buffer_assignment
        self.traces: Sequence[Trace] = assignment.heap_simulator_traces
        self.logical = {buffer.id: buffer for buffer in assignment.logical_buffers}
        self.allocations = sorted(assignment.buffer_allocations, key=lambda allocation: allocation.index)
        self.notes: list[str] = []
        self.buffers: dict[int, Buffer] = {}
        for allocation in self.allocations:
            for assigned in allocation.assigned:
                buffer = self._buffer(allocation, assigned)
                if buffer is not None:
                    self.buffers[buffer.id] = buffer

    def space(self, color: int) -> SpaceMemory:
        """Account for one memory space."""
        allocations = [allocation for allocation in self.allocations if allocation.color == color]
        run, traced = self._replay(color, allocations)
        lasting = self._lasting(allocations)
        untraced = self._untraced(allocations, traced)
        spans = run.spans if run else {}
        peak = 0 if run is None or run.peak_event is None else run.peak_event + 1
        live, unpadded = (int(run.live[peak]), int(run.unpadded[peak])) if run else (0, 0)
        at_peak = [self.buffers[i] for i in run.at_peak] if run else []
        allocated = sum(a.size for a in allocations)
        return SpaceMemory(
            color=color,
            name=space_name(color),
            allocated_bytes=allocated,
            live_peak_bytes=min(allocated, live + lasting.size + untraced.size),
            unpadded_peak_bytes=min(allocated, unpadded + lasting.unpadded_size + untraced.unpadded_size),
            xprof_peak_bytes=live + lasting.size,
            xprof_unpadded_peak_bytes=unpadded + lasting.size,
            peak_event=run.peak_event if run else None,
            by_type=_by_type(allocations),
            output_bytes=sum(a.size for a in allocations if a.maybe_live_out),
            aliased_bytes=sum(a.size for a in allocations if a.is_parameter_aliased_with_output),
            allocations=tuple(_plain(a) for a in allocations),
            buffers=tuple(_lives(b, spans) for a in allocations for b in self._assigned(a)),
            peak_buffers=tuple(_lives(b, spans) for b in [*lasting.buffers, *at_peak, *untraced.buffers]),
            curve=_curve(run, lasting.size + untraced.size, lasting.unpadded_size + untraced.unpadded_size),
        )

    def _lasting(self, allocations: list[BufferAllocation]) -> _Lasting:
        """What lives throughout: for each such allocation its largest buffer. XLA leaves thread-local values out."""
        held = [(a, self._largest(a)) for a in allocations if allocation_type(a) not in {TEMPORARY, THREAD_LOCAL}]
        pairs = [(allocation, buffer) for allocation, buffer in held if buffer is not None]
        buffers = [buffer for _, buffer in pairs]
        return _Lasting(buffers, sum(a.size for a, _ in pairs), sum(b.unpadded_size for b in buffers))

    def _untraced(self, allocations: list[BufferAllocation], traced: set[int]) -> _Lasting:
        """Temporary allocations that no heap simulation covers: they count as in use throughout."""
        found = [a for a in allocations if allocation_type(a) == TEMPORARY and a.index not in traced and a.size]
        size = sum(a.size for a in found)
        if found:
            self._note(f"{len(found)} allocations of {size} bytes have no heap simulation and count as always in use.")
        buffers = [buffer for a in found for buffer in _disjoint(self._assigned(a))]
        padding = sum(buffer.padding for buffer in buffers)
        return _Lasting(buffers, size, size - padding)

    def _buffer(self, allocation: BufferAllocation, assigned: BufferAllocation.Assigned) -> Buffer | None:
        logical = self.logical.get(assigned.logical_buffer_id)
        instruction = self._definition(logical) if logical else None
        if logical is None or instruction is None:
            self._note(f"Buffer {assigned.logical_buffer_id} of the assignment is defined nowhere in the module.")
            return None
        index = tuple(logical.defined_at.shape_index)
        shape = instruction.shape.at(index)
        told = origin(self.module, instruction)
        return Buffer(
            id=logical.id,
            name=instruction.name + (f"{{{','.join(map(str, index))}}}" if index else ""),
            instruction=instruction.name,
            index=index,
            category=category(instruction),
            allocation_type=allocation_type(allocation),
            size=logical.size,
            unpadded_size=min(shape.unpadded_bytes, logical.size),
            shape=str(shape),
            op_name=told.op_name,
            source=str(told.source) if told.source else "",
            stack=tuple(f"{frame.file}:{frame.line}:{frame.column}" for frame in told.stack),
            allocation=allocation.index,
            offset=assigned.offset,
        )

    def _definition(self, logical: hlo_pb2.LogicalBufferProto) -> Instruction | None:
        place = logical.defined_at
        by_name = self.module.by_name.get(place.instruction_name) if place.instruction_name else None
        return by_name or self.module.by_id.get(place.instruction_id)

    def _assigned(self, allocation: BufferAllocation) -> list[Buffer]:
        ids = (assigned.logical_buffer_id for assigned in allocation.assigned)
        return [self.buffers[i] for i in ids if i in self.buffers]

    def _largest(self, allocation: BufferAllocation) -> Buffer | None:
        """The first of the largest buffers of an allocation that lives throughout: it stands for the whole."""
        return max(self._assigned(allocation), key=lambda b: b.size, default=None)

    def _replay(self, color: int, allocations: list[BufferAllocation]) -> tuple[Replay | None, set[int]]:
        """Replay the space's trace; return it with the allocations that it covers."""
        trace = self._trace(color, allocations)
        if trace is None:
            return None, set()
        covered = [b for e in trace.events if (b := self.buffers.get(e.buffer_id)) and b.allocation_type == TEMPORARY]
        sizes = {buffer.id: (buffer.size, buffer.unpadded_size) for buffer in covered}
        run = replay(trace.events, sizes, self._event_name)
        if run.problems:
            self._note(f"The heap simulation of {space_name(color)} contradicts itself at {run.problems} events.")
        return run, {buffer.allocation for buffer in covered}

    def _event_name(self, event: Trace.Event) -> str:
        if event.instruction_name or event.buffer_id not in self.buffers:
            return event.instruction_name
        return self.buffers[event.buffer_id].instruction

    def _trace(self, color: int, allocations: list[BufferAllocation]) -> Trace | None:
        """The trace of the first temporary allocation that has one, else the one with most events of the space.

        The index that a trace gives for its allocation is not to be trusted: the allocation of its first event's buffer
        counts.
        """
        last_of = {self._allocation_of(trace): trace for trace in self.traces if trace.events}
        for allocation in allocations:
            if allocation_type(allocation) == TEMPORARY and allocation.index in last_of:
                return last_of[allocation.index]
        counts = [sum(self._color(e.buffer_id) == color for e in trace.events) for trace in self.traces]
        most = max(counts, default=0)
        return self.traces[counts.index(most)] if most else None

    def _allocation_of(self, trace: Trace) -> int | None:
        first = self.buffers.get(trace.events[0].buffer_id)
        return first.allocation if first else None

    def _color(self, buffer_id: int) -> int | None:
        return self.logical[buffer_id].color if buffer_id in self.buffers else None

    def _note(self, sentence: str) -> None:
        if len(self.notes) < 10 and sentence not in self.notes:
            self.notes.append(sentence)


def _disjoint(buffers: list[Buffer]) -> list[Buffer]:
    """The largest buffers of one allocation that do not overlap: as many as may be in use together."""
    taken: list[tuple[int, int]] = []
    chosen = []
    for buffer in sorted(buffers, key=lambda b: (-b.size, b.offset)):
        end = buffer.offset + buffer.size
        place = bisect(taken, (buffer.offset, end))
        before_ends = place == 0 or taken[place - 1][1] <= buffer.offset
        if before_ends and (place == len(taken) or end <= taken[place][0]):
            insort(taken, (buffer.offset, end))
            chosen.append(buffer)
    return sorted(chosen, key=lambda b: b.offset)


def _by_type(allocations: list[BufferAllocation]) -> dict[str, int]:
    sizes = dict.fromkeys(ALLOCATION_TYPES, 0)
    for allocation in allocations:
        sizes[allocation_type(allocation)] += allocation.size
    return sizes


def _plain(allocation: BufferAllocation) -> Allocation:
    return Allocation(
        index=allocation.index,
        size=allocation.size,
        allocation_type=allocation_type(allocation),
        aliased=allocation.is_parameter_aliased_with_output,
        parameter=allocation.parameter_number if allocation.is_entry_computation_parameter else None,
        buffers=tuple(assigned.logical_buffer_id for assigned in allocation.assigned),
    )


def _lives(buffer: Buffer, spans: dict[int, tuple[int, int]]) -> Buffer:
    if buffer.id not in spans:
        return buffer
    start, end = spans[buffer.id]
    return dataclasses.replace(buffer, start=start, end=end)


def _curve(run: Replay | None, lasting: int, lasting_unpadded: int) -> Curve | None:
    if run is None:
        return None
    return Curve(run.live + np.int64(lasting), run.unpadded + np.int64(lasting_unpadded), run.instructions)
