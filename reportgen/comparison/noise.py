"""Whether a difference exceeds the noise between captures.

Steps inside one capture are not independent: they share the machine's mood, and a test over them calls half of all
repeats of one program changed. So the spread between captures decides, one number a capture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Literal

import msgspec
import numpy as np

from reportgen.units import percent

ERROR_RATE = 0.01
MIN_EFFECT = 0.05
# Differences below it are never called a change: times and counters are not that exact, and nobody would act on it.
RESOLUTION = 1e-3
ENOUGH_BASES = 3
_GRID = 20_001

Evidence = Literal["spread", "few_bases", "modelled"]


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a number changed.

    Attributes:
        changed: Whether the new value lies outside of what the bases allow.
        change: New over base, minus 1; the base is the mean of the bases (of their logarithms where all are positive).
        low, high: Changes between which a value counts as unchanged.
        evidence: What decided: the spread between captures, a minimum effect for want of bases, or exact models.
        why: The same in a sentence.

    """

    changed: bool
    change: float
    low: float
    high: float
    evidence: Evidence
    why: str


def decide(
    bases: Sequence[float],
    new: float,
    *,
    error_rate: float = ERROR_RATE,
    min_effect: float = MIN_EFFECT,
    modelled: bool = False,
) -> Decision:
    """Decide whether a new value differs from those of the bases.

    With three bases or more a value counts as changed outside the prediction interval of one more capture: mean ± t s
    sqrt(1 + 1/n), with the bases' standard deviation s and Student's t for n - 1 degrees of freedom, of logarithms
    where all values are positive. If captures are alike and the noise (of logarithms) is normal, at most `error_rate`
    of repeats are called a change. With fewer bases the change must exceed `min_effect`. Modelled times have no noise.
    """
    logs = min(*bases, new) > 0
    values = [math.log(one) if logs else one for one in bases]
    middle = fmean(values)
    change = _relative(math.log(new) if logs else new, middle, logs=logs)
    evidence: Evidence = "modelled" if modelled else "spread" if len(bases) >= ENOUGH_BASES else "few_bases"
    low, high = -RESOLUTION, RESOLUTION
    if evidence == "spread":
        n = len(values)
        half = student_t(1 - error_rate / 2, n - 1) * stdev(values) * math.sqrt(1 + 1 / n)
        low, high = (_relative(middle + sign * half, middle, logs=logs) for sign in (-1, 1))
        low, high = min(low, -RESOLUTION), max(high, RESOLUTION)
    elif evidence == "few_bases":
        reach = [_relative(one, middle, logs=logs) for one in values]
        low, high = min(reach) - min_effect, max(reach) + min_effect
    return Decision(
        changed=not low <= change <= high,
        change=change,
        low=low,
        high=high,
        evidence=evidence,
        why=_why(evidence, len(bases), low, high, error_rate),
    )


def _relative(value: float, middle: float, *, logs: bool) -> float:
    if logs:
        return math.expm1(value - middle)
    if value == middle:
        return 0.0
    return (value - middle) / abs(middle) if middle else math.copysign(math.inf, value)


def _why(evidence: Evidence, count: int, low: float, high: float, error_rate: float) -> str:
    if evidence == "modelled":
        return f"Both timelines are modelled: they have no noise, and a difference over {percent(RESOLUTION)} is real."
    band = f"between {percent(low)} and +{percent(high)}"
    if evidence == "spread":
        return (
            f"The spread between {count} captures of the base allows one more capture to lie {band} "
            f"(at most {percent(error_rate)} of repeats lie outside)."
        )
    bases = "One base" if count == 1 else "Two bases"
    return f"{bases}: weak evidence. The noise between captures is not known, so a change {band} counts as none."


def student_t(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t distribution.

    With t = sqrt(degrees) tan(angle) its density is a power of the cosine, which a grid integrates.
    """
    angles = np.linspace(-math.pi / 2, math.pi / 2, _GRID)
    density = np.cos(angles) ** (degrees - 1)
    share = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return math.sqrt(degrees) * math.tan(float(np.interp(probability * share[-1], share, angles)))
