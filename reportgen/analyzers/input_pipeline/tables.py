"""The analysis as tables."""

from __future__ import annotations

import pandas as pd

from reportgen.analyzers.input_pipeline.facts import InputFacts
from reportgen.analyzers.input_pipeline.names import CATEGORY_TITLES
from reportgen.analyzers.input_pipeline.saving import stage_row
from reportgen.analyzers.tables import table_of, unique_slugs
from reportgen.document import Column, Table
from reportgen.units import PS_PER_SECOND

_MOST_ROWS = 200


def tables(facts: InputFacts) -> dict[str, Table]:
    """Return the tables that have something to show, by id, in the order in which they are read."""
    found = {
        "input_statistics": _statistics(facts),
        "input_steps": _steps(facts),
        "input_stages": _stages(facts),
        "input_functions": _functions(facts),
        "input_categories": _categories(facts),
        "input_ops": _ops(facts),
        "host_activity": _activity(facts),
    }
    return {name: table for name, table in found.items() if table.rows}


def _seconds(frame: pd.DataFrame, *columns: str) -> pd.DataFrame:
    frame = frame.copy()
    for column in columns:
        frame[column] = frame[f"{column}_ps"] / PS_PER_SECOND
    return frame


def _time(name: str, title: str, definition: str = "") -> Column:
    return Column(name=name, unit="seconds", title=title, display="number", definition=definition)


def _share(name: str, title: str, definition: str = "") -> Column:
    return Column(name=name, unit="fraction", title=title, display="bar", definition=definition)


_WAIT = "Time in which nothing computed on the device while the program waited for a batch or its transfer"


def _statistics(facts: InputFacts) -> Table:
    rows = {"Period": "period", "Step time": "time", "Waiting for input": "wait", "Hidden input time": "hidden"}
    frame = facts.steps
    described = pd.DataFrame(
        [
            {
                "what": title,
                "mean": values.mean(),
                "sd": values.std(ddof=1),
                "min": values.min(),
                "median": values.median(),
                "max": values.max(),
            }
            for title, column in rows.items()
            if len(values := frame[f"{column}_ps"].astype(float) / PS_PER_SECOND)
        ],
        columns=["what", "mean", "sd", "min", "median", "max"],
    )
    titles = {"mean": "Mean", "sd": "Standard deviation", "min": "Least", "median": "Median", "max": "Most"}
    columns = (Column(name="what", title="Per step"), *(_time(name, title) for name, title in titles.items()))
    return table_of(described, f"Statistics over {len(frame)} steps", columns)


def _steps(facts: InputFacts) -> Table:
    frame = _seconds(facts.steps, "time", "period", "wait", "device", "hidden")
    frame["share"] = frame["wait_ps"] / frame["period_ps"].where(frame["period_ps"] > 0)
    columns = (
        Column(name="label", title="Step"),
        _time("period", "Period", "From the end of the step before to the step's own end"),
        _time("wait", "Waiting for input", _WAIT),
        _share("share", "Share of the period"),
        _time("device", "Of it recorded by the device", "Infeed, host receive, host-to-device copies"),
        _time("hidden", "Hidden input time", "Input work on the host while the device computed"),
        _time("time", "Step time", "The step's own length, without what lies before it"),
    )
    row_ids = [f"input-step-{step}" for step in frame["step"]]
    return table_of(frame, "Wait for input by step", columns, row_ids=row_ids)


