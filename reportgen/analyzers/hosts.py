"""Hosts and cores side by side: step times, idle time, utilisations, duty cycle; the slow ones named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reportgen.analyzers.base import Context, Result, SectionId
from reportgen.analyzers.classes import HOST_TRANSFER, INPUT, OUTPUT
from reportgen.analyzers.op_profile import CoreTotal, OpFacts
from reportgen.analyzers.steps import StepFacts
from reportgen.analyzers.tables import table_of, unique_slugs
from reportgen.document import Block, Column, Metric, Notice, Table, TableBlock, Text
from reportgen.profile.intervals import union
from reportgen.profile.steps import module_runs
from reportgen.profile.view import Core, HostView
from reportgen.units import PS_PER_SECOND, percent, seconds

# XProf's limit for a straggler among hosts: modified z score, with at least three hosts and a floor of the deviation.
_STRAGGLER_Z = 3.5
_LEAST_HOSTS = 3
_FLOOR = 0.005
_SHARES = ("idle_share", "flops_utilization", "hbm_utilization")
_OFF_DUTY = INPUT | OUTPUT | HOST_TRANSFER | {"async-done", "megacore fusion"}


@dataclass(frozen=True)
class ChipDuty:
    """Duty of one chip in picoseconds: time in which one of its cores worked, and the span of its ops and modules."""

    host: str
    chip: int
    busy: int
    span: int


@dataclass(frozen=True)
class HostPart:
    """Duty of one host's chips, and all its cores, idle ones included."""

    duty: tuple[ChipDuty, ...]
    cores: tuple[str, ...]
    active: tuple[str, ...]


@dataclass(frozen=True)
class HostFacts:
    """Hosts and cores.

    Attributes:
        by_host: One row a host: host, cores, step_time (mean over its steps of its longest core, seconds), slowness
            (over the median of the hosts), score (modified z score), straggler.
        by_core: One row an active core: host, core, step_time, busy_share, and further columns of the table `cores`.
        idle_cores: Labels of cores with a plane on which nothing ran.

    """

    by_host: pd.DataFrame
    by_core: pd.DataFrame
    idle_cores: tuple[str, ...]


class HostsAnalyzer:
    """Cores and hosts compared."""

    id: ClassVar[str] = "hosts"
    title: ClassVar[str] = "Hosts and cores"
    section: ClassVar[SectionId] = "hosts"

    def host(self, view: HostView) -> HostPart | None:
        """Return the duty of one host's chips."""
        if not view.cores:
            return None
        chips: dict[int, list[Core]] = {}
        for core in view.active_cores:
            if core.id.device == "TPU":
                chips.setdefault(core.id.chip, []).append(core)
        duty = tuple(_duty(view.profile.name, chip, cores) for chip, cores in sorted(chips.items()))
        return HostPart(
            duty, tuple(core.id.label for core in view.cores), tuple(core.id.label for core in view.active_cores)
        )

    def merge(self, parts: Sequence[HostPart], context: Context) -> Result:
        """Return cores and hosts side by side."""
        ops: OpFacts | None = context.facts("op-profile")
        steps: StepFacts | None = context.facts("steps")
        duty = [chip for part in parts for chip in part.duty]
        active = {core for part in parts for core in part.active}
        idle = tuple(core for part in parts for core in part.cores if core not in active)
        cores = _core_frame(ops.cores if ops else (), steps, duty)
        hosts = _with_utilizations(_host_frame(steps), cores)
        facts = HostFacts(hosts, cores, idle)
        tables = {"cores": _core_table(cores)} | ({"hosts": _host_table(hosts)} if len(hosts) > 1 else {})
        return Result(
            metrics=_metrics(duty),
            tables=tables,
            blocks=_blocks(facts),
            warnings=_warnings(facts),
            facts=facts,
        )


