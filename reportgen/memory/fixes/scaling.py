"""Fewer or smaller numbers: the batch, microbatches, the element type."""

from __future__ import annotations

import dataclasses

from reportgen import units
from reportgen.memory.dimensions import Nodes
from reportgen.memory.fixes import steps
from reportgen.memory.fixes.model import Fix, fix
from reportgen.memory.fixes.state import Batch, find_batch, state_pairs, trains
from reportgen.memory.forecast import Program, Resize, Saved, allocated, new_sizes, saved
from reportgen.memory.model import Buffer
from reportgen.profile.shapes import Shape

_HALVES = {"f32": "bf16", "f64": "f32", "s64": "s32", "u64": "u32", "c128": "c64"}
_TYPE_NAMES = {
    "f32": "float32",
    "f64": "float64",
    "s64": "int64",
    "u64": "uint64",
    "c128": "complex128",
    "bf16": "bfloat16",
}
_TYPE_NAMES |= {"s32": "int32", "u32": "uint32", "c64": "complex64"}
_SMALLEST_FACTOR = 2**-12
# What of a forecast saving is counted on for a program that does not fit: the compiler rematerialises less, the smaller
# the batch is.
_CAUTION = 0.8
_REFINEMENTS = 5


def batch(program: Program) -> Fix | None:
    """A smaller batch: what grows with it, the saving of half, and the largest that fits."""
    found = find_batch(program)
    if found is None or program.space is None:
        return None
    saving = saved(program, _scaling(program, found, 0.5))
    grows = [b for b in program.space.peak_buffers if _scales(program, b, found)]
    grown = sum(b.size for b in grows)
    largest = largest_batch(program, found)
    fits = f" The largest batch that fits is about {largest:,} on each device, cautiously." if largest else ""
    return fix(
        "batch",
        f"Halve the batch ({found.size:,} on each device)",
        saving,
        f"{len(grows)} buffers in use at the peak grow with the batch, {units.binary(grown)} together; XLA's heap "
        f"simulation was repeated with half their size.{fits}",
        "modelled",
        steps.BATCH,
        _names(grows),
        batch=found.size,
        **({"largest_batch": largest} if largest else {}),
    )


def microbatches(program: Program) -> Fix | None:
    """Two halves of the batch one after the other: saves what half the batch saves, less the sums of the gradients."""
    found = find_batch(program)
    if found is None or not trains(program):
        return None
    half = saved(program, _scaling(program, found, 0.5, lasting=False))
    sums = sum(pair.parameter.size for pair in state_pairs(program))
    saving = Saved(half.low - 3 * sums, half.likely - 2 * sums, half.high)
    if saving.likely <= 0:
        return None
    return fix(
        "microbatches",
        "Split the batch into 2 microbatches in sequence",
        saving,
        f"Half the temporaries that grow with the batch, less two times {units.binary(sums)} for gradients that are "
        "added up beside the new ones. "
        "The result of a step stays the same.",
        "modelled",
        steps.MICROBATCHES,
    )


def dtype(program: Program) -> Fix | None:
    """Halve the width of 32-bit floats, or of 64-bit numbers where there are any."""
    space = program.space
    if space is None:
        return None
    widths = {
        kind: sum(b.size for b in space.peak_buffers if program.shape(b).element_type == kind) for kind in _HALVES
    }
    kind = max(widths, key=lambda one: widths[one])
    if not widths[kind]:
        return None
    everything = saved(program, _narrowing(kind, lasting=True))
    temporaries = saved(program, _narrowing(kind, lasting=False))
    wide = [b for b in space.peak_buffers if program.shape(b).element_type == kind]
    narrow = _HALVES[kind]
    return fix(
        "dtype",
        f"Keep {_TYPE_NAMES[kind]} values as {_TYPE_NAMES[narrow]}",
        Saved(min(temporaries.low, everything.low), everything.likely, everything.high),
        f"{len(wide)} buffers in use at the peak are {_TYPE_NAMES[kind]}, {units.binary(widths[kind])} together; at "
        "the low end only temporaries change.",
        "modelled",
        steps.DTYPE,
        _names(wide),
    )


def largest_batch(program: Program, found: Batch) -> int | None:
    """The largest batch per device that fits the capacity, cautiously; None where all fits or nothing does."""
    capacity, space = program.capacity, program.space
    if capacity is None or space is None or space.allocated_bytes <= capacity:
        return None

    def fits(factor: float) -> bool:
        saving = space.allocated_bytes - allocated(space, new_sizes(program, _scaling(program, found, factor)))
        return space.allocated_bytes - saving * _CAUTION <= capacity

    low = 0.5
    while not fits(low):
        low /= 2
        if low < max(_SMALLEST_FACTOR, 1 / found.size):
            return None
    high = low * 2
    for _ in range(_REFINEMENTS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return max(1, int(found.size * low))


def _scaling(program: Program, found: Batch, factor: float, *, lasting: bool = True) -> Resize:
    def resize(buffer: Buffer, shape: Shape, nodes: Nodes) -> Shape | None:
        if buffer.start is None and not lasting:
            return None
        return program.dimensions.scaled(shape, nodes, found.group, factor)

    return resize


def _narrowing(kind: str, *, lasting: bool) -> Resize:
    def resize(buffer: Buffer, shape: Shape, nodes: Nodes) -> Shape | None:
        del nodes
        if shape.element_type != kind or (buffer.start is None and not lasting):
            return None
        return dataclasses.replace(shape, element_type=_HALVES[kind])

    return resize


def _scales(program: Program, buffer: Buffer, found: Batch) -> bool:
    return any(program.dimensions.contains(node, found.group) for node in program.nodes(buffer))


def _names(buffers: list[Buffer]) -> tuple[str, ...]:
    return tuple(buffer.name for buffer in sorted(buffers, key=lambda b: -b.size)[:20])
