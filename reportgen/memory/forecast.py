"""What a module's memory would be if its buffers had other sizes: the base of every predicted saving.

The heap simulation is repeated with the new sizes; what lives throughout is added, and fragmentation in its old
proportion. Smaller buffers may move to the on-chip memory (VMEM) besides, as the compiler puts there what fits; that is
the upper end. The compiler schedules anew after each change, so a forecast is a range.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reportgen.memory.dimensions import Dimensions, Nodes
from reportgen.memory.liveness import Range, live_ranges
from reportgen.memory.model import (
    MAIN_SPACE,
    SMALL_BUFFER_BYTES,
    TEMPORARY,
    VMEM_SPACE,
    Buffer,
    ModuleMemory,
    SpaceMemory,
)
from reportgen.profile.hlo import HloModule
from reportgen.profile.shapes import Shape

# How far recompiled programs were from the forecast: below it where they compile, and where they are rematerialised
# by the compiler because they do not fit.
_LOW, _LOW_FAILING, _HIGH = 0.85, 0.6, 1.05
# VMEM that buffers may take, by generation: the memory less the 16 MiB that kernels' stacks are given.
_USABLE_VMEM = (48 * 2**20, 112 * 2**20)

Resize = Callable[[Buffer, Shape, Nodes], Shape | None]


class Saved(NamedTuple):
    """Bytes saved: a range, and the likely figure."""

    low: int
    likely: int
    high: int


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """A module with its memory, and what it must fit.

    Attributes:
        capacity: Bytes of main memory that a program may take; None where not known.

    """

    module: HloModule
    memory: ModuleMemory
    capacity: int | None = None

    @cached_property
    def dimensions(self) -> Dimensions:
        """The module's dimensions, tied together."""
        return Dimensions(self.module)

    @property
    def space(self) -> SpaceMemory | None:
        """The main memory."""
        return self.memory.main

    @property
    def fails(self) -> bool:
        """Whether the program does not fit."""
        return self.space is not None and self.capacity is not None and self.space.allocated_bytes > self.capacity

    @property
    def is_tpu(self) -> bool:
        """Whether the program is for a TPU: its arrays lie in tiles."""
        layouts = (leaf.layout for p in self.module.entry_parameters for leaf in p.shape.leaves())
        return VMEM_SPACE in self.memory.spaces or any(layout is not None and layout.tiles for layout in layouts)

    def shape(self, buffer: Buffer) -> Shape:
        """The shape of a buffer."""
        return self.module.by_name[buffer.instruction].shape.at(buffer.index)

    def nodes(self, buffer: Buffer) -> Nodes:
        """The groups of a buffer's dimensions."""
        return self.dimensions.of(self.module.by_name[buffer.instruction], buffer.index)

    @cached_property
    def ranges(self) -> dict[int, Range]:
        """When each temporary of HBM and VMEM is in use, on one axis: steps of the schedule."""
        spaces = [self.memory.spaces[color] for color in (MAIN_SPACE, VMEM_SPACE) if color in self.memory.spaces]
        places = {b.id: (b.instruction, b.index) for s in spaces for b in s.buffers if b.start is not None}
        found = live_ranges(self.module, frozenset(places.values()))
        return {buffer: found[place] for buffer, place in places.items() if place in found}


