"""Steps: how long each takes, how that spreads, and what the time goes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reportgen.analyzers.base import Context, Result, SectionId
from reportgen.analyzers.classes import STEP_PARTS, step_part_of
from reportgen.document import Metric, Notice
from reportgen.profile.intervals import Intervals, covered_within, subtract, sum_by, union
from reportgen.profile.ops import OpRuns
from reportgen.profile.steps import Steps, StepSource
from reportgen.profile.view import Core, HostView
from reportgen.units import PS_PER_SECOND

# An outlier lies this many scaled median deviations off and is half as long again as the median: compilation, warm-up.
_OUTLIER_Z = 3.5
_OUTLIER_RATIO = 1.5

HOW_TO_ANNOTATE = (
    "JAX:         with jax.profiler.StepTraceAnnotation('train', step_num=step): ...\n"
    "TensorFlow:  with tf.profiler.experimental.Trace('train', step_num=step, _r=1): ...\n"
    "PyTorch/XLA: with torch_xla.debug.profiler.StepTrace('train', step_num=step): ..."
)


@dataclass(frozen=True)
class StepPart:
    """Steps of one host's cores.

    Attributes:
        source, detail: Which evidence defines them.
        frame: One row a core and step: host, core, step, label, start_ps (on the profile's clock), time_ps, partial,
            and one column a part of `STEP_PARTS` in picoseconds; idle is what no op covers.

    """

    source: StepSource
    detail: str
    frame: pd.DataFrame


@dataclass(frozen=True)
class StepFacts:
    """Steps of all cores.

    Attributes:
        source, detail: Which evidence defines them.
        steps: One row a whole step: step, label, start_s, time_s (the longest core), period_s (NaN for the last),
            outlier, and its parts in seconds, means over the cores.
        by_core: One row a core and whole step, in seconds: host, core, step, time_s and the parts.
        left_out: Number of partial first and last steps.

    """

    source: StepSource
    detail: str
    steps: pd.DataFrame
    by_core: pd.DataFrame
    left_out: int

    @property
    def mean_time(self) -> float:
        """Mean step time in seconds."""
        return float(self.steps["time_s"].mean())

    @property
    def mean_period(self) -> float:
        """Mean wall time from a step's start to the next one's, in seconds; the step time where there is one step."""
        periods = self.steps["period_s"].dropna()
        return float(periods.mean()) if len(periods) else self.mean_time


class StepAnalyzer:
    """Step times and their parts."""

    id: ClassVar[str] = "steps"
    title: ClassVar[str] = "Steps"
    section: ClassVar[SectionId] = "overview"

    def host(self, view: HostView) -> StepPart:
        """Return the steps of one host's cores."""
        source, detail = view.step_source
        shift = (view.profile.start_ns or 0) * 1000
        frames = [frame for core in view.active_cores if len(frame := _steps_of_core(core))]
        if not frames and view.annotations is not None:
            frames = [_steps_without_ops(view.annotations.steps, view.profile.name)]
        frame = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
        if len(frame):
            frame["origin_ps"] = shift
        return StepPart(source, detail, frame)

    def merge(self, parts: Sequence[StepPart], context: Context) -> Result:  # noqa: ARG002
        """Return statistics over the steps that ran on every core."""
        frames = [part.frame for part in parts if len(part.frame)]
        if not frames:
            return _without_steps(_NO_OPS if any(part.source is not StepSource.NONE for part in parts) else "")
        first = next(part for part in parts if len(part.frame))
        facts = _facts(first, pd.concat(frames, ignore_index=True))
        if not len(facts.steps):
            return _without_steps(_NONE_WHOLE)
        return Result(metrics=_metrics(facts), warnings=_warnings(facts), facts=facts)


def _steps_of_core(core: Core) -> pd.DataFrame:
    steps, runs = core.steps, core.runs
    if not len(steps):
        return pd.DataFrame()
    parts = _parts_in_order(steps, runs) if core.id.device == "TPU" else _parts_overlapping(steps, runs)
    covered = sum(parts.values(), start=np.zeros(len(steps), np.int64))
    idle = np.maximum(0, steps.durations - covered)
    nothing = np.zeros(len(steps), np.int64)
    columns: dict[str, NDArray[np.int64]] = {name: parts.get(name, nothing) for name in STEP_PARTS}
    columns["idle"] = idle
    return _frame(steps, core.id.host, core.id.label, steps.partial(runs), columns)


def _steps_without_ops(steps: Steps, host: str) -> pd.DataFrame:
    columns: dict[str, NDArray[np.int64]] = {name: np.zeros(len(steps), np.int64) for name in STEP_PARTS}
    columns["idle"] = steps.durations
    return _frame(steps, host, f"{host} CPU", steps.durations <= 0, columns)


def _frame(
    steps: Steps, host: str, core: str, partial: NDArray[np.bool_], parts: dict[str, NDArray[np.int64]]
) -> pd.DataFrame:
    columns = {
        "host": host, "core": core, "step": steps.ids, "label": list(steps.labels), "start_ps": steps.starts,
        "time_ps": steps.durations, "partial": partial,
    }  # fmt: skip
    return pd.DataFrame(columns | parts)


def _parts_in_order(steps: Steps, runs: OpRuns) -> dict[str, NDArray[np.int64]]:
    """Parts of each step where ops run one after the other: self time by category."""
    index = steps.of(runs)
    parts = {name: number for number, name in enumerate(STEP_PARTS)}
    of_op = np.array([parts[step_part_of(info.category)] for info in runs.infos] + [0])
    inside = index >= 0
    keys = index[inside] * len(parts) + of_op[runs.ops[inside]]
    sums = sum_by(keys, runs.self_times[inside], len(steps) * len(parts)).reshape(len(steps), len(parts))
    return {name: sums[:, number] for name, number in parts.items() if name != "idle"}


def _parts_overlapping(steps: Steps, runs: OpRuns) -> dict[str, NDArray[np.int64]]:
    """Parts of each step where ops overlap (streams, threads): each instant counts once, earlier parts first."""
    parts: dict[str, NDArray[np.int64]] = {}
    taken = Intervals(np.empty(0, np.int64), np.empty(0, np.int64))
    of_op = np.array([step_part_of(info.category) for info in runs.infos] + [""])
    for name in STEP_PARTS:
        if name == "idle":
            continue
        hits = of_op[runs.ops] == name
        found = union(runs.starts[hits], runs.ends[hits])
        parts[name] = covered_within(subtract(found, taken), steps.starts, steps.ends)
        taken = union(np.concatenate([taken.starts, found.starts]), np.concatenate([taken.ends, found.ends]))
    return parts


def _facts(first: StepPart, frame: pd.DataFrame) -> StepFacts:
    """Join the cores: a whole step ran on all of them and was cut on none."""
    frame = frame.assign(start_ps=frame["start_ps"] + (frame["origin_ps"] - frame["origin_ps"].min()))
    cores = frame["core"].nunique()
    groups = frame.groupby("step", sort=True)
    whole = (groups["core"].nunique() == cores) & ~groups["partial"].any()
    kept = frame[frame["step"].map(whole)]
    groups = kept.groupby("step", sort=True)
    steps = groups.agg(label=("label", "first"), start_s=("start_ps", "min"), time_s=("time_ps", "max"))
    steps = steps.sort_values("start_s").reset_index()
    for column in ("start_s", "time_s"):
        steps[column] = steps[column] / PS_PER_SECOND
    means = groups[list(STEP_PARTS)].mean() / PS_PER_SECOND
    steps = steps.join(means, on="step")
    steps["period_s"] = _periods(steps, frame)
    steps["outlier"] = _outliers(steps["time_s"].to_numpy())
    by_core = kept[["host", "core", "step"]].assign(
        time_s=kept["time_ps"] / PS_PER_SECOND, **{name: kept[name] / PS_PER_SECOND for name in STEP_PARTS}
    )
    return StepFacts(first.source, first.detail, steps, by_core, int(len(whole) - whole.sum()))


def _periods(steps: pd.DataFrame, frame: pd.DataFrame) -> NDArray[np.float64]:
    """Wall time to the next step's start, also where the next one is partial; NaN for the last step."""
    starts = np.sort(frame.groupby("step")["start_ps"].min().to_numpy()) / PS_PER_SECOND
    own = steps["start_s"].to_numpy()
    following = np.searchsorted(starts, own, side="right")
    known = following < len(starts)
    return np.where(known, starts[np.minimum(following, len(starts) - 1)] - own, np.nan)


def _outliers(times: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark steps far longer than the others: modified z score by median absolute deviation."""
    if not len(times):
        return np.zeros(0, dtype=bool)
    median = np.median(times)
    deviation = max(float(np.median(np.abs(times - median))), 1e-3 * float(median), 1e-12)
    scores = 0.6745 * (times - median) / deviation
    return (scores > _OUTLIER_Z) & (times > _OUTLIER_RATIO * median)


_DEFINITIONS = {
    "step_time_mean": (
        "Step time",
        "Mean over whole steps of the longest core's step, from its begin to its end.",
    ),
    "step_time_stddev": ("Step time deviation", "Sample standard deviation of the step times."),
    "step_time_min": ("Shortest step", "Shortest of the step times."),
    "step_time_max": ("Longest step", "Longest of the step times."),
    "step_time_median": ("Median step", "Median of the step times."),
    "step_period_mean": (
        "Step period",
        "Mean wall time from a step's start to the next step's start; time between two steps is part of it.",
    ),
}


_NO_STEPS = "No step was found: add a step annotation to the training loop and capture again."
_NO_OPS = "Steps are marked, but no op was captured: capture again with the device tracer on, and while steps run."
_NONE_WHOLE = "Steps are marked, but none was captured whole on every core: capture for longer."


def _without_steps(reason: str) -> Result:
    """Return the result without step times, and why there are none; where no step is marked, how to mark them."""
    notice = Notice(reason) if reason else _no_steps()
    return Result(metrics=_absent_metrics(reason or _NO_STEPS), blocks=(notice,))


def _absent_metrics(reason: str) -> dict[str, Metric]:
    absent = {
        name: Metric(title=title, value=None, unit="seconds", definition=definition, better="lower", reason=reason)
        for name, (title, definition) in _DEFINITIONS.items()
    }
    evidence = "step markers, module runs and step annotations"
    count = Metric(title="Steps", value=0, unit="count", definition="Whole steps in the capture.", source=evidence)
    return absent | {"step_count": count}


def _metrics(facts: StepFacts) -> dict[str, Metric]:
    times = facts.steps["time_s"]
    periods = facts.steps["period_s"].dropna()
    spread = float(times.std(ddof=1)) if len(times) > 1 else None
    values = {
        "step_time_mean": float(times.mean()),
        "step_time_stddev": spread,
        "step_time_min": float(times.min()),
        "step_time_max": float(times.max()),
        "step_time_median": float(times.median()),
        "step_period_mean": float(periods.mean()) if len(periods) else None,
    }
    source = f"{facts.source.value}{f': {facts.detail}' if facts.detail else ''}"
    found = {
        name: Metric(
            title=_DEFINITIONS[name][0],
            value=value,
            unit="seconds",
            definition=_DEFINITIONS[name][1],
            source=source,
            better="lower",
            reason=None if value is not None else "It needs at least two whole steps.",
            spread=spread if name == "step_time_mean" else None,
        )
        for name, value in values.items()
    }
    count = Metric(
        title="Steps",
        value=len(times),
        unit="count",
        definition="Whole steps in the capture; partial first and last steps are left out.",
        source=source,
    )
    return found | {"step_count": count}


def _no_steps() -> Notice:
    return Notice("No steps were found in this profile, so there are no step times. To mark them:", HOW_TO_ANNOTATE)


def _warnings(facts: StepFacts) -> tuple[str, ...]:
    found = []
    if facts.source is StepSource.MODULE_RUNS:
        found.append(
            f"The device recorded no step markers: a step is one run of {facts.detail}, the module with the most "
            "device time."
        )
    if outliers := int(facts.steps["outlier"].sum()):
        found.append(
            f"{outliers} of {len(facts.steps)} steps are outliers, far above the median (compilation or warm-up?)."
        )
    return tuple(found)
