"""Charts as PNG, and as inline SVG without ids, styles, scripts or metadata, its colours left to the page.

Importing this module imports matplotlib, which takes a third of a second: do it where a chart is needed.

A page may hold several, under a content policy that forbids `style=`: so styles become attributes, colours become
the page's CSS variables, and marks get their texts and the rows that they belong to.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from itertools import chain, repeat, zip_longest
from xml.etree import ElementTree as ET

import matplotlib as mpl

from reportgen.charts.draw import draw
from reportgen.charts.palette import css_colours
from reportgen.charts.sheet import FONT_SIZE, Marks
from reportgen.charts.text import middle, visible
from reportgen.document import Chart

_SVG = "{http://www.w3.org/2000/svg}"
_LINK = "{http://www.w3.org/1999/xlink}href"
_STYLES = frozenset(
    ("fill", "stroke", "stroke-width", "stroke-dasharray", "fill-opacity", "opacity", "text-anchor", "font-size")
)
_DEFAULTS = {"fill": "currentColor", "font-size": f"{FONT_SIZE:g}px", "text-anchor": "start"}
_TOKEN = re.compile(r"[A-Za-z]|-?[\d.]+(?:e-?\d+)?")
_MAX_LABEL = 240
_UNSEEN = ("hits", "ghosts")  # groups that only a page can show, when they are pointed at

Drawn = tuple[str, dict[str, Marks]]
_Attributes = dict[str, str]


def drawn(chart: Chart) -> Drawn:
    """Draw a chart with matplotlib's SVG backend; `finished` makes it fit for a page."""
    drawing = draw(chart)
    settings = {"svg.fonttype": "none", "svg.hashsalt": "reportgen", "path.simplify": False}
    stream = io.StringIO()
    with mpl.rc_context(settings), _unknown_letters():
        drawing.figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue(), drawing.marks


def svg(chart: Chart, anchors: Mapping[str, str] | None = None) -> str:
    """Return a chart as an `<svg>` element for a page; `anchors` as in `finished`."""
    return finished(drawn(chart), alt=chart.alt, anchors=anchors or {})


def png(chart: Chart, dpi: int = 110) -> bytes:
    """Return a chart as a PNG picture on white, 760/72 inches wide; the same bytes for the same chart."""
    stream, figure = io.BytesIO(), draw(chart).figure
    for unseen in figure.findobj(lambda artist: str(artist.get_gid()).startswith(_UNSEEN)):
        unseen.set_visible(False)
    with _unknown_letters():
        figure.savefig(stream, format="png", dpi=dpi, facecolor="white", metadata={"Software": None})
    return stream.getvalue()


@contextmanager
def _unknown_letters() -> Iterator[None]:
    """Be silent about letters that matplotlib's font lacks: a page has them, a PNG shows a box."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        yield


def finished(picture: Drawn, *, alt: str, anchors: Mapping[str, str], labels: bool = True) -> str:
    """Return a chart as an `<svg>` element.

    Args:
        picture: What `drawn` returned.
        alt: Text for those who cannot see it.
        anchors: From row ids to the ids of the page's elements that marks link to; others are not linked.
        labels: Whether marks say what they are when pointed at, and link to their rows.

    """
    source, marks = picture
    root = ET.fromstring(source)  # noqa: S314 - matplotlib's own output
    _, _, width, height = root.get("viewBox", "").split()
    groups = root.findall(f"./{_SVG}g/{_SVG}g[@id='axes_1']/{_SVG}g")
    body = "".join(_group(group, marks if labels else {}, anchors) for group in groups)
    kind = "group" if "<a " in body else "img"
    return (
        f'<svg class="chart" viewBox="0 0 {float(width):g} {float(height):g}" role="{kind}" '
        f'aria-label="{escape(visible(alt))}">{body}</svg>'
    )


def _group(group: ET.Element, marks: Mapping[str, Marks], anchors: Mapping[str, str]) -> str:
    shapes = {node.get("id"): node.get("d", "") for node in group.iter(f"{_SVG}path") if node.get("id")}
    leaves = list(_leaves(group))
    if not leaves:
        return ""
    if leaves[0].tag == f"{_SVG}text":
        return "".join(_text(leaf) for leaf in leaves)
    gid = group.get("id", "")
    styles = _styles(leaves[0])
    if gid.startswith(_UNSEEN):
        styles = {"fill": "transparent"}
    drawn_leaves = [_shape(leaf, shapes) for leaf in leaves]
    if gid not in marks:
        return _merged(drawn_leaves, styles)
    said = marks[gid]
    texts = zip_longest(said.labels[: len(leaves)], said.rows[: len(leaves)], fillvalue="")
    told = zip(drawn_leaves, chain(texts, repeat(("", ""))), strict=False)
    inner = "".join(_mark(shape, label, anchors.get(row, "")) for shape, (label, row) in told)
    return f'<g class="{gid.rstrip("0123456789")}"{_attributes(styles)}>{inner}</g>'


def _leaves(group: ET.Element) -> Iterator[ET.Element]:
    for child in group:
        if child.tag == f"{_SVG}g":
            yield from _leaves(child)
        elif child.tag != f"{_SVG}defs":
            yield child


def _styles(leaf: ET.Element) -> _Attributes:
    """Return an element's style as presentation attributes, without what the page sets by itself."""
    pairs = (part.split(":", 1) for part in leaf.get("style", "").split(";") if ":" in part)
    styles = {name.strip(): value.strip() for name, value in pairs}
    if "font" in styles:  # the short form that older matplotlib writes: "11px 'DejaVu Sans', ..."
        styles["font-size"] = styles["font"].split(" ", 1)[0]
    colours = css_colours()
    found = {name: colours.get(value, value) for name, value in styles.items() if name in _STYLES}
    return {name: value for name, value in found.items() if _DEFAULTS.get(name) != value}


