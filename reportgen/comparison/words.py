"""What a comparison says in a sentence."""

from __future__ import annotations

from reportgen.comparison.causes import STRUCTURAL, Cause
from reportgen.comparison.compare import Comparison
from reportgen.units import count, percent, seconds

# A change of the program that shifts less than this share of the step is not what the reader looks for.
_WORTH_NAMING = 0.02


def signed(value: float) -> str:
    """Return a change in seconds with its sign."""
    return f"{'+' if value > 0 else ''}{seconds(value)}"


def leading(found: Comparison) -> tuple[Cause, ...]:
    """Return the causes to name, one or two, or none.

    First what is certain: the largest change of the program. Then, where it tells less than the times do, the largest
    change of times alone, which has to exceed the noise.
    """
    program = next((one for one in found.causes if one.kind in STRUCTURAL), None)
    times = _times(found)
    if program is None or abs(program.change) < _WORTH_NAMING * found.before.whole:
        named = [one for one in (program, times) if one is not None and one.change]
        return tuple(sorted(named, key=lambda one: -abs(one.change))[:1])
    explains = program.change * found.change > 0 or not _changed(found)
    return (program,) if times is None or (explains and abs(times.change) <= abs(program.change)) else (program, times)


def _times(found: Comparison) -> Cause | None:
    """Return the largest change of times alone, in the direction of the whole, if that exceeds the noise."""
    decision = found.decision
    noise = 0.0
    if decision is not None and decision.evidence != "modelled":
        noise = max(abs(decision.low), abs(decision.high)) * found.before.whole
    same = (one for one in found.causes if one.kind not in STRUCTURAL and abs(one.change) > noise)
    return next((one for one in same if not _changed(found) or one.change * found.change > 0), None)


def _changed(found: Comparison) -> bool:
    return found.decision is not None and found.decision.changed


def verdict(found: Comparison) -> str:
    """Return what changed in two sentences: by how much a step takes longer, and why."""
    named = [f"{one.text} ({signed(one.change)})" for one in leading(found)]
    because = ", and ".join(named)
    times = f"{seconds(found.before.whole)} → {seconds(found.after.whole)}"
    if found.decision is None:
        return f"The ops of a core took {times} in the captures{f': {because}' if because else ''}."
    if _changed(found):
        slower = found.change > 0
        more = percent(abs(found.change) / found.before.whole) if found.before.whole else ""
        head = f"{'Slower' if slower else 'Faster'}: a step takes {more} {'longer' if slower else 'less'} ({times})."
        return f"{head} {_upper(because)}." if because else head
    return f"No change of the step time beyond the noise ({times}). {_otherwise(found, because)}".strip()


def _otherwise(found: Comparison, because: str) -> str:
    if because:
        return f"What differs: {because}."
    if not any(one.kind in STRUCTURAL for one in found.causes) and found.after.ops:
        renamed = f", {count(found.renamed)} of them under other names" if found.renamed else ""
        return f"The same {count(len(found.after.ops))} ops ran{renamed}."
    return ""


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
