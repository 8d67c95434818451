"""Steps that take unequal time: outliers, warm-up inside the capture, drift."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reportgen.analyzers.tables import unique_slugs
from reportgen.document import Action, Evidence, Location, Threshold
from reportgen.rules.base import CAPTURE_STEPS, Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.parts import SHOWN, time_saving
from reportgen.units import percent, seconds

_WARM_UP = (
    Action(text="Start the capture later, after compilation and caches have settled: skip the first 10 steps."),
)
_DRIFT = (Action(text="Look for what grows with time: a Python list of metrics, a cache, a queue that fills, "
                 "fragmentation, or a device that heats up and lowers its clock."),)  # fmt: skip
_OUTLIERS = (
    Action(text="Compare the slow steps with a typical one on the timeline: evaluation, checkpoints, logging, garbage "
           "collection or recompilation usually show on a host thread."),
    Action(text="Move what is not every step's work off the step: checkpoints in the background, logging every N "
                "steps."),
)  # fmt: skip


class UnstableSteps(Rule):
    """Spread, outliers, warm-up and drift of the step times."""

    id = "unstable-steps"
    title = "Spread of step times"
    needs = ("steps",)
    remedy = CAPTURE_STEPS
    thresholds = (
        Threshold(name="steps", value=5, unit="whole steps", reason="Fewer do not show a spread."),
        Threshold(
            name="ratio",
            value=1.4,
            unit="90th percentile over median",
            reason="Marin's limit; steps of one program rarely differ by more unless something interferes.",
        ),
        Threshold(
            name="lost", value=0.1, unit="of the mean period", reason="Outliers that cost less are not worth it."
        ),
        Threshold(name="drift", value=1.15, unit="last third over first", reason="Slower than machines' own mood."),
    )
    silenced_by = ("recompilation", "input-bound")

    def check(self, evidence: Evidences) -> Outcome:
        """Look for warm-up, then drift, then outliers."""
        frame, limits = evidence.facts("steps").steps, evidence.limits
        if len(frame) < limits["steps"]:
            return NotApplicable(f"{len(frame)} whole steps do not show a spread.")
        times = periods_of(frame)
        median = float(np.median(times))
        lost = float(times.mean()) - median
        ratio = float(np.quantile(times, 0.9)) / median if median else 1.0
        slow = times > limits["ratio"] * median
        if warm := _warm_up(slow):
            return Found((_draft(evidence, frame, times, slow, "warm-up", f"The first {warm} steps are warm-up"),))
        if (grown := _drift(times)) > limits["drift"]:
            return Found((_drifting(evidence, times, grown),))
        if ratio > limits["ratio"] or (slow.any() and lost > limits["lost"] * times.mean()):
            title = f"{int(slow.sum())} of {len(times)} steps are far slower than the median"
            return Found((_draft(evidence, frame, times, slow, "outliers", title),))
        return Fine(f"The 90th percentile of the step times is {ratio:.2f} times the median.")


def periods_of(frame: pd.DataFrame) -> NDArray[np.float64]:
    """Return the steps' periods in seconds; where one is unknown, the step's own time."""
    return np.asarray(frame["period_s"].fillna(frame["time_s"]), dtype=np.float64)


def _warm_up(slow: NDArray[np.bool_]) -> int:
    """Return how many steps at the beginning are slow where all later ones are not; 0 for none."""
    first = int(np.argmin(slow)) if not slow.all() else 0
    return first if first <= len(slow) // 3 and not slow[first:].any() else 0


def _drift(times: NDArray[np.float64]) -> float:
    """Return the last third's median over the first third's where the middle lies between them, else 1."""
    third = len(times) // 3
    first, middle, last = (float(np.median(part)) for part in np.array_split(times, 3))
    return last / first if third >= 3 and first < middle < last else 1.0


def _draft(
    evidence: Evidences, frame: pd.DataFrame, times: NDArray[np.float64], slow: NDArray[np.bool_], kind: str, title: str
) -> Draft:
    median = float(np.median(times))
    ids = unique_slugs("step", map(str, frame["step"]))
    lost = float((times[slow] - median).sum()) / len(times)
    shown = sorted(np.flatnonzero(slow).tolist(), key=lambda row: -times[row])[:SHOWN]
    warm = kind == "warm-up"
    return Draft(
        title=f"{title}: up to {seconds(float(times.max()))}, the median is {seconds(median)}",
        summary="Means of this report include them; later steps will be faster."
        if warm
        else f"The slow steps cost {seconds(lost)} a step on average, {percent(lost / float(times.mean()))}.",
        evidence=tuple(
            Evidence(
                text=f"Step {frame['label'].iloc[row]}", value=float(times[row]), unit="seconds", table="steps",
                row=ids[row],
            )
            for row in shown
        ),
        threshold="ratio",
        saving=None
        if warm
        else time_saving(
            evidence, 0.5 * lost, 0.9 * lost, lost, "measured", "The slow steps' time over the median, per step."
        ),
        confidence="high",
        locations=tuple(
            Location(kind="step", name=str(frame["label"].iloc[row]), table="steps", row=ids[row]) for row in shown
        ),
        actions=_WARM_UP if warm else _OUTLIERS,
        stake=0.1 * lost / float(times.mean()) if warm else 0.0,
    )  # fmt: skip


def _drifting(evidence: Evidences, times: NDArray[np.float64], grown: float) -> Draft:
    lost = float(times.mean() - np.median(np.array_split(times, 3)[0]))
    return Draft(
        title=f"Steps become slower: {percent(grown - 1)} from the first to the last third of the capture",
        summary=f"The mean step takes {seconds(lost)} longer than those at the beginning, and nothing says that it "
        "stops.",
        evidence=(Evidence(text="Last third over first third of the periods", value=grown, unit=""),),
        threshold="drift",
        saving=time_saving(
            evidence, 0.5 * lost, lost, 1.2 * lost, "measured", "Mean period less that of the first third."
        ),
        confidence="medium",
        actions=_DRIFT,
    )
