"""The analysis as metrics, tables and charts."""

from __future__ import annotations

from reportgen.analyzers.base import Result
from reportgen.analyzers.input_pipeline.facts import InputFacts
from reportgen.analyzers.input_pipeline.names import CATEGORY_TITLES
from reportgen.analyzers.tables import table_of, unique_slugs
from reportgen.document import (
    Axis,
    Chart,
    ChartBlock,
    Column,
    Guide,
    Metric,
    Series,
    Table,
    TableBlock,
    Text,
    Tiles,
)
from reportgen.units import percent, seconds

_PS = 1e12
_CHART_STEPS = 400
_NO_STEPS = (
    "The profile shows no steps, so there is no period to relate the wait to. Annotate the steps and capture again."
)


def result(facts: InputFacts) -> Result:
    """Return everything that the section on the input pipeline shows."""
    tables = {"input_categories": categories_table(facts), "input_ops": ops_table(facts)}
    charts = {}
    if len(facts.steps):
        tables["input_steps"] = steps_table(facts)
        charts["input_wait"] = wait_chart(facts)
    if any(facts.categories.values()):
        charts["input_categories"] = categories_chart(facts)
    return Result(
        metrics=metrics(facts),
        tables=tables,
        charts=charts,
        blocks=(
            Text(verdict_text(facts)),
            Tiles(("input_wait_fraction", "input_wait_seconds", "input_hidden_seconds")),
            *(ChartBlock(chart) for chart in charts),
            *(TableBlock(table) for table in ("input_steps", "input_categories", "input_ops") if table in tables),
        ),
        facts=facts,
    )


def verdict_text(facts: InputFacts) -> str:
    """Return the verdict as a sentence with its thresholds."""
    verdict = facts.verdict
    limits = f"(moderately from {percent(verdict.moderate)}, highly from {percent(verdict.high)} of the period)"
    if facts.share is None or facts.wait_s is None or verdict.level == "cannot tell":
        return f"Whether the program is input-bound cannot be told: {verdict.reason} {limits}"
    word = {"not": "not", "moderately": "moderately", "highly": "highly"}[verdict.level]
    return (
        f"The program is {word} input-bound {limits}: {percent(facts.share)} of its time, "
        f"{seconds(facts.wait_s)} a step, it waits for input. {verdict.reason}".rstrip()
    )


def metrics(facts: InputFacts) -> dict[str, Metric]:
    """Return the headline numbers."""
    reason = None if facts.share is not None else _NO_STEPS
    hidden = facts.steps["hidden_ps"].mean() / _PS if reason is None else None
    return {
        "input_wait_fraction": Metric(
            title="Waiting for input",
            value=facts.share,
            unit="fraction",
            definition="Exposed input wait of all steps over their periods, each from the end of the step before to its own.",
            better="lower",
            reason=reason,
        ),
        "input_wait_seconds": Metric(
            title="Input wait per step",
            value=facts.wait_s,
            unit="seconds",
            definition="Mean time of a step in which the device was idle while the program waited for its input.",
            better="lower",
            reason=reason,
        ),
        "input_hidden_seconds": Metric(
            title="Hidden input time per step",
            value=hidden,
            unit="seconds",
            definition="Mean time of a step in which the host worked for the input while the device computed.",
            reason=reason,
        ),
    }


def steps_table(facts: InputFacts) -> Table:
    """Return every step with its wait."""
    frame = facts.steps.copy()
    for column in ("time", "period", "wait", "device", "hidden"):
        frame[column] = frame[f"{column}_ps"] / _PS
    frame["share"] = frame["wait_ps"] / frame["period_ps"].where(frame["period_ps"] > 0)
    columns = (
        Column(name="label", title="Step"),
        Column(name="period", unit="seconds", title="Period", display="number"),
        Column(name="wait", unit="seconds", title="Waiting for input", display="number"),
        Column(name="share", unit="fraction", title="Share of the period", display="bar"),
        Column(name="device", unit="seconds", title="Of it recorded by the device", display="number"),
        Column(name="hidden", unit="seconds", title="Hidden input time", display="number"),
        Column(name="time", unit="seconds", title="Step time", display="number"),
    )
    return table_of(
        frame,
        "Wait for input by step",
        columns,
        row_ids=[f"input-step-{step}" for step in frame["step"]],
        note="A step's period reaches from the end of the step before to its own end.",
    )


