"""The memory of a compiled module as plain data: spaces, buffers, the curve over the program."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

# Allocation types in the order that decides where several hold.
PARAMETER = "parameter"
OUTPUT = "output"
THREAD_LOCAL = "thread-local"
CONSTANT = "constant"
TEMPORARY = "temporary"
ALLOCATION_TYPES = (PARAMETER, OUTPUT, THREAD_LOCAL, CONSTANT, TEMPORARY)
UNKNOWN = "unknown"  # beside those, where only XLA's usage report is there

# XLA's memory spaces ("colors"). The names of 1, 2 and 6 are those of a TPU.
SPACE_NAMES = {0: "HBM", 1: "VMEM", 2: "sync flags", 5: "host", 6: "SMEM"}
MAIN_SPACE = 0
VMEM_SPACE = 1
SMALL_BUFFER_BYTES = 16384


@dataclasses.dataclass(frozen=True, slots=True)
class Buffer:
    """One value in memory.

    Attributes:
        id: XLA's logical buffer id.
        name: The instruction that defines it, with the index into its tuple: `copy-start{0}`.
        instruction: The instruction's name alone.
        index: Where in the instruction's tuple it lies; empty for the whole.
        category: Its category, as in `reportgen.profile.hlo.category`.
        allocation_type: One of `ALLOCATION_TYPES`.
        size: Bytes that it takes.
        unpadded_size: Bytes of its elements alone.
        shape: The shape with its layout, as HLO text.
        op_name: The framework's operation; empty where not recorded.
        source: "file:line" of the user's code; empty where not recorded.
        stack: The call stack, innermost first, as "file:line:column".
        allocation: Index of the allocation that holds it.
        offset: Byte offset in that allocation.
        start: Event of the space's curve at which it comes to life; None where it lives throughout.
        end: Event at which it is freed; None where it lives throughout.

    """

    id: int
    name: str
    instruction: str
    index: tuple[int, ...]
    category: str
    allocation_type: str
    size: int
    unpadded_size: int
    shape: str
    op_name: str
    source: str
    stack: tuple[str, ...]
    allocation: int
    offset: int
    start: int | None = None
    end: int | None = None

    @property
    def padding(self) -> int:
        """Bytes lost to padding."""
        return self.size - self.unpadded_size

    @property
    def expansion(self) -> float:
        """Size over unpadded size; 1 where there is nothing to pad."""
        return self.size / self.unpadded_size if self.unpadded_size else 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class Lump:
    """Several buffers as one row: how many, their bytes and the bytes of their elements alone."""

    count: int
    size: int
    unpadded_size: int


@dataclasses.dataclass(frozen=True, slots=True)
class Allocation:
    """A block that XLA allocates; the buffers in it share its bytes over time.

    Attributes:
        aliased: Whether it is a parameter whose buffer an output takes over (a donated argument).

    """

    index: int
    size: int
    allocation_type: str
    aliased: bool
    parameter: int | None
    buffers: tuple[int, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Curve:
    """Live bytes before each event of the heap simulation, and after the last.

    Attributes:
        live: Bytes in use, with what lives throughout.
        unpadded: The same for the elements alone.
        instructions: The instruction of each event.

    """

    live: NDArray[np.int64]
    unpadded: NDArray[np.int64]
    instructions: tuple[str, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class SpaceMemory:
    """One memory space of a module. Spaces are different memories: never add them.

    Attributes:
        color: XLA's number of the space.
        name: Its name.
        allocated_bytes: The sum of all allocations: what the program needs.
        live_peak_bytes: The most that is in use at once, without thread-local values; XLA's `peak_memory_in_bytes`.
            Never more than allocated, though XLA's simulation counts values that take each other's place twice for a
            moment.
        unpadded_peak_bytes: The same moment, the elements alone, parameters and outputs too.
        xprof_peak_bytes: The peak of the simulation as it stands, which is XProf's figure.
        xprof_unpadded_peak_bytes: XProf's figure, which counts what lives throughout with its padding.
        peak_event: The event of the curve that reaches the peak; the curve has its value at the next place. None
            where there is no heap simulation.
        by_type: Allocated bytes by allocation type.
        output_bytes: Bytes that outlive the program, those of aliased parameters included.
        aliased_bytes: Bytes of parameters that outputs take over.
        allocations: All allocations.
        buffers: All buffers, by allocation.
        peak_buffers: Those in use at the peak in program order: first what lives throughout, then temporaries as
            they were allocated.
        curve: None where there is no heap simulation.

    """

    color: int
    name: str
    allocated_bytes: int
    live_peak_bytes: int
    unpadded_peak_bytes: int
    xprof_peak_bytes: int
    xprof_unpadded_peak_bytes: int
    peak_event: int | None
    by_type: dict[str, int]
    output_bytes: int
    aliased_bytes: int
    allocations: tuple[Allocation, ...]
    buffers: tuple[Buffer, ...]
    peak_buffers: tuple[Buffer, ...]
    curve: Curve | None

    @property
    def fragmentation_bytes(self) -> int:
        """Bytes allocated for temporaries that are not in use even at the peak."""
        return self.allocated_bytes - self.live_peak_bytes - self.by_type[THREAD_LOCAL]

    @property
    def padding_bytes(self) -> int:
        """Bytes lost to padding at the peak."""
        return self.live_peak_bytes - self.unpadded_peak_bytes

    @property
    def argument_bytes(self) -> int:
        """Bytes of the entry computation's parameters."""
        return self.by_type[PARAMETER]

    @property
    def temporary_bytes(self) -> int:
        """Bytes allocated for temporaries, fragmentation included."""
        return self.by_type[TEMPORARY]