def _duty(host: str, chip: int, cores: Sequence[Core]) -> ChipDuty:
    """Union of the cores' ops that are work, as XProf's duty cycle counts it."""
    starts, ends, spans = [], [], []
    for core in cores:
        runs = core.runs
        off = np.array([info.category in _OFF_DUTY for info in runs.infos] + [False])
        on = ~off[runs.ops]
        starts.append(runs.trace_starts[on])
        ends.append(runs.trace_starts[on] + runs.trace_durations[on])
        modules = module_runs(core.plane).events
        begins, finishes = np.append(runs.trace_starts, modules.starts), runs.trace_starts + runs.trace_durations
        spans.append((begins.min(), np.append(finishes, modules.ends).max()))
    busy = union(np.concatenate(starts), np.concatenate(ends)).total
    return ChipDuty(host, chip, busy, int(max(end for _, end in spans) - min(start for start, _ in spans)))


def _core_frame(totals: Sequence[CoreTotal], steps: StepFacts | None, duty: Sequence[ChipDuty]) -> pd.DataFrame:
    times = steps.by_core.groupby("core")["time_s"] if steps is not None else None
    means = times.mean().to_dict() if times is not None else {}
    deviations = times.std(ddof=1).to_dict() if times is not None else {}
    duties = {(chip.host, chip.chip): chip.busy / chip.span for chip in duty if chip.span}
    rows = []
    for total in totals:
        core, seconds_ = total.core, total.total / PS_PER_SECOND
        flops, bandwidth = total.peaks.flops.value, total.peaks.hbm_bandwidth.value
        on_device = core.device != "CPU"
        rows.append(
            {
                "core": core.label,
                "host": core.host,
                "chip": core.chip,
                "step_time": means.get(core.label),
                "step_stddev": deviations.get(core.label),
                "busy": total.busy / PS_PER_SECOND,
                "idle_share": 1 - total.busy / total.total if on_device and total.total else None,
                "duty": duties.get((core.host, core.chip)),
                "flops_utilization": total.flops / seconds_ / flops if on_device and flops and seconds_ else None,
                "hbm_utilization": total.hbm_bytes / seconds_ / bandwidth
                if on_device and bandwidth and seconds_
                else None,
            }
        )
    return pd.DataFrame(rows)


def _host_frame(steps: StepFacts | None) -> pd.DataFrame:
    """Step time of each host, where a core waits for the others inside collectives: its own work tells who is slow."""
    if steps is None or not len(steps.by_core):
        return pd.DataFrame()
    frame = steps.by_core.assign(own_s=steps.by_core["time_s"] - steps.by_core["collectives"])
    per_step = frame.groupby(["host", "step"])[["time_s", "own_s"]].max()
    hosts = per_step.groupby("host").mean().reset_index()
    hosts["cores"] = hosts["host"].map(frame.groupby("host")["core"].nunique())
    median = float(hosts["own_s"].median())
    hosts["slowness"] = hosts["own_s"] / median - 1 if median else 0.0
    hosts["score"] = modified_z(hosts["own_s"].to_numpy(dtype=float))
    hosts["straggler"] = (hosts["score"] > _STRAGGLER_Z) & (len(hosts) >= _LEAST_HOSTS) & (hosts["slowness"] > 0.02)
    return hosts


def _with_utilizations(hosts: pd.DataFrame, cores: pd.DataFrame) -> pd.DataFrame:
    """Add idle share and utilisations, means over each host's active cores."""
    if not len(hosts) or not len(cores):
        return hosts
    means = cores.astype(dict.fromkeys(_SHARES, float)).groupby("host")[list(_SHARES)].mean()
    return hosts.join(means, on="host")


