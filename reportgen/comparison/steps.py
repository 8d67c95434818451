"""What a step's time goes to, of one report: its ops, idle time, and the time to the next step.

The parts add up to the whole exactly. An op's part is the step's mean time in ops of its kind (compute, collectives,
input...), times the op's share of all such ops' self time: captures that cut steps at their edges, and ops that run
beside each other, then count alike in both reports.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from reportgen.analyzers.classes import STEP_PARTS, step_part_of
from reportgen.comparison.op import Op, read_ops
from reportgen.document import Cell, ReportDocument, Table
from reportgen.units import PS_PER_SECOND


@dataclass(frozen=True)
class Breakdown:
    """The time of a step and its parts, in seconds.

    Attributes:
        whole: From a step's start to the next one's; the step's own time where there is one step; the op time of a
            core where there are no steps.
        steps: Number of whole steps; 0 where there are none.
        ops: Ops of the report's table, with their part of a step.
        other_ops: Time of ops that the table does not hold.
        idle: Time of the step without ops, and the wait for the slowest core.
        between: From a step's end to the next one's start; negative where steps overlap.

    """

    whole: float
    steps: int
    ops: tuple[Op, ...]
    other_ops: float
    idle: float
    between: float


def breakdown(document: ReportDocument, *, per_step: bool) -> Breakdown:
    """Return what the time goes to: of a step, or of the capture's op time on one core."""
    ops, totals = read_ops(document), _self_times(document)
    if not per_step:
        cores = max(1, document.profile.core_count)
        times = tuple(one.with_time(one.self_time / cores) for one in ops)
        whole = sum(totals.values()) / cores
        return Breakdown(whole, 0, times, whole - sum(one.time for one in times), 0.0, 0.0)
    parts = _step_parts(document)
    times = tuple(one.with_time(_part(one, parts, totals)) for one in ops)
    in_ops = sum(parts.values())
    step, whole = step_time(document) or 0.0, step_whole(document) or 0.0
    steps = document.metrics["step_count"].value if "step_count" in document.metrics else 0
    return Breakdown(
        whole=whole,
        steps=int(steps or 0),
        ops=times,
        other_ops=in_ops - sum(one.time for one in times),
        idle=step - in_ops,
        between=whole - step,
    )


def step_time(document: ReportDocument) -> float | None:
    """Return the mean step time in seconds, None where there are no steps."""
    metric = document.metrics.get("step_time_mean")
    return metric.value if metric else None


def step_whole(document: ReportDocument) -> float | None:
    """Return the mean time from a step's start to the next one's; of the step alone where there is but one."""
    metric = document.metrics.get("step_period_mean")
    return metric.value if metric and metric.value is not None else step_time(document)


def columns(table: Table) -> dict[str, list[Cell]]:
    """Return a table's columns by name."""
    return {column.name: [row[index] for row in table.rows] for index, column in enumerate(table.columns)}


def _part(op: Op, parts: Mapping[str, float], totals: Mapping[str, float]) -> float:
    kind = step_part_of(op.category)
    return op.self_time / totals[kind] * parts.get(kind, 0.0) if totals.get(kind) else 0.0


def _self_times(document: ReportDocument) -> dict[str, float]:
    """Return the self time of all ops by the part of a step that they belong to, in seconds over all cores."""
    table = document.tables.get("op_categories") or document.tables.get("hlo_ops")
    totals: dict[str, float] = defaultdict(float)
    if table is None:
        return totals
    found = columns(table)
    for category, picoseconds in zip(found["category"], found["self_ps"], strict=True):
        if category != "IDLE" and isinstance(picoseconds, int | float):
            totals[step_part_of(str(category))] += picoseconds / PS_PER_SECOND
    return totals


def _step_parts(document: ReportDocument) -> dict[str, float]:
    """Return the mean time of a step in each kind of op."""
    table = document.tables.get("steps")
    if table is None or not table.rows:
        return {}
    found = columns(table)
    kinds = [kind for kind in STEP_PARTS if kind in found and kind != "idle"]
    return {kind: sum(float(value or 0.0) for value in found[kind]) / len(table.rows) for kind in kinds}
