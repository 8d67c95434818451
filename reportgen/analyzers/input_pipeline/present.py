"""The analysis as metrics, charts and blocks."""

from __future__ import annotations

from reportgen.analyzers.base import Result
from reportgen.analyzers.input_pipeline.advice import ADVICE
from reportgen.analyzers.input_pipeline.facts import InputFacts
from reportgen.analyzers.input_pipeline.names import CATEGORY_TITLES
from reportgen.analyzers.input_pipeline.tables import tables
from reportgen.document import (
    Axis,
    Block,
    Chart,
    ChartBlock,
    Details,
    Guide,
    Heading,
    Metric,
    Notice,
    Series,
    TableBlock,
    Text,
    Tiles,
)
from reportgen.units import PS_PER_SECOND, percent, seconds

_CHART_STEPS = 400
_WORST = 3
_NO_STEPS = (
    "The profile shows no steps, so there is no period to relate the wait to. Annotate the steps and capture again."
)
_OVERLAP = (
    "A wait counts where nothing computes on the device (exposed); input work beside running ops is hidden and costs "
    "nothing. A step's period reaches from the end of the step before it to its own end, so a wait between two steps "
    "belongs to the step that follows."
)


_FROM_CALLS = " Nothing marks the steps here: a step is taken to reach from one call for a batch to the next."


def result(facts: InputFacts) -> Result:
    """Return everything that the section on the input pipeline shows."""
    shown = tables(facts)
    charts = {}
    if len(facts.steps):
        charts["input_wait"] = _wait_chart(facts)
    if any(facts.categories.values()):
        charts["input_categories"] = _categories_chart(facts)
    return Result(
        metrics=_metrics(facts),
        tables=shown,
        charts=charts,
        blocks=_blocks(facts, set(shown), set(charts)),
        facts=facts,
    )


def _blocks(facts: InputFacts, shown: set[str], charts: set[str]) -> tuple[Block, ...]:
    def some(*names: str) -> list[Block]:
        return [TableBlock(name) for name in names if name in shown]

    def drawn(name: str) -> list[Block]:
        return [ChartBlock(name)] if name in charts else []

    blocks: list[Block] = [Text(verdict_text(facts))]
    if facts.verdict.level == "cannot tell":
        blocks.append(Notice(text="Show where the program loads its batches, and capture again.", code=HOW_TO_SHOW))
    blocks += [Tiles(("input_wait_fraction", "input_wait_seconds", "input_hidden_seconds", "host_other_fraction"))]
    if facts.means is not None:
        source = _FROM_CALLS if facts.steps_from_calls else ""
        blocks += [Heading("Device side", "input-device"), Text(f"{_OVERLAP}{source} {_worst_text(facts)}")]
        blocks += [*drawn("input_wait"), *some("input_statistics", "input_steps")]
    if stages := some("input_stages", "input_functions"):
        blocks += [Heading("Where the wait comes from", "input-stages"), *stages]
    if "input_ops" in shown:
        blocks += [
            Heading("Host side", "input-host"),
            *drawn("input_categories"),
            *some("input_categories", "input_ops"),
        ]
    if activity := some("host_activity"):
        summary = "All others: what the host did in the rest of the time"
        blocks.append(Details(summary, tuple(activity)))
    return tuple(blocks)


HOW_TO_SHOW = (
    "all:         reportgen capture HOST:PORT --python-level 1\n"
    "JAX:         options = jax.profiler.ProfileOptions(); options.python_tracer_level = 1\n"
    "JAX:         with jax.profiler.TraceAnnotation('load_batch'): batch = next(batches)\n"
    "TensorFlow:  tf.profiler.experimental.ProfilerOptions(python_tracer_level=1)\n"
    "PyTorch/XLA: with torch_xla.debug.profiler.Trace('load_batch'): batch = next(batches)"
)