def ops_table(facts: InputFacts) -> Table:
    """Return the input ops."""
    frame = facts.ops.copy()
    total = max(1, int(frame["self_ps"].sum()))
    frame["time"], frame["self"] = frame["time_ps"] / _PS, frame["self_ps"] / _PS
    frame["time_share"], frame["self_share"] = frame["time_ps"] / total, frame["self_ps"] / total
    frame["category"] = frame["category"].map(CATEGORY_TITLES)
    columns = (
        Column(name="op", title="Input op", display="code"),
        Column(name="count", unit="count", title="Count", display="number"),
        Column(name="time", unit="seconds", title="Total time", display="number"),
        Column(name="time_share", unit="fraction", title="Share of all input time", display="bar"),
        Column(name="self", unit="seconds", title="Self time", display="number"),
        Column(name="self_share", unit="fraction", title="Self share", display="bar"),
        Column(name="category", title="Category"),
    )
    return table_of(frame, "Input ops", columns, row_ids=unique_slugs("input-op", frame["op"]))


def categories_table(facts: InputFacts) -> Table:
    """Return the five categories."""
    total = sum(facts.categories.values())
    rows = tuple(
        (title, facts.categories[category] / _PS, facts.categories[category] / total if total else None)
        for category, title in CATEGORY_TITLES.items()
    )
    return Table(
        title="Host time by category of input processing",
        columns=(
            Column(name="category", title="Category"),
            Column(name="time", unit="seconds", title="Time on all host threads", display="number"),
            Column(name="share", unit="fraction", title="Share", display="bar"),
        ),
        rows=rows,
        row_ids=tuple(f"input-category-{category.replace('_', '-')}" for category in CATEGORY_TITLES),
    )


def wait_chart(facts: InputFacts) -> Chart:
    """Return the share of waiting over the steps."""
    frame = facts.steps.head(_CHART_STEPS)
    share = (frame["wait_ps"] / frame["period_ps"].clip(lower=1)).tolist()
    mean = facts.share or 0.0
    return Chart(
        title=f"{percent(mean)} of the time goes into waiting for input",
        kind="curve",
        alt=f"Share of each step's period spent waiting for input; {percent(mean)} over all steps, "
        f"between {percent(min(share))} and {percent(max(share))}.",
        x=Axis(label="Step"),
        y=Axis(label="Share of the period", unit="fraction"),
        series=(Series(name="Waiting for input", role="input", x=tuple(frame["step"].astype(float)), y=tuple(share)),),
        guides=(
            Guide(label="moderately", value=facts.verdict.moderate),
            Guide(label="highly", value=facts.verdict.high),
        ),
        table="input_steps",
    )


def categories_chart(facts: InputFacts) -> Chart:
    """Return the five categories as bars."""
    most = max(CATEGORY_TITLES, key=lambda category: facts.categories[category])
    total = sum(facts.categories.values())
    return Chart(
        title=f"{CATEGORY_TITLES[most]} takes most of the host's input time",
        kind="bars",
        alt="; ".join(
            f"{title}: {seconds(facts.categories[category] / _PS)}" for category, title in CATEGORY_TITLES.items()
        )
        + f"; {seconds(total / _PS)} in all.",
        x=Axis(label="Time on all host threads", unit="seconds"),
        y=Axis(label="Category"),
        series=(
            Series(
                name="Time", role="input", y=tuple(facts.categories[category] / _PS for category in CATEGORY_TITLES)
            ),
        ),
        categories=tuple(CATEGORY_TITLES.values()),
        table="input_categories",
    )
