"""A profile of a compiled TPU program that never ran: libtpu's plane layout around a modelled timeline.

The program is real, with its operations, shapes, layouts, source lines and buffers. The times are not: they follow
`schedule`. The file says so in XSpace.warnings and in the stat `reportgen_timeline` of the plane Task Environment.
All cores run in lock-step and all steps are equal. FLOPs are those of `reportgen.profile.hlo_cost`; bytes are each
operand and result once, padded by its tiles, by memory space (0 is HBM, 1 is VMEM).
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from packing import HOST
from plane_builder import PlaneBuilder, Value
from schedule import HBM, READ, VMEM, WRITE, DeviceSpec, Schedule, Scheduler, Span, memory_traffic

from reportgen.profile import hlo_cost
from reportgen.profile.hlo import HloModule, Instruction, category
from reportgen.wire import xplane_pb2

CYCLES = "estimated_cycles.json"
EPOCH_NS = 1_767_225_600 * 10**9  # the first second of 2026: no clock is read
START_PS = 10**9  # the capture starts 1 ms before the first step
GAP_PS = 1000  # between two steps, so that no two of them touch
TPU_LAUNCH = 12  # XLA's context type of a launch: links the host's event to the device's
BREAKDOWN_SPACES = {HBM: 1, VMEM: 3}
MATRIX_OPCODES = frozenset({"convolution", "dot"})
WARNING = (
    "Modelled timeline: nobody ran this program. It was compiled by libtpu for {device} with no TPU; an operation "
    "takes the compiler's estimated_cycles at {clock:g} GHz, one without an estimate the longer of FLOPs over "
    "{flops:g} TFLOP/s and HBM bytes over {hbm:g} GB/s, a collective its bytes over {links:g} GB/s of links. Transfers "
    "run one after another beside the operations. All cores are in lock-step and all steps are equal; the host is not "
    "modelled."
)
PLANTED = " An infeed wait of {ms:g} ms was planted at the start of each step, with the host events that explain it."


@dataclass(frozen=True)
class Capture:
    """What is captured: a program's schedule, repeated.

    Attributes:
        module: The compiled program.
        program_id: Its fingerprint.
        schedule: The times of one run.
        steps: How many runs.
        infeed_wait_ps: A wait for input before each run, part of the step.

    """

    module: HloModule
    program_id: int
    schedule: Schedule
    steps: int
    infeed_wait_ps: int

    @property
    def step_ps(self) -> int:
        """The time of one step."""
        return self.schedule.length_ps + self.infeed_wait_ps

    @property
    def end_ps(self) -> int:
        """The end of the capture."""
        return START_PS + self.steps * (self.step_ps + GAP_PS)

    @property
    def label(self) -> str:
        """The program's name as profilers write it."""
        return f"{self.module.name}({self.program_id})"

    def starts(self) -> Iterable[tuple[int, int]]:
        """Number and start of each step."""
        return ((step, START_PS + step * (self.step_ps + GAP_PS)) for step in range(self.steps))


def modelled_xspace(
    hlo_proto: bytes, cycles: Mapping[str, int], device: DeviceSpec, steps: int, infeed_wait_ps: int = 0
) -> xplane_pb2.XSpace:
    """Build the profile of `steps` runs of a program.

    Args:
        hlo_proto: The optimised module with its buffer assignment, a serialised HloProto; kept as it is.
        cycles: The compiler's estimate per instruction of the program (`schedule.estimated_cycles`).
        device: The chip's figures and the number of chips, one core each.
        steps: How many equal steps.
        infeed_wait_ps: If not 0, each step starts with an operation `infeed` of that length on every core.

    """
    module = HloModule.from_bytes(hlo_proto)
    program_id = int.from_bytes(hashlib.sha256(hlo_proto).digest()[:8], "big") >> 1
    schedule = Scheduler(module, cycles, device).run()
    capture = Capture(module, program_id, schedule, steps, infeed_wait_ps)
    space = xplane_pb2.XSpace(hostnames=[HOST], warnings=[_warning(device, infeed_wait_ps)])
    for core in range(device.chips):
        _device_plane(space, capture, device, core)
    _host_plane(space, capture, device)
    metadata = PlaneBuilder(space, 1001, "/host:metadata")
    metadata.event_type(capture.label, stats={"Hlo Proto": hlo_proto}, number=program_id)
    environment = PlaneBuilder(space, 1002, "Task Environment")
    stop_ns = EPOCH_NS + capture.end_ps // 1000
    environment.set_stats(
        environment.plane,
        {"profile_start_time": EPOCH_NS, "profile_stop_time": stop_ns, "reportgen_timeline": "modelled"},
    )
    return space


