"""Charts over two numeric axes: step curves, points, and rectangles."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from reportgen.charts.labels import EndLabel, end_labels, guides, legend, legend_height, margins
from reportgen.charts.palette import colour
from reportgen.charts.scale import Floats, Scale, guide_values, positions, scale
from reportgen.charts.sheet import LINE, Margins, Marks, Sheet, label, text_width
from reportgen.document import Axis, Chart, Series

_MAX_POINTS = 1500
_LANE = 20.0
_DOT = 3.6

# Corners of the signs for points, around (0, 0): a circle, a square, a diamond, a triangle, so that series differ
# by more than colour.
_SIGNS = ("o", "s", "D", "^")


def curve(chart: Chart) -> Sheet:
    """Draw step curves: each value holds until the next position. A series with `ends` is of stretches to point at."""
    curves = [one for one in chart.series if not one.ends]
    places = [_steps(one) for one in curves]
    x = scale(chart.x, _joined([one[0] for one in places], [*guide_values(chart, "x")]))
    y = scale(chart.y, _joined([one[1] for one in places], guide_values(chart, "y")), zero=True)
    sheet = Sheet(260.0, margins(y, [one.name for one in curves] + _right_guides(chart)))
    sheet.grid(y, "y")
    sheet.grid(x, "x")
    sheet.axis_titles(chart.x.label, chart.y.label)
    ends: list[EndLabel] = []
    for index, (one, (across, up)) in reversed(list(enumerate(zip(curves, places, strict=True)))):  # the first on top
        points = np.stack([x.position(across), y.position(up)], axis=1)
        if len(points):
            sheet.step_curve(_thinned(points), colour(one.role), main=index == 0)
            ends.append(EndLabel(float(points[-1, 1]), one.name, colour(one.role)))
            _point_at(sheet, one, x)
    for one in chart.series:
        if one.ends:
            sheet.hits(x.position(one.x), x.position(one.ends), Marks(one.labels, one.row_ids), kind="ghosts")
    end_labels(sheet, ends + guides(sheet, chart.guides, x, y))
    return sheet


def _steps(series: Series) -> tuple[Floats, Floats]:
    up = np.asarray(series.y, dtype=np.float64)
    return positions(series.x, up.size), up


def _joined(parts: list[Floats], more: list[float]) -> Floats:
    return np.concatenate([*parts, np.asarray(more, dtype=np.float64)])


def _right_guides(chart: Chart) -> list[str]:
    return [guide.label for guide in chart.guides if guide.axis != "x"]


def _thinned(points: Floats) -> Floats:
    """Keep the lowest and the highest point of each of many columns, so that no peak is lost."""
    if len(points) <= _MAX_POINTS:
        return points
    edges = np.linspace(0, len(points), _MAX_POINTS // 2 + 1).astype(int)
    kept = {0, len(points) - 1}
    for start, stop in pairwise(edges.tolist()):
        part = points[start:stop, 1]
        kept |= {int(start + part.argmin()), int(start + part.argmax())}
    return points[sorted(kept)]


def _point_at(sheet: Sheet, series: Series, x: Scale) -> None:
    if series.labels or series.row_ids:
        across, _ = _steps(series)
        sheet.hits(x.position(across), x.position([*across[1:], x.high]), Marks(series.labels, series.row_ids))


def scatter(chart: Chart) -> Sheet:
    """Draw points, each series with a sign of its own; lines and roofs are guides."""
    places = [_steps(one) for one in chart.series]
    roofs = [point for guide in chart.guides for point in guide.points]
    x = scale(chart.x, _joined([one[0] for one in places], [*guide_values(chart, "x"), *(at for at, _ in roofs)]))
    y = scale(chart.y, _joined([one[1] for one in places], [*guide_values(chart, "y"), *(up for _, up in roofs)]))
    edges = margins(y, _right_guides(chart))
    top = 26.0 + legend_height(chart.series)
    sheet = Sheet(360.0, Margins(edges.left, edges.right, top, edges.bottom))
    sheet.grid(y, "y")
    sheet.grid(x, "x")
    sheet.axis_titles(chart.x.label, chart.y.label)
    end_labels(sheet, guides(sheet, chart.guides, x, y))
    for index, (one, (across, up)) in enumerate(zip(chart.series, places, strict=True)):
        sign = _SIGNS[index % len(_SIGNS)]
        sheet.points(x.position(across), y.position(up), sign, _DOT, colour(one.role), Marks(one.labels, one.row_ids))
    legend(sheet, chart.series, 22.0, signs=_SIGNS)
    return sheet


def spans(chart: Chart) -> Sheet:
    """Draw rectangles over x: in lanes named by the categories, or between two values of y."""
    lanes = len(chart.categories)
    x = scale(chart.x, [value for one in chart.series for value in (*one.x, *one.ends)])
    heights = [value for one in chart.series for value in (*one.y, *one.tops)]
    y = Scale(Axis(label=""), 0.0, float(lanes), (), ()) if lanes else scale(chart.y, heights, zero=True)
    sheet = _span_sheet(chart, y)
    sheet.grid(x, "x")
    sheet.axis_titles(chart.x.label, chart.y.label)
    for one in chart.series:
        count = min(len(one.x), len(one.ends), len(one.y))
        low = np.asarray(one.y[:count], dtype=np.float64)
        high = np.asarray(one.tops[:count], dtype=np.float64) if len(one.tops) >= count else low + 1
        down, up = y.position(low), y.position(high)
        if lanes:  # the first lane on top, with a little air between lanes
            down, up = 1 - y.position(high - 0.12), 1 - y.position(low + 0.12)
        marks = Marks(one.labels, one.row_ids)
        sheet.rectangles(
            x.position(one.x[:count]), x.position(one.ends[:count]), down, up, colour(one.role), marks, parted=True
        )
    end_labels(sheet, guides(sheet, chart.guides, x, y))
    if len(chart.series) > 1:
        legend(sheet, chart.series, 22.0)
    return sheet


def _span_sheet(chart: Chart, y: Scale) -> Sheet:
    lanes = len(chart.categories)
    edges = margins(y, _right_guides(chart))
    top = 26.0 + (legend_height(chart.series) if len(chart.series) > 1 else 0.0)
    if not lanes:
        sheet = Sheet(320.0, Margins(edges.left, edges.right, top, edges.bottom))
        sheet.grid(y, "y")
        return sheet
    left = max(text_width(label(name)) for name in chart.categories) + 12
    lane = min(_LANE, 640.0 / lanes)
    sheet = Sheet(lane * lanes + top + 40, Margins(left, edges.right, top, 40.0))
    every = -(-int(LINE) // max(1, int(lane)))
    for index, name in list(enumerate(chart.categories))[::every]:
        sheet.text(-sheet.across(8), 1 - (index + 0.5) / lanes, label(name), anchor="right")
    return sheet
