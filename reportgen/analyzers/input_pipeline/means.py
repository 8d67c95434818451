"""Means over the steps that count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from reportgen.analyzers.input_pipeline.activity import NOTHING_RECORDED
from reportgen.units import PS_PER_SECOND


@dataclass(frozen=True)
class Means:
    """Seconds per step.

    Attributes:
        period_s: From the end of the step before to the step's own.
        wait_s: Exposed wait for input.
        hidden_s: Input work beside running ops.
        other_s: Neither ops nor waiting for input: "all others".
        unrecorded_s: The part of it in which the host recorded nothing.

    """

    period_s: float
    wait_s: float
    hidden_s: float
    other_s: float
    unrecorded_s: float

    @property
    def share(self) -> float:
        """Share of the periods spent waiting for input."""
        return self.wait_s / self.period_s

    @property
    def unrecorded_share(self) -> float:
        """Share of the periods in which the device idled and the host recorded nothing."""
        return self.unrecorded_s / self.period_s


def means_of(steps: pd.DataFrame, activity: pd.DataFrame) -> Means | None:
    """Return the means; None without steps."""
    if not len(steps) or not steps["period_ps"].sum():
        return None
    mean = steps[["period_ps", "wait_ps", "hidden_ps", "busy_ps"]].mean() / PS_PER_SECOND
    period, wait, hidden, busy = (float(value) for value in mean)
    other = max(0.0, period - wait - busy)
    total = int(activity["time_ps"].sum())
    silent = int(activity.loc[activity["group"] == NOTHING_RECORDED, "time_ps"].sum())
    return Means(period, wait, hidden, other, other * silent / total if total else 0.0)


def merge_steps(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return one row a step: the host that waited longest, with the longest period of all.

    The first step is left out where there are more than two: nothing says when its period began.
    """
    present = [frame for frame in frames if len(frame)]
    if not present:
        return frames[0]
    frame = pd.concat(present, ignore_index=True)
    order = frame.sort_values(["step", "wait_ps", "period_ps"], kind="stable")
    worst = order.groupby("step", sort=True).last()
    worst["period_ps"] = frame.groupby("step")["period_ps"].max()
    worst = worst.reset_index()
    return worst.iloc[1:].reset_index(drop=True) if len(worst) > 2 else worst
