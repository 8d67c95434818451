"""Budgets: what a report must keep to, as a TOML file states it."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Literal

import msgspec

from reportgen.document import Severity
from reportgen.errors import UsageError

Level = Literal["off", "warn", "error"]
ANY = "*"


class MetricBudget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of one metric; a value that equals its limit keeps it.

    Attributes:
        max, min: Bounds, in the metric's own unit (seconds, bytes, fractions from 0 to 1).
        max_regression: How much worse than the baseline it may be, as a fraction of the baseline.
        level: "error" fails the gate, "warn" only says so, "off" leaves it out.
        allow_missing: Whether a metric that was not captured is fine; else it counts as failed.

    """

    max: float | None = None
    min: float | None = None
    max_regression: float | None = None
    level: Level = "error"
    allow_missing: bool = False


class FindingBudget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a finding, by its own id or its rule's, or any finding ("*"), means for the gate.

    Attributes:
        level: "error" fails the gate where the finding stands in the report, "warn" only says so, "off" leaves it out.
        min_severity: Findings below it do not count.
        new_only: Whether findings that the baseline has too do not count.
        allow_missing: Whether it is fine that the rule could not tell; else that counts as failed.

    """

    level: Level = "error"
    min_severity: Severity = "info"
    new_only: bool = False
    allow_missing: bool = False


class Budgets(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits by id."""

    metrics: dict[str, MetricBudget] = {}
    findings: dict[str, FindingBudget] = {}

    @property
    def needs_baseline(self) -> bool:
        """Whether a limit refers to a baseline."""
        metrics = (one.level != "off" and one.max_regression is not None for one in self.metrics.values())
        findings = (one.level != "off" and one.new_only for one in self.findings.values())
        return any(metrics) or any(findings)


def read_budgets(path: Path) -> Budgets:
    """Read a file of budgets.

    Raises:
        UsageError: It cannot be read, is no TOML, or holds what no budget knows.

    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: expected a TOML file of budgets, found none that can be read ({error}).") from None
    return budgets_from(content, str(path))


def budgets_from(content: object, name: str = "budgets") -> Budgets:
    """Return budgets given as plain tables.

    Raises:
        UsageError: They hold what no budget knows, or a limit that limits nothing.

    """
    try:
        budgets = msgspec.convert(content, Budgets)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"{name}: expected tables [metrics.ID] and [findings.ID], found something else: {error}.",
            "`reportgen check --init report.json` prints a file to start from.",
        ) from None
    for key, one in budgets.metrics.items():
        _refuse_useless(name, key, one)
    return budgets


def _refuse_useless(name: str, key: str, budget: MetricBudget) -> None:
    limits = [one for one in (budget.max, budget.min, budget.max_regression) if one is not None]
    if not limits:
        raise UsageError(f"{name}: metrics.{key} sets no limit.", "Give max, min or max_regression.")
    if not all(map(math.isfinite, limits)):
        raise UsageError(f"{name}: metrics.{key}: expected finite numbers, found {limits}.")
    if budget.max_regression is not None and budget.max_regression < 0:
        raise UsageError(
            f"{name}: metrics.{key}: expected a max_regression of 0 or more, found {budget.max_regression:g}."
        )
