"""Communication between devices: how long, by type, how much of it is exposed, inside a slice or across slices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from reportgen.analyzers.base import Context, Result, SectionId
from reportgen.analyzers.classes import is_collective
from reportgen.analyzers.tables import table_of, unique_slugs
from reportgen.document import Block, Column, Heading, Metric, Table, TableBlock
from reportgen.profile.intervals import covered_within, sum_by, union
from reportgen.profile.view import Core, HostView
from reportgen.units import PS_PER_SECOND

ASYNC_LINES = ("Async XLA Ops",)
# What XLA names the runtime that moves data between slices over the data-centre network.
_ACROSS = re.compile(r"megascale|_xla_host_transfer_handler_name|dcn", re.IGNORECASE)
_KIND = re.compile(
    r"all-reduce|all-gather|all-to-all|reduce-scatter|collective-permute|collective-broadcast|send|recv|barrier-cores"
)


@dataclass(frozen=True)
class CollectivePart:
    """Collectives of one host: one row a type and reach, with sums over its cores in picoseconds, and their total time.

    Columns: kind, reach ("within a slice" or "across slices"), ops (number of executions), exposed_ps (time on the op
    line, in which the core did nothing else), async_ps (time in flight on the asynchronous line), hidden_ps (the part
    of it during which the core ran other ops), bytes (per execution, summed).
    """

    frame: pd.DataFrame
    total_ps: int


@dataclass(frozen=True)
class CollectiveFacts:
    """Collectives of all hosts.

    Attributes:
        frame: One row a type and reach: kind, reach, ops, exposed_s, async_s, hidden_s, bytes; sums over cores.
        exposed_share: Exposed time over total device time.
        across_captured: Whether any transfer across slices was seen.

    """

    frame: pd.DataFrame
    exposed_share: float
    across_captured: bool


class CollectivesAnalyzer:
    """Collective operations, exposed and hidden."""

    id: ClassVar[str] = "collectives"
    title: ClassVar[str] = "Collectives"
    section: ClassVar[SectionId] = "hosts"

    def host(self, view: HostView) -> CollectivePart | None:
        """Return the collectives of one host's devices."""
        cores = [core for core in view.active_cores if core.id.device != "CPU"]
        if not cores:
            return None
        frames = [frame for core in cores if len(frame := _of_core(core))]
        total = sum(core.runs.span[1] - core.runs.span[0] for core in cores)
        return CollectivePart(pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(), total)

    def merge(self, parts: Sequence[CollectivePart], context: Context) -> Result:
        """Return the collectives of all hosts."""
        frames = [part.frame for part in parts if len(part.frame)]
        ops = context.facts("op-profile")
        total = ops.total if ops is not None else sum(part.total_ps for part in parts) / PS_PER_SECOND
        if not frames:
            facts = CollectiveFacts(pd.DataFrame(), 0.0, across_captured=False)
            return Result(metrics=_metrics(facts), facts=facts)
        groups = pd.concat(frames, ignore_index=True).groupby(["kind", "reach"], sort=True).sum().reset_index()
        for name in ("exposed", "async", "hidden"):
            groups[f"{name}_s"] = groups[f"{name}_ps"] / PS_PER_SECOND
        groups = groups.sort_values("exposed_s", ascending=False, kind="stable")
        exposed = float(groups["exposed_s"].sum())
        facts = CollectiveFacts(
            groups, exposed / total if total else 0.0, bool((groups["reach"] == _REACH[True]).any())
        )
        return Result(
            metrics=_metrics(facts), tables={"collectives": _table(facts, total)}, blocks=_blocks(), facts=facts
        )


_REACH = {False: "within a slice", True: "across slices"}


