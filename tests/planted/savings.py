"""Predicted savings against the repaired twin's own figures: time from the compiler's cycles, or XLA's bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.planted.cases import CASES, Case, Outcome, outcome

RULES = ("padding-waste", "precision", "missing-donation", "costly-remat", "memory-padding")


class Prediction(NamedTuple):
    """A saving as predicted on the faulty program, and as its repaired twin bears it out; seconds a step or bytes."""

    case: str
    unit: str
    low: float
    likely: float
    high: float
    actual: float

    @property
    def error(self) -> float:
        """The likely value over the actual one, less 1."""
        return self.likely / self.actual - 1 if self.actual > 0 else float("inf")

    @property
    def inside(self) -> bool:
        """Whether the actual saving lies in the range."""
        return self.low <= self.actual <= self.high


def predictions() -> Iterator[Prediction]:
    """Yield the predicted and actual saving of every case whose saving a twin can bear out."""
    for name, case in CASES.items():
        if case.rule in RULES and case.origin == "compiled for TPU":
            finding = outcome(name, "faulty").of(case.rule)
            saving = finding.saving if finding is not None else None
            if saving is not None:
                actual = _actual(case, saving.unit)
                yield Prediction(name, saving.unit, saving.low, saving.likely, saving.high, actual)


def _actual(case: Case, unit: str) -> float:
    """Return what the repair saves; time for the same work, where the twin does more or less."""
    faulty, repaired = outcome(case.name, "faulty"), outcome(case.name, "repaired")
    if unit == "bytes":
        return _bytes(faulty) - _bytes(repaired)
    return faulty.step - repaired.step / case.work


def _bytes(found: Outcome) -> float:
    return float(found.analysis.results["program-memory"].facts.programs[0].allocated)


def largest_of_twin(found: Outcome) -> float:
    """Return the largest saving of time named for a profile, as a share of its step."""
    savings = [finding.saving for finding in found.verdicts.findings if finding.silenced_by is None]
    return max((saving.likely / found.step for saving in savings if saving and saving.unit == "seconds"), default=0.0)
