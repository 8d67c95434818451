"""Labels beside the plot: series and guides named where they end, and a legend where they do not end apart."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from reportgen.charts.palette import INK, colour
from reportgen.charts.scale import Scale
from reportgen.charts.sheet import LINE, WIDTH, Anchor, Margins, Marks, Sheet, label, text_width
from reportgen.document import Guide, Series

_SWATCH = 9.0


@dataclass(frozen=True)
class EndLabel:
    """A label in the right margin: its height in the plot (0 to 1), and the colour of its swatch, if any."""

    at: float
    text: str
    hue: str = ""


def margins(y: Scale, at_right: list[str]) -> Margins:
    """Return the room for a vertical axis, for labels at the right, and for the axes' titles."""
    left = max((text_width(text) for text in y.labels), default=0.0) + 10
    right = max((text_width(label(text)) + _SWATCH + 14 for text in at_right), default=12.0)
    return Margins(left, right, 26.0, 40.0)


def end_labels(sheet: Sheet, labels: list[EndLabel]) -> None:
    """Write labels at the right of the plot, moved apart where they would overlap."""
    ordered = sorted(labels, key=lambda item: item.at)
    heights = spread([item.at for item in ordered], sheet.down(LINE))
    for item, height in zip(ordered, heights, strict=True):
        start = 1 + sheet.across(6)
        if item.hue:
            side, half = sheet.across(_SWATCH), sheet.down(_SWATCH / 2)
            sheet.rectangles(start, start + side, height - half, height + half, item.hue, Marks())
            start += sheet.across(_SWATCH + 4)
        sheet.text(start, height, label(item.text))


def spread(places: list[float], gap: float) -> list[float]:
    """Move ascending places apart to at least `gap`, as little as needed, and back into 0..1 where they fit."""
    result: list[float] = []
    for place in places:
        result.append(max(place, result[-1] + gap) if result else place)
    ceiling = max(1.0, gap * (len(places) - 1))
    for index in range(len(result) - 1, -1, -1):
        result[index] = min(result[index], ceiling)
        ceiling = result[index] - gap
    return result


def legend_height(series: tuple[Series, ...]) -> float:
    """Return the height of the legend above the plot."""
    return LINE * (1 + max((row for row, _ in _legend_places(series)), default=0)) + 4


def legend(sheet: Sheet, series: tuple[Series, ...], above: float, signs: tuple[str, ...] = ("s",)) -> None:
    """Write signs and names above the plot, `above` points over its top edge; `signs` are matplotlib markers."""
    left = -sheet.margins.left + 4
    for index, (one, (row, x)) in enumerate(zip(series, _legend_places(series), strict=True)):
        height = 1 + sheet.down(above + legend_height(series) - LINE * (row + 0.5))
        at = np.array([sheet.across(left + x + _SWATCH / 2)])
        sheet.points(at, np.array([height]), signs[index % len(signs)], _SWATCH / 2, colour(one.role), Marks())
        sheet.text(sheet.across(left + x + _SWATCH + 4), height, label(one.name))


def _legend_places(series: tuple[Series, ...]) -> list[tuple[int, float]]:
    places: list[tuple[int, float]] = []
    row, x = 0, 0.0
    for one in series:
        width = _SWATCH + 18 + text_width(label(one.name))
        if x and x + width > WIDTH - 8:
            row, x = row + 1, 0.0
        places.append((row, x))
        x += width
    return places


def guides(sheet: Sheet, lines: tuple[Guide, ...], x: Scale, y: Scale) -> list[EndLabel]:
    """Draw the guides; return the labels of those that end at the right."""
    ends: list[EndLabel] = []
    for guide in lines:
        points = _guide_points(guide, x, y)
        if len(points) < 2:
            continue
        sheet.lines([points], INK, 1.0, dashed=guide.axis != "roof")
        last_x, last_y = points[-1]
        if guide.axis == "x":
            anchor: Anchor = "right" if last_x > 0.8 else "left" if last_x < 0.1 else "center"
            sheet.text(last_x, 1 + sheet.down(9), label(guide.label), anchor=anchor)
        elif last_x > 0.97:
            ends.append(EndLabel(last_y, guide.label))
        else:  # a roof that ends inside: named above its middle, where nothing can lie
            (first_x, first_y), lift = points[0], sheet.down(9)
            sheet.text((first_x + last_x) / 2, (first_y + last_y) / 2 + lift, label(guide.label), anchor="right")
    return ends


def _guide_points(guide: Guide, x: Scale, y: Scale) -> list[tuple[float, float]]:
    if guide.axis == "x":
        at = float(x.position([guide.value])[0])
        return [(at, 0.0), (at, 1.0)]
    if guide.axis == "y":
        at = float(y.position([guide.value])[0])
        return [(0.0, at), (1.0, at)]
    across = x.beyond([point[0] for point in guide.points]).tolist()
    up = y.beyond([point[1] for point in guide.points]).tolist()
    return _clipped(list(zip(across, up, strict=True)))


def _clipped(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the part of a line through points that lies in the plot, which it enters and leaves at most once."""
    result: list[tuple[float, float]] = []
    for (x0, y0), (x1, y1) in pairwise(points):
        start, end = 0.0, 1.0
        for move, room in ((x0 - x1, x0), (x1 - x0, 1 - x0), (y0 - y1, y0), (y1 - y0, 1 - y0)):
            if move > 0:
                end = min(end, room / move)
            elif move < 0:
                start = max(start, room / move)
            elif room < 0:
                end = -1.0
        if start < end:
            result += [(x0 + share * (x1 - x0), y0 + share * (y1 - y0)) for share in (start, end)]
    return result
