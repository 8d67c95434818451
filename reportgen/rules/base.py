"""The contract of a rule: what it needs, its thresholds, and one of four outcomes.

A rule looks at the results of analyses and never at the profile. Severity, order, silencing and the verdict are made
in one place, `reportgen.rules.run`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from reportgen.analyzers.base import Result
from reportgen.analyzers.inventory import HostInfo
from reportgen.document import Action, Confidence, Evidence, Location, Saving, Table, Threshold


@dataclass(frozen=True)
class Draft:
    """A finding as its rule writes it; the runner adds severity, order and what silences it.

    Attributes:
        title: What is wrong, with the number.
        summary: Why it matters.
        evidence: What was observed, with the rows that show it.
        saving: None where no honest number can be given.
        threshold: Name of the threshold that was crossed.
        suffix: Sets apart several findings of one rule; "" for the only one.

    """

    title: str
    summary: str
    evidence: tuple[Evidence, ...]
    threshold: str
    saving: Saving | None
    confidence: Confidence
    locations: tuple[Location, ...] = ()
    actions: tuple[Action, ...] = ()
    suffix: str = ""


@dataclass(frozen=True)
class Found:
    """Something is worth changing."""

    drafts: tuple[Draft, ...]


@dataclass(frozen=True)
class Fine:
    """Looked and found nothing worth changing; the reason holds the number."""

    reason: str


@dataclass(frozen=True)
class NotApplicable:
    """The rule speaks of something that this profile has not: another device, no such op."""

    reason: str


@dataclass(frozen=True)
class CannotTell:
    """What the rule needs was not captured; the remedy says how to capture it."""

    reason: str
    remedy: str


Outcome = Found | Fine | NotApplicable | CannotTell


@dataclass(frozen=True)
class Evidences:
    """What rules see.

    Attributes:
        results: Results of the analyses by id.
        hosts: Who the hosts are.
        limits: Values of the rule's thresholds by name, the user's where given.

    """

    results: Mapping[str, Result]
    hosts: tuple[HostInfo, ...]
    limits: Mapping[str, float]

    def facts(self, analyzer: str) -> Any:
        """Return the facts of an analysis; None where it failed or could not look."""
        result = self.results.get(analyzer)
        return result.facts if result else None

    def table(self, table: str) -> Table | None:
        """Return a table by its id."""
        return next((result.tables[table] for result in self.results.values() if table in result.tables), None)

    def metric(self, metric: str) -> float | None:
        """Return a metric's value; None where it was not captured."""
        found = next((result.metrics[metric] for result in self.results.values() if metric in result.metrics), None)
        return found.value if found else None

    @property
    def step_time(self) -> float | None:
        """Mean wall time of a step in seconds; None without steps."""
        steps = self.facts("steps")
        return steps.mean_period if steps is not None else None

    @property
    def framework(self) -> str:
        """The framework that most hosts ran; "" where the profile does not tell."""
        names = [host.framework for host in self.hosts if host.framework]
        return max(sorted(set(names)), key=names.count) if names else ""

    def per_step(self, seconds_over_cores: float) -> float | None:
        """Return core time as time of a step: divided by the number of cores and steps; None without steps."""
        steps, ops = self.facts("steps"), self.facts("op-profile")
        if steps is None or ops is None or not len(steps.steps) or not ops.cores:
            return None
        inside = steps.mean_time * len(steps.steps) * len(ops.cores)
        return seconds_over_cores / ops.total * steps.mean_period if ops.total and inside else None


class Rule(Protocol):
    """A rule.

    Attributes:
        id: Kebab case, fixed for years; its page is `docs/rules/<id>.md`.
        title: What it looks for.
        needs: Analyses without whose facts it cannot tell.
        remedy: How to capture what it needs.
        thresholds: Its limits, each with unit and reason.
        silenced_by: Rules whose finding explains this one's.

    """

    id: ClassVar[str]
    title: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]
    remedy: ClassVar[str]
    thresholds: ClassVar[tuple[Threshold, ...]]
    silenced_by: ClassVar[tuple[str, ...]]

    def check(self, evidence: Evidences) -> Outcome:
        """Return the outcome; only called when all that it needs is there."""
