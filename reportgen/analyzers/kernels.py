"""GPU kernels: the kernel table, use of tensor or matrix cores, element types, and what no op owns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import msgspec
import numpy as np
import pandas as pd

from reportgen.analyzers.base import Context, Result, SectionId
from reportgen.analyzers.tables import table_of, unique_slugs
from reportgen.document import Block, Column, Heading, Metric, Table, TableBlock, Tiles
from reportgen.profile.gpu import GpuRuns, Kernel
from reportgen.profile.intervals import sum_by
from reportgen.profile.kernels import Dimensions
from reportgen.profile.ops import NO_OWNER, OpInfo
from reportgen.profile.view import HostView
from reportgen.units import PS_PER_SECOND, percent, seconds

_SHOWN_ROWS = 100
# Kernels of a host that are kept for the merge, by time.
_MOST_ROWS = 2000
_MUCH_UNATTRIBUTED = 0.05
_NAMED_KERNELS = 3
_KEPT_NAMES = 100
# Element classes of 16 bits or fewer, which run on matrix units at least twice as fast as f32.
NARROW = frozenset({"bf16", "fp16", "fp8", "fp4", "int8", "int4"})

_KEY = [
    "kernel", "program", "op", "framework_op", "grid", "block", "registers", "static_shared", "dynamic_shared",
    "shared", "occupancy", "matrix_unit", "element",
]  # fmt: skip


@dataclass(frozen=True)
class KernelTotals:
    """Summed time of kernels and copies in picoseconds.

    Attributes:
        kernels: All kernels, without copies and fills.
        copies: Copies and fills.
        matrix, matrix_unknown: Kernels on tensor or matrix cores, and those of which nothing tells.
        elements: Kernels by the class of their elements; "" for unknown.
        unowned: Kernels that neither an HLO op nor a framework op owns.
        in_graph: Those of them that ran inside command buffers.
        unowned_names: The longest of them by name.

    """

    kernels: int = 0
    copies: int = 0
    matrix: int = 0
    matrix_unknown: int = 0
    elements: Counter[str] = field(default_factory=Counter)
    unowned: int = 0
    in_graph: int = 0
    unowned_names: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: KernelTotals) -> KernelTotals:
        return KernelTotals(
            self.kernels + other.kernels,
            self.copies + other.copies,
            self.matrix + other.matrix,
            self.matrix_unknown + other.matrix_unknown,
            self.elements + other.elements,
            self.unowned + other.unowned,
            self.in_graph + other.in_graph,
            self.unowned_names + other.unowned_names,
        )


@dataclass(frozen=True)
class KernelPart:
    """Kernels of one host: the `_MOST_ROWS` longest, how many there were, and the totals of all."""

    table: pd.DataFrame
    rows: int
    totals: KernelTotals


@dataclass(frozen=True)
class KernelFacts:
    """Kernels of all hosts.

    Attributes:
        kernels: One row a kernel as one op launched it, by time: kernel, program, op, framework_op, grid, block,
            registers, static_shared, dynamic_shared, shared (bytes), occupancy (fraction), matrix_unit ("yes", "no",
            "unknown"), element ("" for unknown), occurrences, time_ps, min_ps, max_ps.
        kernel_time, copy_time: Seconds, summed over streams.
        matrix_fraction: Share of the kernels' time on tensor or matrix cores; None without kernels.
        narrow_fraction: Share of the kernels' time with elements of 16 bits or fewer; None without kernels.
        unattributed_fraction: Share of all device time in kernels that no op owns; None without device time.
        element_times: Seconds of kernels by the class of their elements; "" for unknown.
        matrix_unknown_time: Seconds of kernels of which nothing tells whether they use tensor or matrix cores.

    """

    kernels: pd.DataFrame
    kernel_time: float
    copy_time: float
    matrix_fraction: float | None
    narrow_fraction: float | None
    unattributed_fraction: float | None
    element_times: dict[str, float]
    matrix_unknown_time: float


class KernelAnalyzer:
    """Kernels of GPUs; nothing on TPU and CPU."""

    id: ClassVar[str] = "kernels"
    title: ClassVar[str] = "GPU kernels"
    section: ClassVar[SectionId] = "ops"

    def host(self, view: HostView) -> KernelPart | None:
        """Return the kernels of one host's GPUs; None where it has none that ran anything."""
        gpus = [core.runs for core in view.active_cores if isinstance(core.runs, GpuRuns)]
        if not gpus:
            return None
        tables, totals = [kernel_rows(runs) for runs in gpus], KernelTotals()
        for runs in gpus:
            totals += kernel_totals(runs)
        table = merge_kernels(tables)
        return KernelPart(table.head(_MOST_ROWS), len(table), totals)

    def merge(self, parts: Sequence[KernelPart], context: Context) -> Result:  # noqa: ARG002
        """Return the kernels of all hosts."""
        table = merge_kernels([part.table for part in parts])
        rows = max(len(table), *(part.rows for part in parts))
        totals = sum((part.totals for part in parts), KernelTotals())
        facts = _facts(table, totals)
        return Result(
            metrics=_metrics(facts),
            tables={"kernels": _table(table, rows, totals.kernels + totals.copies)},
            blocks=_blocks(),
            warnings=_warnings(totals, facts),
            facts=facts,
        )