def remodelled(
    folder: Path, steps: int, infeed_wait_ps: int = 0, device: DeviceSpec | None = None
) -> xplane_pb2.XSpace:
    """Model the program of a committed sample again, with other steps or a planted wait; nothing is compiled."""
    (packed,) = folder.glob("*.xplane.pb.gz")
    space = xplane_pb2.XSpace.FromString(gzip.decompress(packed.read_bytes()))
    (metadata,) = (plane for plane in space.planes if plane.name == "/host:metadata")
    (program,) = metadata.event_metadata.values()
    cycles = json.loads((folder / CYCLES).read_text())
    return modelled_xspace(program.stats[0].bytes_value, cycles, device or DeviceSpec(), steps, infeed_wait_ps)


def _warning(device: DeviceSpec, infeed_wait_ps: int) -> str:
    text = WARNING.format(
        device=device.name,
        clock=device.clock_hz / 1e9,
        flops=device.peak_flops / 1e12,
        hbm=device.hbm_bytes_per_s / 1e9,
        links=device.link_bytes_per_s / 1e9,
    )
    return text + (PLANTED.format(ms=infeed_wait_ps / 1e9) if infeed_wait_ps else "")


def _device_plane(space: xplane_pb2.XSpace, capture: Capture, device: DeviceSpec, core: int) -> None:
    """One core: the lines that libtpu writes. Bandwidths that are not public are 0, as libtpu writes unknown ones."""
    plane = PlaneBuilder(space, 2 + 8 * core, f"/device:TPU:{core}")
    details = xplane_pb2.CoreDetails(device_ordinal=core, local_chip_id=core, global_chip_id=core, global_core_id=core)
    unknown = {
        f"peak_{memory}_{way}_bw_gigabytes_per_second": 0.0 for memory in ("cmem", "vmem") for way in ("rd", "wr")
    }
    plane.set_stats(
        plane.plane,
        {
            "core_details": details.SerializeToString(deterministic=True),
            "device_type_string": device.name,
            "peak_teraflops_per_second": device.peak_flops / 1e12,
            "peak_hbm_bw_gigabytes_per_second": device.hbm_bytes_per_s / 1e9,
            **unknown,
            "has_megacore": 0,
            "has_merged_vmem": 1,
        },
    )
    _steps_and_modules(plane, capture, core)
    _framework_lines(plane, capture)
    _op_lines(plane, capture)


def _steps_and_modules(plane: PlaneBuilder, capture: Capture, core: int) -> None:
    steps, modules = plane.line(1, "Steps"), plane.line(2, "XLA Modules")
    for step, start in capture.starts():
        stats = {"step_num": step, **_grouped(step, start, capture.step_ps)}
        plane.event(steps, plane.event_type(str(step)), start, capture.step_ps, stats)
        stats = {"run_id": step + 1, "replica_id": 0, "queue_id": 0, "core_type": 0, "group_id": step}
        stats |= {"_ct": TPU_LAUNCH, "_c": _launch_id(step, core)}
        plane.event(modules, plane.event_type(capture.label), start, capture.step_ps, stats)


