"""A badge: one number of a report as a small picture, for a README or a dashboard."""

from __future__ import annotations

from html import escape

from reportgen.charts.text import middle, visible
from reportgen.document import ReportDocument
from reportgen.errors import UsageError
from reportgen.gate.check import GateResult
from reportgen.units import quantity

_COLOURS = {"passed": "#2e7d32", "warned": "#9a6700", "failed": "#b3261e", "": "#2563ab"}
_LETTER = 6.6  # width of a letter of 11 px Verdana, on average
_LONGEST = 40
_BADGE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{label}: {value}">
<title>{label}: {value}</title>
<rect width="{split}" height="20" fill="#555"/>
<rect x="{split}" width="{rest}" height="20" fill="{colour}"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
<text x="{left}" y="14">{label}</text>
<text x="{right}" y="14">{value}</text>
</g>
</svg>
"""


def badge(document: ReportDocument, metric: str = "step_time_mean", result: GateResult | None = None) -> bytes:
    """Return an SVG picture of a metric, in green, amber or red after the gate's result, else in blue.

    Raises:
        UsageError: The report has no such metric.

    """
    if metric not in document.metrics:
        raise UsageError(f"the report has no metric {metric!r}.", f"Metrics: {', '.join(document.metrics)}.")
    one = document.metrics[metric]
    label, value = middle(visible(one.title).lower(), _LONGEST), middle(quantity(one.value, one.unit), _LONGEST)
    split, rest = round(len(label) * _LETTER + 12), round(len(value) * _LETTER + 12)
    text = _BADGE.format(
        label=escape(label),
        value=escape(value),
        width=split + rest,
        split=split,
        rest=rest,
        left=split / 2,
        right=split + rest / 2,
        colour=_COLOURS[_state(result)],
    )
    return text.encode()


def _state(result: GateResult | None) -> str:
    if result is None:
        return ""
    return "failed" if result.failed else "warned" if result.warned else "passed"
