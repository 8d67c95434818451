"""Charts drawn with matplotlib: from a specification to a figure and what its marks say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import Figure

from reportgen.charts.bars import bars, stacked_bars, stacked_steps
from reportgen.charts.plots import curve, scatter, spans
from reportgen.charts.sheet import Marks, Sheet
from reportgen.document import Chart

_KINDS: dict[str, Callable[[Chart], Sheet]] = {
    "stacked_steps": stacked_steps,
    "stacked_bars": stacked_bars,
    "bars": bars,
    "curve": curve,
    "scatter": scatter,
    "spans": spans,
}


@dataclass(frozen=True)
class Drawing:
    """A figure, and what its groups of marks say, by the ids of the groups."""

    figure: Figure
    marks: dict[str, Marks]


def draw(chart: Chart) -> Drawing:
    """Draw a chart; the figure is 760 points wide and as high as its content needs."""
    sheet = _KINDS[chart.kind](chart)
    return Drawing(sheet.figure, sheet.marks)