def _op_lines(plane: PlaneBuilder, capture: Capture) -> None:
    ops, transfers = plane.line(3, "XLA Ops"), plane.line(4, "Async XLA Ops")
    for step, start in capture.starts():
        program_start = start + capture.infeed_wait_ps
        if capture.infeed_wait_ps:
            stats = _grouped(step, start, capture.infeed_wait_ps)
            plane.event(ops, _infeed_type(plane, capture), start, capture.infeed_wait_ps, stats)
        for number, (instruction, offset, duration) in enumerate(capture.schedule.ops):
            begin = program_start + offset
            stats = _grouped(step, begin, duration)
            if instruction.opcode == "all-reduce":
                stats["all_reduce_unique_id"] = step << 32 | number + 1
            plane.event(ops, _op_type(plane, capture, instruction), begin, duration, stats)
        for instruction, offset, duration in capture.schedule.transfers:
            done = [user.name for user in capture.module.users.get(instruction.id, ())]
            kind = _op_type(plane, capture, instruction, f"async-{instruction.opcode.removesuffix('-start')}")
            stats = {"hlo_op": done[0] if done else instruction.name, "_a": 1}
            plane.event(transfers, kind, program_start + offset, duration, stats)


def _op_type(plane: PlaneBuilder, capture: Capture, instruction: Instruction, display_name: str = "") -> int:
    """The event type of an instruction, with the stats that libtpu records once per operation."""
    text, name = full_text(instruction), display_name or instruction.name
    known = plane.known(text, name)
    return known or plane.event_type(text, name, op_stats(capture.module, capture.program_id, instruction))


def _infeed_type(plane: PlaneBuilder, capture: Capture) -> int:
    stats: dict[str, Value] = {"hlo_category": "infeed", "program_id": capture.program_id, "symbol_id": 2**31}
    text = "%infeed.planted = ((bf16[]), token[]) infeed(token[] %after-all.planted)"
    return plane.event_type(text, "infeed.planted", {**stats, "flops": 0, "model_flops": 0, "bytes_accessed": 0})


def op_stats(module: HloModule, program_id: int, instruction: Instruction) -> dict[str, Value]:
    """What libtpu records once per operation. FLOPs that cannot be known (custom calls) are left out."""
    traffic = memory_traffic(module, instruction)
    accessed = sum(traffic.values())
    breakdown = xplane_pb2.MemoryAccessBreakdown()
    for (direction, memory), size in sorted(traffic.items()):
        if memory in BREAKDOWN_SPACES and size:
            breakdown.memory_accessed.add(
                operation_type={READ: 1, WRITE: 2}[direction],
                memory_space=BREAKDOWN_SPACES[memory],
                bytes_accessed=size,
            )
    flops = hlo_cost.flops(module, instruction)
    counted = {} if flops is None else {"flops": int(flops), "model_flops": int(flops)}
    stats: dict[str, Value] = {
        "hlo_category": tpu_category(module, instruction),
        "program_id": program_id,
        "symbol_id": instruction.id,
        **counted,
        "bytes_accessed": accessed,
        "raw_bytes_accessed": accessed,
        "memory_access_breakdown": breakdown.SerializeToString(deterministic=True),
        "shape_with_layout": str(instruction.shape),
    }
    return stats | _origin(instruction)


def _origin(instruction: Instruction) -> dict[str, Value]:
    """Where an operation comes from, as far as the compiler knows."""
    stats: dict[str, Value] = {}
    if instruction.proto.metadata.deduplicated_name:
        stats["deduplicated_name"] = instruction.proto.metadata.deduplicated_name
    if instruction.source:
        stats["source"] = str(instruction.source)
    if instruction.stack:
        frames = reversed(instruction.stack)
        stats["source_stack"] = "".join(f"{frame.file}:{frame.line}:{frame.column}\n" for frame in frames)
    if instruction.op_name:
        stats["tf_op"] = f"{instruction.op_name}:"
    return stats


def tpu_category(module: HloModule, instruction: Instruction) -> str:
    """The category as libtpu names it: fusions around a matrix operation or a collective by what is inside."""
    inside = {inner.opcode for inner in module.fused_instructions(instruction)}
    if inside & MATRIX_OPCODES:
        return "convolution fusion"
    collective = next((name for name in ("all-reduce", "all-gather") if name in inside), None)
    return f"{collective} fusion" if collective else category(instruction)


