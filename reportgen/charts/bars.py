"""Charts of bars: stacked over steps, and horizontal, one a category."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from reportgen import units
from reportgen.charts.labels import EndLabel, end_labels, guides, legend, legend_height, margins
from reportgen.charts.palette import colour
from reportgen.charts.scale import Floats, Scale, guide_values, positions, scale
from reportgen.charts.sheet import LINE, Margins, Marks, Sheet, label, text_width
from reportgen.document import Axis, Chart, Series

MAX_COLUMNS = 400
_PITCH = 22.0
_MAX_HEIGHT = 640.0
_WIDTH_SHARE = 0.78


@dataclass(frozen=True)
class _Columns:
    """What is stacked: slots and heights, (series, columns), and which of the chart's positions each column shows."""

    left: Floats
    right: Floats
    heights: Floats
    kept: list[int]
    each: int


def stacked_steps(chart: Chart) -> Sheet:
    """Draw series stacked over steps; where there are too many steps, each column is the tallest of a few."""
    columns = _columns(chart)
    x = scale(chart.x, [*columns.left, *columns.right])
    y = scale(chart.y, [*columns.heights.sum(axis=0), *guide_values(chart, "y")], zero=True)
    names = [one.name for one in chart.series] + [guide.label for guide in chart.guides if guide.axis == "y"]
    sheet = Sheet(250.0, margins(y, names))
    sheet.grid(y, "y")
    sheet.grid(x, "x")
    each = f" (each column: the longest of {columns.each})" if columns.each > 1 else ""
    sheet.axis_titles(chart.x.label + each, chart.y.label)
    left, right = x.position(columns.left), x.position(columns.right)
    ends = _stack(sheet, chart, columns, (left, right), y)
    ends += guides(sheet, chart.guides, x, y)
    sheet.hits(left, right, _column_marks(chart, columns))
    end_labels(sheet, ends)
    return sheet