def kernel_rows(runs: GpuRuns) -> pd.DataFrame:
    """Return the kernels of one GPU without its copies, summed over their runs; columns as in `KernelFacts.kernels`."""
    count = len(runs.kernels)
    shortest, longest = np.full(count, np.iinfo(np.int64).max), np.zeros(count, np.int64)
    np.minimum.at(shortest, runs.kernel_rows, runs.durations)
    np.maximum.at(longest, runs.kernel_rows, runs.durations)
    keys = [_key(kernel, runs.infos[kernel.op]) for kernel in runs.kernels]
    table = pd.DataFrame(keys, columns=_KEY).astype({name: "Int64" for name in _KEY if name in _WHOLE})
    table["occurrences"] = sum_by(runs.kernel_rows, runs.occurrences, count)
    table["time_ps"] = sum_by(runs.kernel_rows, runs.durations, count)
    table["min_ps"], table["max_ps"] = shortest, longest
    # What AMD's runtime copies with is a kernel too: it has launch parameters.
    kept = [kernel.copied is None or kernel.launch.grid is not None for kernel in runs.kernels]
    return table[np.array(kept, dtype=bool)]


_WHOLE = ("registers", "static_shared", "dynamic_shared", "shared")
_ANSWERS = {True: "yes", False: "no", None: "unknown"}


def _key(kernel: Kernel, info: OpInfo) -> tuple[str | int | float | None, ...]:
    launch = kernel.launch
    return (
        kernel.name, f"{info.module}({info.program})" if info.module else "",
        kernel.hlo_op, info.framework_op.removesuffix(":"), _dimensions(launch.grid), _dimensions(launch.block),
        launch.registers, launch.static_shared, launch.dynamic_shared, launch.shared, launch.occupancy,
        _ANSWERS[kernel.matrix_unit], kernel.element or "",
    )  # fmt: skip


def _dimensions(sizes: Dimensions | None) -> str | None:
    return ",".join(map(str, sizes)) if sizes else None


