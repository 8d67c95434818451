"""A sheet to draw a chart on: one matplotlib axes without furniture, in positions from 0 to 1, and its marks.

Marks are drawn as collections. Few of them stay single elements in SVG, so that they can be pointed at; the rest
of a series is one path.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.markers import MarkerStyle
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.transforms import Affine2D, IdentityTransform
from numpy.typing import ArrayLike

from reportgen.charts.palette import GRID, INK, MUTED, PAPER
from reportgen.charts.scale import Floats, Scale
from reportgen.charts.text import middle, visible

WIDTH = 760.0
FONT_SIZE = 11.0
LINE = 14.0
_HAIR = 0.4
_FILL_OPACITY = 0.16
MAX_MARKS = 400
_LETTER = 0.62 * FONT_SIZE  # mean width of a letter in the wider of common sans-serif fonts
_LABEL_LETTERS = 34

Anchor = Literal["left", "center", "right"]


@dataclass(frozen=True)
class Marks:
    """Texts and table rows of a group of marks, by position in the group; either may be shorter than the group."""

    labels: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Margins:
    """Points kept free around the plot."""

    left: float
    right: float
    top: float
    bottom: float


def text_width(text: str) -> float:
    """Estimate the width of a label in points; the page's font is not known here."""
    return len(text) * _LETTER


def label(text: str, letters: int = _LABEL_LETTERS) -> str:
    """Return text fit for a label: one line, visible characters, cut in the middle."""
    return middle(visible(text), letters)