def _stages(facts: InputFacts) -> Table:
    stages = facts.waited.stages[:_MOST_ROWS]
    total = max(1, sum(facts.waited.sources.values()))
    frame = pd.DataFrame(
        [
            {
                "stage": stage.name,
                "ahead": stage.is_async,
                "count": stage.count,
                "time": stage.time_ps / PS_PER_SECOND,
                "self": stage.self_ps / PS_PER_SECOND,
                "per_call": stage.self_ps / max(1, stage.count) / PS_PER_SECOND,
                "wait": stage.wait_ps / PS_PER_SECOND,
                "share": stage.wait_ps / total,
                "settings": ", ".join(f"{name} {value}" for name, value in sorted(stage.settings.items())),
                "function": ", ".join(kind for kind, _ in stage.function),
            }
            for stage in stages
        ]
    )
    columns = (
        Column(name="stage", title="Stage", display="code"),
        Column(name="ahead", title="Works ahead", display="flag", definition="Runs on threads of its own"),
        Column(name="count", unit="count", title="Calls", display="number"),
        _time("time", "Total time"),
        _time("self", "Self time", "Without calls of other stages on the same thread"),
        _time("per_call", "Self time per call"),
        _time("wait", "Wait caused", "Time of the exposed wait in which it was the deepest stage that ran"),
        _share("share", "Share of the wait"),
        Column(name="settings", title="Settings"),
        Column(name="function", title="Ops in its function"),
    )
    note = "Callers stand before what they call. The stage that causes most of the wait is the one to change."
    row_ids = [stage_row(stage.name) for stage in stages]
    return (
        table_of(frame, "Stages of the tf.data pipelines", columns, row_ids=row_ids, note=note) if stages else _none()
    )


def _none() -> Table:
    return Table(title="", columns=(), rows=())


def _functions(facts: InputFacts) -> Table:
    own, workers = facts.waited.step_python, facts.waited.loader_python
    total = max(1, sum(facts.waited.sources.values()))
    frame = pd.DataFrame(
        [
            {"function": label.removeprefix("$"), "thread": thread, "wait": time / PS_PER_SECOND, "share": time / total}
            for thread, times in (("step", own), ("loader", workers))
            for label, time in times.functions.most_common()
        ],
        columns=["function", "thread", "wait", "share"],
    )
    columns = (
        Column(name="function", title="Function", display="code"),
        Column(name="thread", title="Thread", definition="The one that steps, or a loader's"),
        _time("wait", "Time while the step waited", "With all that it calls"),
        _share("share", "Share of the wait"),
    )
    row_ids = unique_slugs("input-function", frame["function"])
    return table_of(frame, "Python functions while the step waited", columns, row_ids=row_ids)


def _categories(facts: InputFacts) -> Table:
    total = sum(facts.categories.values())
    return Table(
        title="Host time by category of input processing",
        columns=(
            Column(name="category", title="Category"),
            _time("time", "Self time on all host threads"),
            _share("share", "Share"),
        ),
        rows=tuple(
            (title, facts.categories[category] / PS_PER_SECOND, facts.categories[category] / total if total else None)
            for category, title in CATEGORY_TITLES.items()
        ),
        row_ids=tuple(f"input-category-{category.replace('_', '-')}" for category in CATEGORY_TITLES),
    )


def _ops(facts: InputFacts) -> Table:
    frame = _seconds(facts.ops, "time", "self")
    total = max(1, int(frame["self_ps"].sum()))
    frame["time_share"], frame["self_share"] = frame["time_ps"] / total, frame["self_ps"] / total
    frame["category"] = frame["category"].map(CATEGORY_TITLES)
    columns = (
        Column(name="op", title="Input op", display="code"),
        Column(name="count", unit="count", title="Count", display="number"),
        _time("time", "Total time"),
        _share("time_share", "Share of all input time", "Of the self time of all input ops"),
        _time("self", "Self time", "Without the ops that it calls on the same thread"),
        _share("self_share", "Self share"),
        Column(name="category", title="Category"),
    )
    return table_of(frame, "Input ops", columns, row_ids=unique_slugs("input-op", frame["op"]))


def _activity(facts: InputFacts) -> Table:
    frame = facts.activity.astype({"event": str, "function": str})
    count = max(1, len(facts.steps))
    other = facts.means.other_s if facts.means else 0.0
    total = max(1, int(frame["time_ps"].sum()))
    frame["share"] = frame["time_ps"] / total
    frame["time"] = frame["share"] * other
    frame["function"] = frame["function"].str.removeprefix("$")
    frame["event"] = frame["event"].str.removeprefix("$")
    columns = (
        Column(name="group", title="What the host did"),
        Column(name="event", title="Event", display="code"),
        Column(name="function", title="In the Python function", display="code"),
        _time("time", "Time per step", f"Mean over {count} steps"),
        _share("share", "Share of all others"),
    )
    return table_of(
        frame.head(_MOST_ROWS),
        "All others: the time without ops and without waiting for input",
        columns,
        note="By the innermost event on the thread that steps. The time of a step without a recorded event is the gap "
        "between the events.",
    )
