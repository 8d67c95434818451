"""Run all rules; rank what they found; say which finding explains which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from reportgen.analyzers.base import Failure
from reportgen.analyzers.run import Analysis
from reportgen.document import Check, Finding, Saving, Severity, Threshold
from reportgen.errors import UsageError
from reportgen.rules.base import CannotTell, Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule

# Severity by the likely saving's share of the step, or of the memory's capacity; the shares are those of the field's
# other advisers: 20 % is a fifth of every run, under 0.5 % nobody should be troubled.
SEVERITIES: tuple[tuple[float, Severity], ...] = ((0.2, "critical"), (0.05, "high"), (0.03, "medium"), (0.005, "low"))
_ORDER: dict[Severity, int] = {"critical": 0, "high": 1, "medium": 2, "low": 3, "info": 4}


@dataclass(frozen=True)
class Verdicts:
    """The outcome of all rules: findings worst first, a check a rule, and failures."""

    findings: tuple[Finding, ...]
    checks: tuple[Check, ...]
    failures: tuple[Failure, ...]


def run_rules(analysis: Analysis, rules: Sequence[Rule]) -> Verdicts:
    """Run the rules that the settings ask for.

    Raises:
        UsageError: The settings name an unknown rule or threshold.

    """
    settings = analysis.settings
    _refuse_unknown(rules, [*settings.only, *settings.skip], settings.thresholds)
    findings: list[Finding] = []
    checks: list[Check] = []
    failures: list[Failure] = []
    for rule in rules:
        if (settings.only and rule.id not in settings.only) or rule.id in settings.skip:
            continue
        limits = tuple(
            msgspec.structs.replace(limit, value=settings.thresholds.get(f"{rule.id}.{limit.name}", limit.value))
            for limit in rule.thresholds
        )
        evidence = Evidences(analysis.results, analysis.hosts, {limit.name: limit.value for limit in limits})
        try:
            outcome = _outcome(rule, evidence)
        except Exception as error:
            if settings.strict:
                raise
            failure = Failure.of(rule.id, error)
            failures.append(failure)
            checks.append(
                Check(rule=rule.id, title=rule.title, status="error", reason=failure.message, thresholds=limits)
            )
            continue
        checks.append(_check(rule, outcome, limits))
        if isinstance(outcome, Found):
            findings += [_finding(rule, draft, limits, evidence) for draft in outcome.drafts]
    return Verdicts(_ranked(_silenced(findings, rules), analysis), tuple(checks), tuple(failures))


def _refuse_unknown(rules: Sequence[Rule], named: Sequence[str], thresholds: Mapping[str, float]) -> None:
    ids = {rule.id for rule in rules}
    if unknown := sorted(set(named) - ids):
        raise UsageError(f"no rule is called {unknown[0]!r}.", "`reportgen rules` lists them all.")
    limits = {f"{rule.id}.{limit.name}" for rule in rules for limit in rule.thresholds}
    if unknown := sorted(set(thresholds) - limits):
        raise UsageError(f"no threshold is called {unknown[0]!r}.", "`reportgen rules` lists them all.")


def _outcome(rule: Rule, evidence: Evidences) -> Outcome:
    missing = [need for need in rule.needs if evidence.facts(need) is None]
    if missing:
        return CannotTell(f"The profile holds nothing for it ({', '.join(missing)}).", rule.remedy)
    return rule.check(evidence)


def _check(rule: Rule, outcome: Outcome, limits: tuple[Threshold, ...]) -> Check:
    match outcome:
        case Found(drafts):
            status, reason, remedy = "found", "; ".join(draft.title for draft in drafts), ""
        case Fine(reason):
            status, remedy = "fine", ""
        case NotApplicable(reason):
            status, remedy = "not_applicable", ""
        case CannotTell(reason, remedy):
            status = "cannot_tell"
    return Check(rule=rule.id, title=rule.title, status=status, reason=reason, remedy=remedy, thresholds=limits)  # type: ignore[arg-type]


def _finding(rule: Rule, draft: Draft, limits: tuple[Threshold, ...], evidence: Evidences) -> Finding:
    return Finding(
        id=f"{rule.id}-{draft.suffix}" if draft.suffix else rule.id,
        rule=rule.id,
        severity=severity_of(draft.saving, evidence),
        title=draft.title,
        summary=draft.summary,
        evidence=draft.evidence,
        threshold=next((limit for limit in limits if limit.name == draft.threshold), None),
        saving=draft.saving,
        confidence=draft.confidence,
        locations=draft.locations,
        actions=draft.actions,
    )


def severity_of(saving: Saving | None, evidence: Evidences) -> Severity:
    """Return the severity of a likely saving by its share of the step or of the memory's capacity."""
    whole = _whole(saving, evidence)
    if saving is None or not whole:
        return "info"
    share = saving.likely / whole
    return next((severity for limit, severity in SEVERITIES if share >= limit), "info")


def _whole(saving: Saving | None, evidence: Evidences) -> float | None:
    if saving is None:
        return None
    if saving.unit == "bytes":
        return evidence.metric("memory_capacity") or evidence.metric("peak_memory")
    ops = evidence.facts("op-profile")
    return evidence.step_time or (ops.total / len(ops.cores) if ops is not None and ops.cores else None)


def _silenced(findings: Sequence[Finding], rules: Sequence[Rule]) -> list[Finding]:
    """Mark findings that another finding explains; a silenced finding silences nothing itself."""
    causes = {rule.id: rule.silenced_by for rule in rules}
    active = {finding.rule: finding.id for finding in reversed(findings)}

    def cause(finding: Finding) -> str | None:
        return next((active[rule] for rule in causes[finding.rule] if rule in active and rule != finding.rule), None)

    direct = {finding.id: cause(finding) for finding in findings}
    return [
        finding
        if direct[finding.id] is None
        else msgspec.structs.replace(finding, silenced_by=_root(finding.id, direct), severity="info")
        for finding in findings
    ]


def _root(finding: str, causes: dict[str, str | None]) -> str:
    """Follow causes to the one that nothing explains; a circle ends where it began."""
    seen = {finding}
    at = causes[finding]
    while at is not None and causes.get(at) is not None and at not in seen:
        seen.add(at)
        at = causes[at]
    return at or finding


def _ranked(findings: Sequence[Finding], analysis: Analysis) -> tuple[Finding, ...]:
    """Order by severity, then by the saving's share of its whole, then by id; silenced ones last."""
    evidence = Evidences(analysis.results, analysis.hosts, {})

    def key(finding: Finding) -> tuple[bool, int, float, str]:
        whole = _whole(finding.saving, evidence)
        share = finding.saving.likely / whole if finding.saving and whole else 0.0
        return finding.silenced_by is not None, _ORDER[finding.severity], -share, finding.id

    return tuple(sorted(findings, key=key))