def _of_core(core: Core) -> pd.DataFrame:
    """Return a core's collectives by type and reach."""
    runs = core.runs
    kinds = [(kind_of(info.category, info.name), bool(_ACROSS.search(info.expression))) for info in runs.infos]
    wanted = np.array([is_collective(info.category) for info in runs.infos] + [False])
    hits = wanted[runs.ops]
    if not hits.any():
        return pd.DataFrame()
    sums = sum_by(runs.ops[hits], runs.self_times[hits], len(runs.infos))
    counts = np.bincount(runs.ops[hits], minlength=len(runs.infos))
    flights = _in_flight(core)
    rows = []
    for op in np.flatnonzero(counts).tolist():
        info, (kind, across) = runs.infos[op], kinds[op]
        started = not info.category.endswith("-done")
        flight, hidden = flights.get(info.name, (0, 0))
        rows.append(
            {
                "kind": kind,
                "reach": _REACH[across],
                "ops": int(counts[op]) if started else 0,
                "exposed_ps": int(sums[op]),
                "async_ps": flight,
                "hidden_ps": hidden,
                "bytes": (info.bytes or 0.0) * int(counts[op]) if started else 0.0,
            }
        )
    return pd.DataFrame(rows).groupby(["kind", "reach"]).sum().reset_index()


def kind_of(category: str, name: str) -> str:
    """Return the type of a collective: its category without "fusion", "-start", "-done"."""
    match = _KIND.search(category) or _KIND.search(name)
    return match[0] if match else category


def _in_flight(core: Core) -> dict[str, tuple[int, int]]:
    """Return for each asynchronous collective, by instruction name, its time in flight and the hidden part of it."""
    plane, runs = core.plane, core.runs
    lines = plane.line_indices(*ASYNC_LINES)
    if not lines:
        return {}
    events = plane.events(lines)
    busy = np.array([not is_collective(info.category) for info in runs.infos] + [False])[runs.ops]
    working = union(runs.trace_starts[busy], runs.trace_starts[busy] + runs.trace_durations[busy])
    hidden = covered_within(working, events.starts, events.ends)
    names = [_instruction(name) for name in plane.event_names]
    known = events.names >= 0
    totals = sum_by(events.names[known], events.durations[known], len(names))
    covered = sum_by(events.names[known], hidden[known], len(names))
    found: dict[str, tuple[int, int]] = {}
    for row in np.flatnonzero(totals).tolist():
        flight, part = found.get(names[row], (0, 0))
        found[names[row]] = (flight + int(totals[row]), part + int(covered[row]))
    return found


def _instruction(expression: str) -> str:
    """Return the instruction's name from its text "%name = ..."."""
    return expression.split(" = ", 1)[0].lstrip("%")


def _metrics(facts: CollectiveFacts) -> dict[str, Metric]:
    return {
        "exposed_collective_fraction": Metric(
            title="Exposed collectives",
            value=facts.exposed_share,
            unit="fraction",
            better="lower",
            definition="Time on the op line inside collectives or waiting for them, over total device time.",
            source="ops of all devices",
        )
    }


def _table(facts: CollectiveFacts, total: float) -> Table:
    frame = facts.frame.assign(share=facts.frame["exposed_s"] / total if total else 0.0)
    frame["average"] = frame["exposed_s"] / frame["ops"].where(frame["ops"] > 0)
    frame["size"] = frame["bytes"] / frame["ops"].where(frame["ops"] > 0)
    frame["label"] = frame["kind"] + " " + frame["reach"]
    columns = (
        Column(name="kind", title="Collective"),
        Column(name="reach", title="Reach"),
        Column(name="ops", unit="count", title="Count"),
        Column(name="exposed_s", unit="seconds", title="Exposed", definition="The core did nothing else."),
        Column(name="share", unit="fraction", title="Share", display="bar", definition="Of total device time."),
        Column(name="average", unit="seconds", title="Average"),
        Column(name="size", unit="bytes", title="Bytes each", definition="Bytes accessed by an execution."),
        Column(name="async_s", unit="seconds", title="In flight", definition="On the asynchronous line."),
        Column(name="hidden_s", unit="seconds", title="Hidden", definition="In flight while the core ran other ops."),
    )
    note = "Sums over cores. " + (
        "" if facts.across_captured else "Transfers across slices: not captured (none in this profile)."
    )
    return table_of(frame, "Collectives", columns, row_ids=unique_slugs("collective", frame["label"]), note=note)


def _blocks() -> tuple[Block, ...]:
    return (Heading("Collectives", "collectives"), TableBlock("collectives"))
