"""A model of when each operation of a compiled TPU program runs, from the compiler's own estimates.

One core runs the schedule in order. An operation takes its `estimated_cycles` at the device's clock; one without an
estimate takes its roofline time, the longer of FLOPs over peak and HBM bytes over bandwidth. Collectives take their
bytes over the chip's links, as a ring does, with no latency. A `-start` and a `-done` take one cycle; what they start
runs beside the operations, one transfer after another over the same wires, and the `-done` waits for its end.
What is left out: contention between transfers and operations, latencies, the host.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from reportgen.profile import hlo_cost
from reportgen.profile.hlo import Computation, HloModule, Instruction

PS_PER_SECOND = 10**12
FREE = frozenset(
    {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "add-dependency", "opt-barrier"}
)
FREE_TARGETS = frozenset({"ConcatBitcast"})
HBM, VMEM = 0, 1
READ, WRITE = 1, 2
S32_VALUES = 4  # field of XLA's LiteralProto: varints, packed
RING_SHARE = {"all-reduce": 2, "all-gather": 1, "reduce-scatter": 1, "all-to-all": 1}


@dataclass(frozen=True)
class DeviceSpec:
    """Public figures of one chip, and how many chips run the program.

    The links' bandwidth is what the neighbours in a 2x2 give: two of four links of 50 GB/s.
    """

    name: str = "TPU v5 lite"
    chips: int = 4
    clock_hz: float = 1.5e9
    peak_flops: float = 197e12
    hbm_bytes_per_s: float = 819e9
    link_bytes_per_s: float = 100e9

    @property
    def cycle_ps(self) -> int:
        """One clock cycle, rounded up."""
        return math.ceil(PS_PER_SECOND / self.clock_hz)


class Span(NamedTuple):
    """An instruction's time on a line, in picoseconds from the start of the program."""

    instruction: Instruction
    start_ps: int
    duration_ps: int


@dataclass
class Schedule:
    """Times of one run of a program.

    Attributes:
        ops: Operations of the core, parents before their children.
        transfers: What `-start` operations started, on the asynchronous line.
        length_ps: The program's time.

    """

    ops: list[Span] = field(default_factory=list)
    transfers: list[Span] = field(default_factory=list)
    length_ps: int = 0


def estimated_cycles(path: Path) -> dict[str, int]:
    """The compiler's estimate per instruction in the text of a dump (`*.after_codegen.txt`), in clock cycles."""
    found = re.finditer(r'^\s+(?:ROOT )?%(\S+) = .*"estimated_cycles":"(\d+)"', path.read_text(), re.MULTILINE)
    return {match[1]: int(match[2]) for match in found}


def memory_traffic(module: HloModule, instruction: Instruction) -> dict[tuple[int, int], int]:
    """Bytes by (READ or WRITE, memory space), tiles and all: every operand read once, every result written once.

    Of a transfer the `-start` counts the reading and the `-done` the writing, as libtpu does.
    """
    if instruction.opcode.endswith("-done") and instruction.operands:
        size = transferred_bytes(module, instruction.operands[0])
        return {(WRITE, instruction.shape.leaves()[0].memory_space): size}
    if instruction.opcode.endswith("-start") and instruction.operands:
        return {(READ, instruction.operands[0].shape.memory_space): transferred_bytes(module, instruction)}
    traffic: dict[tuple[int, int], int] = {}
    shapes = [(READ, leaf) for operand in instruction.operands for leaf in operand.shape.leaves()]
    shapes += [(WRITE, leaf) for leaf in instruction.shape.leaves()]
    for direction, leaf in shapes:
        key = direction, leaf.memory_space
        traffic[key] = traffic.get(key, 0) + leaf.padded_bytes
    return traffic


def transferred_bytes(module: HloModule, start: Instruction) -> int:
    """Bytes that an asynchronous operation moves: a wrapped one's result, or the operands."""
    wrapped = [computation.root for computation in module.called_computations(start) if computation.root]
    moved = sum(operand.shape.total_bytes for operand in start.operands)
    if start.opcode != "async-start" or not wrapped:
        return moved
    return min(moved, wrapped[0].shape.total_bytes)


def trips(computations: Sequence[Computation]) -> int:
    """How often a loop runs that counts from 0 to a constant by 1, as those of scan and fori_loop; 1 if it does not.

    The bound is the one scalar integer constant of the condition, the loop's last computation.
    """
    bounds = [i.proto.literal for i in computations[-1].instructions if i.opcode == "constant"]
    fields = {field.field_number: field.data for bound in bounds for field in _unknown(bound)}
    if len(bounds) != 1 or S32_VALUES not in fields:
        return 1
    return sum((byte & 0x7F) << 7 * place for place, byte in enumerate(fields[S32_VALUES]))