def verdict_text(facts: InputFacts) -> str:
    """Return the verdict as a sentence with its thresholds, and the stage to blame."""
    verdict = facts.verdict
    limits = f"moderately from {percent(verdict.moderate)}, highly from {percent(verdict.high)} of the period"
    if facts.means is None or verdict.level == "cannot tell":
        return f"Whether the program is input-bound cannot be told: {verdict.reason} ({limits}.)"
    start = (
        f"The program is {verdict.level} input-bound ({limits}): it waits for input for {percent(facts.means.share)} "
        f"of the time, {seconds(facts.means.wait_s)} a step."
    )
    if facts.blame is None or verdict.level == "not":
        return start
    where = f" ({facts.blame.where})" if facts.blame.where else ""
    fault = ADVICE[facts.blame.cause].fault
    return f"{start} To blame for {percent(facts.blame.share)} of the wait: {facts.blame.stage}{where}, which {fault}."


def _worst_text(facts: InputFacts) -> str:
    worst = facts.steps.nlargest(_WORST, "wait_ps")
    worst = worst[worst["wait_ps"] > 0]
    named = ", ".join(
        f"{label} ({seconds(wait / PS_PER_SECOND)})"
        for label, wait in zip(worst["label"], worst["wait_ps"], strict=True)
    )
    return f"The longest waits: step {named}." if named else "No step waited for input."


_SOURCE = "steps, with the device's ops and the host's threads in them"


def _metrics(facts: InputFacts) -> dict[str, Metric]:
    means = facts.means
    reason = None if means else _NO_STEPS
    return {
        "input_wait_fraction": Metric(
            title="Waiting for input",
            value=means.share if means else None,
            unit="fraction",
            definition="Exposed input wait of all steps over the sum of their periods.",
            better="lower",
            source=_SOURCE,
            reason=reason,
        ),
        "input_wait_seconds": Metric(
            title="Input wait per step",
            value=means.wait_s if means else None,
            unit="seconds",
            definition="Mean time of a step in which the device computed nothing and the program waited for input.",
            better="lower",
            source=_SOURCE,
            reason=reason,
            spread=float(facts.steps["wait_ps"].std(ddof=1)) / PS_PER_SECOND if len(facts.steps) > 1 else None,
        ),
        "input_hidden_seconds": Metric(
            title="Hidden input time per step",
            value=means.hidden_s if means else None,
            unit="seconds",
            definition="Mean time of a step in which the host worked for the input while the device computed.",
            source=_SOURCE,
            reason=reason,
        ),
        "host_other_fraction": Metric(
            title="All others",
            value=means.other_s / means.period_s if means else None,
            unit="fraction",
            definition="Share of the periods in which nothing computed on the device and no input was waited for.",
            better="lower",
            source=_SOURCE,
            reason=reason,
        ),
    }


def _wait_chart(facts: InputFacts) -> Chart:
    frame = facts.steps.head(_CHART_STEPS)
    share = (frame["wait_ps"] / frame["period_ps"].clip(lower=1)).tolist()
    mean = facts.means.share if facts.means else 0.0
    return Chart(
        title=f"{percent(mean)} of the time goes into waiting for input",
        kind="curve",
        alt=f"Share of each step's period spent waiting for input; {percent(mean)} over all steps, "
        f"between {percent(min(share))} and {percent(max(share))}.",
        x=Axis(label="Step"),
        y=Axis(label="Share of the period", unit="fraction"),
        series=(
            Series(
                name="Waiting for input",
                role="input",
                x=tuple(frame["step"].astype(float)),
                y=tuple(share),
                labels=tuple(frame["label"]),
                row_ids=tuple(f"input-step-{step}" for step in frame["step"]),
            ),
        ),
        guides=(
            Guide(label="moderately input-bound", value=facts.verdict.moderate),
            Guide(label="highly input-bound", value=facts.verdict.high),
        ),
        table="input_steps",
    )


def _categories_chart(facts: InputFacts) -> Chart:
    times = {category: facts.categories[category] / PS_PER_SECOND for category in CATEGORY_TITLES}
    most = max(times, key=lambda category: times[category])
    named = "; ".join(f"{title}: {seconds(times[category])}" for category, title in CATEGORY_TITLES.items())
    return Chart(
        title=f"{CATEGORY_TITLES[most]} takes most of the host's input time",
        kind="bars",
        alt=f"{named}; {seconds(sum(times.values()))} in all.",
        x=Axis(label="Self time on all host threads", unit="seconds"),
        y=Axis(label="Category"),
        series=(Series(name="Time", role="input", y=tuple(times.values())),),
        categories=tuple(CATEGORY_TITLES.values()),
        table="input_categories",
    )
