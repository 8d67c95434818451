"""Hold a report against budgets."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, get_args

import msgspec

from reportgen.document import Check, Finding, Metric, ReportDocument, Severity
from reportgen.errors import UsageError
from reportgen.gate.budgets import ANY, Budgets, FindingBudget, Level, MetricBudget
from reportgen.units import percent, quantity

Status = Literal["passed", "warned", "failed"]
_SLACK = 1e-9  # so that a value which equals its limit up to rounding keeps it
_RANKS = {name: rank for rank, name in enumerate(get_args(Severity))}  # 0 is critical


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one limit.

    Attributes:
        kind: What it limits.
        id: Id of the metric, finding or rule.
        title: The same for people.
        limit: The limit in words.
        actual: What the report says.
        excess: By how much the limit is missed; "" where it is kept or cannot be measured.

    """

    kind: Literal["metric", "finding"]
    id: str
    title: str
    limit: str
    actual: str
    status: Status
    excess: str = ""


class GateResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of all limits, failed ones first."""

    report: str
    outcomes: tuple[Outcome, ...]

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """Limits that fail the gate."""
        return tuple(one for one in self.outcomes if one.status == "failed")

    @property
    def warned(self) -> tuple[Outcome, ...]:
        """Limits that were missed, but only warn."""
        return tuple(one for one in self.outcomes if one.status == "warned")

    @property
    def passed(self) -> bool:
        """Whether no limit fails the gate."""
        return not self.failed


def check(document: ReportDocument, budgets: Budgets, baseline: ReportDocument | None = None) -> GateResult:
    """Hold a report against budgets.

    Raises:
        UsageError: A limit refers to a baseline and there is none, or to the worse direction of a metric that has none.

    """
    if baseline is None and budgets.needs_baseline:
        raise UsageError("a budget has max_regression or new_only, and there is no baseline.", "Give --baseline FILE.")
    outcomes = [
        *(one for key, limit in budgets.metrics.items() for one in _metric(key, limit, document, baseline)),
        *(one for key, limit in budgets.findings.items() for one in _finding(key, limit, document, baseline)),
    ]
    order = ("failed", "warned", "passed")
    return GateResult(report=document.title, outcomes=tuple(sorted(outcomes, key=lambda one: order.index(one.status))))


def _missed(level: Level) -> Status:
    return "failed" if level == "error" else "warned"


def _metric(
    key: str, budget: MetricBudget, document: ReportDocument, baseline: ReportDocument | None
) -> Iterator[Outcome]:
    if budget.level == "off":
        return
    metric = document.metrics.get(key)
    for limit in ("max", "min", "max_regression"):
        allowed = getattr(budget, limit)
        if allowed is None:
            continue
        if metric is None or metric.value is None:
            yield _missing(key, metric, f"{limit} {allowed:g}", budget)
        elif limit == "max_regression":
            yield _regression(key, metric, budget, baseline)
        else:
            yield _bound(key, metric, budget, allowed, upper=limit == "max")


def _missing(key: str, metric: Metric | None, limit: str, budget: MetricBudget, where: str = "") -> Outcome:
    reason = f": {metric.reason}" if metric and metric.reason else ""
    actual = f"not captured{where}{reason}" if metric else f"no such metric{where or ' in the report'}"
    return Outcome(
        kind="metric",
        id=key,
        title=metric.title if metric else key,
        limit=limit,
        actual=actual,
        status="passed" if budget.allow_missing else _missed(budget.level),
    )


def _bound(key: str, metric: Metric, budget: MetricBudget, allowed: float, *, upper: bool) -> Outcome:
    value = metric.value if metric.value is not None else math.nan
    over = value - allowed if upper else allowed - value
    kept = over <= _SLACK * abs(allowed)
    share = f" ({percent(over / abs(allowed))})" if allowed else ""
    return Outcome(
        kind="metric",
        id=key,
        title=metric.title,
        limit=f"at {'most' if upper else 'least'} {quantity(allowed, metric.unit)}",
        actual=quantity(value, metric.unit),
        status="passed" if kept else _missed(budget.level),
        excess="" if kept else f"{quantity(over, metric.unit)} too {'much' if upper else 'little'}{share}",
    )


def _regression(key: str, metric: Metric, budget: MetricBudget, baseline: ReportDocument | None) -> Outcome:
    allowed, value = budget.max_regression or 0.0, metric.value or 0.0
    if metric.better is None:
        raise UsageError(
            f"metrics.{key}: neither direction of {metric.title!r} is worse.", "Give it max or min instead."
        )
    base = baseline.metrics.get(key) if baseline else None
    limit = f"at most {percent(allowed)} worse than the baseline"
    if base is None or base.value is None:
        return _missing(key, base, limit, budget, " in the baseline")
    worse_by = value - base.value if metric.better == "lower" else base.value - value
    kept = worse_by <= allowed * abs(base.value) + _SLACK * abs(base.value)
    share = percent(worse_by / abs(base.value)) if base.value else "from nothing"
    return Outcome(
        kind="metric",
        id=key,
        title=metric.title,
        limit=f"{limit} ({quantity(base.value, metric.unit)})",
        actual=quantity(value, metric.unit),
        status="passed" if kept else _missed(budget.level),
        excess="" if kept else f"{quantity(worse_by, metric.unit)} worse ({share})",
    )


def _finding(
    key: str, budget: FindingBudget, document: ReportDocument, baseline: ReportDocument | None
) -> Iterator[Outcome]:
    if budget.level == "off":
        return
    known = _matching(key, baseline) if budget.new_only and baseline else []
    old = {one.id for one in known}
    found = [
        one
        for one in _matching(key, document)
        if one.id not in old and _RANKS[one.severity] <= _RANKS[budget.min_severity]
    ]
    limit = f"no {'new ' if budget.new_only else ''}finding"
    limit += "" if budget.min_severity == "info" else f" of severity {budget.min_severity} or worse"
    for one in found:
        yield Outcome(
            kind="finding", id=one.id, title=one.title, limit=limit, actual=f"found, {one.severity}",
            status=_missed(budget.level), excess=_saving(one),
        )  # fmt: skip
    if not found:
        yield _none_found(key, budget, document, limit)


def _matching(key: str, document: ReportDocument) -> list[Finding]:
    """Return the findings that a key names; "*" leaves out those that another finding explains."""
    if key == ANY:
        return [one for one in document.findings if one.silenced_by is None]
    return [one for one in document.findings if key in (one.id, one.rule)]


def _saving(finding: Finding) -> str:
    return f"costs about {quantity(finding.saving.likely, finding.saving.unit)}" if finding.saving else ""


def _none_found(key: str, budget: FindingBudget, document: ReportDocument, limit: str) -> Outcome:
    rule = _rule_of(key, document)
    blind = key != ANY and (rule is None or rule.status in ("cannot_tell", "error"))
    actual = "none"
    if blind:
        actual = f"could not be checked: {rule.reason}" if rule else "no such rule or finding in the report"
    return Outcome(
        kind="finding",
        id=key,
        title="Any finding" if key == ANY else rule.title if rule else key,
        limit=limit,
        actual=actual,
        status=_missed(budget.level) if blind and not budget.allow_missing else "passed",
    )


def _rule_of(key: str, document: ReportDocument) -> Check | None:
    """Return the outcome of the rule that a key names: a rule's id, or a finding's, which may carry a suffix."""
    owners = [one for one in document.checks if key == one.rule or key.startswith(f"{one.rule}-")]
    return max(owners, key=lambda one: len(one.rule), default=None)