def full_text(instruction: Instruction) -> str:
    """HLO text with the operands' shapes, as libtpu names an operation."""
    proto = instruction.proto
    operands = ", ".join(f"{operand.shape} %{operand.name}" for operand in instruction.operands)
    kind = f", kind={proto.fusion_kind}" if proto.fusion_kind else ""
    word = "calls" if instruction.opcode in {"fusion", "async-start"} else "to_apply"
    called = "".join(f", {word}=%{name}" for name in instruction.called[:1])
    return f"%{instruction.name} = {instruction.shape} {instruction.opcode}({operands}){kind}{called}"


def _framework_lines(plane: PlaneBuilder, capture: Capture) -> None:
    """Framework operations and their nested name scopes; neighbours of one name are one event."""
    named = [op for op in capture.schedule.ops if op.instruction.op_name]
    names, scopes = plane.line(5, "Framework Ops"), plane.line(6, "Framework Name Scope")
    runs = [_merged(list(run), name) for name, run in groupby(named, lambda op: op.instruction.op_name)]
    nested = sorted(_scopes(named, 0), key=lambda run: (run[1], -run[2]))
    for _, start in capture.starts():
        base = start + capture.infeed_wait_ps
        for line, events in ((names, runs), (scopes, nested)):
            for name, offset, duration in events:
                plane.event(line, plane.event_type(name), base + offset, duration)


def _scopes(ops: list[Span], depth: int) -> list[tuple[str, int, int]]:
    """Name scopes below `depth` that neighbours share: name, start and duration."""
    found = []
    for scope, run in groupby(ops, lambda op: op.instruction.op_name.split("/")[:-1][depth : depth + 1]):
        members = list(run)
        if scope:
            found += [_merged(members, scope[0]), *_scopes(members, depth + 1)]
    return found


def _merged(run: list[Span], name: str) -> tuple[str, int, int]:
    start = run[0].start_ps
    return name, start, max(op.start_ps + op.duration_ps for op in run) - start


def _host_plane(space: xplane_pb2.XSpace, capture: Capture, device: DeviceSpec) -> None:
    """The host's side as marks: step annotations as long as the device's steps, launches of no length to speak of."""
    plane = PlaneBuilder(space, 1000, "/host:CPU")
    thread = plane.line(1, "python")
    call = f"PjitFunction({capture.module.name.removeprefix('jit_')})"
    for step, start in capture.starts():
        plane.event(
            thread, plane.event_type("train"), start, capture.step_ps, {"step_num": step, "_r": 1, "group_id": step}
        )
        plane.event(thread, plane.event_type(call), start, device.chips * device.cycle_ps)
        for core in range(device.chips):
            launch = {"run_id": step + 1, "queue_id": 0, "device_ordinal": core, "core_type": 0}
            launch |= {"_pt": TPU_LAUNCH, "_p": _launch_id(step, core)}
            begin = start + core * device.cycle_ps
            plane.event(thread, plane.event_type("DoEnqueueProgram"), begin, device.cycle_ps, launch)
    if capture.infeed_wait_ps:
        _input_line(plane, capture)


def _input_line(plane: PlaneBuilder, capture: Capture) -> None:
    """The host events that explain a planted wait: a map that takes all of it, then the transfer to the device."""
    line, wait = plane.line(2, "tf_data_iterator_get_next/1"), capture.infeed_wait_ps
    enqueue = wait // 50
    for _, start in capture.starts():
        for name, offset, duration in (
            ("Iterator::Batch", 0, wait - enqueue),
            ("Iterator::Batch::Map", wait // 100, wait - enqueue - wait // 50),
            ("infeed_enqueue:InfeedEnqueueTuple", wait - enqueue, enqueue),
        ):
            plane.event(line, plane.event_type(name), start + offset, duration)


def _launch_id(step: int, core: int) -> int:
    return step << 16 | core + 1


def _grouped(step: int, start: int, duration: int) -> dict[str, Value]:
    """The times by the device's clock, which is the profile's here, and the step."""
    return {"device_offset_ps": start, "device_duration_ps": duration, "group_id": step}