def saved(program: Program, resize: Resize) -> Saved:
    """Forecast the bytes of main memory saved by other shapes.

    Args:
        program: The program as it is.
        resize: Gives a buffer's new shape; None leaves it.

    """
    space = program.space
    if space is None:
        return Saved(0, 0, 0)
    sizes = new_sizes(program, resize)
    plain = space.allocated_bytes - allocated(space, sizes)
    moved = _moved_on_chip(program, sizes)
    most = space.allocated_bytes - allocated(space, sizes | dict.fromkeys(moved, 0))
    low = int(plain * (_LOW_FAILING if program.fails else _LOW))
    return Saved(low, plain if program.fails else (plain + most) // 2, int(most * _HIGH))


def new_sizes(program: Program, resize: Resize) -> dict[int, int]:
    """New sizes of all buffers of HBM and VMEM."""
    sizes = {}
    for color in (MAIN_SPACE, VMEM_SPACE):
        space = program.memory.spaces.get(color)
        for buffer in space.buffers if space else ():
            sizes[buffer.id] = _new_size(program, buffer, resize)
    return sizes


def _new_size(program: Program, buffer: Buffer, resize: Resize) -> int:
    if buffer.size < SMALL_BUFFER_BYTES:
        return buffer.size
    shape = program.shape(buffer)
    new = None if shape.is_tuple else resize(buffer, shape, program.nodes(buffer))
    return buffer.size if new is None else new.padded_bytes


def allocated(space: SpaceMemory, sizes: Mapping[int, int]) -> int:
    """Bytes that a space would allocate with other sizes of its buffers."""
    old = {buffer.id: buffer.size for buffer in space.buffers}
    was, now = _temporary_peak(space, old), _temporary_peak(space, sizes)
    temporaries = now + (space.temporary_bytes - was) * now // was if was else space.temporary_bytes
    lasting = sum(
        max((sizes[i] for i in allocation.buffers if i in sizes), default=allocation.size)
        for allocation in space.allocations
        if allocation.allocation_type != TEMPORARY
    )
    return temporaries + lasting


def _temporary_peak(space: SpaceMemory, sizes: Mapping[int, int]) -> int:
    return int(_curve(space, sizes).max(initial=0))


def _curve(space: SpaceMemory, sizes: Mapping[int, int]) -> NDArray[np.int64]:
    """Live bytes of temporaries after each event."""
    if space.curve is None:
        return np.zeros(0, np.int64)
    changes = np.zeros(len(space.curve.live) + 1, np.int64)
    for buffer in space.buffers:
        if buffer.start is not None and buffer.end is not None:
            changes[buffer.start] += sizes[buffer.id]
            changes[buffer.end] -= sizes[buffer.id]
    return np.cumsum(changes)


def _moved_on_chip(program: Program, sizes: Mapping[int, int]) -> list[int]:
    """Temporaries that would newly fit the on-chip memory; none where the program does not use it."""
    space, vmem = program.space, program.memory.spaces.get(VMEM_SPACE)
    if space is None or vmem is None:
        return []
    room = next((size for size in _USABLE_VMEM if size >= vmem.allocated_bytes), vmem.allocated_bytes)
    old = {buffer.id: buffer.size for one in (space, vmem) for buffer in one.buffers}
    already = set(_fitting(program, space, vmem, old, room))
    return [buffer for buffer in _fitting(program, space, vmem, sizes, room) if buffer not in already]


def _fitting(program: Program, space: SpaceMemory, vmem: SpaceMemory, sizes: Mapping[int, int], room: int) -> list[int]:
    """Put temporaries on the chip while there is room, those in use at the peak first."""
    ranges = program.ranges
    used = np.zeros(max((r.end for r in ranges.values()), default=0) + 2, np.int64)
    for buffer in vmem.buffers:
        if buffer.id in ranges:
            used[ranges[buffer.id].start : ranges[buffer.id].end + 1] += sizes[buffer.id]
    live = _curve(space, sizes)
    peak = int(np.argmax(live)) if len(live) else 0

    def order(buffer: Buffer) -> tuple[bool, int]:
        start, end = ranges[buffer.id]
        at_peak = buffer.start is not None and buffer.end is not None and buffer.start <= peak < buffer.end
        return not at_peak, sizes[buffer.id] * (end - start + 1)

    chosen = []
    for buffer in sorted((b for b in space.buffers if b.id in ranges and sizes[b.id] <= room), key=order):
        start, end = ranges[buffer.id]
        if used[start : end + 1].max() + sizes[buffer.id] <= room:
            used[start : end + 1] += sizes[buffer.id]
            chosen.append(buffer.id)
    return chosen
