"""XLA ops of one core, GPU or CPU: every execution as columns, and what is known of each op.

An execution's self time is its time without the ops directly inside it, as XProf computes it. On TPU the statistics
`device_offset_ps` and `device_duration_ps` give the time on the device's clock and win over offset and duration.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from reportgen.profile.intervals import nesting_order, self_times, sum_by, union
from reportgen.profile.model import Events, Plane, Value
from reportgen.wire import xplane_pb2

OP_LINES = ("XLA Ops", "Sparse Core Ops")
NO_OWNER = "no HLO owner"
CUSTOM_CALL = "custom-call"

_HBM = 1
_READ = 1


@dataclass(frozen=True)
class OpInfo:
    """What is known of one op; numbers are of one execution.

    Attributes:
        program: Id of the program (HLO module), 0 where unknown.
        module: Name of the module where the profile gives it with the op.
        name: Instruction name; unique inside its program.
        category: HLO category.
        expression: The instruction as text, possibly long.
        framework_op: Scopes and name of the framework's op, as "jit(f)/jit(main)/add:" or "scope/MatMul:MatMul".
        source: "file:line" in the user's program; "" where unknown.
        stack: Stack of the source, a frame a line.
        shape: Result shape with layout.
        flops: Floating point operations, normalised to the bf16 peak; None where there is no cost model.
        model_flops: True count.
        bytes: Bytes accessed in all memories; None where there is no cost model.
        hbm_read, hbm_write, onchip_read, onchip_write: Bytes by memory and direction.
        deduplicated: Name of the op that this one repeats; "" for none.

    """

    program: int
    module: str
    name: str
    category: str
    expression: str = ""
    framework_op: str = ""
    source: str = ""
    stack: str = ""
    shape: str = ""
    flops: float | None = None
    model_flops: float | None = None
    bytes: float | None = None
    hbm_read: float = 0.0
    hbm_write: float = 0.0
    onchip_read: float = 0.0
    onchip_write: float = 0.0
    deduplicated: str = ""


@dataclass(frozen=True)
class OpRuns:
    """Executions of ops on one core, in nesting order.

    Attributes:
        infos: The ops.
        ops: Row in `infos` of each execution.
        starts: Picoseconds on the device's clock.
        durations: Picoseconds.
        self_times: Picoseconds without the ops inside.
        trace_starts: Picoseconds on the profile's clock, as the trace viewer shows them.
        trace_durations: Picoseconds on the profile's clock.
        occurrences: How often each one ran: 1, or more for an aggregated event.
        costs: FLOPs, model FLOPs and bytes that each execution recorded itself (custom calls on TPU), by name.
        groups: Id of the step's group that each execution recorded; -1 for none.
        executions: On GPU, where an op may launch several kernels an execution and each is a row here: how many
            executions of its op each row begins. None where each row is as many as `occurrences` says.

    """

    infos: Sequence[OpInfo]
    ops: NDArray[np.int64]
    starts: NDArray[np.int64]
    durations: NDArray[np.int64]
    self_times: NDArray[np.int64]
    trace_starts: NDArray[np.int64]
    trace_durations: NDArray[np.int64]
    occurrences: NDArray[np.int64]
    costs: Mapping[str, NDArray[np.float64]]
    groups: NDArray[np.int64]
    executions: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        """Return the number of executions."""
        return len(self.ops)

    @property
    def ends(self) -> NDArray[np.int64]:
        """Picoseconds on the device's clock."""
        return self.starts + self.durations

    @property
    def cost_counts(self) -> NDArray[np.int64]:
        """How often the FLOPs and bytes of its op count for each row."""
        return self.occurrences if self.executions is None else self.executions

    @property
    def span(self) -> tuple[int, int]:
        """Start of the first and end of the last execution; (0, 0) where there is none."""
        return (int(self.starts.min()), int(self.ends.max())) if len(self) else (0, 0)

    @property
    def busy(self) -> int:
        """Picoseconds in which at least one op ran."""
        return union(self.starts, self.ends).total


OP_COLUMNS = (
    "program", "module", "name", "category", "expression", "framework_op", "source", "stack", "shape", "deduplicated",
    "occurrences", "time_ps", "self_ps", "min_ps", "first_ps", "flops", "model_flops", "bytes", "hbm_read", "hbm_write",
    "onchip_read", "onchip_write",
)  # fmt: skip
OP_KEY = ["program", "module", "name"]
_SUMMED = ("occurrences", "time_ps", "self_ps")
_COSTS = ("flops", "model_flops", "bytes", "hbm_read", "hbm_write", "onchip_read", "onchip_write")


def op_table(runs: OpRuns) -> pd.DataFrame:
    """Return the ops of one core that ran, summed over their executions.

    Returns:
        A frame with the columns of `OP_COLUMNS`: the op, how often it ran, its time and self time in picoseconds, FLOPs
        and bytes of all executions (NaN where there is no cost model).

    """
    count = len(runs.infos)
    used = np.flatnonzero(np.bincount(runs.ops, minlength=count))
    infos = [runs.infos[row] for row in used.tolist()]
    table = pd.DataFrame(
        {field.name: [getattr(info, field.name) for info in infos] for field in fields(OpInfo)},
        columns=[field.name for field in fields(OpInfo)],
    )
    table["occurrences"] = sum_by(runs.ops, runs.occurrences, count)[used]
    table["time_ps"] = sum_by(runs.ops, runs.durations, count)[used]
    table["self_ps"] = sum_by(runs.ops, runs.self_times, count)[used]
    shortest = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(shortest, runs.ops, runs.durations)
    table["min_ps"] = shortest[used]
    first = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(first, runs.ops, runs.starts)
    table["first_ps"] = first[used]
    counts = sum_by(runs.ops, runs.cost_counts, count)[used]
    for column in _COSTS:
        table[column] = table[column].astype(float) * counts
    # A custom call's cost is recorded with each execution and may differ between them.
    custom = (table["category"] == CUSTOM_CALL).to_numpy()
    for column, values in runs.costs.items():
        own = np.bincount(runs.ops, weights=values, minlength=count)[used]
        table[column] = np.where(custom & (own > 0), own, table[column])
    return merge_ops([table])


