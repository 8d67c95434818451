"""XLA op profile: where device time goes, by op, category, program and framework scope, and how well it is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from reportgen.analyzers.base import Context, Result, SectionId
from reportgen.analyzers.classes import CONTAINERS
from reportgen.analyzers.op_cards import OpDetail, category_cards, op_cards, op_details, op_ids
from reportgen.analyzers.op_charts import op_charts
from reportgen.analyzers.op_rates import with_rates
from reportgen.analyzers.op_tables import op_blocks, op_tables
from reportgen.document import Metric
from reportgen.profile.devices import BY_USER, Peak, Peaks
from reportgen.profile.ops import merge_ops, op_table
from reportgen.profile.view import Core, CoreId, HostView
from reportgen.units import PS_PER_SECOND, si

# Ops of one program and name whose instructions are looked up in the HLO for cards and layouts, by self time.
_DETAILED_OPS = 150


@dataclass(frozen=True)
class CoreTotal:
    """Totals of one core, in picoseconds.

    Attributes:
        total: XProf's total time on TPU: from the first to the last op or step, or the summed self times if more. On
            GPU the capture's span.
        busy: Summed self times on TPU; the union of kernels and copies on GPU; None on CPU, which is no device.
        peaks: What the core can do.

    """

    core: CoreId
    total: int
    busy: int
    self_time: int
    flops: float
    hbm_bytes: float
    peaks: Peaks


@dataclass(frozen=True)
class OpPart:
    """Ops of one host: the summed table, the totals of its active cores and details of its largest ops."""

    table: pd.DataFrame
    cores: tuple[CoreTotal, ...]
    details: dict[tuple[int, str, str], OpDetail]
    program_names: dict[int, str]


@dataclass(frozen=True)
class OpFacts:
    """The op profile of all hosts.

    Attributes:
        ops: One row an op: the columns of `OP_COLUMNS`, sums over all cores, and the rates of
            `with_rates`; by self time.
        cores: Totals of each active core.
        details: HLO details of the largest ops, by program, module and name.
        device: "TPU", "GPU" or "CPU".
        total, busy: Seconds, summed over cores; busy counts each instant of a core once.
        self_time: Seconds of all ops' self times.
        peaks: Peaks of the first core; None on CPU.

    """

    ops: pd.DataFrame
    cores: tuple[CoreTotal, ...]
    details: dict[tuple[int, str, str], OpDetail]
    device: str
    total: float
    busy: float
    self_time: float
    peaks: Peaks | None

    @property
    def idle(self) -> float:
        """Seconds of core time in which no op ran."""
        return max(0.0, self.total - self.busy)


class OpProfileAnalyzer:
    """Time, FLOPs and bytes of every XLA op."""

    id: ClassVar[str] = "op-profile"
    title: ClassVar[str] = "Op profile"
    section: ClassVar[SectionId] = "ops"

    def host(self, view: HostView) -> OpPart | None:
        """Return the ops of one host."""
        cores = view.active_cores
        if not cores:
            return None
        tables = [op_table(core.runs) for core in cores]
        totals = [_core_total(core, table) for core, table in zip(cores, tables, strict=True)]
        table = merge_ops(tables)
        largest = table.nlargest(_DETAILED_OPS, "self_ps")
        return OpPart(table, tuple(totals), op_details(view, largest), dict(view.modules.labels))

    def merge(self, parts: Sequence[OpPart], context: Context) -> Result:
        """Return the op profile over all hosts."""
        facts = _facts(parts)
        steps = context.facts("steps")
        step_count = len(steps.steps) if steps is not None else 0
        tables, charts = op_tables(facts, step_count), op_charts(facts)
        cards = op_cards(facts.ops, facts.details) | category_cards(tables["op_categories"])
        return Result(
            metrics=_metrics(facts),
            tables=tables,
            charts=charts,
            cards=cards,
            blocks=op_blocks(facts, charts),
            warnings=_warnings(facts),
            facts=facts,
        )


def _core_total(core: Core, table: pd.DataFrame) -> CoreTotal:
    runs = core.runs
    self_time = int(table["self_ps"].sum())
    start, end = runs.span
    if core.id.device == "TPU":
        steps = core.steps
        if len(steps) and steps.on_device_clock:
            start, end = min(start, int(steps.starts.min())), max(end, int(steps.ends.max()))
        busy, total = self_time, max(self_time, end - start)
    else:
        busy = runs.busy
        total = max(busy, _capture_span(core) or end - start)
    counted = table[~table["category"].isin(list(CONTAINERS))]
    return CoreTotal(
        core=core.id,
        total=total,
        busy=busy,
        self_time=self_time,
        flops=float(counted["flops"].sum()),
        hbm_bytes=float((counted["hbm_read"] + counted["hbm_write"]).sum()),
        peaks=core.peaks,
    )


def _capture_span(core: Core) -> int | None:
    profile = core.view.profile
    if profile.start_ns is None or profile.stop_ns is None or profile.stop_ns <= profile.start_ns:
        return None
    return (profile.stop_ns - profile.start_ns) * 1000


def _facts(parts: Sequence[OpPart]) -> OpFacts:
    cores = tuple(core for part in parts for core in part.cores)
    names: dict[int, str] = {}
    for part in reversed(parts):
        names |= part.program_names
    table = merge_ops([part.table for part in parts])
    table["_module_key"] = table["module"]
    table["module"] = [
        names.get(program, module) for program, module in zip(table["program"], table["module"], strict=True)
    ]
    details: dict[tuple[int, str, str], OpDetail] = {}
    for part in reversed(parts):
        details |= part.details
    device = cores[0].core.device
    peaks = cores[0].peaks if device != "CPU" else None
    total = sum(core.total for core in cores) / PS_PER_SECOND
    ops = _in_seconds(with_rates(table, peaks, sum(core.total for core in cores)))
    ops = ops.sort_values(["self_ps", "name"], ascending=[False, True], kind="stable").reset_index(drop=True)
    return OpFacts(
        ops=ops.assign(row_id=op_ids(ops)),
        cores=cores,
        details=details,
        device=device,
        total=total,
        busy=sum(core.busy for core in cores) / PS_PER_SECOND,
        self_time=sum(core.self_time for core in cores) / PS_PER_SECOND,
        peaks=peaks,
    )


_NO_COST = "No op of this profile carries a cost (FLOPs, bytes)."


def _metrics(facts: OpFacts) -> dict[str, Metric]:
    if facts.device == "CPU":
        return _absent_on_cpu(facts)
    source = f"{len(facts.cores)} {'cores' if facts.device == 'TPU' else 'GPUs'} with events"
    return {
        "total_device_time": Metric(
            title="Total device time", value=facts.total, unit="seconds", source=source, definition=_TOTAL[facts.device]
        ),
        "device_busy_time": Metric(
            title="Busy device time", value=facts.busy, unit="seconds", source=source, definition=_BUSY[facts.device]
        ),
        "device_idle_fraction": Metric(
            title="Device idle",
            value=facts.idle / facts.total if facts.total else None,
            unit="fraction",
            better="lower",
            definition="Share of the total device time in which no op ran.",
            source=source,
            reason=None if facts.total else "The ops have no extent in time.",
        ),
        "flops_utilization": _utilisation(
            facts,
            "flops",
            title="FLOPS utilisation",
            done=sum(core.flops for core in facts.cores),
            definition="FLOPs of all ops, normalised to the peak's type, over total device time × peak FLOP/s.",
        ),
        "hbm_bandwidth_utilization": _utilisation(
            facts,
            "hbm_bandwidth",
            title="HBM bandwidth utilisation",
            done=sum(core.hbm_bytes for core in facts.cores),
            definition="Bytes that all ops read and write in HBM over total device time × peak bandwidth.",
        ),
        "memory_capacity": capacity_metric(facts.cores[0].peaks.hbm_capacity),
    }


def _utilisation(facts: OpFacts, peak: str, *, title: str, done: float, definition: str) -> Metric:
    """Return what the ops did as a share of what the cores could have done at a peak."""
    capacity, source = _capacity(facts, peak), _peak_source(facts, peak)
    reason = source if capacity is None else None if facts.ops["flops"].notna().any() else _NO_COST
    return Metric(
        title=title,
        value=done / capacity if capacity is not None and reason is None else None,
        unit="fraction",
        better="higher",
        basis="derived",
        definition=definition,
        source=source,
        reason=reason,
    )


def capacity_metric(capacity: Peak) -> Metric:
    """Return the memory of one device, and which of the user, the profile and the catalogue gave it."""
    return Metric(
        title="Memory capacity",
        value=capacity.value,
        unit="bytes",
        definition="Main memory of one device.",
        basis="catalogue" if capacity.source.startswith("catalogue") else "measured",
        source=capacity.source,
        better="higher",
        reason=None if capacity.value else capacity.source,
    )


def _in_seconds(ops: pd.DataFrame) -> pd.DataFrame:
    """Add what people read: times in seconds, average time, bytes by memory."""
    return ops.assign(
        time_s=ops["time_ps"] / PS_PER_SECOND,
        self_s=ops["self_ps"] / PS_PER_SECOND,
        average_s=ops["time_ps"] / PS_PER_SECOND / ops["occurrences"],
        hbm_bytes=ops["hbm_read"] + ops["hbm_write"],
        onchip_bytes=ops["onchip_read"] + ops["onchip_write"],
    )


_TOTAL = {
    "TPU": "Summed over cores: from the first to the last op or step of each, idle time included.",
    "GPU": "Summed over GPUs with events: the span of the capture, in which kernels and copies are the busy part.",
}
_BUSY = {
    "TPU": "Summed self times of all ops.",
    "GPU": "Union of kernels and copies of each GPU, so that parallel streams count once.",
}


def _capacity(facts: OpFacts, peak: str) -> float | None:
    """Return what the cores could have done in their total time; None where a peak is unknown."""
    values = [getattr(core.peaks, peak).value for core in facts.cores]
    if any(value is None for value in values):
        return None
    return sum(value * core.total for value, core in zip(values, facts.cores, strict=True)) / PS_PER_SECOND or None


def _peak_source(facts: OpFacts, peak: str) -> str:
    value = getattr(facts.cores[0].peaks, peak)
    what = "FLOP/s" if peak == "flops" else "B/s"
    return f"peak {value.value:.4g} {what}: {value.source}" if value.value else f"No peak is known: {value.source}."


def _absent_on_cpu(facts: OpFacts) -> dict[str, Metric]:
    reason = "The program ran on the host's CPU: there is no device in this profile."
    titles = {
        "total_device_time": ("Total device time", "seconds"),
        "device_busy_time": ("Busy device time", "seconds"),
        "device_idle_fraction": ("Device idle", "fraction"),
        "flops_utilization": ("FLOPS utilisation", "fraction"),
        "hbm_bandwidth_utilization": ("HBM bandwidth utilisation", "fraction"),
    }
    absent = {
        name: Metric(title=title, value=None, unit=unit, definition="Of devices only.", reason=reason)
        for name, (title, unit) in titles.items()
    }
    time = Metric(
        title="XLA op time",
        value=facts.self_time,
        unit="seconds",
        definition="Summed self times of XLA ops over all host threads.",
        source="XLA ops on host threads",
    )
    return absent | {"cpu_op_time": time}


def _warnings(facts: OpFacts) -> tuple[str, ...]:
    found = []
    over = facts.ops[
        (facts.ops["flops_utilization"] > 1.1) & (facts.ops["self_ps"] > 0.01 * facts.ops["self_ps"].sum())
    ]
    if len(over):
        worst = over.iloc[0]
        found.append(
            f"{len(over)} ops seem to exceed the device's peak FLOP/s (such as {worst['name'][:80]}): their cost or "
            "the peak is wrong."
        )
    if facts.peaks is not None and (doubt := _doubtful_bandwidth(facts.peaks)):
        found.append(doubt)
    if facts.device != "CPU" and facts.peaks and facts.peaks.flops.value is None:
        found.append("The device is not in the catalogue: give its peak with --peak-flops and --hbm-bandwidth.")
    return tuple(found)


def _doubtful_bandwidth(peaks: Peaks) -> str:
    """Return a warning where the profile's memory bandwidth is far from the device's data sheet; "" elsewhere."""
    used, listed = peaks.hbm_bandwidth, peaks.listed_hbm_bandwidth
    if not used.value or not listed or used.source == BY_USER or 0.75 < used.value / listed < 1.33:
        return ""
    return (
        f"The profile gives {si(used.value, 'B/s')} of memory bandwidth, the device's data sheet {si(listed, 'B/s')}. "
        "Utilisations use the profile's figure; --hbm-bandwidth overrides it."
    )
