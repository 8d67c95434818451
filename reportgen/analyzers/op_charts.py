"""Charts of the op profile: self time by category, and a roofline for each memory whose peak is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from reportgen.analyzers.classes import CONTAINERS, role_of
from reportgen.analyzers.op_tables import OP_SUMS, rated
from reportgen.analyzers.tables import slug
from reportgen.document import Axis, Chart, Guide, Role, Series
from reportgen.units import PS_PER_SECOND, percent

if TYPE_CHECKING:
    from reportgen.analyzers.op_profile import OpFacts

_ROOFLINE_OPS = 150
_PROGRAMS = 10
_BOUND_ROLES: dict[str, Role] = {"compute": "compute", "HBM": "other"}


class _Memory(NamedTuple):
    """A memory of the roofline: its name, the columns with the bytes that count, and its peak in bytes per second."""

    name: str
    columns: tuple[str, ...]
    bandwidth: float


def op_charts(facts: OpFacts) -> dict[str, Chart]:
    """Return the charts of the op profile: categories, and a roofline for each memory with a peak and traffic."""
    charts = {"op_categories": _category_chart(facts)}
    for key, memory in _memories(facts).items():
        if chart := _roofline_chart(facts, memory):
            charts[key] = chart
    return charts


def _memories(facts: OpFacts) -> dict[str, _Memory]:
    peaks = facts.peaks
    if peaks is None or not peaks.flops.value:
        return {}
    found = {
        "roofline": _Memory("HBM", ("hbm_read", "hbm_write"), peaks.hbm_bandwidth.value or 0.0),
        "roofline_onchip_read": _Memory("on-chip memory read", ("onchip_read",), peaks.onchip_read.value or 0.0),
        "roofline_onchip_write": _Memory("on-chip memory written", ("onchip_write",), peaks.onchip_write.value or 0.0),
    }
    return {key: memory for key, memory in found.items() if memory.bandwidth}


def _category_chart(facts: OpFacts) -> Chart:
    sums = facts.ops.groupby("category", sort=False)["self_ps"].sum().sort_values(ascending=False) / PS_PER_SECOND
    entries = [(str(name), float(value)) for name, value in sums.head(12).items()]
    if (rest := float(sums.iloc[12:].sum())) > 0:
        entries.append(("other categories", rest))
    if facts.device != "CPU" and facts.idle > 0:
        entries.append(("IDLE", facts.idle))
    whole = sum(value for _, value in entries) or 1.0
    name, value = max(entries, key=lambda entry: entry[1])
    return Chart(
        title=f"{name} takes {percent(value / whole)} of the {'device' if facts.device != 'CPU' else 'op'} time",
        kind="bars",
        alt="Self time by category: "
        + ", ".join(f"{label} {percent(time / whole)}" for label, time in entries[:6])
        + ".",
        x=Axis(label="Self time, summed over cores", unit="seconds"),
        y=Axis(label=""),
        categories=tuple(label for label, _ in entries),
        series=tuple(
            Series(
                name=label,
                role=role_of(label),
                x=(float(number),),
                y=(time,),
                labels=(f"{label}: {percent(time / whole)}",),
                row_ids=(f"op-category-{slug(label)}",),
            )
            for number, (label, time) in enumerate(entries)
        ),
        table="op_categories",
    )


def _with_intensity(table: pd.DataFrame, memory: _Memory) -> pd.DataFrame:
    """Return the rows that have FLOPs and traffic to a memory, with FLOPs per byte of it."""
    traffic = table[list(memory.columns)].sum(axis=1)
    found = table.assign(memory_intensity=table["flops"] / traffic.where(traffic > 0))
    return found[(found["memory_intensity"] > 0) & (found["flop_rate"] > 0)]


def _roofline_chart(facts: OpFacts, memory: _Memory) -> Chart | None:
    assert facts.peaks is not None  # noqa: S101 - only memories with peaks come here
    ops = _with_intensity(facts.ops.head(_ROOFLINE_OPS), memory)
    if not len(ops):
        return None
    flops = facts.peaks.flops.value or 0.0
    ridge = flops / memory.bandwidth
    xs = ops["memory_intensity"]
    below = xs < ridge
    share = float(ops.loc[below, "self_ps"].sum() / facts.ops["self_ps"].sum())
    low, high = min(float(xs.min()), ridge / 10), max(float(xs.max()), ridge * 10)
    slope = ((low, low * memory.bandwidth), (ridge, flops))
    return Chart(
        title=f"Ops left of the ridge, limited by {memory.name}, take {percent(share)} of the op time",
        kind="scatter",
        alt=f"Roofline of the {len(ops)} largest ops with a cost: ridge at {ridge:.0f} FLOP per byte of {memory.name}, "
        f"{int(below.sum())} ops lie left of it.",
        x=Axis(label=f"Operational intensity, FLOP per byte of {memory.name}", unit="flops/byte", log=True),
        y=Axis(label="FLOP rate of one core", unit="flops/s", log=True),
        series=(
            *(_op_marks(str(bound), group) for bound, group in ops.groupby("bound_by", sort=True)),
            _program_marks(facts, memory),
        ),
        guides=(
            Guide(label=f"{memory.name} bandwidth", axis="roof", points=slope),
            Guide(label="peak FLOP/s", axis="roof", points=((ridge, flops), (high, flops))),
        ),
        table="hlo_ops",
    )


def _op_marks(bound: str, ops: pd.DataFrame) -> Series:
    return Series(
        name=bound,
        role=_BOUND_ROLES.get(bound, "neutral"),
        x=tuple(map(float, ops["memory_intensity"])),
        y=tuple(map(float, ops["flop_rate"])),
        labels=tuple(f"{name} ({percent(part)})" for name, part in zip(ops["name"], ops["self_share"], strict=True)),
        row_ids=tuple(ops["row_id"]),
    )


def _program_marks(facts: OpFacts, memory: _Memory) -> Series:
    """Return the programs as marks of the roofline, all their ops summed."""
    counted = facts.ops[~facts.ops["category"].isin(list(CONTAINERS))]
    sums = counted.groupby("module", sort=False)[list(OP_SUMS)].sum(min_count=1).reset_index()
    programs = _with_intensity(rated(facts, sums), memory).head(_PROGRAMS)
    return Series(
        name="whole programs",
        role="accent",
        x=tuple(map(float, programs["memory_intensity"])),
        y=tuple(map(float, programs["flop_rate"])),
        labels=tuple(f"program {name}" for name in programs["module"]),
    )