class Scheduler:
    """Runs a program on a model of one core."""

    def __init__(self, module: HloModule, cycles: Mapping[str, int], device: DeviceSpec) -> None:
        self.module, self.cycles, self.device = module, cycles, device
        self._now = 0
        self._wire_free = {"memory": 0, "links": 0}
        self._arrivals: dict[int, int] = {}
        self._schedule = Schedule()

    def run(self) -> Schedule:
        """Run the whole program once."""
        self._run(self.module.entry)
        self._schedule.ops.sort(key=lambda op: (op.start_ps, -op.duration_ps))
        self._schedule.length_ps = self._now
        return self._schedule

    def _run(self, computation: Computation) -> None:
        for instruction in _in_order(self.module, computation):
            if instruction.opcode not in FREE and instruction.proto.custom_call_target not in FREE_TARGETS:
                self._execute(instruction)

    def _execute(self, instruction: Instruction) -> None:
        start, opcode = self._now, instruction.opcode
        if opcode.endswith("-start"):
            self._begin(instruction)
        elif opcode.endswith("-done"):
            arrivals = [self._arrivals.get(operand.id, 0) for operand in instruction.operands]
            self._now = max([start + self.device.cycle_ps, *arrivals])
        elif opcode in {"while", "call", "conditional"}:
            self._call(instruction)
        else:
            self._now += self._duration(instruction)
        self._schedule.ops.append(Span(instruction, start, self._now - start))

    def _call(self, instruction: Instruction) -> None:
        """Run what is called: a loop's body and condition `trips` times, of a conditional the first branch."""
        bodies = self.module.called_computations(instruction)
        for _ in range(trips(bodies) if instruction.opcode == "while" else 1):
            for body in bodies[:1] if instruction.opcode == "conditional" else bodies:
                self._run(body)
        self._now += self.device.cycle_ps

    def _begin(self, instruction: Instruction) -> None:
        """Queue the transfer behind the earlier ones on the same wires."""
        size = transferred_bytes(self.module, instruction)
        wire, seconds = self._wire_time(instruction, size)
        begin = max(self._now, self._wire_free[wire])
        duration = max(self.device.cycle_ps, math.ceil(seconds * PS_PER_SECOND))
        self._wire_free[wire] = self._arrivals[instruction.id] = begin + duration
        self._schedule.transfers.append(Span(instruction, begin, duration))
        self._now += self.device.cycle_ps

    def _wire_time(self, instruction: Instruction, size: int) -> tuple[str, float]:
        opcode = instruction.opcode.removesuffix("-start")
        share = RING_SHARE.get(opcode)
        if share is None and not opcode.startswith("collective"):
            return "memory", size / self.device.hbm_bytes_per_s
        chips = self.device.chips
        return "links", size * (share * (chips - 1) / chips if share else 1) / self.device.link_bytes_per_s

    def _duration(self, instruction: Instruction) -> int:
        """Picoseconds of an operation that runs on the core."""
        if instruction.name in self.cycles:
            return max(1, round(self.cycles[instruction.name] / self.device.clock_hz * PS_PER_SECOND))
        if instruction.opcode in RING_SHARE or instruction.opcode.startswith("collective"):
            seconds = self._wire_time(instruction, sum(o.shape.total_bytes for o in instruction.operands))[1]
        else:
            flops = hlo_cost.flops(self.module, instruction) or 0
            hbm = sum(size for (_, space), size in memory_traffic(self.module, instruction).items() if space == HBM)
            seconds = max(flops / self.device.peak_flops, hbm / self.device.hbm_bytes_per_s)
        return max(self.device.cycle_ps, math.ceil(seconds * PS_PER_SECOND))


def _unknown(literal: Message) -> Iterable[Any]:
    """Fields that our .proto does not name; the type stubs miss that the set is iterable."""
    return cast("Iterable[Any]", UnknownFieldSet(literal))


def _in_order(module: HloModule, computation: Computation) -> Iterable[Instruction]:
    """The instructions as scheduled; a computation without a schedule is in order already."""
    ids = {proto.name: proto.id for proto in module.proto.hlo_module.computations}
    sequences = module.proto.hlo_module.schedule.sequences
    if ids[computation.name] not in sequences:
        return computation.instructions
    return [module.by_id[number] for number in sequences[ids[computation.name]].instruction_ids]
