"""The overview: the step graph, top operations, hardware counters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from reportgen.analyzers.base import Context, Result, SectionId
from reportgen.analyzers.step_view import step_chart, step_table, steps_with_input
from reportgen.document import Block, ChartBlock, Heading, Metric, TableBlock
from reportgen.profile.model import Kind
from reportgen.profile.view import HostView


@dataclass(frozen=True)
class OverviewPart:
    """Hardware counters of one host, in percent; None where they were not captured."""

    matrix_unit_percent: float | None


class OverviewAnalyzer:
    """Hardware counters and the top operations."""

    id: ClassVar[str] = "overview"
    title: ClassVar[str] = "Overview"
    section: ClassVar[SectionId] = "overview"

    def host(self, view: HostView) -> OverviewPart:
        """Return the counters of one host."""
        for plane in view.profile.of_kind(Kind.HOST):
            value = plane.stats.get("matrix_unit_utilization_percent")
            if isinstance(value, int | float) and value > 0:  # 0 is what captures without the counter write
                return OverviewPart(float(value))
        return OverviewPart(None)

    def merge(self, parts: Sequence[OverviewPart], context: Context) -> Result:
        """Return the mean of the hosts' counters, and the blocks of the top operations."""
        values = [part.matrix_unit_percent for part in parts if part.matrix_unit_percent is not None]
        metric = Metric(
            title="Matrix unit utilisation",
            value=sum(values) / len(values) / 100 if values else None,
            unit="fraction",
            better="higher",
            definition="Hardware counter of the matrix units, mean over hosts.",
            source="host plane, stat matrix_unit_utilization_percent",
            reason=None if values else "The hardware counter was not captured (absent or 0 in the profile).",
        )
        steps = context.facts("steps")
        blocks: list[Block] = []
        tables, charts = {}, {}
        if steps is not None:
            shown = steps_with_input(steps, context.facts("input-pipeline"))
            tables["steps"], charts["steps"] = step_table(steps, shown), step_chart(steps, shown)
            blocks += [ChartBlock("steps"), TableBlock("steps", open_rows=0)]
        if "op-profile" in context.results:
            blocks += [Heading("Top operations", "overview-top"), TableBlock("top_operations")]
            blocks.append(TableBlock("top_hlo_ops"))
        return Result(metrics={"matrix_unit_utilization": metric}, tables=tables, charts=charts, blocks=tuple(blocks))
