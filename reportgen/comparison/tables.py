"""The tables of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

from reportgen.comparison.causes import ranked
from reportgen.comparison.compare import Comparison, OpChange
from reportgen.comparison.words import signed
from reportgen.document import Column, Table
from reportgen.units import percent, quantity

MOST_CAUSES = 14
_MOST_OPS = 50
_BEFORE = Column(name="base", unit="seconds", title="Before", definition="Part of a step, mean over cores and steps.")
_NOW = Column(name="new", unit="seconds", title="Now", definition="Part of a step, mean over cores and steps.")
_CHANGE = Column(name="change", unit="seconds", title="Change")


def causes_table(found: Comparison) -> Table:
    """Return the causes, what is left of them, and the whole."""
    total = sum(abs(one.change) for one in found.causes) or 1.0
    rows = [
        (one.text, one.ops, one.base, one.new, one.change, abs(one.change) / total)
        for one in ranked(found.causes, MOST_CAUSES)
    ]
    ops = max(len(found.before.ops), len(found.after.ops))
    rows.append(("the whole", ops, found.before.whole, found.after.whole, found.change, 1.0))
    return Table(
        title="Causes",
        columns=(
            Column(name="cause", title="Cause"),
            Column(name="ops", unit="count", title="Ops"),
            _BEFORE,
            _NOW,
            _CHANGE,
            Column(
                name="share", unit="fraction", title="Share", display="bar", definition="Of all changes, up or down."
            ),
        ),
        rows=tuple(rows),
        note="Each op belongs to one cause, so the changes add up to that of the whole. An op's part of a step is the "
        "step's mean time in ops of its kind, times the op's share of their self time.",
    )


def metrics_table(found: Comparison) -> Table:
    """Return every metric before and now."""
    rows = tuple(
        (
            one.title,
            quantity(one.base, one.unit),
            quantity(one.new, one.unit),
            one.decision.change if one.decision else None,
            f"{percent(one.decision.low)} to {percent(one.decision.high)}" if one.decision else None,
            one.verdict,
        )
        for one in found.metrics
    )
    return Table(
        title="Metrics",
        columns=(
            Column(name="metric", title="Metric"),
            Column(name="base", title="Before"),
            Column(name="new", title="Now"),
            Column(name="change", unit="fraction", title="Change"),
            Column(name="band", title="Counts as none", definition="Changes that lie within the noise."),
            Column(name="verdict", title="Verdict"),
        ),
        rows=rows,
        row_ids=tuple(f"metric-{one.id}" for one in found.metrics),
    )


def findings_table(found: Comparison) -> Table:
    """Return what became of each finding."""
    rows = []
    for one in found.findings:
        savings = [
            quantity(part.saving.likely, part.saving.unit) if part and part.saving else None
            for part in (one.before, one.after)
        ]
        rows.append((one.state, one.finding.title, one.finding.severity, *savings))
    return Table(
        title="Findings before and now",
        columns=(
            Column(name="state", title="State"),
            Column(name="finding", title="Finding"),
            Column(name="severity", title="Severity"),
            Column(name="base", title="Saving before"),
            Column(name="new", title="Saving now"),
        ),
        rows=tuple(rows),
        note="Unknown: the rule that found it before could not tell this time.",
    )


def op_tables(found: Comparison) -> dict[str, Table]:
    """Return ops that are slower, faster, new and gone, each where there are any."""
    both = [one for one in found.ops if one.base is not None and one.new is not None]
    groups = {
        "ops_slower": ("Slower ops", [one for one in both if one.change > 0]),
        "ops_faster": ("Faster ops", [one for one in both if one.change < 0]),
        "ops_new": ("New ops", [one for one in found.ops if one.base is None]),
        "ops_gone": ("Ops that are gone", [one for one in found.ops if one.new is None]),
    }
    return {key: _op_table(title, ops) for key, (title, ops) in groups.items() if ops}


def _op_table(title: str, ops: Sequence[OpChange]) -> Table:
    columns = (
        Column(name="name", title="Op", display="code"),
        Column(name="was", title="Was", display="code", definition="Its name before, where it had another."),
        Column(name="category", title="Category"),
        _BEFORE,
        _NOW,
        _CHANGE,
        Column(name="shape", title="Result shape", display="code"),
        Column(name="framework_op", title="Framework op", display="code"),
        Column(name="source", title="Source", display="code"),
    )
    rows = tuple(
        (
            one.op.name,
            one.before.name if one.before and one.before.name != one.op.name else "",
            one.op.category,
            one.base,
            one.new,
            one.change,
            one.op.sizes,
            one.op.framework_op,
            one.op.source,
        )
        for one in ops[:_MOST_OPS]
    )
    return Table(
        title=title, columns=columns, rows=rows, total_rows=len(ops) if len(ops) > _MOST_OPS else None,
        note=f"{signed(sum(one.change for one in ops))} in all.",
    )  # fmt: skip
