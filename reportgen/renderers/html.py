"""The HTML report: one file that needs nothing else, forbids itself any request, and works without JavaScript."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from reportgen.charts.palette import ROLES
from reportgen.document import ReportDocument
from reportgen.renderers.anchors import Anchors
from reportgen.renderers.base import Rendered, environment
from reportgen.renderers.cells import flame_colours, line
from reportgen.renderers.opener import opener_of
from reportgen.renderers.page import Limits, Page

MAX_BYTES = 2 * 10**6
NAME = "report.html"

# What a page may show, tried in this order until it is small enough: the least important goes first.
_LIMITS = (
    Limits(),
    Limits(cards=50),
    Limits(trace=False, cards=50),
    Limits(trace=False, cards=20, letters=1000),
    Limits(trace=False, cards=0, letters=1000),
    Limits(trace=False, cards=0, rows=100, letters=1000),
    Limits(trace=False, cards=0, rows=40, letters=1000),
    Limits(trace=False, cards=0, rows=10, letters=500, labels=False),
    Limits(trace=False, cards=0, rows=10, letters=200, labels=False, items=40),
    Limits(trace=False, cards=0, rows=5, letters=200, labels=False, items=10, pictures=False),
    Limits(trace=False, cards=0, rows=0, letters=80, labels=False, items=3, pictures=False),
)


def render_html(document: ReportDocument, *, max_bytes: int = MAX_BYTES) -> Rendered:
    """Render `report.html`; what had to be cut to stay under `max_bytes` is said in it and in the warnings."""
    anchors, pictures = Anchors(document), _Pictures(document)
    data, cut = b"", ""
    for limits in _LIMITS:
        cut = "" if limits == _LIMITS[0] else _said(limits, max_bytes, bool(opener_of(document)))
        data = _page(Page(document, limits, anchors, pictures), cut)
        if len(data) <= max_bytes:
            break
    return Rendered({NAME: data}, (f"{NAME}: {cut}",) if cut else ())


def _said(limits: Limits, max_bytes: int, has_trace: bool) -> str:
    parts = [
        "no chart is drawn" if not limits.pictures else "",
        f"lists end after {limits.items} items" if limits.items < Limits().items else "",
        f"tables end after {limits.rows} rows" if limits.rows < Limits().rows else "",
        "" if limits.cards == Limits().cards else _said_of_cards(limits.cards),
        "the short trace is not carried" if has_trace and not limits.trace else "",
        "marks of charts have no labels" if not limits.labels else "",
    ]
    size = f"{max_bytes / 1e6:g} MB"
    return f"Cut to stay under {size}: {', '.join(filter(None, parts))}. The JSON report holds everything."


def _said_of_cards(cards: int) -> str:
    return f"detail cards end after {cards} rows" if cards else "there are no detail cards"


def _page(page: Page, cut: str) -> bytes:
    templates = environment()
    look = {"roles": ROLES, "flames": flame_colours()}
    style = templates.get_template("html/report.css.j2").render(look)
    scripts = ["html/report.js", *(["html/timeline.js"] if page.anchors.timelines else [])]
    scripts += ["html/trace.js"] if page.opener else []
    script = "".join(templates.get_template(name).render() for name in scripts)
    text = templates.get_template("html/report.html.j2").render(
        page=page,
        document=page.document,
        cut=cut,
        style=Markup(style),  # noqa: S704 - our own file
        script=Markup(script),  # noqa: S704 - our own file
        style_hash=_csp_hash(style),
        script_hash=_csp_hash(script),
    )
    return text.encode()


def _csp_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


class _Pictures:
    """Draws the charts of a document, each once."""

    def __init__(self, document: ReportDocument) -> None:
        self._charts = document.charts
        self._drawn: dict[str, Any] = {}

    def __call__(self, key: str, rows: Mapping[str, str], *, labels: bool) -> str:
        from reportgen.charts.picture import drawn, finished  # noqa: PLC0415 - imports matplotlib: where charts are drawn

        if key not in self._drawn:
            self._drawn[key] = drawn(self._charts[key])
        return finished(self._drawn[key], alt=line(self._charts[key].alt, 1000), anchors=rows, labels=labels)
