"""An out-of-memory error as plain data: every family of message in one form."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

# The families of message, each with what it means.
FAMILIES = {
    "tpu_hbm": "The TPU compiler found that a program does not fit the device's memory.",
    "tpu_vmem": "The TPU compiler found that a kernel or fusion does not fit the on-chip vector memory.",
    "tpu_smem": "The TPU compiler found that a program does not fit the on-chip scalar memory.",
    "tpu_space": "The TPU compiler found that a program does not fit a memory space.",
    "tpu_program": "The TPU runtime could not load a compiled program beside what was already on the device.",
    "tpu_reserve": "The TPU runtime could not reserve a contiguous block for a program.",
    "tpu_buffer": "The TPU runtime could not allocate an array beside what was already on the device.",
    "gpu_xla": "XLA could not allocate what a program needs on the GPU.",
    "gpu_driver": "The GPU's driver refused an allocation.",
    "bfc": "TensorFlow's BFC allocator had no free block of the size asked for.",
}


@dataclasses.dataclass(frozen=True, slots=True)
class OomBuffer:
    """A buffer that a message or a dump lists.

    Attributes:
        size: Bytes that it takes.
        unpadded_size: Bytes of its elements alone; None where not told.
        shape: As HLO text, with its layout where told.
        op_name: The framework's operation.
        source: "file:line" of the user's code.
        label: XLA's name or text of the instruction.
        allocation_type: Such as "temporary", "parameter", "output"; empty where not told.

    """

    size: int
    unpadded_size: int | None = None
    shape: str = ""
    op_name: str = ""
    source: str = ""
    label: str = ""
    allocation_type: str = ""

    @property
    def expansion(self) -> float | None:
        """Size over unpadded size; None where that is not told."""
        return self.size / self.unpadded_size if self.unpadded_size else None


class Bin(NamedTuple):
    """A bin of a BFC allocator: free and used chunks of at least so many bytes."""

    chunk_bytes: int
    chunks: int
    chunks_in_use: int
    total_bytes: int
    in_use_bytes: int


class Chunks(NamedTuple):
    """Chunks in use of one size."""

    number: int
    size: int


@dataclasses.dataclass(frozen=True, slots=True)
class OomMessage:
    """One out-of-memory error; what the text does not tell is None or empty.

    Attributes:
        family: One of `FAMILIES`.
        memory_space: "HBM", "VMEM", "SMEM", "GPU memory"...
        headline: The sentence that names the error.
        line: Line of the text on which it begins, counted from 1.
        needed_bytes: What was asked for: the program's total, or one allocation.
        needed_exactly: Whether `needed_bytes` is a count of bytes in the text and not a rounded figure such as 1.97GiB.
        capacity_bytes: What the memory space holds for the program, or the allocator's limit.
        exceeded_bytes: By how much it does not fit, as told, or needed less capacity or less what could be had.
        free_bytes: Bytes that were free.
        reserved_bytes: Bytes that were reserved already.
        reservable_bytes: The largest block that could be reserved; less than free means fragmentation.
        in_use_bytes: Bytes in use in the allocator.
        total_bytes: The total that the text gives for all of it.
        by_type: Bytes by what they hold.
        buffers: The buffers that the text lists, largest first.
        bins: A BFC allocator's bins.
        chunks: A BFC allocator's chunks in use by size.
        code: XLA's error code, such as "E1000".
        module: The HLO module or program.
        subject: The kernel, instruction or operation that asked.
        device: The device or allocator.
        occurrences: How often the text repeats it.

    """

    family: str
    memory_space: str
    headline: str
    line: int
    needed_bytes: int | None = None
    needed_exactly: bool = False
    capacity_bytes: int | None = None
    exceeded_bytes: int | None = None
    free_bytes: int | None = None
    reserved_bytes: int | None = None
    reservable_bytes: int | None = None
    in_use_bytes: int | None = None
    total_bytes: int | None = None
    by_type: dict[str, int] = dataclasses.field(default_factory=dict)
    buffers: tuple[OomBuffer, ...] = ()
    bins: tuple[Bin, ...] = ()
    chunks: tuple[Chunks, ...] = ()
    code: str = ""
    module: str = ""
    subject: str = ""
    device: str = ""
    occurrences: int = 1
