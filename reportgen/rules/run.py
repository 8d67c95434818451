"""Run all rules; rank what they found; say which finding explains which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from reportgen.analyzers import ANALYZERS
from reportgen.analyzers.base import Failure
from reportgen.analyzers.run import Analysis
from reportgen.document import Check, Finding, Severity, Threshold
from reportgen.errors import UsageError
from reportgen.rules.base import CannotTell, Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.settings import Settings

_TITLES = {analyzer.id: analyzer.title for analyzer in ANALYZERS}

# Severity by the likely saving's share of the step, or of the memory's capacity; the shares are those of the field's
# other advisers: 20 % is a fifth of every run, under 0.5 % nobody should be troubled. Where there is no saving, a fifth
# of what is at stake stands in for it.
SEVERITIES: tuple[tuple[float, Severity], ...] = ((0.2, "critical"), (0.05, "high"), (0.03, "medium"), (0.005, "low"))
STAKE_WORTH = 0.2
# A cause explains a symptom where it is worth at least this part of it.
EXPLAINS = 0.5


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
    refuse_unknown(rules, settings)
    shared = Evidences.of(analysis.results, analysis.hosts)
    found: list[Ranked] = []
    checks: list[Check] = []
    failures: list[Failure] = []
    for rule in rules:
        if not is_on(rule, settings):
            continue
        limits = limits_of(rule, settings)
        evidence = replace(shared, limits={limit.name: limit.value for limit in limits})
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
            found += [_ranked(rule, draft, limits, evidence) for draft in outcome.drafts]
    return Verdicts(in_order(found, rules), tuple(checks), tuple(failures))


def is_on(rule: Rule, settings: Settings) -> bool:
    """Whether the settings ask for a rule."""
    return (not settings.only or rule.id in settings.only) and rule.id not in settings.skip


def limits_of(rule: Rule, settings: Settings) -> tuple[Threshold, ...]:
    """Return a rule's thresholds with the values of the settings."""
    return tuple(
        msgspec.structs.replace(limit, value=settings.thresholds.get(f"{rule.id}.{limit.name}", limit.value))
        for limit in rule.thresholds
    )


def refuse_unknown(rules: Sequence[Rule], settings: Settings) -> None:
    """Refuse settings that name what is not there.

    Raises:
        UsageError: The settings name an unknown rule or threshold.

    """
    ids = {rule.id for rule in rules}
    if unknown := sorted({*settings.only, *settings.skip} - ids):
        raise UsageError(f"no rule is called {unknown[0]!r}.", "`reportgen rules` lists them all.")
    limits = {f"{rule.id}.{limit.name}" for rule in rules for limit in rule.thresholds}
    if unknown := sorted(set(settings.thresholds) - limits):
        raise UsageError(f"no threshold is called {unknown[0]!r}.", "`reportgen rules` lists them all.")


def _outcome(rule: Rule, evidence: Evidences) -> Outcome:
    profile = evidence.facts("op-profile")
    if profile is not None and profile.device not in rule.devices:
        ran = "the host's CPU" if profile.device == "CPU" else f"a {profile.device}"
        return NotApplicable(f"It speaks of {' and '.join(rule.devices)}; the program ran on {ran}.")
    missing = [_TITLES.get(need, need) for need in rule.needs if evidence.facts(need) is None]
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


@dataclass(frozen=True)
class Ranked:
    """A finding with its worth: the share of the step, or of the memory, that its fix would bring."""

    finding: Finding
    worth: float


def _ranked(rule: Rule, draft: Draft, limits: tuple[Threshold, ...], evidence: Evidences) -> Ranked:
    worth = worth_of(draft, evidence)
    known = evidence.framework
    finding = Finding(
        id=f"{rule.id}-{draft.suffix}" if draft.suffix else rule.id,
        rule=rule.id,
        severity=next((severity for limit, severity in SEVERITIES if worth >= limit), "info"),
        title=draft.title,
        summary=draft.summary,
        evidence=draft.evidence,
        threshold=next((limit for limit in limits if limit.name == draft.threshold), None),
        saving=draft.saving,
        confidence=draft.confidence,
        locations=draft.locations,
        actions=tuple(action for action in draft.actions if not known or action.framework in ("", known)),
    )
    return Ranked(finding, worth)


def worth_of(draft: Draft, evidence: Evidences) -> float:
    """Return the likely saving's share of its whole; without a saving, a part of what is at stake."""
    if draft.saving is None:
        return STAKE_WORTH * draft.stake
    whole = evidence.memory if draft.saving.unit == "bytes" else evidence.whole
    return draft.saving.likely / whole if whole else 0.0


def in_order(found: Sequence[Ranked], rules: Sequence[Rule]) -> tuple[Finding, ...]:
    """Order by worth, then by id; what another finding explains comes last."""
    ordered = sorted(found, key=lambda ranked: (-ranked.worth, ranked.finding.id))
    findings = _silenced(ordered, {rule.id: rule.silenced_by for rule in rules})
    return tuple(sorted(findings, key=lambda finding: finding.silenced_by is not None))


def _silenced(found: Sequence[Ranked], causes: Mapping[str, tuple[str, ...]]) -> list[Finding]:
    """Mark findings that another one explains: a cause, by its rule or its own id, that is worth enough to do so."""

    def cause(symptom: Ranked) -> str | None:
        for name in causes[symptom.finding.rule]:
            for other in found:
                named = name in (other.finding.rule, other.finding.id) and other.finding.rule != symptom.finding.rule
                if named and other.worth >= EXPLAINS * symptom.worth:
                    return other.finding.id
        return None

    direct = {ranked.finding.id: cause(ranked) for ranked in found}
    return [
        ranked.finding
        if direct[ranked.finding.id] is None
        else msgspec.structs.replace(ranked.finding, silenced_by=_root(ranked.finding.id, direct), severity="info")
        for ranked in found
    ]


def _root(finding: str, causes: dict[str, str | None]) -> str:
    """Follow causes to the one that nothing explains; a circle ends where it began."""
    seen = {finding}
    at = causes[finding]
    while at is not None and causes.get(at) is not None and at not in seen:
        seen.add(at)
        at = causes[at]
    return at or finding
