"""Write a large TPU profile in libtpu's layout, for measuring speed and memory.

    python benchmarks/generate.py OUT.xplane.pb --events 1000000 --cores 4 --steps 20

Everything in it is invented: a transformer-like step of many ops, with one input wait and one collective. The same
arguments give the same bytes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reportgen.wire import xplane_pb2

Times = NDArray[np.int64]
Value = str | bytes | float | int
Owner = xplane_pb2.XPlane | xplane_pb2.XEvent | xplane_pb2.XEventMetadata
Template = tuple[str, str, str, float, int, int]

_PROGRAM = 7_263_412_987_410_113_207
_CLOCK_SKEW_PS = 14_617_000  # device statistics count on the device's own clock, as on real TPUs
_START_NS = 1_700_000_000_000_000_000
_UNSIGNED = frozenset(
    {"program_id", "symbol_id", "run_id", "group_id", "device_offset_ps", "device_duration_ps"}
    | {"profile_start_time", "profile_stop_time"}
)
_PLANE_STATS: dict[str, Value] = {
    "device_type_string": "TPU v6 Lite",
    "peak_teraflops_per_second": 918.0,
    "peak_hbm_bw_gigabytes_per_second": 1638.0,
    "peak_vmem_rd_bw_gigabytes_per_second": 23296.0,
    "peak_vmem_wr_bw_gigabytes_per_second": 16128.0,
    "has_megacore": 0,
    "has_merged_vmem": 1,
}
# Category, scope, opcode, microseconds, flops and bytes of the ops of a layer, then of the ends of a step.
_LAYER: tuple[Template, ...] = (
    ("convolution fusion", "attention/query/dot_general", "fusion", 41.0, 17_179_869_184, 41_943_040),
    ("convolution fusion", "attention/scores/dot_general", "fusion", 22.0, 8_589_934_592, 25_165_824),
    ("loop fusion", "attention/softmax/exp", "fusion", 9.0, 33_554_432, 16_777_216),
    ("data formatting", "attention/transpose", "copy", 6.0, 0, 33_554_432),
    ("non-fusion elementwise", "attention/mask/select", "select", 1.2, 4_194_304, 8_388_608),
    ("convolution fusion", "mlp/up/dot_general", "fusion", 63.0, 34_359_738_368, 67_108_864),
    ("loop fusion", "mlp/gelu/tanh", "fusion", 7.0, 67_108_864, 33_554_432),
    ("convolution fusion", "mlp/down/dot_general", "fusion", 60.0, 34_359_738_368, 67_108_864),
    ("custom-call", "attention/flash/pallas_call", "custom-call", 30.0, 8_589_934_592, 20_971_520),
    ("loop fusion", "norm/rsqrt", "fusion", 3.0, 8_388_608, 16_777_216),
)
_FIRST = ("infeed", "input/infeed", "infeed", 180.0, 0, 8_388_608)
_LAST = ("all-reduce", "gradients/psum", "all-reduce", 400.0, 16_777_216, 134_217_728)
_DISTINCT_LAYERS = 60


@dataclass(frozen=True)
class Schedule:
    """The ops of one core.

    Attributes:
        ids: Metadata id of each op.
        starts, durations: Picoseconds.
        steps: Row of the first op of each step, and the number of ops.

    """

    ids: Times
    starts: Times
    durations: Times
    steps: Times

    def spans(self) -> Iterator[tuple[int, int]]:
        """Yield start and duration of each step."""
        for first, after in zip(self.steps[:-1].tolist(), self.steps[1:].tolist(), strict=True):
            start = int(self.starts[first])
            yield start, int(self.starts[after - 1] + self.durations[after - 1]) - start


class PlaneWriter:
    """A plane whose statistics and event metadata are interned, as profilers do."""

    def __init__(self, number: int, name: str) -> None:
        self.plane = xplane_pb2.XPlane(id=number, name=name)
        self._stats: dict[str, int] = {}

    def stat(self, name: str) -> int:
        """Return the id of a statistic."""
        if name not in self._stats:
            number = self._stats[name] = len(self._stats) + 1
            self.plane.stat_metadata[number].id = number
            self.plane.stat_metadata[number].name = name.encode()
        return self._stats[name]

    def set_stats(self, owner: Owner, **stats: Value) -> None:
        """Add statistics to a plane, to an event or to its metadata."""
        for name, value in stats.items():
            stat = owner.stats.add(metadata_id=self.stat(name))
            if isinstance(value, str):
                stat.str_value = value.encode()
            elif isinstance(value, bytes):
                stat.bytes_value = value
            elif isinstance(value, float):
                stat.double_value = value
            elif name in _UNSIGNED:
                stat.uint64_value = value
            else:
                stat.int64_value = value

    def metadata(self, name: str, display_name: str = "", **stats: Value) -> int:
        """Add an entry of event metadata and return its id."""
        number = len(self.plane.event_metadata) + 1
        entry = self.plane.event_metadata[number]
        entry.id, entry.name, entry.display_name = number, name.encode(), display_name.encode()
        self.set_stats(entry, **stats)
        return number

    def event(self, line: xplane_pb2.XLine, metadata: int, start: int, duration: int, **stats: Value) -> None:
        """Add an event, in picoseconds from the line's start."""
        self.set_stats(line.events.add(metadata_id=metadata, offset_ps=start, duration_ps=duration), **stats)

    def space(self) -> bytes:
        """Return the plane as an XSpace; files of XSpace messages one after the other are one XSpace."""
        return xplane_pb2.XSpace(planes=[self.plane]).SerializeToString()