def _text(leaf: ET.Element) -> str:
    place = f' x="{_short(leaf.get("x", "0"))}" y="{_short(leaf.get("y", "0"))}"'
    return f"<text{place}{_attributes(_styles(leaf))}>{escape(leaf.text or '')}</text>"


def _shape(leaf: ET.Element, shapes: Mapping[str | None, str]) -> tuple[str, _Attributes]:
    """Return an element's path, and where it is moved to."""
    if leaf.tag != f"{_SVG}use":
        return _compact(leaf.get("d", "")), {}
    path = _compact(shapes.get(leaf.get(_LINK, "").removeprefix("#"), ""))
    return path, {"transform": f"translate({_short(leaf.get('x', '0'))} {_short(leaf.get('y', '0'))})"}


def _merged(shapes: list[tuple[str, _Attributes]], styles: _Attributes) -> str:
    if any(moved for _, moved in shapes):
        return "".join(f'<path d="{path}"{_attributes(moved | styles)}/>' for path, moved in shapes)
    return f'<path d="{"".join(path for path, _ in shapes)}"{_attributes(styles)}/>'


def _mark(shape: tuple[str, _Attributes], label: str, anchor: str) -> str:
    path, moved = shape
    title = f"<title>{escape(middle(visible(label), _MAX_LABEL))}</title>" if label else ""
    drawing = (
        f'<path d="{path}"{_attributes(moved)}>{title}</path>' if title else f'<path d="{path}"{_attributes(moved)}/>'
    )
    if not anchor:
        return drawing
    return f'<a href="#{escape(anchor)}" data-row="{escape(anchor)}" tabindex="-1">{drawing}</a>'


def _attributes(values: _Attributes) -> str:
    return "".join(f' {name}="{escape(value)}"' for name, value in values.items())


def _short(number: str) -> str:
    text = f"{float(number):.1f}"
    return text.removesuffix(".0") if text != "-0.0" else "0"


def _compact(path: str) -> str:
    """Rewrite a path with one decimal, and with H and V where a line is level or upright."""
    result: list[str] = []
    last: tuple[str, str] = ("", "")
    tokens = iter(_TOKEN.findall(path))
    for command in tokens:
        if command in "Zz":
            result.append("z")
            continue
        pairs = {"C": 3, "Q": 2}.get(command, 1)
        points = [(_short(next(tokens)), _short(next(tokens))) for _ in range(pairs)]
        if command == "L" and points[0] == last:
            continue
        if command == "L" and points[0][1] == last[1]:
            result.append(f"H{points[0][0]}")
        elif command == "L" and points[0][0] == last[0]:
            result.append(f"V{points[0][1]}")
        else:
            result.append(command + " ".join(f"{x} {y}" for x, y in points))
        last = points[-1]
    return "".join(result)
