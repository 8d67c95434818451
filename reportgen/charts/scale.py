"""Axes: from values to positions in the plot, and the round numbers beside it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reportgen import units
from reportgen.charts.text import middle
from reportgen.document import Axis, Chart

Floats = NDArray[np.float64]

_MAX_DECADES = 12
_MAX_LABEL = 24
_HUGE = 1e300  # beyond it, and below its inverse, arithmetic has no room for round numbers
_ZEROS = re.compile(r"(?<=\d)\.?0+(?=\s|$)")


@dataclass(frozen=True)
class Scale:
    """An axis with its range.

    Attributes:
        low, high: Range in the axis's unit; positions run from 0 at `low` to 1 at `high`.
        ticks: Values with a line and a label.
        labels: Their texts, with units.

    """

    axis: Axis
    low: float
    high: float
    ticks: tuple[float, ...]
    labels: tuple[str, ...]

    def position(self, values: ArrayLike) -> Floats:
        """Return positions between 0 and 1, values outside the range moved to its ends; not-a-number goes to 0."""
        return np.clip(np.nan_to_num(self.beyond(values), nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)

    def beyond(self, values: ArrayLike) -> Floats:
        """Return positions, below 0 and above 1 for values outside the range."""
        low, high = self._warp(np.asarray([self.low, self.high]))
        with np.errstate(over="ignore"):  # far beyond: infinite
            result: Floats = (self._warp(np.asarray(values, dtype=np.float64)) - low) / (high - low)
        return result

    def _warp(self, values: Floats) -> Floats:
        return np.log10(np.maximum(values, self.low * 1e-6)) if self.axis.log else values


def scale(axis: Axis, values: ArrayLike, *, zero: bool = False) -> Scale:
    """Choose an axis's range and ticks for values; `zero` makes a linear axis start there, `pad` widens it."""
    data = np.asarray(values, dtype=np.float64)
    data = data[np.abs(data) < _HUGE]
    return _log(axis, data[data > 1 / _HUGE]) if axis.log else _linear(axis, data, zero=zero)


def positions(x: tuple[float, ...], count: int) -> Floats:
    """Return where the first `count` marks of a series stand: its x, or 0, 1, 2... where it has none."""
    return np.asarray(x[:count] if len(x) >= count else range(count), dtype=np.float64)


def guide_values(chart: Chart, axis: Literal["x", "y"]) -> list[float]:
    """Return the values of the guides across an axis."""
    return [guide.value for guide in chart.guides if guide.axis == axis]


def _linear(axis: Axis, data: Floats, *, zero: bool) -> Scale:
    low, high = (float(data.min()), float(data.max())) if data.size else (0.0, 1.0)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low < 1 / _HUGE:
        high = low + (max(abs(low), 1e-12) if low else 1.0)
    whole = axis.unit in ("", "count") and bool(np.all(2 * data == np.rint(2 * data)))  # columns end at halves
    step = max(_round_step((high - low) / 4, axis.unit), 1.0 if whole else 0.0)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    ticks = tuple(step * index for index in range(first, last + 1))
    return Scale(axis, low, high, ticks, tuple(tick_label(tick, axis.unit) for tick in ticks))


def _round_step(rough: float, unit: str) -> float:
    """Return the next step of 1, 2, 2.5 or 5 times a power of ten, counted in binary units for bytes."""
    base = 1.0
    if unit == "bytes":
        base = 1024.0 ** max(0, math.floor(math.log(max(rough * 4, 1.0), 1024)))
    power = 10.0 ** math.floor(math.log10(rough / base))
    step = next(nice for nice in (1, 2, 2.5, 5, 10) if nice * power * base >= rough * 0.999) * power
    return step * base


def _log(axis: Axis, data: Floats) -> Scale:
    top = math.ceil(math.log10(data.max()) - 1e-9) if data.size else 1
    bottom = math.floor(math.log10(data.min()) + 1e-9) if data.size else 0
    bottom = max(bottom, top - _MAX_DECADES)
    top = max(top, bottom + 1)
    ticks = tuple(10.0**power for power in range(bottom, top + 1, 1 + (top - bottom) // 7))
    return Scale(axis, 10.0**bottom, 10.0**top, ticks, tuple(tick_label(tick, axis.unit) for tick in ticks))


def tick_label(value: float, unit: str) -> str:
    """Format a round number: 2 GiB rather than 2.00 GiB."""
    text = units.quantity(value, unit or "count")
    number, _, rest = text.partition(" ")
    return middle(" ".join(filter(None, (_ZEROS.sub("", number) if "." in number else number, rest))), _MAX_LABEL)
