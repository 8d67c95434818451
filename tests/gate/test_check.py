"""Limits of the gate, each side of each kind."""

from __future__ import annotations

import msgspec
import pytest

from reportgen.document import Check, Finding, Metric, ReportDocument
from reportgen.errors import UsageError
from reportgen.gate import GateResult, check
from reportgen.gate.budgets import budgets_from
from tests.renderers.documents import realistic


def report(
    value: float | None = None,
    better: str | None = "lower",
    findings: tuple[Finding, ...] = (),
    checks: tuple[Check, ...] = (),
) -> ReportDocument:
    metric = Metric(
        title="Step time", value=value, unit="seconds", definition="Mean.", better=better,
        reason="No steps." if value is None else None,
    )  # fmt: skip
    return msgspec.structs.replace(realistic(), metrics={"step_time_mean": metric}, findings=findings, checks=checks)


def finding(severity: str = "high", **changes: object) -> Finding:
    return msgspec.structs.replace(realistic().findings[0], **{"severity": severity, "silenced_by": None, **changes})


def of_metric(document: ReportDocument, baseline: ReportDocument | None = None, **limits: object) -> GateResult:
    return check(document, budgets_from({"metrics": {"step_time_mean": limits}}), baseline)


def of_finding(
    document: ReportDocument, baseline: ReportDocument | None = None, key: str = "input-bound", **limits: object
) -> GateResult:
    return check(document, budgets_from({"findings": {key: limits}}), baseline)


@pytest.mark.parametrize(("value", "passed"), [(0.0999, True), (0.1, True), (0.1001, False)])
def test_max(value: float, passed: bool) -> None:
    result = of_metric(report(value), max=0.1)
    assert result.passed is passed
    if not passed:
        assert result.failed[0].excess == "100 µs too much (0.100 %)"


@pytest.mark.parametrize(("value", "passed"), [(0.0999, False), (0.1, True), (0.1001, True)])
def test_min(value: float, passed: bool) -> None:
    result = of_metric(report(value), min=0.1)
    assert result.passed is passed
    if not passed:
        assert result.failed[0].excess == "100 µs too little (0.100 %)"


@pytest.mark.parametrize(
    ("better", "value", "passed"),
    [
        ("lower", 1.05, True), ("lower", 1.0501, False), ("lower", 0.5, True),
        ("higher", 0.95, True), ("higher", 0.9499, False), ("higher", 1.5, True),
    ],
)  # fmt: skip
def test_regression_counts_in_the_worse_direction_alone(better: str, value: float, passed: bool) -> None:
    result = of_metric(report(value, better), report(1.0, better), max_regression=0.05)
    assert result.passed is passed
    if not passed:
        assert result.failed[0].excess == "50.1 ms worse (5.01 %)"


def test_a_limit_of_no_regression_holds_for_equal_values() -> None:
    assert of_metric(report(0.1), report(0.1), max_regression=0).passed
    assert not of_metric(report(0.1001), report(0.1), max_regression=0).passed


def test_a_baseline_of_zero() -> None:
    assert of_metric(report(0.0), report(0.0), max_regression=0.05).passed
    assert "from nothing" in of_metric(report(0.1), report(0.0), max_regression=0.05).failed[0].excess


@pytest.mark.parametrize(("allow", "passed"), [(False, False), (True, True)])
def test_a_metric_that_was_not_captured(allow: bool, passed: bool) -> None:
    result = of_metric(report(None), max=0.1, allow_missing=allow)
    assert result.passed is passed
    assert result.outcomes[0].actual == "not captured: No steps."
    assert of_metric(report(0.1), report(None), max_regression=0.1, allow_missing=allow).passed is passed
    unknown = check(report(0.1), budgets_from({"metrics": {"stp_time": {"max": 1, "allow_missing": allow}}}))
    assert unknown.passed is passed
    assert unknown.outcomes[0].actual == "no such metric in the report"


def test_levels() -> None:
    assert of_metric(report(1.0), max=0.1, level="error").failed
    warned = of_metric(report(1.0), max=0.1, level="warn")
    assert (warned.passed, len(warned.warned)) == (True, 1)
    assert of_metric(report(1.0), max=0.1, level="off").outcomes == ()
    assert of_finding(report(findings=(finding(),)), level="off").outcomes == ()
    assert of_finding(report(findings=(finding(),)), level="warn").warned
    assert of_finding(report(findings=(finding(),))).failed


@pytest.mark.parametrize(("severity", "passed"), [("high", False), ("medium", False), ("low", True)])
def test_severity(severity: str, passed: bool) -> None:
    document = report(findings=(finding(severity),), checks=realistic().checks)
    assert of_finding(document, key="*", min_severity="medium").passed is passed


def test_new_findings_only() -> None:
    old, new = report(findings=(finding(),)), report(findings=(finding(), finding(id="input-bound-2")))
    assert [one.id for one in of_finding(new, old, new_only=True).failed] == ["input-bound-2"]
    assert of_finding(old, old, key="*", new_only=True).passed


def test_any_finding_leaves_out_what_another_one_explains() -> None:
    explained = report(findings=(finding(silenced_by="other"),))
    assert of_finding(explained, key="*").passed
    assert not of_finding(explained, key="input-bound").passed


@pytest.mark.parametrize(("status", "passed"), [("fine", True), ("not_applicable", True), ("cannot_tell", False)])
def test_a_rule_that_could_not_tell_fails(status: str, passed: bool) -> None:
    document = report(checks=(Check(rule="input-bound", title="Input", status=status, reason="No host events."),))
    assert of_finding(document).passed is passed
    assert of_finding(document, allow_missing=True).passed
    assert of_finding(document, key="input-bound-9").passed is passed
    assert not of_finding(document, key="inputbound").passed


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"metrics": {"a": {"mx": 1}}}, "mx"),
        ({"metrics": {"a": {"max": "1 s"}}}, "$.metrics"),
        ({"metrics": {"a": {"level": "warn"}}}, "sets no limit"),
        ({"metrics": {"a": {"max": float("nan")}}}, "finite"),
        ({"metrics": {"a": {"max_regression": -0.1}}}, "0 or more"),
        ({"findings": {"a": {"level": "fatal"}}}, "fatal"),
        ({"budget": {}}, "budget"),
    ],
)
def test_budgets_that_mean_nothing_are_refused(content: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("$", r"\$")):
        budgets_from(content)


def test_what_cannot_be_judged_is_refused() -> None:
    with pytest.raises(UsageError, match="no baseline"):
        of_metric(report(0.1), max_regression=0.1)
    with pytest.raises(UsageError, match="no baseline"):
        of_finding(report(), new_only=True)
    with pytest.raises(UsageError, match="neither direction"):
        of_metric(report(0.1, None), report(0.1, None), max_regression=0.1)