def merge_ops(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Return the ops of several cores or hosts, those of one program and name summed."""
    present = [table for table in tables if len(table)]
    if not present:
        return pd.DataFrame({name: pd.Series(dtype=object) for name in OP_COLUMNS})
    joined = present[0] if len(present) == 1 else pd.concat(present, ignore_index=True)
    if len(present) == 1 and not joined.duplicated(OP_KEY).any():
        return joined[list(OP_COLUMNS)]
    groups = joined.groupby(OP_KEY, sort=False)
    merged = groups.first()
    for column in _SUMMED:
        merged[column] = groups[column].sum()
    for column in _COSTS:
        merged[column] = groups[column].sum(min_count=1)
    for column in ("min_ps", "first_ps"):
        merged[column] = groups[column].min()
    return merged.reset_index()[list(OP_COLUMNS)]


def tpu_op_runs(plane: Plane) -> OpRuns:
    """Return the ops of a TPU core.

    Ops without a program or symbol id are left out, as XProf leaves them out: they are no instructions of a program.

    Raises:
        WireError: An event is damaged.

    """
    stats = ("device_offset_ps", "device_duration_ps", "group_id", *_EVENT_COSTS)
    events = plane.events(plane.line_indices(*OP_LINES), stats)
    infos = [_info_of_metadata(plane, entry) for entry in plane.event_metadata]
    known = np.array([info is not None for info in infos] + [False])
    if not known[events.names].all():
        events = events.where(known[events.names])
    starts, durations = device_times(events)
    order = nesting_order(starts, durations)
    if not (order[1:] > order[:-1]).all():
        events, starts, durations = events.where(order), starts[order], durations[order]
    return OpRuns(
        infos=[info or _NO_INFO for info in infos],
        ops=events.names,
        starts=starts,
        durations=durations,
        self_times=self_times(starts, durations),
        trace_starts=events.starts,
        trace_durations=events.durations,
        occurrences=np.maximum(1, events.occurrences),
        costs={
            target: events.stats[stat].integers().astype(float)
            for stat, target in _EVENT_COSTS.items()
            if events.stats[stat].present.any()
        },
        groups=events.stats["group_id"].integers(-1),
    )


_EVENT_COSTS = {"flops": "flops", "model_flops": "model_flops", "bytes_accessed": "bytes"}
_NO_INFO = OpInfo(0, "", "", "")


def device_times(events: Events) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return starts and durations on the device's clock where both were recorded, else on the profile's.

    A duration below zero, which only a damaged profile holds, counts as none.
    """
    offset, duration = events.stats["device_offset_ps"], events.stats["device_duration_ps"]
    both = offset.present & duration.present
    if both.all():
        return offset.integers(), np.maximum(0, duration.integers())
    return (
        np.where(both, offset.integers(), events.starts),
        np.maximum(0, np.where(both, duration.integers(), events.durations)),
    )


def _info_of_metadata(plane: Plane, entry: xplane_pb2.XEventMetadata) -> OpInfo | None:
    stats = dict(plane.stat_values(entry.stats))
    program = _id(stats.get("program_id"))
    if not program or not stats.get("symbol_id"):
        return None
    name = entry.display_name.decode("utf-8", "replace") or entry.name.decode("utf-8", "replace")
    flops, size = _cost(stats, "flops"), _cost(stats, "bytes_accessed")
    breakdown = _breakdown(stats.get("memory_access_breakdown"), size or 0.0)
    return OpInfo(
        program=program,
        module="",
        name=name,
        category=str(stats.get("hlo_category", "")),
        expression=entry.name.decode("utf-8", "replace"),
        framework_op=str(stats.get("tf_op", "")),
        source=str(stats.get("source", "")),
        stack=str(stats.get("source_stack", "")),
        shape=str(stats.get("shape_with_layout", "")),
        flops=flops,
        model_flops=None if flops is None else _cost(stats, "model_flops") or flops,
        bytes=size,
        deduplicated=str(stats.get("deduplicated_name", "")),
        **breakdown,
    )


def _id(value: Value | None) -> int:
    """Return a program's id without a sign; 0 where the statistic is no whole number."""
    try:
        return 0 if value is None or isinstance(value, float) else int(value) & 0xFFFFFFFFFFFFFFFF
    except ValueError:
        return 0


def _cost(stats: Mapping[str, Value], name: str) -> float | None:
    """Return a cost of an op; None where there is none, or no number that a cost can be."""
    value = stats.get(name)
    return float(value) if isinstance(value, int | float) and 0 <= value < math.inf else None


def _breakdown(message: Value | None, total: float) -> dict[str, float]:
    """Return bytes by memory and direction; without a breakdown all bytes count as reads of HBM, as in XProf."""
    if not isinstance(message, bytes):
        return {"hbm_read": total}
    found = dict.fromkeys(("hbm_read", "hbm_write", "onchip_read", "onchip_write"), 0.0)
    try:
        parts = xplane_pb2.MemoryAccessBreakdown.FromString(message).memory_accessed
    except DecodeError:
        return {"hbm_read": total}
    for part in parts:
        memory = "hbm" if part.memory_space == _HBM else "onchip"
        found[f"{memory}_{'read' if part.operation_type == _READ else 'write'}"] += part.bytes_accessed
    return found
