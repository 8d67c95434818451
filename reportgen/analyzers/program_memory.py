"""What rules need to know of the memory of programs: peak, padding, donation, fragmentation, VMEM, rematerialisation.

Only the modules with the most device time are looked at; the numbers are those of `reportgen.memory`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from reportgen.analyzers.base import Context, Result, SectionId
from reportgen.analyzers.module_memory import memory_of
from reportgen.memory.fixes.donation import donation
from reportgen.memory.fixes.model import Fix
from reportgen.memory.fixes.padding import padding
from reportgen.memory.fixes.state import state_pairs
from reportgen.memory.forecast import Program
from reportgen.memory.model import VMEM_SPACE, Buffer, by_padding
from reportgen.profile.hlo import HloModule, Instruction
from reportgen.profile.hlo_cost import flops
from reportgen.profile.hlo_roles import matrix_instruction
from reportgen.profile.ops import op_table
from reportgen.profile.view import HostView

_MOST_MODULES = 4
_MOST_BUFFERS = 8
# A module with more instructions than this takes seconds to replay; its donation and padding are looked at without
# forecasting how they would shift other buffers.
_MOST_INSTRUCTIONS = 60_000
_HANDED_ON = frozenset(
    {"copy", "copy-start", "copy-done", "async-start", "async-done", "bitcast", "tuple", "get-tuple-element", "convert"}
)
_JOINS_SLICES = "ConcatBitcast"  # of a prefetch in several pieces
_DEEPEST = 6
_REMATTED = ("rematted_computation", ".remat")


class PaddedBuffer(NamedTuple):
    """A buffer that is in use at the peak and padded."""

    name: str
    shape: str
    size: int
    unpadded_size: int
    source: str


class Recomputed(NamedTuple):
    """An op that computes again what was thrown away, the share of its FLOPs that do so, and the bytes it writes."""

    name: str
    share: float
    size: int


@dataclass(frozen=True)
class ProgramMemory:
    """The main memory of one program.

    Attributes:
        program: Its id.
        name: Its name.
        allocated, live, unpadded: Bytes: needed in all, in use at the peak, the same without padding.
        fragmentation: Bytes allocated for temporaries that are not in use even at the peak.
        temporary, argument, aliased: Bytes.
        padded: Largest losses to padding at the peak.
        donation: Arguments that could be donated; None where there are none.
        reshapes: Shapes whose padding another order of dimensions avoids.
        vmem: Bytes of VMEM allocated for buffers; 0 where none.
        kernel_vmem: The most VMEM that one custom call (a Pallas kernel) takes on its stack; 0 without one. What
            the compiler's own fusions take says nothing: it sizes them to what there is.
        kernel: That custom call.
        recomputed: Ops of a rematerialisation.

    """

    program: int
    name: str
    allocated: int
    live: int
    unpadded: int
    fragmentation: int
    temporary: int
    argument: int
    aliased: int
    padded: tuple[PaddedBuffer, ...]
    donation: Fix | None
    reshapes: tuple[Fix, ...]
    vmem: int
    kernel_vmem: int
    kernel: str
    recomputed: tuple[Recomputed, ...]


@dataclass(frozen=True)
class ProgramMemoryFacts:
    """Memory of the programs with the most device time, the largest time first; the device's capacity in bytes."""

    programs: tuple[ProgramMemory, ...]
    capacity: float | None
    device: str


@dataclass(frozen=True)
class ProgramMemoryPart:
    """Programs of one host."""

    programs: tuple[ProgramMemory, ...]
    capacity: float | None
    device: str


class ProgramMemoryAnalyzer:
    """Memory of the programs that matter, for rules."""

    id: ClassVar[str] = "program-memory"
    title: ClassVar[str] = "Memory of programs"
    section: ClassVar[SectionId] = "memory"

    def host(self, view: HostView) -> ProgramMemoryPart | None:
        """Return the memory of one host's main programs."""
        cores = view.active_cores
        if not cores:
            return None
        table = op_table(cores[0].runs)
        times = table.groupby("program")["self_ps"].sum().sort_values(ascending=False, kind="stable")
        capacity = cores[0].peaks.hbm_capacity.value
        modules = ((int(str(key)), view.modules.get(int(str(key)))) for key in times.index[:_MOST_MODULES])
        found = (_of_module(key, module, capacity) for key, module in modules if module is not None)
        return ProgramMemoryPart(tuple(one for one in found if one is not None), capacity, cores[0].id.device)

    def merge(self, parts: Sequence[ProgramMemoryPart], context: Context) -> Result:  # noqa: ARG002
        """Return the programs of the first host that has any; all hosts of a job run the same."""
        part = next((part for part in parts if part.programs), None)
        return Result(facts=ProgramMemoryFacts(part.programs, part.capacity, part.device) if part else None)