def merge_kernels(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Return the kernels of several GPUs or hosts, those that agree in all that is known of them summed; by time."""
    present = [table for table in tables if len(table)]
    if not present:
        return pd.DataFrame(columns=[*_KEY, "occurrences", "time_ps", "min_ps", "max_ps"])
    groups = pd.concat(present, ignore_index=True).groupby(_KEY, sort=False, dropna=False)
    merged = groups.agg(
        occurrences=("occurrences", "sum"),
        time_ps=("time_ps", "sum"),
        min_ps=("min_ps", "min"),
        max_ps=("max_ps", "max"),
    )
    order = ["time_ps", "kernel", "program", "op", "grid", "block"]
    return merged.reset_index().sort_values(order, ascending=[False, *[True] * 5], kind="stable", ignore_index=True)


def kernel_totals(runs: GpuRuns) -> KernelTotals:
    """Return the summed times of one GPU's kernels and copies."""
    sums = sum_by(runs.kernel_rows, runs.durations, len(runs.kernels)).tolist()
    timed: list[tuple[Kernel, int]] = list(zip(runs.kernels, sums, strict=True))
    kernels = [(kernel, time) for kernel, time in timed if not kernel.copied]
    unowned = [(kernel, time) for kernel, time in kernels if runs.infos[kernel.op].category == NO_OWNER]
    elements, names = Counter[str](), Counter[str]()
    for kernel, time in kernels:
        elements[kernel.element or ""] += time
    for kernel, time in unowned:
        names[kernel.name] += time
    return KernelTotals(
        kernels=sum(time for _, time in kernels),
        copies=sum(time for kernel, time in timed if kernel.copied),
        matrix=sum(time for kernel, time in kernels if kernel.matrix_unit),
        matrix_unknown=sum(time for kernel, time in kernels if kernel.matrix_unit is None),
        elements=elements,
        unowned=sum(time for _, time in unowned),
        in_graph=sum(time for kernel, time in unowned if kernel.in_graph),
        unowned_names=Counter(dict(names.most_common(_KEPT_NAMES))),
    )


def _facts(table: pd.DataFrame, totals: KernelTotals) -> KernelFacts:
    narrow = sum(time for element, time in totals.elements.items() if element in NARROW)
    return KernelFacts(
        kernels=table,
        kernel_time=totals.kernels / PS_PER_SECOND,
        copy_time=totals.copies / PS_PER_SECOND,
        matrix_fraction=_share(totals.matrix, totals.kernels),
        narrow_fraction=_share(narrow, totals.kernels),
        unattributed_fraction=_share(totals.unowned, totals.kernels + totals.copies),
        element_times={element: time / PS_PER_SECOND for element, time in sorted(totals.elements.items())},
        matrix_unknown_time=totals.matrix_unknown / PS_PER_SECOND,
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


_NO_KERNELS = "The profile holds no kernel: was the device tracer on, and may the user read the GPU's counters?"


def _metrics(facts: KernelFacts) -> dict[str, Metric]:
    streams = f"{seconds(facts.kernel_time)} of kernels and {seconds(facts.copy_time)} of copies on all streams"
    unknown = facts.element_times.get("", 0.0)
    return {
        "tensor_core_time_fraction": Metric(
            title="Time on tensor cores",
            value=facts.matrix_fraction,
            unit="fraction",
            better="higher",
            basis="heuristic",
            definition="Share of the kernels' summed time in kernels that use tensor cores (NVIDIA) or matrix cores "
            "(AMD), by the names that libraries give their kernels and by the HLO instruction that launched them.",
            source=f"{streams}; {seconds(facts.matrix_unknown_time)} of kernels do not tell and count as not",
            reason=None if facts.matrix_fraction is not None else _NO_KERNELS,
        ),
        "device_16bit_time_fraction": Metric(
            title="Time in 16 bits or fewer",
            value=facts.narrow_fraction,
            unit="fraction",
            better="higher",
            basis="derived",
            definition="Share of the kernels' summed time in kernels that compute with bf16, fp16, fp8, fp4, int8 or "
            "int4, by the HLO instruction's operands, else by the framework's shapes, else by the kernel's name.",
            source=f"{streams}; {seconds(unknown)} of kernels are of unknown type and count as not",
            reason=None if facts.narrow_fraction is not None else _NO_KERNELS,
        ),
        "unattributed_device_time": Metric(
            title="Device time without an owner",
            value=facts.unattributed_fraction,
            unit="fraction",
            better="lower",
            definition="Share of the summed time of all kernels and copies in kernels that neither an HLO op nor a "
            "framework op owns. Copies count as copies.",
            source=streams,
            reason=None if facts.unattributed_fraction is not None else _NO_KERNELS,
        ),
    }


_COLUMNS = (
    Column(name="kernel", title="Kernel", display="code"),
    Column(name="op", title="HLO op", display="code", definition="The HLO op that launched it."),
    Column(name="program", title="Program", display="code"),
    Column(name="framework_op", title="Framework op", display="code"),
    Column(name="occurrences", title="Count", display="number", unit="count"),
    Column(name="total", title="Total", display="number", unit="seconds", definition="Summed over GPUs and streams."),
    Column(name="average", title="Average", display="number", unit="seconds"),
    Column(name="shortest", title="Shortest", display="number", unit="seconds"),
    Column(name="longest", title="Longest", display="number", unit="seconds"),
    Column(
        name="share",
        title="Share",
        display="bar",
        unit="fraction",
        definition="Of the summed time of all kernels and copies.",
    ),
    Column(name="element", title="Type", definition="Type of the elements that it computes with."),
    Column(name="matrix_unit", title="Tensor cores", definition="Whether it uses tensor or matrix cores."),
    Column(name="grid", title="Grid", definition="Blocks in x, y and z."),
    Column(name="block", title="Block", definition="Threads of a block in x, y and z."),
    Column(name="registers", title="Registers", display="number", unit="count", definition="Registers a thread."),
    Column(name="static_shared", title="Static shared", display="number", unit="bytes"),
    Column(name="dynamic_shared", title="Dynamic shared", display="number", unit="bytes"),
    Column(
        name="shared",
        title="Shared memory",
        display="number",
        unit="bytes",
        definition="Static and dynamic shared memory a block, also where the profile does not tell them apart.",
    ),
    Column(name="occupancy", title="Occupancy", display="number", unit="fraction", definition="Theoretical occupancy."),
)


def _table(kernels: pd.DataFrame, rows: int, device: int) -> Table:
    """The longest kernels; `rows` is the number of all, `device` the summed device time in picoseconds."""
    shown = kernels.head(_SHOWN_ROWS)
    shown = shown.assign(
        total=shown["time_ps"] / PS_PER_SECOND,
        average=shown["time_ps"] / PS_PER_SECOND / shown["occurrences"],
        shortest=shown["min_ps"] / PS_PER_SECOND,
        longest=shown["max_ps"] / PS_PER_SECOND,
        share=shown["time_ps"] / max(1, device),
        element=shown["element"].replace("", None),
    )
    table = table_of(
        shown,
        "GPU kernels",
        _COLUMNS,
        row_ids=unique_slugs("kernel", shown["kernel"]),
        note="One row a kernel as one op launched it with one grid, block, register count and shared memory. "
        "An empty cell was not captured. The type and the use of tensor cores are told by the HLO instruction and by "
        "the names that libraries give their kernels.",
    )
    return msgspec.structs.replace(table, total_rows=rows if rows > _SHOWN_ROWS else None)


def _blocks() -> tuple[Block, ...]:
    metrics = ("tensor_core_time_fraction", "device_16bit_time_fraction", "unattributed_device_time")
    return (Heading("GPU kernels", "kernels"), Tiles(metrics), TableBlock("kernels"))


def _warnings(totals: KernelTotals, facts: KernelFacts) -> tuple[str, ...]:
    """Say where device time has no owner, since it is missing from all that is told by op."""
    fraction = facts.unattributed_fraction or 0.0
    if fraction <= _MUCH_UNATTRIBUTED:
        return ()
    names = [name for name, _ in sorted(totals.unowned_names.items(), key=lambda item: (-item[1], item[0]))]
    shown = ", ".join(f"{name[:60]}…" if len(name) > 60 else name for name in names[:_NAMED_KERNELS])
    text = (
        f"{percent(fraction)} of the device time is in kernels that no HLO op owns, from libraries or command buffers: "
        f"{shown}. It counts as device time and has no FLOPs."
    )
    if totals.in_graph:
        text += (
            f" {percent(totals.in_graph / (totals.kernels + totals.copies))} ran inside command buffers (CUDA graphs); "
            "capture with XLA_FLAGS=--xla_gpu_enable_command_buffer= to see their ops."
        )
    return (text,)
