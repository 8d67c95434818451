"""A profile with 200 identifiers in every place that a profile has for text."""

from __future__ import annotations

from reportgen.wire import hlo_pb2, xplane_pb2
from tests.builders import Space

_SYLLABLES = ("zub", "kor", "wex", "mip", "tal", "quo", "fen", "dra", "hys", "lov")
COUNT = 200


def identifiers() -> list[str]:
    """Return 200 names that occur nowhere else: plain, with dots, dashes, underscores, capitals, digits, accents."""
    words = [f"{a}{b}{c}" for a in _SYLLABLES for b in _SYLLABLES[:5] for c in _SYLLABLES[5:9]]
    return words[:COUNT]


class Planted:
    """Hands out identifiers and remembers where they went; `used` are all of them."""

    def __init__(self) -> None:
        self._left = identifiers()
        self.used: list[str] = []

    def next(self) -> str:
        """Return the next identifier."""
        self.used.append(self._left.pop(0))
        return self.used[-1]


def planted_profile() -> tuple[bytes, Planted]:
    """Return a profile of a TPU and a host, and the identifiers in it."""
    names = Planted()
    space = Space()
    space.proto.hostnames.append(f"{names.next()}-{names.next()}.{names.next()}.corp")
    space.proto.errors.append(
        f"{names.next()} failed on /home/{names.next()}/{names.next()}.sock with {names.next()}@{names.next()}.com"
    )
    space.proto.warnings.append(f"dropped events of {names.next()}:8466 in C:\\Users\\{names.next()}\\{names.next()}")
    space.proto.warnings.append(
        f"user {names.next()}, project {names.next()}_{names.next()}, bucket gs://{names.next()}/{names.next()}"
    )
    module, proto = _module(names)
    _device(space, names, module)
    _host(space, names, module)
    space.hlo(f"jit_{module}(7)", 7, proto.SerializeToString())
    times = {"profile_start_time": 1_700_000_000 * 10**9, "profile_stop_time": 1_700_000_001 * 10**9}
    environment = space.plane("Task Environment", times)
    command = f"python /{names.next()}/{names.next()}.py --user={names.next()}"
    version = f"built by {names.next()}@{names.next()} at /{names.next()}"
    stats = {"jax_version": f"0.9.{names.next()}", names.next(): names.next(), "command_line": command}
    stats |= {"profile_options": b"\x0a\x10" + names.next().encode(), "libtpu_version": version}
    environment.add_stats(environment.proto.stats, stats)
    _unknown_fields(space, names)
    while names._left:
        line = space.plane(f"/host:{names.next()}").line(names.next()) if len(names._left) > 2 else None
        if line is None:
            names.next()
        else:
            line.event(names.next(), 0, 5)
    return space.proto.SerializeToString(), names


def _module(names: Planted) -> tuple[str, hlo_pb2.HloProto]:
    module = f"{names.next()}_{names.next()}"
    proto = hlo_pb2.HloProto()
    hlo = proto.hlo_module
    hlo.name, hlo.entry_computation_name = f"jit_{module}", f"{names.next()}.1"
    hlo.id = hlo.entry_computation_id = 1
    computation = hlo.computations.add(name=hlo.entry_computation_name, id=1, root_id=2)
    computation.program_shape.parameter_names.append(names.next())
    shape = hlo_pb2.Shape(element_type=11, dimensions=[1024, 777])
    computation.instructions.add(name=f"{names.next()}.1", opcode="parameter", id=1, shape=shape)
    add = computation.instructions.add(name="add.2", opcode="add", id=2, shape=shape, operand_ids=[1, 1])
    add.metadata.op_type, add.metadata.op_name = names.next(), f"jit({module})/{names.next()}/jvp({names.next()})/add"
    add.metadata.source_file, add.metadata.source_line = f"/home/{names.next()}/{names.next()}/{names.next()}.py", 4711
    add.metadata.deduplicated_name = f"{names.next()}.3"
    add.metadata.stack_frame_id = 1
    add.frontend_attributes.map[names.next()] = names.next()
    add.backend_config = f'{{"{names.next()}": {{"body": "{names.next()}"}}}}'.encode()
    add.custom_call_target = names.next()
    index = hlo.stack_frame_index
    index.file_names.append(f"/srv/{names.next()}/{names.next()}.py")
    index.function_names.append(f"{names.next()}.<locals>.{names.next()}")
    index.file_locations.add(file_name_id=1, function_name_id=1, line=31, column=7)
    index.stack_frames.add(file_location_id=1)
    buffer = proto.buffer_assignment.logical_buffers.add(id=1, size=64)
    buffer.defined_at.instruction_name = f"{names.next()}.1"
    event = proto.buffer_assignment.heap_simulator_traces.add().events.add()
    event.computation_name, event.instruction_name = names.next(), f"{names.next()}.9"
    return module, proto