@dataclasses.dataclass(frozen=True, eq=False)
class ModuleMemory:
    """The memory of one module.

    Attributes:
        name: The module's name.
        id: Its program id.
        entry: Name of its entry computation.
        spaces: By color, only spaces that hold bytes.
        scoped_vmem_bytes: The most VMEM that one instruction takes on its stack, beside the buffers; None off a TPU.
        scoped_vmem_instruction: That instruction.
        notes: What could not be read or had to be assumed, a sentence each.

    """

    name: str
    id: int
    entry: str
    spaces: dict[int, SpaceMemory]
    scoped_vmem_bytes: int | None
    scoped_vmem_instruction: str
    notes: tuple[str, ...] = ()

    @property
    def main(self) -> SpaceMemory | None:
        """The device's main memory (HBM on TPU); None where the module takes none."""
        return self.spaces.get(MAIN_SPACE)


def space_name(color: int) -> str:
    """Name a memory space by XLA's number."""
    return SPACE_NAMES.get(color, f"memory space {color}")


def lump(buffers: Iterable[Buffer]) -> Lump:
    """Add up buffers."""
    found = list(buffers)
    return Lump(len(found), sum(b.size for b in found), sum(b.unpadded_size for b in found))


def split_small(buffers: Iterable[Buffer], limit: int = SMALL_BUFFER_BYTES) -> tuple[tuple[Buffer, ...], Lump]:
    """Keep the buffers of at least `limit` bytes and add up the smaller ones."""
    found = tuple(buffers)
    return tuple(b for b in found if b.size >= limit), lump(b for b in found if b.size < limit)


def by_size(buffers: Iterable[Buffer]) -> tuple[Buffer, ...]:
    """Order buffers from the largest; equal ones keep their order."""
    return tuple(sorted(buffers, key=lambda buffer: -buffer.size))


def by_padding(buffers: Iterable[Buffer]) -> tuple[Buffer, ...]:
    """Order buffers from the one that loses most to padding, leaving out those that lose nothing."""
    return tuple(sorted((b for b in buffers if b.padding > 0), key=lambda buffer: -buffer.padding))