def _of_module(program: int, module: HloModule, capacity: float | None) -> ProgramMemory | None:
    memory = memory_of(module)
    if memory is None:
        return None
    space, vmem = memory.main, memory.spaces.get(VMEM_SPACE)
    if space is None:
        return None
    forecast = Program(module, memory, int(capacity) if capacity else None)
    kernels = (instruction for instruction in module if instruction.opcode == "custom-call")
    kernel = max(kernels, key=lambda instruction: instruction.scoped_vmem_bytes, default=None)
    small = len(module.by_id) <= _MOST_INSTRUCTIONS
    return ProgramMemory(
        program=program,
        name=module.name,
        allocated=space.allocated_bytes,
        live=space.live_peak_bytes,
        unpadded=space.unpadded_peak_bytes,
        fragmentation=space.fragmentation_bytes,
        temporary=space.temporary_bytes,
        argument=space.argument_bytes,
        aliased=space.aliased_bytes,
        padded=tuple(_padded(buffer) for buffer in by_padding(space.peak_buffers)[:_MOST_BUFFERS]),
        donation=_donation(forecast),
        reshapes=tuple(padding(forecast)) if small and space.padding_bytes > 0.02 * space.live_peak_bytes else (),
        vmem=vmem.allocated_bytes if vmem else 0,
        kernel_vmem=kernel.scoped_vmem_bytes if kernel is not None else 0,
        kernel=kernel.name if kernel is not None else "",
        recomputed=_recomputed(module),
    )


def _donation(program: Program) -> Fix | None:
    """Return what donation would save, unless most of it stands in outputs that cannot take an argument's place.

    A matrix product reads its operands to the end while it writes; only what is updated element by element can be
    updated in place.
    """
    pairs = [pair for pair in state_pairs(program) if not pair.aliased]
    sizes = [(pair.parameter.size, _in_place(program.module, pair.output.instruction)) for pair in pairs]
    total = sum(size for size, _ in sizes)
    possible = sum(size for size, in_place in sizes if in_place)
    return donation(program) if total and possible >= total / 2 else None


def _in_place(module: HloModule, name: str) -> bool:
    """Whether an output is an update of an argument of its shape, which it reads element by element."""
    output = module.by_name.get(name)
    if output is None or (matrix_instruction(module, output) is not None and len(output.operands) <= 2):
        return False
    return any(
        source.opcode == "parameter" and source.shape.dimensions == output.shape.leaves()[0].dimensions
        for source in _sources(output, _DEEPEST)
        if output.shape.leaves()
    )


def _sources(instruction: Instruction, depth: int) -> Iterator[Instruction]:
    """Yield what an instruction reads, looked at through instructions that only hand a value on."""
    for operand in instruction.operands:
        joined = operand.proto.custom_call_target == _JOINS_SLICES
        if (operand.opcode in _HANDED_ON or joined) and depth:
            yield from _sources(operand, depth - 1)
        else:
            yield operand


def _padded(buffer: Buffer) -> PaddedBuffer:
    return PaddedBuffer(buffer.name, buffer.shape, buffer.size, buffer.unpadded_size, buffer.source)


def _recomputed(module: HloModule) -> tuple[Recomputed, ...]:
    """Return ops that a rematerialisation added, by the framework's or the compiler's own names."""
    if not any(_is_rematted(instruction) for instruction in module):
        return ()
    fused = {name for instruction in module if instruction.is_fusion for name in instruction.called}
    found = []
    for instruction in module:
        if instruction.computation in fused or instruction.opcode in {"parameter", "tuple", "get-tuple-element"}:
            continue
        if share := _rematted_share(module, instruction):
            found.append(Recomputed(instruction.name, share, instruction.shape.total_bytes))
    return tuple(found)


def _is_rematted(instruction: Instruction) -> bool:
    return _REMATTED[0] in instruction.op_name or _REMATTED[1] in instruction.name


def _rematted_share(module: HloModule, instruction: Instruction) -> float:
    """Return which share of an op's FLOPs is computed again; without FLOPs, whether the op itself is named so."""
    inside = [instruction, *_inside(module, instruction, _DEEPEST)]
    counts = [(flops(module, one) or 0.0, _is_rematted(one)) for one in inside if not one.is_fusion]
    total = sum(count for count, _ in counts)
    if _REMATTED[1] in instruction.name or not total:
        return float(_is_rematted(instruction))
    return sum(count for count, rematted in counts if rematted) / total


def _inside(module: HloModule, instruction: Instruction, depth: int) -> list[Instruction]:
    inside: list[Instruction] = []
    for fused in module.fused_instructions(instruction) if depth else ():
        inside += [fused, *_inside(module, fused, depth - 1)]
    return inside
