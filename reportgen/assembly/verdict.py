"""One sentence at the top of the report: the main limit and what the best fix would bring."""

from __future__ import annotations

from collections.abc import Sequence

from reportgen.analyzers.run import Analysis
from reportgen.document import Check, Finding, Saving
from reportgen.units import binary, percent, seconds


def verdict_of(analysis: Analysis, findings: Sequence[Finding], checks: Sequence[Check]) -> str:
    """Return the verdict: the worst finding with what its fix would bring, or what makes a calm report calm."""
    speaking = [finding for finding in findings if finding.silenced_by is None]
    serious = [finding for finding in speaking if finding.severity in ("critical", "high", "medium")]
    state = _state(analysis)
    if serious:
        first = serious[0]
        return f"{_sentence(first.title)} {_gain(first.saving, analysis)}{state}".strip()
    unknown = sum(check.status == "cannot_tell" for check in checks)
    if "op-profile" not in analysis.results and unknown:
        return f"No op of a program was captured: {unknown} of {len(checks)} checks could not be made. {state}".strip()
    fine = sum(check.status == "fine" for check in checks)
    more = f", {unknown} could not be made" if unknown else ""
    are = "check is" if fine == 1 else "checks are"
    return f"Nothing found that costs much: {fine} {are} fine{more}. {_limit(analysis, checks)}{state}".strip()


def _limit(analysis: Analysis, checks: Sequence[Check]) -> str:
    """Return what limits a program in which nothing is wrong: compute, where its rule says so."""
    utilisation = next(
        (
            result.metrics["flops_utilization"]
            for result in analysis.results.values()
            if "flops_utilization" in result.metrics
        ),
        None,
    )
    limits = (limit.value for check in checks if check.rule == "compute-bound" for limit in check.thresholds)
    least = next(limits, None)
    if least is None or utilisation is None or utilisation.value is None or utilisation.value < least:
        return ""
    return "Compute is the limit, as it should be. "


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _gain(saving: Saving | None, analysis: Analysis) -> str:
    if saving is None:
        return ""
    if saving.unit == "bytes":
        return f"Fixing it would free about {binary(saving.likely)} ({saving.basis}). "
    period = _step_period(analysis)
    share = f", {percent(saving.likely / period)} of the step" if period else ""
    return f"Fixing it would save about {seconds(saving.likely)}{' a step' if period else ''}{share} ({saving.basis}). "


def _step_period(analysis: Analysis) -> float | None:
    steps = analysis.results.get("steps")
    return steps.facts.mean_period if steps and steps.facts is not None else None


def _state(analysis: Analysis) -> str:
    """Return step time and utilisation in a sentence, as far as they are known."""
    metrics = {name: metric for result in analysis.results.values() for name, metric in result.metrics.items()}
    parts = []
    time = metrics.get("step_time_mean")
    if time is not None and time.value is not None:
        period = _step_period(analysis) or 0.0
        begins = f" and begins every {seconds(period)}" if period > 1.1 * time.value else ""
        parts.append(f"A step takes {seconds(time.value)}{begins}")
    for name, text in (("flops_utilization", "FLOPS utilisation is"), ("device_idle_fraction", "the device idles")):
        metric = metrics.get(name)
        if metric is not None and metric.value is not None:
            parts.append(f"{text} {percent(metric.value)}")
    sentence = ", ".join(parts)
    return f"{sentence[:1].upper()}{sentence[1:]}." if sentence else ""