def _columns(chart: Chart) -> _Columns:
    count = min((len(one.y) for one in chart.series), default=0)
    heights = np.array([one.y[:count] for one in chart.series], dtype=np.float64).reshape(len(chart.series), count)
    heights = np.nan_to_num(np.maximum(heights, 0.0), posinf=0.0)
    x = positions(chart.series[0].x if chart.series else (), count)
    half = 0.5 * (float(np.diff(x).min()) if count > 1 else 1.0) or 0.5
    each = -(-count // MAX_COLUMNS) or 1
    starts = np.arange(0, count, each)
    totals = heights.sum(axis=0)
    kept = [start + int(np.argmax(totals[start : start + each])) for start in starts.tolist()]
    last = np.minimum(starts + each, count) - 1
    return _Columns(x[starts] - half, x[last] + half, heights[:, kept], kept, each)


def _stack(sheet: Sheet, chart: Chart, columns: _Columns, slots: tuple[Floats, Floats], y: Scale) -> list[EndLabel]:
    edges = np.vstack([np.zeros(columns.left.size), np.cumsum(columns.heights, axis=0)])
    air = (slots[1] - slots[0]) * (1 - _WIDTH_SHARE) / 2 if columns.left.size <= MAX_COLUMNS / 4 else 0.0
    left, right = slots[0] + air, slots[1] - air
    ends = []
    for index, one in enumerate(chart.series):
        low, high = y.position(edges[index]), y.position(edges[index + 1])
        some = high > low
        sheet.rectangles(left[some], right[some], low[some], high[some], colour(one.role), Marks())
        middle = float(low[-1] + high[-1]) / 2 if low.size else 0.0
        ends.append(EndLabel(middle, one.name, colour(one.role)))
    return ends


def _column_marks(chart: Chart, columns: _Columns) -> Marks:
    first = next((one for one in chart.series if one.row_ids), None)
    rows = tuple(first.row_ids[index] for index in columns.kept if index < len(first.row_ids)) if first else ()
    given = next((one.labels for one in chart.series if one.labels), ())
    x = positions(chart.series[0].x if chart.series else (), max(columns.kept, default=0) + 1)
    labels = []
    for place, index in enumerate(columns.kept):
        parts = [
            f"{one.name} {units.quantity(float(value), chart.y.unit)}"
            for one, value in zip(chart.series, columns.heights[:, place], strict=True)
            if value
        ]
        head = given[index] if index < len(given) else f"{chart.x.label} {x[index]:g}"
        labels.append(": ".join((head, ", ".join(parts))))
    return Marks(tuple(labels), rows)


def bars(chart: Chart) -> Sheet:
    """Draw horizontal bars, each with its number: one a category where no two series share one, else one a series."""
    axis, count = _value_axis(chart), len(chart.categories)
    places = [positions(one.x, len(one.y)) for one in chart.series]
    taken = [place for each in places for place in each.tolist()]
    shared = len(set(taken)) < len(taken)
    rows = len(chart.series) if shared else 1
    values = [value for one in chart.series for value in one.y]
    x = scale(axis, [*values, *guide_values(chart, "x"), *guide_values(chart, "y")], zero=True)
    named = chart.series if shared else ()
    sheet, pitch, y = _bar_sheet(chart, x, named, count * rows, [_number(value, axis) for value in values])
    for index, (one, place) in enumerate(zip(chart.series, places, strict=True)):
        at = 1 - (place * rows + (index if shared else 0) + 0.5) / max(1, count * rows)
        _bar(sheet, x, one.y, at, pitch, colour(one.role), Marks(one.labels, one.row_ids))
        if pitch >= LINE - 2:
            for value, height in zip(one.y, at.tolist(), strict=True):
                end = float(x.position([max(value, 0.0)])[0])
                sheet.text(end + sheet.across(5), height, _number(value, axis))
    _finish_bars(sheet, chart, named, x, y)
    return sheet


def _bar(sheet: Sheet, x: Scale, values: tuple[float, ...], at: Floats, pitch: float, hue: str, marks: Marks) -> None:
    half = sheet.down(pitch) * _WIDTH_SHARE / 2
    zero, end = x.position([0.0])[0], x.position(values)
    sheet.rectangles(np.minimum(zero, end), np.maximum(zero, end), at - half, at + half, hue, marks)


def stacked_bars(chart: Chart) -> Sheet:
    """Draw one horizontal bar a category, made of the series one after the other."""
    axis, count = _value_axis(chart), len(chart.categories)
    heights = np.zeros((len(chart.series), count))
    for index, one in enumerate(chart.series):
        heights[index, : len(one.y)] = np.nan_to_num(np.maximum(one.y[:count], 0.0), posinf=0.0)
    totals = heights.sum(axis=0)
    x = scale(axis, [*totals, *guide_values(chart, "x"), *guide_values(chart, "y")], zero=True)
    named = chart.series if len(chart.series) > 1 else ()
    sheet, pitch, y = _bar_sheet(chart, x, named, count, [_number(total, axis) for total in totals.tolist()])
    half = sheet.down(pitch) * _WIDTH_SHARE / 2
    edges = np.vstack([np.zeros(count), np.cumsum(heights, axis=0)])
    at = 1 - (np.arange(count) + 0.5) / max(1, count)
    for index, one in enumerate(chart.series):
        left, right = x.position(edges[index]), x.position(edges[index + 1])
        labels = one.labels or _part_labels(chart, one.name, heights[index], axis)
        sheet.rectangles(left, right, at - half, at + half, colour(one.role), Marks(labels, one.row_ids))
    if pitch >= LINE - 2:
        for total, place in zip(totals.tolist(), at.tolist(), strict=True):
            sheet.text(float(x.position([total])[0]) + sheet.across(5), place, _number(total, axis))
    _finish_bars(sheet, chart, named, x, y)
    return sheet


def _number(value: float, axis: Axis) -> str:
    return label(units.quantity(value, axis.unit))


def _part_labels(chart: Chart, name: str, values: Floats, axis: Axis) -> tuple[str, ...]:
    return tuple(
        f"{category}: {name} {units.quantity(float(value), axis.unit)}"
        for category, value in zip(chart.categories, values, strict=True)
    )


def _bar_sheet(
    chart: Chart, x: Scale, named: tuple[Series, ...], count: int, texts: list[str]
) -> tuple[Sheet, float, Scale]:
    """Return a sheet with grid and categories, the height of a bar with its gap in points, and the bars' scale."""
    pitch = min(_PITCH, _MAX_HEIGHT / max(1, count))
    top = (legend_height(named) if named else 0.0) + (LINE + 4 if chart.guides else 6.0)
    left = max((text_width(label(one)) for one in chart.categories), default=0.0) + 12
    right = 12 + max((text_width(text) for text in texts), default=0.0)
    sheet = Sheet(pitch * max(1, count) + top + 40, Margins(left, right, top, 40.0))
    sheet.grid(x, "x")
    every = -(-int(LINE) // max(1, int(pitch * count / max(1, len(chart.categories)))))
    for index, name in list(enumerate(chart.categories))[::every]:
        sheet.text(-sheet.across(8), 1 - (index + 0.5) / len(chart.categories), label(name), anchor="right")
    return sheet, pitch, Scale(Axis(label=""), 0.0, 1.0, (), ())


def _finish_bars(sheet: Sheet, chart: Chart, named: tuple[Series, ...], x: Scale, y: Scale) -> None:
    guides(sheet, tuple(msgspec.structs.replace(guide, axis="x") for guide in chart.guides), x, y)
    sheet.axis_titles(_value_axis(chart).label, "")
    if named:
        legend(sheet, named, LINE if chart.guides else 0.0)


def _value_axis(chart: Chart) -> Axis:
    """Return the axis of the bars' lengths: the one that has a unit, else the horizontal one."""
    return chart.y if chart.y.unit and not chart.x.unit else chart.x