def _device(space: Space, names: Planted, module: str) -> None:
    details = xplane_pb2.CoreDetails(hostname=f"{names.next()}-0", local_chip_id=0, global_chip_id=0)
    plane = space.plane(
        "/device:TPU:0",
        {"core_details": details.SerializeToString(), "device_type_string": "TPU v5 lite", names.next(): names.next(),
         "peak_teraflops_per_second": 197.0, "peak_hbm_bw_gigabytes_per_second": 819.0},
    )  # fmt: skip
    scope = f"jit({module})/{names.next()}/{names.next()}/add:"
    text = (
        f"%fusion.1 = bf16[1024,777]{{1,0:T(8,128)}} fusion(bf16[1024,777] %{names.next()}.5), "
        f"kind=kLoop, calls=%{names.next()}.6, "
        f'metadata={{op_name="{scope}" source_file="/home/{names.next()}/{names.next()}.py" source_line=4711}}'
    )
    stats = {
        "program_id": 7, "symbol_id": 1, "hlo_category": "loop fusion", "tf_op": scope, "flops": 1000,
        "bytes_accessed": 2000, "shape_with_layout": "bf16[1024,777]{1,0:T(8,128)}",
        "source": f"/home/{names.next()}/{names.next()}.py:4711", "long_name": f"%{names.next()} = x",
        "source_stack": f"/a/{names.next()}.py:4711\n/b/{names.next()}.py:1:2 ({names.next()})",
        "deduplicated_name": f"{names.next()}.4", names.next(): names.next(),
    }  # fmt: skip
    plane.metadata(text, stats, display_name="fusion.1")
    plane.metadata(
        f"%{names.next()}.8 = f32[3] add()",
        stats | {"symbol_id": 2, "tf_op": f"{names.next()}/{names.next()}:{names.next()}"},
        f"{names.next()}.8",
    )
    ops, modules, steps = plane.line("XLA Ops"), plane.line("XLA Modules"), plane.line("Steps")
    second = next(name for name in plane._events if name.startswith("%") and "add()" in name)
    for step in range(4):
        start = 1000 + step * 100_000
        ops.event(text, start, 60_000).event(second, start + 60_000, 20_000)
        modules.event(f"jit_{module}(7)", start, 90_000, {"run_id": step})
        steps.event(str(step), start, 90_000, {"step_num": step, "group_id": step})
    line = plane.line("Framework Name Scope")
    line.event(names.next(), 1000, 50_000).event(f"{names.next()}.{names.next()}", 51_000, 9_000)


def _host(space: Space, names: Planted, module: str) -> None:
    plane = space.plane("/host:CPU")
    python = plane.line(f"{names.next()}/{names.next()}")
    for step in range(4):
        start = 1000 + step * 100_000
        python.event(f"train_{names.next()}", start, 95_000, {"step_num": step, "_r": 1})
    thread = plane.line("python")
    thread.event(f"PjitFunction({module})", 1000, 50)
    thread.event(f"${names.next()}.py:39 {names.next()}", 2000, 900)
    thread.event(f"$/opt/{names.next()}/{names.next()}.py:7 <lambda> {names.next()}", 3000, 900)
    thread.event(
        f"Iterator::Root::Map[{names.next()}]",
        4000,
        90,
        {"name": names.next(), names.next(): f"{names.next()}#{names.next()}"},
    )
    thread.event(f"{names.next()} über-{names.next()}", 5000, 90)
    thread.event(f"fetch https://{names.next()}.example/{names.next()}?token={names.next()}", 6000, 90)
    thread.event("probe 10.11.12.13 fe80::1ff:fe23:4567:890a 00:1a:2b:3c:4d:5e 0x7f3a9c001000", 7000, 90)


def _unknown_fields(space: Space, names: Planted) -> None:
    """Plant text in fields that this program does not know, and in serialised metadata."""
    plane = space.proto.planes[0]
    entry = next(iter(plane.event_metadata.values()))
    entry.metadata = f"\x0a{names.next()}".encode()
    stat = next(iter(plane.stat_metadata.values()))
    stat.description = names.next().encode()
    secret = names.next().encode()
    raw = plane.SerializeToString() + bytes([0xF2, 0x7F, len(secret)]) + secret  # field 2046
    space.proto.planes[0].CopyFrom(xplane_pb2.XPlane.FromString(raw))
