"""The contract of a rule: what it needs, its thresholds, and one of four outcomes.

A rule looks at the results of analyses and never at the profile. Severity, order, silencing and the verdict are made
in one place, `reportgen.rules.run`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar

import pandas as pd

from reportgen.analyzers.base import Result
from reportgen.analyzers.inventory import HostInfo
from reportgen.analyzers.op_cards import op_ids
from reportgen.document import Action, Basis, Confidence, Evidence, Location, Saving, Table, Threshold
from reportgen.profile.ops import OP_COLUMNS

T = TypeVar("T")

CAPTURE_OPS = "Capture while a step runs, with the device tracer on: reportgen capture HOST:PORT --duration 5s"
CAPTURE_STEPS = "Mark the steps (jax.profiler.StepTraceAnnotation, tf.profiler.experimental.Trace) and capture again."


@dataclass(frozen=True)
class Draft:
    """A finding as its rule writes it; the runner adds severity, order and what silences it.

    Attributes:
        title: What is wrong, with the number.
        summary: Why it matters.
        evidence: What was observed, with the rows that show it.
        saving: None where no honest number can be given.
        threshold: Name of the threshold that was crossed.
        stake: Share of the step, the memory or the capture that the finding is about; orders findings without a saving.
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
    stake: float = 0.0


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


def _no_ops() -> pd.DataFrame:
    texts = {name: pd.Series(dtype=object) for name in (*OP_COLUMNS, "row_id")}
    return pd.DataFrame(texts | {"self_s": pd.Series(dtype=float)})


@dataclass(frozen=True)
class Evidences:
    """What rules see.

    Attributes:
        results: Results of the analyses by id.
        hosts: Who the hosts are.
        limits: Values of the rule's thresholds by name, the user's where given.
        ops: The ops of the op profile with `row_id`, the id of their row in the table `hlo_ops`; empty without ops.

    """

    results: Mapping[str, Result]
    hosts: tuple[HostInfo, ...]
    limits: Mapping[str, float]
    ops: pd.DataFrame = field(default_factory=_no_ops)
    _known: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, results: Mapping[str, Result], hosts: tuple[HostInfo, ...]) -> Evidences:
        """Return the evidence of a run, without the thresholds of a rule."""
        profile = results.get("op-profile")
        if profile is None or profile.facts is None:
            return cls(results, hosts, {})
        return cls(results, hosts, {}, profile.facts.ops.assign(row_id=op_ids(profile.facts.ops)))

    def once(self, name: str, work: Callable[[Evidences], T]) -> T:
        """Return what several rules work out of the evidence, worked out once; it must not depend on `limits`."""
        if name not in self._known:
            self._known[name] = work(self)
        found: T = self._known[name]
        return found

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
        return steps.mean_period if steps is not None and len(steps.steps) else None

    @property
    def whole(self) -> float | None:
        """What savings are compared with, in seconds: a step, or without steps the capture on one core."""
        profile = self.facts("op-profile")
        captured = profile.total / len(profile.cores) if profile is not None and profile.cores else None
        return self.step_time or captured

    @property
    def memory(self) -> float | None:
        """What savings of memory are compared with, in bytes.

        The geometric mean of what the program needs and what the device has: half of a small program is worth naming,
        but little is won by it.
        """
        facts = self.facts("program-memory")
        if facts is None:
            return None
        needed = max(program.allocated for program in facts.programs)
        return math.sqrt(needed * facts.capacity) if facts.capacity else float(needed)

    @property
    def framework(self) -> str:
        """The framework that most hosts ran; "" where the profile does not tell."""
        names = [host.framework for host in self.hosts if host.framework]
        return max(sorted(set(names)), key=names.count) if names else ""

    @property
    def basis(self) -> Basis:
        """Whether times were measured, or modelled by whoever made the profile."""
        return "modelled" if any(host.modelled for host in self.hosts) else "measured"

    def share(self, core_seconds: float) -> float:
        """Return time summed over cores as a share of all device time, idle time included."""
        profile = self.facts("op-profile")
        return core_seconds / profile.total if profile is not None and profile.total else 0.0

    def per_step(self, core_seconds: float) -> float:
        """Return time summed over cores as time of one step of one core; without steps, of the capture."""
        return self.share(core_seconds) * (self.whole or 0.0)


class Rule(Protocol):
    """A rule; built-in ones and those of others derive from it.

    Attributes:
        id: Kebab case, fixed for years; its page is `docs/rules/<id>.md`.
        title: What it looks for.
        needs: Analyses without whose facts it cannot tell.
        remedy: How to capture what it needs.
        devices: Devices of which it speaks.
        thresholds: Its limits, each with unit and reason.
        silenced_by: Rules, or single findings by their id, that explain this one's.

    """

    id: ClassVar[str]
    title: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ("op-profile",)
    remedy: ClassVar[str] = CAPTURE_OPS
    devices: ClassVar[tuple[str, ...]] = ("TPU", "GPU", "CPU")
    thresholds: ClassVar[tuple[Threshold, ...]] = ()
    silenced_by: ClassVar[tuple[str, ...]] = ()

    def check(self, evidence: Evidences) -> Outcome:
        """Return the outcome; only called when all that it needs is there."""
