"""A generated run of many TPU hosts in two slices: cores in lock-step, one slow host, collectives of both reaches.

Invented throughout; the same arguments give the same bytes.
"""

from __future__ import annotations

from pathlib import Path

from reportgen.wire import xplane_pb2

CORES = 4
_STEP_NS = 1_000_000
_ALL_REDUCE_NS = 150_000
_ACROSS_NS = 60_000
_MEGASCALE = ', frontend_attributes={_xla_host_transfer_handler_name="xla_megascale_runtime"}'
# Name, category, nanoseconds, FLOPs, bytes, further text.
_OPS = (
    *((f"fusion.{n}", "convolution fusion", 20_000 + 500 * n, 2_000_000_000, 4_000_000, "") for n in range(20)),
    *((f"loop_fusion.{n}", "loop fusion", 8_000, 4_000_000, 9_000_000, "") for n in range(20)),
    ("copy.1", "data formatting", 12_000, 0, 8_000_000, ""),
)


def write_pod(folder: Path, hosts: int = 64, steps: int = 5, slow_host: int = 37) -> list[Path]:
    """Write one file a host and return them; the slow host's own work takes 20 % longer and the others wait for it."""
    run = folder / "plugins" / "profile" / "2026_01_01_00_00_00"
    run.mkdir(parents=True)
    paths = []
    for host in range(hosts):
        path = run / f"pod-host-{host}.xplane.pb"
        path.write_bytes(_host(host, hosts, steps, slow_host).SerializeToString(deterministic=True))
        paths.append(path)
    return paths


def _host(host: int, hosts: int, steps: int, slow_host: int) -> xplane_pb2.XSpace:
    space = xplane_pb2.XSpace(hostnames=[f"pod-host-{host}"])
    for core in range(CORES):
        _core(space.planes.add(id=2 + 8 * core, name=f"/device:TPU:{core}"), host, core, steps, host == slow_host)
    environment = space.planes.add(name="Task Environment")
    _stat(environment, environment, "profile_start_time", 1_767_225_600_000_000_000)
    _stat(environment, environment, "profile_stop_time", 1_767_225_600_000_000_000 + (steps + 2) * _STEP_NS)
    space.planes.add(name="/host:CPU").lines.add(name="main", id=1)
    return space


def _core(plane: xplane_pb2.XPlane, host: int, core: int, steps: int, slow: bool) -> None:
    details = xplane_pb2.CoreDetails(
        hostname=f"pod-host-{host}", device_ordinal=core, local_chip_id=core, global_chip_id=host * CORES + core,
        global_core_id=host * CORES + core,
    )  # fmt: skip
    _stat(plane, plane, "core_details", details.SerializeToString())
    _stat(plane, plane, "device_type_string", "TPU v6 Lite")
    _stat(plane, plane, "peak_teraflops_per_second", 918.0)
    _stat(plane, plane, "peak_hbm_bw_gigabytes_per_second", 1638.0)
    names = ("Steps", "XLA Modules", "XLA Ops")
    step_line, module_line, op_line = (plane.lines.add(name=name, id=number) for number, name in enumerate(names, 1))
    module = _event_metadata(plane, "jit_train_step(77)", {})
    own = [round(ns * (1.2 if slow else 1.0)) for _, _, ns, _, _, _ in _OPS]
    slack = round(0.2 * sum(ns for _, _, ns, _, _, _ in _OPS)) - (sum(own) - sum(ns for _, _, ns, _, _, _ in _OPS))
    ends = (
        ("all-reduce.1", "all-reduce", _ALL_REDUCE_NS + slack, 0, 50_000_000, ", replica_groups={{0,1,2,3}}"),
        ("send.2", "send", 2_000, 0, 10_000_000, _MEGASCALE),
        ("recv-done.3", "recv-done", _ACROSS_NS, 0, 10_000_000, _MEGASCALE),
    )
    program = [*((op[0], op[1], ns, *op[3:]) for op, ns in zip(_OPS, own, strict=True)), *ends]
    length = sum(op[2] for op in program)
    for step in range(steps):
        start = step * (length + 5_000)
        marker = _event_metadata(plane, str(step), {})
        _event(plane, step_line, marker, start, length, {"group_id": step, "step_name": str(step)})
        _event(plane, module_line, module, start, length, {"run_id": step + 1, "group_id": step})
        at = start
        for number, (name, category, ns, flops, size, text) in enumerate(program, 1):
            metadata = _event_metadata(
                plane,
                f"%{name} = bf16[8,128]{{1,0:T(8,128)(2,1)}} op(){text}",
                {
                    "hlo_category": category, "program_id": 77, "symbol_id": number, "flops": flops,
                    "model_flops": flops, "bytes_accessed": size, "tf_op": f"jit(train_step)/layer/{category}:",
                    "memory_access_breakdown": _breakdown(size),
                },
                name,
            )  # fmt: skip
            _event(plane, op_line, metadata, at, ns, {"group_id": step})
            at += ns


def _breakdown(size: int) -> bytes:
    message = xplane_pb2.MemoryAccessBreakdown()
    message.memory_accessed.add(operation_type=1, memory_space=1, bytes_accessed=size)
    return message.SerializeToString()


def _event(
    plane: xplane_pb2.XPlane, line: xplane_pb2.XLine, metadata: int, start: int, length: int, stats: dict[str, object]
) -> None:
    event = line.events.add(metadata_id=metadata, offset_ps=start * 1000, duration_ps=length * 1000)
    times = {"device_offset_ps": start * 1000, "device_duration_ps": length * 1000}
    for name, value in ({**stats, **times} if line.name != "XLA Modules" else stats).items():
        _stat(plane, event, name, value)


def _event_metadata(plane: xplane_pb2.XPlane, name: str, stats: dict[str, object], display: str = "") -> int:
    raw = name.encode()
    for key, entry in plane.event_metadata.items():
        if entry.name == raw:
            return key
    key = len(plane.event_metadata) + 1
    entry = plane.event_metadata[key]
    entry.id, entry.name, entry.display_name = key, raw, display.encode()
    for stat, value in stats.items():
        _stat(plane, entry, stat, value)
    return key


Owner = xplane_pb2.XPlane | xplane_pb2.XEvent | xplane_pb2.XEventMetadata


def _stat(plane: xplane_pb2.XPlane, owner: Owner, name: str, value: object) -> None:
    raw = name.encode()
    key = next((key for key, entry in plane.stat_metadata.items() if entry.name == raw), 0)
    if not key:
        key = len(plane.stat_metadata) + 1
        plane.stat_metadata[key].id, plane.stat_metadata[key].name = key, raw
    stat = owner.stats.add(metadata_id=key)
    if isinstance(value, str):
        stat.str_value = value.encode()
    elif isinstance(value, bytes):
        stat.bytes_value = value
    elif isinstance(value, float):
        stat.double_value = value
    elif isinstance(value, int):
        stat.uint64_value = value