@dataclass
class Sheet:
    """A figure in the making.

    Attributes:
        height: Points from top to bottom.
        marks: By the id of their group in the figure.

    """

    height: float
    margins: Margins
    marks: dict[str, Marks] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.figure = Figure(figsize=(WIDTH / 72, self.height / 72), dpi=72, facecolor="none")
        edges = self.margins
        self.plot_width = WIDTH - edges.left - edges.right
        self.plot_height = self.height - edges.top - edges.bottom
        box = (edges.left / WIDTH, edges.bottom / self.height, self.plot_width / WIDTH, self.plot_height / self.height)
        self.axes: Any = self.figure.add_axes(box, xlim=(0, 1), ylim=(0, 1))
        self.axes.set_axis_off()

    def text(self, x: float, y: float, text: str, *, anchor: Anchor = "left", muted: bool = False) -> None:
        """Write a line, centred on the height `y`; `text` is taken as it is, never as mathematics."""
        self.axes.text(
            x, y, text, ha=anchor, va="center_baseline", fontsize=FONT_SIZE, color=MUTED if muted else INK,
            parse_math=False, clip_on=False,
        )  # fmt: skip

    def down(self, points: float) -> float:
        """Return a length in points as a share of the plot's height."""
        return points / self.plot_height

    def across(self, points: float) -> float:
        """Return a length in points as a share of the plot's width."""
        return points / self.plot_width

    def lines(
        self, segments: list[list[tuple[float, float]]], hue: str, width: float, *, dashed: bool = False, layer: int = 2
    ) -> None:
        """Draw lines, each through its points; what fills areas lies on layer 1."""
        style = (0, (4, 3)) if dashed else "solid"
        self._add(
            LineCollection(segments, colors=hue, linewidths=width, linestyles=[style], clip_on=False, zorder=layer)
        )

    def grid(self, scale: Scale, axis: Literal["x", "y"]) -> None:
        """Draw the lines and labels of an axis."""
        places = scale.position(scale.ticks).tolist()
        across = axis == "y"
        self.lines([[(0, at), (1, at)] if across else [(at, 0), (at, 1)] for at in places], GRID, 0.8, layer=0)
        for at, text in zip(places, scale.labels, strict=True):
            if across:
                self.text(-self.across(6), at, text, anchor="right", muted=True)
            else:
                self.text(at, -self.down(12), text, anchor="center", muted=True)

    def axis_titles(self, x: str, y: str) -> None:
        """Write the axes' names: below the plot, and above its left edge."""
        if x:
            self.text(0.5, -self.down(30), label(x, 80), anchor="center", muted=True)
        if y:
            self.text(-self.across(self.margins.left - 4), 1 + self.down(14), label(y, 80), muted=True)

    def rectangles(
        self,
        left: ArrayLike,
        right: ArrayLike,
        low: ArrayLike,
        high: ArrayLike,
        hue: str,
        marks: Marks,
        *,
        parted: bool = False,
    ) -> None:
        """Draw rectangles of one colour, pointed at one by one where `marks` says something of them.

        `parted` draws a hair's breadth of paper around each, so that neighbours can be told apart.
        """
        edges = np.broadcast_arrays(
            *(np.atleast_1d(np.asarray(edge, dtype=np.float64)) for edge in (left, right, low, high))
        )
        x0, x1, y0, y1 = edges
        corners = np.stack([np.stack([x0, x0, x1, x1], 1), np.stack([y0, y1, y1, y0], 1)], 2)
        self.polygons(corners, hue, marks, edge=PAPER if parted else "none")

    def polygons(self, corners: Floats, hue: str, marks: Marks, *, kind: str = "marks", edge: str = "none") -> None:
        """Draw closed polygons; `corners` has the shape (polygons, corners, 2)."""
        single = min(len(corners), MAX_MARKS) if marks.labels or marks.rows else 0
        if single:
            group = f"{kind}{len(self.marks)}"
            self.marks[group] = marks
            self._add(
                PolyCollection(
                    list(corners[:single]), facecolors=hue, edgecolors=edge, linewidths=_HAIR, clip_on=False, gid=group
                )
            )
        if len(corners) > single:
            self._compound(corners[single:], hue, edge)

    def points(self, x: Floats, y: Floats, sign: str, radius: float, hue: str, marks: Marks) -> None:
        """Draw points with a sign, a matplotlib marker, pointed at one by one where `marks` says something of them."""
        shape = MarkerStyle(sign)
        path = shape.get_path().transformed(shape.get_transform() + Affine2D().scale(2 * radius))
        for start in range(0, len(x), MAX_MARKS):
            group = f"dots{len(self.marks)}"
            self.marks[group] = marks if start == 0 else Marks()
            offsets = np.stack([x, y], axis=1)[start : start + MAX_MARKS]
            self._add(
                PathCollection(
                    [path], offsets=offsets, offset_transform=self.axes.transData, facecolors=hue, edgecolors=PAPER,
                    linewidths=0.6, clip_on=False, gid=group, sizes=None, transform=IdentityTransform(),
                )
            )  # fmt: skip

    def step_curve(self, points: Floats, hue: str, *, main: bool) -> None:
        """Draw a line that keeps each point's height until the next, to the right edge.

        The area below the main curve of a chart is filled; others are dashed.
        """
        corners = np.stack([np.repeat(points[:, 0], 2)[1:], np.repeat(points[:, 1], 2)[:-1]], axis=1)
        corners = np.vstack([corners, [[1.0, points[-1, 1]]]])
        if main:
            floor = np.array([[1.0, 0.0], [points[0, 0], 0.0]])
            area = Path(np.vstack([corners, floor]))
            self.axes.add_artist(PathPatch(area, facecolor=hue, alpha=_FILL_OPACITY, edgecolor="none", clip_on=False))
        dashes = "solid" if main else (0, (4, 2))
        line = PathPatch(Path(corners), facecolor="none", edgecolor=hue, linewidth=1.4, linestyle=dashes, clip_on=False)
        self.axes.add_artist(line)

    def _compound(self, corners: Floats, hue: str, edge: str) -> None:

        count, size, _ = corners.shape
        vertices = np.concatenate([corners, corners[:, :1]], axis=1).reshape(-1, 2)
        codes = np.tile([Path.MOVETO, *[Path.LINETO] * (size - 1), Path.CLOSEPOLY], count)
        patch = PathPatch(Path(vertices, codes), facecolor=hue, edgecolor=edge, linewidth=_HAIR, clip_on=False)
        self.axes.add_artist(patch)

    def hits(
        self, left: ArrayLike, right: ArrayLike, marks: Marks, *, kind: Literal["hits", "ghosts"] = "hits"
    ) -> None:
        """Lay unseen columns over the plot that can be pointed at; ghosts show when their row is pointed at."""
        x0, x1 = np.asarray(left, dtype=np.float64)[:MAX_MARKS], np.asarray(right, dtype=np.float64)[:MAX_MARKS]
        y0, y1 = np.zeros_like(x0), np.ones_like(x0)
        corners = np.stack([np.stack([x0, x0, x1, x1], 1), np.stack([y0, y1, y1, y0], 1)], 2)
        self.polygons(corners, PAPER, marks, kind=kind)

    def _add(self, collection: Any) -> None:
        self.axes.add_artist(collection)
