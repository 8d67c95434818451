"""What rules and later analyses need to know of the input pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from reportgen.analyzers.input_pipeline.diagnosis import Blame, Waited
from reportgen.analyzers.input_pipeline.means import Means
from reportgen.analyzers.input_pipeline.names import Category
from reportgen.document import Evidence, Saving
from reportgen.settings import Settings
from reportgen.units import percent

MODERATE, HIGH = "input-bound.moderate", "input-bound.high"
# XProf's limits: below 5 % not input-bound, from 20 % highly input-bound.
DEFAULTS = {MODERATE: 0.05, HIGH: 0.20}
Level = Literal["not", "moderately", "highly", "cannot tell"]


@dataclass(frozen=True)
class Verdict:
    """Whether the program is input-bound, with the thresholds (shares of the period) and the reason."""

    level: Level
    reason: str
    moderate: float
    high: float


@dataclass(frozen=True)
class InputFacts:
    """The input pipeline over all hosts.

    Attributes:
        framework: "jax", "tensorflow", "pytorch_xla" or "".
        means: Seconds per step; None without steps.
        verdict: Whether the program is input-bound.
        blame: The stage to blame; None where nothing was waited for.
        saving: Seconds per step that a faster pipeline would bring; None where nothing was waited for.
        evidence: What was observed, with the rows of the tables that show it.
        steps: One row a step, with the columns of `waits.WAIT_COLUMNS`.
        ops: Input ops, with the columns of `ops.OP_COLUMNS`.
        categories: Self time of the five categories in picoseconds.
        waited: What the wait consists of.
        activity: What the host did in the other time, with the columns of `activity.ACTIVITY_COLUMNS`.
        python_traced: Whether the Python tracer was on.
        steps_from_calls: Whether nothing marks the steps, so that a step is from one call for a batch to the next.

    """

    framework: str
    means: Means | None
    verdict: Verdict
    blame: Blame | None
    saving: Saving | None
    evidence: tuple[Evidence, ...]
    steps: pd.DataFrame
    ops: pd.DataFrame
    categories: Mapping[Category, int]
    waited: Waited
    activity: pd.DataFrame
    python_traced: bool
    steps_from_calls: bool

    @property
    def share(self) -> float | None:
        """Share of the steps' periods spent waiting for input; None without steps."""
        return self.means.share if self.means else None

    @property
    def wait_s(self) -> float | None:
        """Wait per step in seconds; None without steps."""
        return self.means.wait_s if self.means else None


def threshold(settings: Settings, name: str) -> float:
    """Return a threshold as the settings give it, or its default."""
    return settings.thresholds.get(name, DEFAULTS[name])


def verdict_of(means: Means | None, traced: bool, shows_loading: bool, settings: Settings) -> Verdict:
    """Return whether a program is input-bound.

    Args:
        means: Seconds per step; None without steps.
        traced: Whether the Python tracer was on.
        shows_loading: Whether the getting of batches was recorded on every host: if not, it may hide in the time in
            which nothing was recorded.
        settings: Hold the thresholds.

    """
    moderate, high = threshold(settings, MODERATE), threshold(settings, HIGH)
    if means is None:
        return Verdict("cannot tell", "the profile shows no steps.", moderate, high)
    share, unexplained = means.share, means.unrecorded_share
    if share >= moderate:
        return Verdict("highly" if share >= high else "moderately", "", moderate, high)
    if shows_loading or share + unexplained < moderate:
        return Verdict("not", "", moderate, high)
    reason = f"for {percent(unexplained)} of the time the device idled and the host recorded nothing"
    advice = (
        "annotate the loading of batches"
        if traced
        else "capture with Python tracing, or annotate the loading of batches"
    )
    return Verdict("cannot tell", f"{reason}; {advice}, to see whether that was input.", moderate, high)
