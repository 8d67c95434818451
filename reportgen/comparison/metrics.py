"""What became of each metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from reportgen.comparison.noise import ERROR_RATE, MIN_EFFECT, Decision, decide
from reportgen.document import Metric, ReportDocument

Verdict = Literal["better", "worse", "changed", "same", "not captured"]


class MetricChange(msgspec.Struct, frozen=True, kw_only=True):
    """A metric before and after.

    Attributes:
        base: Its value in the base that ops are compared with; None where it was not captured.
        verdict: "changed" where neither direction is better; "same" within the noise.

    """

    id: str
    title: str
    unit: str
    base: float | None
    new: float | None
    decision: Decision | None
    verdict: Verdict


def metric_changes(
    bases: Sequence[ReportDocument],
    base: ReportDocument,
    new: ReportDocument,
    error_rate: float = ERROR_RATE,
    min_effect: float = MIN_EFFECT,
    *,
    modelled: bool = False,
) -> tuple[MetricChange, ...]:
    """Return every metric that one of the reports captured, in the order of the new one."""
    found = []
    for key in dict.fromkeys((*new.metrics, *base.metrics)):
        before, after = base.metrics.get(key), new.metrics.get(key)
        metric = after or before
        old, now = before.value if before else None, after.value if after else None
        if metric is None or (old is None and now is None):
            continue
        values = [one.metrics[key].value for one in bases if key in one.metrics]
        known = [value for value in values if value is not None]
        decision = None
        if old is not None and now is not None:
            decision = decide(known, now, error_rate=error_rate, min_effect=min_effect, modelled=modelled)
        found.append(
            MetricChange(
                id=key,
                title=metric.title,
                unit=metric.unit,
                base=old,
                new=now,
                decision=decision,
                verdict=_verdict(metric, decision),
            )
        )
    return tuple(found)


def _verdict(metric: Metric, decision: Decision | None) -> Verdict:
    if decision is None:
        return "not captured"
    if not decision.changed:
        return "same"
    if metric.better is None:
        return "changed"
    return "better" if (decision.change > 0) == (metric.better == "higher") else "worse"