def write_profile(path: Path, events: int, cores: int = 4, steps: int = 20, host: int = 0) -> None:
    """Write the profile of one host.

    Args:
        path: The file to write.
        events: Number of ops on the device planes, up to rounding; steps and module runs come on top.
        cores: Number of TPU cores, one plane each.
        steps: Number of steps.
        host: The host's number; it changes times and core numbers.

    """
    ops = max(3, events // (cores * steps))
    with path.open("wb") as stream:
        for core in range(cores):
            schedule = _schedule(ops, steps, seed=host * cores + core)
            stream.write(_device_plane(schedule, core, host * cores + core))
        stream.write(_host_plane(schedule))
        stream.write(_environment(int(schedule.starts[-1])))
        stream.write(xplane_pb2.XSpace(hostnames=[f"worker-{host}"]).SerializeToString())


def _templates(ops: int) -> list[Template]:
    layers = min(_DISTINCT_LAYERS, -(-(ops - 2) // len(_LAYER)))
    layer_ops = [
        (category, f"layer_{layer}/{scope}", opcode, micros, flops, size)
        for layer in range(layers)
        for category, scope, opcode, micros, flops, size in _LAYER
    ]
    return [_FIRST, _LAST, *layer_ops]


def _schedule(ops: int, steps: int, seed: int) -> Schedule:
    """Lay out the ops of all steps: an infeed, layers over and over, an all-reduce; small gaps between them."""
    random = np.random.default_rng(seed)
    templates = _templates(ops)
    one_step = np.concatenate([[0], 2 + np.arange(ops - 2) % (len(templates) - 2), [1]])
    kinds = np.tile(one_step, steps)
    means = np.array([template[3] for template in templates]) * 1e6
    durations = (means[kinds] * random.gamma(50.0, 1 / 50.0, len(kinds))).astype(np.int64)
    gaps = random.integers(0, 200_000, len(kinds))
    gaps[::ops] += 50_000_000
    starts = 1_000_000_000 + np.cumsum(gaps + durations) - durations
    return Schedule(kinds + 1, starts, durations, np.arange(steps + 1) * ops)


def _device_plane(schedule: Schedule, core: int, global_core: int) -> bytes:
    writer = PlaneWriter(2 + 8 * core, f"/device:TPU:{core}")
    details = xplane_pb2.CoreDetails(
        device_ordinal=core, local_chip_id=core, global_chip_id=global_core, global_core_id=global_core
    )
    writer.set_stats(writer.plane, core_details=details.SerializeToString(), **_PLANE_STATS)
    for number, template in enumerate(_templates(int(schedule.steps[1]))):
        _add_op(writer, number, template)
    steps = writer.plane.lines.add(id=1, name="Steps")
    modules = writer.plane.lines.add(id=2, name="XLA Modules")
    module = writer.metadata(f"jit_train_step({_PROGRAM})")
    for step, (start, duration) in enumerate(schedule.spans()):
        writer.event(steps, writer.metadata(str(step)), start, duration, group_id=step)
        writer.event(modules, module, start, duration, run_id=step + 1, replica_id=0, queue_id=0, core_type=0)
    _add_op_events(writer, schedule)
    return writer.space()


def _add_op(writer: PlaneWriter, number: int, template: Template) -> None:
    category, scope, opcode, _, flops, size = template
    name = f"{opcode}.{number}"
    shape = f"bf16[{8 + number % 7},1024,{128 * (1 + number % 5)}]{{2,1,0:T(8,128)(2,1)}}"
    breakdown = xplane_pb2.MemoryAccessBreakdown()
    breakdown.memory_accessed.add(operation_type=1, memory_space=1, bytes_accessed=size * 3 // 4)
    breakdown.memory_accessed.add(operation_type=2, memory_space=1, bytes_accessed=size - size * 3 // 4)
    writer.metadata(
        f"%{name} = {shape} {opcode}({shape} %param.{number}, {shape} %input.{number}), calls=%computation.{number}",
        name,
        hlo_category=category,
        program_id=_PROGRAM,
        symbol_id=number + 1,
        flops=flops,
        model_flops=flops,
        bytes_accessed=size,
        memory_access_breakdown=breakdown.SerializeToString(),
        shape_with_layout=shape,
        source=f"model/layers.py:{100 + number}",
        tf_op=f"jit(train_step)/jit(main)/{scope}:",
    )


def _add_op_events(writer: PlaneWriter, schedule: Schedule) -> None:
    line = writer.plane.lines.add(id=3, name="XLA Ops")
    start_id, duration_id = writer.stat("device_offset_ps"), writer.stat("device_duration_ps")
    columns = (schedule.ids.tolist(), schedule.starts.tolist(), schedule.durations.tolist())
    for metadata, start, duration in zip(*columns, strict=True):
        event = line.events.add(metadata_id=metadata, offset_ps=start, duration_ps=duration)
        event.stats.add(metadata_id=start_id, uint64_value=start - _CLOCK_SKEW_PS)
        event.stats.add(metadata_id=duration_id, uint64_value=duration)


def _host_plane(schedule: Schedule) -> bytes:
    """The training loop's thread: an annotation a step with the wait for its batch and the dispatch inside it."""
    writer = PlaneWriter(701, "/host:CPU")
    train, wait, dispatch = (writer.metadata(name) for name in ("train", "next_batch", "PjitFunction(train_step)"))
    line = writer.plane.lines.add(id=4_211, name="python", timestamp_ns=1_000)
    for step, (start, duration) in enumerate(schedule.spans()):
        begin = start - 40_000_000
        writer.event(line, train, begin, duration + 30_000_000, step_num=step, _r=1)
        writer.event(line, wait, begin + 1_000_000, 20_000_000)
        writer.event(line, dispatch, begin + 25_000_000, 10_000_000)
    return writer.space()


def _environment(length_ps: int) -> bytes:
    writer = PlaneWriter(0, "Task Environment")
    stop = _START_NS + length_ps // 1000 + 1_000_000
    writer.set_stats(writer.plane, profile_start_time=_START_NS, profile_stop_time=stop)
    return writer.space()


def main() -> None:
    """Write a profile from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("path", type=Path)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--cores", type=int, default=4)
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()
    write_profile(args.path, args.events, args.cores, args.steps)


if __name__ == "__main__":
    main()