def modified_z(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 0.6745 × (value − median) over the median absolute deviation, which is at least 0.5 % of the median."""
    median = float(np.median(values))
    deviation = max(float(np.median(np.abs(values - median))), _FLOOR * abs(median), 1e-15)
    return np.asarray(0.6745 * (values - median) / deviation)


def _metrics(duty: Sequence[ChipDuty]) -> dict[str, Metric]:
    span = sum(chip.span for chip in duty)
    return {
        "device_duty_cycle": Metric(
            title="Duty cycle",
            value=sum(chip.busy for chip in duty) / span if span else None,
            unit="fraction",
            better="higher",
            definition="Time in which a core of a chip worked (infeed, outfeed, host transfers and waits for "
            "asynchronous ops left out) over the span of its ops and modules; summed over chips.",
            source="XLA Ops lines",
            reason=None if span else "It is defined for TPU chips with ops.",
        )
    }


def _core_table(cores: pd.DataFrame) -> Table:
    columns = (
        Column(name="core", title="Core"),
        Column(name="step_time", unit="seconds", title="Step time", definition="Mean over whole steps."),
        Column(name="step_stddev", unit="seconds", title="Deviation"),
        Column(name="busy", unit="seconds", title="Busy"),
        Column(name="idle_share", unit="fraction", title="Idle", display="bar"),
        Column(name="duty", unit="fraction", title="Duty of its chip"),
        Column(name="flops_utilization", unit="fraction", title="FLOPS", display="flame"),
        Column(name="hbm_utilization", unit="fraction", title="HBM"),
    )
    if not len(cores):
        cores = pd.DataFrame(columns=[column.name for column in columns])
    return table_of(cores, "Cores", columns, row_ids=unique_slugs("core", cores["core"]), most=2048)


def _host_table(hosts: pd.DataFrame) -> Table:
    columns = (
        Column(name="host", title="Host"),
        Column(name="cores", unit="count", title="Cores"),
        Column(name="time_s", unit="seconds", title="Step time", definition="Mean of its longest core's steps."),
        Column(name="own_s", unit="seconds", title="Own work", definition="Step time without collectives."),
        Column(name="slowness", unit="fraction", title="Over the median", definition="Own work over the median host."),
        Column(name="score", title="Score", display="number", definition="Modified z score of own work."),
        Column(name="straggler", title="Straggler", display="flag"),
        Column(name="idle_share", unit="fraction", title="Idle", definition="Mean over its cores."),
        Column(name="flops_utilization", unit="fraction", title="FLOPS", display="flame"),
        Column(name="hbm_utilization", unit="fraction", title="HBM"),
    )
    ordered = hosts.reindex(columns=[*hosts.columns, *(name for name in _SHARES if name not in hosts)])
    ordered = ordered.sort_values("own_s", ascending=False, kind="stable")
    return table_of(
        ordered,
        "Hosts",
        columns,
        row_ids=unique_slugs("host", ordered["host"]),
        note="A host that waits in a collective shows the others' time; its own work tells who is slow.",
        most=2048,
    )


def _blocks(facts: HostFacts) -> tuple[Block, ...]:
    blocks: list[Block] = []
    if len(facts.by_host) > 1:
        slowest = facts.by_host.sort_values("own_s", ascending=False).iloc[0]
        blocks.append(
            Text(
                f"Slowest host: {slowest['host']}, {seconds(float(slowest['own_s']))} of own work a step, "
                f"{percent(float(slowest['slowness']))} over the median."
            )
        )
        blocks.append(TableBlock("hosts"))
    if len(facts.by_core):
        blocks.append(TableBlock("cores"))
    else:
        blocks.append(Notice("No XLA op ran on any core in this profile."))
    if facts.idle_cores:
        names = ", ".join(facts.idle_cores[:8]) + (", …" if len(facts.idle_cores) > 8 else "")
        blocks.append(Text(f"{len(facts.idle_cores)} cores have a plane but no op: {names}."))
    return tuple(blocks)


def _warnings(facts: HostFacts) -> tuple[str, ...]:
    if not facts.idle_cores:
        return ()
    total = len(facts.idle_cores) + len(facts.by_core)
    return (f"{len(facts.idle_cores)} of {total} devices are in the profile but ran no op during the capture.",)
