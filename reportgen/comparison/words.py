"""What a comparison says in a sentence."""

from __future__ import annotations

from reportgen.comparison.causes import STRUCTURAL, Cause
from reportgen.comparison.compare import Comparison
from reportgen.units import count, percent, seconds


def signed(value: float) -> str:
    """Return a change in seconds with its sign."""
    return f"{'+' if value > 0 else ''}{seconds(value)}"


def leading(found: Comparison) -> Cause | None:
    """Return the cause to name first: the largest, where mere times must exceed the noise; None where there is none."""
    decision = found.decision
    noise = 0.0
    if decision is not None and decision.evidence != "modelled":
        noise = max(abs(decision.low), abs(decision.high)) * found.before.whole
    weights = {
        index: abs(one.change) - (0.0 if one.kind in STRUCTURAL else noise) for index, one in enumerate(found.causes)
    }
    if decision is not None and decision.changed:
        same = {index: weight for index, weight in weights.items() if found.causes[index].change * found.change > 0}
        weights = same or weights
    best = max(weights, key=lambda index: weights[index], default=None)
    return found.causes[best] if best is not None and weights[best] > 0 else None


def verdict(found: Comparison) -> str:
    """Return one sentence or two: whether a step takes longer, by how much, and why."""
    cause, decision = leading(found), found.decision
    because = f"{cause.text} ({signed(cause.change)})" if cause else ""
    times = f"{seconds(found.before.whole)} → {seconds(found.after.whole)}"
    if decision is None:
        head = f"The ops of a core took {times} in the captures"
        return f"{head}; mainly, {because}." if cause else f"{head}."
    if decision.changed:
        slower = found.change > 0
        more = percent(abs(found.change) / found.before.whole) if found.before.whole else ""
        head = f"{'Slower' if slower else 'Faster'}: a step takes {more} {'longer' if slower else 'less'} ({times})"
        return f"{head}, mainly because {because}." if cause else f"{head}."
    return f"No change of the step time beyond the noise ({times}). {_otherwise(found, because)}".strip()


def _otherwise(found: Comparison, because: str) -> str:
    if because:
        return f"What differs: {because}."
    if not any(one.kind in STRUCTURAL for one in found.causes) and found.after.ops:
        renamed = f", {count(found.renamed)} of them under other names" if found.renamed else ""
        return f"The same {count(len(found.after.ops))} ops ran{renamed}."
    return ""
