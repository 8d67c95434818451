"""What several rules need: savings, places and evidence of ops, sums by category."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from reportgen.analyzers.classes import is_collective
from reportgen.document import Basis, Evidence, Location, Saving
from reportgen.rules.base import Evidences
from reportgen.units import percent, seconds

SHOWN = 8
WIDEST = 3.0


def time_saving(evidence: Evidences, low: float, likely: float, high: float, basis: Basis, how: str) -> Saving | None:
    """Return a saving of time.

    Args:
        evidence: Tells whether the profile's times are measured.
        low: Seconds of a step (see `Evidences.per_step`).
        likely: The same.
        high: The same.
        basis: "measured" becomes "modelled" where the profile's times are.
        how: How it was worked out.

    Returns:
        None where the range is wider than three times its low end: that is no number worth giving.

    """
    if low <= 0 or high > WIDEST * low * (1 + 1e-9):
        return None
    origin = evidence.basis if basis == "measured" else basis
    return Saving(low=low, likely=likely, high=high, unit="seconds", basis=origin, how=how)


def byte_saving(low: float, likely: float, high: float, basis: Basis, how: str) -> Saving | None:
    """Return a saving of memory in bytes; None where the range is wider than three times its low end."""
    if low <= 0 or high > WIDEST * low * (1 + 1e-9):
        return None
    return Saving(low=low, likely=likely, high=high, unit="bytes", basis=basis, how=how)


def op_location(row: Any) -> Location:
    """Return where an op is: its row in the table of ops and its line in the user's source."""
    return Location(
        kind="op", name=str(row["name"]), table="hlo_ops", row=str(row["row_id"]), source=str(row["source"])
    )


def op_locations(ops: pd.DataFrame) -> tuple[Location, ...]:
    """Return the places of the largest ops."""
    return tuple(op_location(row) for row in ops.head(SHOWN).to_dict("records"))


def op_evidence(row: Any, text: str, evidence: Evidences) -> Evidence:
    """Return what is observed of one op, with its time in a step."""
    time = float(row["self_s"])
    return Evidence(
        text=f"{row['name']}: {text}", value=evidence.per_step(time), unit="seconds", table="hlo_ops", row=row["row_id"]
    )


def category_evidence(ops: pd.DataFrame, evidence: Evidences) -> tuple[Evidence, ...]:
    """Return the time of each category among ops, and the largest ops."""
    sums = ops.groupby("category")["self_s"].sum().sort_values(ascending=False)
    parts = [
        Evidence(
            text=f"{category}: {percent(evidence.share(float(time)))} of device time",
            value=evidence.per_step(float(time)),
            unit="seconds",
        )
        for category, time in sums.head(SHOWN // 2).items()
    ]
    rows = ops.head(SHOWN // 2).to_dict("records")
    return (*parts, *(op_evidence(row, str(row["category"]), evidence) for row in rows))


def of_categories(evidence: Evidences, categories: Iterable[str]) -> pd.DataFrame:
    """Return the ops of some categories, by self time; empty without ops."""
    return evidence.ops[evidence.ops["category"].isin(list(categories))]


def collective_ops(evidence: Evidences) -> pd.DataFrame:
    """Return the ops that are communication between devices, by self time; empty without ops."""
    return evidence.ops[[is_collective(category) for category in evidence.ops["category"]]]


def a_step(evidence: Evidences) -> str:
    """Return "a step", or what stands in for it where there are no steps."""
    return "a step" if evidence.step_time else "in the capture"


def step_text(evidence: Evidences, core_seconds: float) -> str:
    """Return a time summed over cores as "1.2 ms a step"."""
    return f"{seconds(evidence.per_step(core_seconds))} {a_step(evidence)}"
