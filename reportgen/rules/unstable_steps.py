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
            name="cpu_ratio",
            value=2.0,
            unit="90th percentile over median",
            reason="Where XLA runs on the host's own cores, every other process shows in the steps.",
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
        profile = evidence.facts("op-profile")
        limit = "cpu_ratio" if profile is None or profile.device == "CPU" else "ratio"
        times = periods_of(frame)
        median, mean = float(np.median(times)), float(times.mean())
        ratio = float(np.quantile(times, 0.9)) / median if median else 1.0
        slow = times > limits[limit] * median
        if warm := _warm_up(slow):
            return Found((_warming(frame, times, warm, limit),))
        grown = _drift(times)
        if grown > limits["drift"] and (limit == "ratio" or grown > limits[limit]):
            return Found((_drifting(evidence, times, grown),))
        if ratio > limits[limit] or (slow.any() and mean - median > limits["lost"] * mean):
            return Found((_outlying(evidence, frame, times, slow, limit),))
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


def _slowest(
    frame: pd.DataFrame, times: NDArray[np.float64], rows: NDArray[np.int64]
) -> tuple[tuple[Evidence, ...], tuple[Location, ...]]:
    """Return the slowest of some steps as evidence and as places."""
    ids = unique_slugs("step", map(str, frame["step"]))
    shown = sorted(rows.tolist(), key=lambda row: -times[row])[:SHOWN]
    labels = [str(frame["label"].iloc[row]) for row in shown]
    pairs = list(zip(labels, shown, strict=True))
    return (
        tuple(
            Evidence(text=f"Step {label}", value=float(times[row]), unit="seconds", table="steps", row=ids[row])
            for label, row in pairs
        ),
        tuple(Location(kind="step", name=label, table="steps", row=ids[row]) for label, row in pairs),
    )


def _warming(frame: pd.DataFrame, times: NDArray[np.float64], count: int, limit: str) -> Draft:
    median = float(np.median(times))
    seen, places = _slowest(frame, times, np.arange(count))
    lost = float((times[:count] - median).sum() / times.sum())
    steps = "step is" if count == 1 else f"{count} steps are"
    return Draft(
        title=f"The first {steps} warm-up: up to {seconds(float(times.max()))}, the median is {seconds(median)}",
        summary="Means of this report include them; later steps are faster.",
        evidence=seen,
        threshold=limit,
        saving=None,
        confidence="high",
        locations=places,
        actions=_WARM_UP,
        suffix="warm-up",
        stake=0.1 * lost,
    )


def _outlying(
    evidence: Evidences, frame: pd.DataFrame, times: NDArray[np.float64], slow: NDArray[np.bool_], limit: str
) -> Draft:
    median = float(np.median(times))
    seen, places = _slowest(frame, times, np.flatnonzero(slow))
    lost = float((times[slow] - median).sum()) / len(times)
    return Draft(
        title=f"{int(slow.sum())} of {len(times)} steps are far slower than the median: up to "
        f"{seconds(float(times.max()))}, the median is {seconds(median)}",
        summary=f"They cost {seconds(lost)} a step on average, {percent(lost / float(times.mean()))}.",
        evidence=seen,
        threshold=limit,
        saving=time_saving(
            evidence, 0.5 * lost, 0.9 * lost, lost, "measured", "The slow steps' time over the median, per step."
        ),
        confidence="high",
        locations=places,
        actions=_OUTLIERS,
    )


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
        suffix="drift",
    )
