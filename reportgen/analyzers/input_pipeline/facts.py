"""What rules and later analyses need to know of the input pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from reportgen.analyzers.input_pipeline.names import Category
from reportgen.settings import Settings

MODERATE, HIGH = "input-bound.moderate", "input-bound.high"
# XProf's limits: below 5 % not input-bound, from 20 % highly input-bound.
_DEFAULTS = {MODERATE: 0.05, HIGH: 0.20}
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
        share: Share of the steps' periods spent waiting for input; None without steps.
        wait_s: Mean wait per step in seconds; None without steps.
        steps: One row a step, with the columns of `waits.WAIT_COLUMNS`.
        ops: Input ops, with the columns of `ops.OP_COLUMNS`.
        categories: Self time of the five categories in picoseconds.

    """

    share: float | None
    wait_s: float | None
    steps: pd.DataFrame
    ops: pd.DataFrame
    categories: Mapping[Category, int]
    verdict: Verdict


def threshold(settings: Settings, name: str) -> float:
    """Return a threshold as the settings give it, or its default."""
    return settings.thresholds.get(name, _DEFAULTS[name])


def verdict_of(share: float | None, settings: Settings) -> Verdict:
    """Return the verdict for a share of waiting."""
    moderate, high = threshold(settings, MODERATE), threshold(settings, HIGH)
    if share is None:
        return Verdict("cannot tell", "The profile shows no steps.", moderate, high)
    level: Level = "highly" if share >= high else "moderately" if share >= moderate else "not"
    return Verdict(level, "", moderate, high)
