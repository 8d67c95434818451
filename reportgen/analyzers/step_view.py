"""The step graph and table: what each step's time went to, the wait for input among it.

A device's ops tell of the input only where the device itself waits for it (infeed, copies). What the host did tells of
the rest: that part of a step's idle time counts as input, and so does the wait that lies before the step.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from reportgen.analyzers.classes import STEP_PARTS
from reportgen.analyzers.input_pipeline.facts import InputFacts
from reportgen.analyzers.steps import StepFacts
from reportgen.analyzers.tables import table_of, unique_slugs
from reportgen.document import Axis, Chart, Column, Guide, Role, Series, Table
from reportgen.units import PS_PER_SECOND, percent, seconds

_CHART_STEPS = 400
_TABLE_STEPS = 500


def steps_with_input(facts: StepFacts, waits: InputFacts | None) -> pd.DataFrame:
    """Return the steps with the exposed wait for input as part `input`: out of idle, and from before the step."""
    steps = facts.steps.copy()
    if waits is None or waits.means is None or waits.steps_from_calls or not len(waits.steps):
        return steps
    known = waits.steps.drop_duplicates("step").set_index("step")
    wait = (known["wait_ps"] - known["device_ps"]).clip(lower=0) / PS_PER_SECOND
    waited = steps["step"].map(wait).fillna(0.0)
    inside = np.minimum(waited, steps["idle"])
    steps["input"] += waited
    steps["idle"] -= inside
    return steps


def step_table(facts: StepFacts, steps: pd.DataFrame) -> Table:
    """Return a row a step: its time, period and parts."""
    parts = _parts(steps)
    frame = steps.rename(columns={"time_s": "time", "start_s": "start", "period_s": "period"})
    columns = (
        Column(name="label", title="Step"),
        Column(name="start", unit="seconds", title="Start"),
        Column(name="time", unit="seconds", title="Time", definition="The longest core's step."),
        Column(name="period", unit="seconds", title="Period", definition="To the next step's start."),
        *(Column(name=name, unit="seconds", title=_label(name).capitalize()) for name in parts),
        Column(name="outlier", display="flag", title="Outlier"),
    )
    return table_of(
        frame,
        "Steps",
        columns,
        row_ids=unique_slugs("step", map(str, frame["step"])),
        note="Parts of a step are means over the cores; the time is that of the longest core. Input includes the wait "
        "that lies before the step. "
        + (f"{facts.left_out} partial steps at the edges are left out." if facts.left_out else ""),
        most=_TABLE_STEPS,
    )


def step_chart(facts: StepFacts, steps: pd.DataFrame) -> Chart:
    """Return the step graph, stacked by what the time went to."""
    shown = steps.tail(_CHART_STEPS)
    parts = _parts(steps)
    total = float(shown[parts].sum().sum()) or 1.0
    shares = {name: float(shown[name].sum()) / total for name in parts}
    largest = max(shares, key=lambda name: shares[name])
    return Chart(
        title=f"{_label(largest).capitalize()} takes {percent(shares[largest])} of the time",
        kind="stacked_steps",
        alt=f"Times of {len(shown)} steps, mean {seconds(facts.mean_time)}: "
        + ", ".join(f"{_label(name)} {percent(share)}" for name, share in shares.items())
        + ".",
        x=Axis(label="Step"),
        y=Axis(label="Time", unit="seconds"),
        series=tuple(
            Series(
                name=_label(name),
                role=name,
                x=tuple(float(number) for number in shown["step"]),
                y=tuple(float(value) for value in shown[name]),
            )
            for name in parts
        ),
        guides=(Guide(label=f"mean {seconds(facts.mean_time)}", axis="y", value=facts.mean_time),),
        table="steps",
    )


def _parts(steps: pd.DataFrame) -> list[Role]:
    return [name for name in STEP_PARTS if name == "idle" or steps[name].any()]


def _label(part: Role) -> str:
    return "waiting for input" if part == "input" else part.replace("_", " ")
