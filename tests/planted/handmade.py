"""Profiles written by hand, for faults that neither a compile nor a capture on this machine can show.

A TPU core runs steps of a few operations. Times are in microseconds; a step is 1000 of them unless it says otherwise.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from reportgen.wire import hlo_pb2, xplane_pb2
from tests.builders import PlaneBuilder, Space

PEAK_FLOPS, HBM_BYTES = 197e12, 819e9
PROGRAM, STEP_US = 7, 1000.0


class Op(NamedTuple):
    """An operation of a step: its length, category, FLOPs and the bytes it moves through HBM."""

    name: str
    length: float
    category: str = "convolution fusion"
    flops: float = -1.0
    expression: str = ""
    moved: float = 0.0


@dataclass
class Core:
    """A core of one host.

    Attributes:
        steps: Operations of each step, one after another; a step is as long as they are.
        period: Length of a step, where it is longer than its operations.
        launch_delay: From the host's call to the start of the step on the device.

    """

    steps: Sequence[Sequence[Op]]
    period: float = 0.0
    launch_delay: float = 40.0
    starts: list[float] = field(default_factory=list)


def work(length: float, busy: float = 0.8, name: str = "fusion.1") -> Op:
    """A matrix product that uses this share of the peak."""
    return Op(name, length, flops=busy * PEAK_FLOPS * length * 1e-6)


def steady(*ops: Op, steps: int = 8) -> list[Sequence[Op]]:
    """The same step several times."""
    return [ops] * steps


def profile(cores: Sequence[Core | None], warnings: Sequence[str] = ()) -> bytes:
    """Return a host's profile; None stands for a core on which nothing ran."""
    space = Space()
    space.proto.warnings.extend(warnings)
    host: list[tuple[float, int, int]] = []
    for ordinal, core in enumerate(cores):
        plane = space.plane(
            f"/device:TPU:{ordinal}",
            {
                "device_type_string": "TPU v5 lite",
                "peak_teraflops_per_second": PEAK_FLOPS / 1e12,
                "peak_hbm_bw_gigabytes_per_second": HBM_BYTES / 1e9,
                "core_details": xplane_pb2.CoreDetails(
                    local_chip_id=ordinal, global_chip_id=ordinal
                ).SerializeToString(),
            },
        )
        if core is not None:
            _write_core(plane, core)
            host += [(start - core.launch_delay, run, ordinal) for run, start in enumerate(core.starts)]
    thread = space.plane("/host:CPU").line("python")
    for start, run, ordinal in sorted(host):
        stats = {"run_id": run + 1, "device_ordinal": ordinal}
        thread.event("DoEnqueueProgram", start_ns=start * 1e3, dur_ns=5e3, stats=stats)
    return space.proto.SerializeToString(deterministic=True)


def _write_core(plane: PlaneBuilder, core: Core) -> None:
    steps, modules, ops = (plane.line(name) for name in ("Steps", "XLA Modules", "XLA Ops"))
    known: set[str] = set()
    begin = 1000.0
    for number, step in enumerate(core.steps):
        length = max(core.period, sum(op.length for op in step))
        core.starts.append(begin)
        steps.event(str(number), begin * 1e3, length * 1e3, {"group_id": number})
        modules.event("jit_step(7)", begin * 1e3, length * 1e3, {"run_id": number + 1, "group_id": number})
        at = begin
        for place, op in enumerate(step):
            text = op.expression or f"%{op.name} = bf16[8] {op.category}()"
            if text not in known:
                known.add(text)
                plane.metadata(text, _stats(op, place + 1), display_name=op.name)
            ops.event(text, at * 1e3, op.length * 1e3, {"group_id": number})
            at += op.length
        begin += length


def _stats(op: Op, symbol: int) -> dict[str, int | str]:
    stats: dict[str, int | str] = {"hlo_category": op.category, "program_id": PROGRAM, "symbol_id": symbol}
    if op.flops >= 0:
        moved = int(op.moved or op.flops / 1000)
        stats |= {"flops": int(op.flops), "model_flops": int(op.flops), "bytes_accessed": moved}
    return stats


def waiting(length: float, others: float) -> list[Sequence[Op]]:
    """Steps of own work, and a collective in which the core waits for slower ones."""
    return steady(work(length), Op("all-reduce.1", others - length, "all-reduce", 0.0))


def lockstep(lengths: Sequence[float]) -> list[Core]:
    """Cores with so much work each, in steps as long as the slowest with its collective."""
    longest = max(lengths) + 20
    return [Core(waiting(length, longest)) for length in lengths]


def hosts(lengths: Sequence[float]) -> list[bytes]:
    """One core on each of several hosts."""
    return [profile([core]) for core in lockstep(lengths)]


def barrier(length: float) -> list[bytes]:
    """Cores that wait at a barrier in every step."""
    step = steady(work(STEP_US - length), Op("barrier.1", length, "barrier-cores", 0.0))
    return [profile([Core(step), Core(step)])]


def transfers(category: str, length: float, expression: str = "") -> list[bytes]:
    """A step with a transfer to or from the host."""
    step = steady(work(STEP_US - length), Op(f"{category}.1", length, category, 0.0, expression))
    return [profile([Core(step)])]


def offload(length: float) -> list[bytes]:
    """A step that waits for a copy from the host's memory."""
    text = "%copy-done.1 = bf16[1024]{0} copy-done((bf16[1024]{0}, bf16[1024]{0:S(5)}, u32[]) %copy-start.1)"
    return transfers("copy-done", length, text)


def launched_late(gap: float) -> list[bytes]:
    """Steps whose work is followed by a gap in which nothing runs."""
    return [profile([Core(steady(work(STEP_US - gap)), period=STEP_US)])]


def lengths(*times: float) -> list[bytes]:
    """Steps of so much work each."""
    return [profile([Core([[work(time, name=f"fusion.{time:.0f}")] for time in times])])]


def skewed(delay: float) -> list[bytes]:
    """A device that starts its steps so long after the host's call."""
    return [profile([Core(steady(work(STEP_US)), launch_delay=delay)] * 1)]


def efficient(busy: float) -> list[bytes]:
    """A product at this share of the peak FLOP rate."""
    return [profile([Core(steady(work(STEP_US, busy)))])]


def streaming(busy: float) -> list[bytes]:
    """Elementwise work that moves this share of the bytes that HBM can."""
    moved = busy * HBM_BYTES * STEP_US * 1e-6
    return [profile([Core(steady(Op("fusion.1", STEP_US, "loop fusion", moved / 4, moved=moved)))])]


def fragmented(fixture: Path, factor: float) -> list[bytes]:
    """A compiled program whose temporaries take more room than they fill: its allocation made larger by hand."""
    space = xplane_pb2.XSpace.FromString(gzip.decompress(fixture.read_bytes()))
    for plane in space.planes:
        for event in plane.event_metadata.values():
            for stat in event.stats:
                if plane.name == "/host:metadata":
                    stat.bytes_value = _inflated(stat.bytes_value, factor)
    return [space.SerializeToString(deterministic=True)]


def _inflated(data: bytes, factor: float) -> bytes:
    proto = hlo_pb2.HloProto.FromString(data)
    temporary = [
        allocation
        for allocation in proto.buffer_assignment.buffer_allocations
        if allocation.color == 0 and len(allocation.assigned) > 1 and not allocation.is_entry_computation_parameter
    ]
    largest = max(temporary, key=lambda allocation: allocation.size)
    largest.size = int(largest.size * factor)
    return proto.SerializeToString(deterministic=True)
