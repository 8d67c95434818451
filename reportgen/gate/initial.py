"""A file of budgets to start from: what a report holds today, with room to breathe."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from reportgen.charts.text import visible
from reportgen.document import Metric, ReportDocument, Tiles
from reportgen.units import quantity

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ROOM = 0.1
_REGRESSIONS = {"seconds": 0.05, "bytes": 0.02, "fraction": 0.1}
_HEAD = """\
# Budgets for `reportgen check report.json --budget THIS_FILE --baseline base.json`.
#
# [metrics.ID]   max, min         bounds in the metric's own unit: seconds, bytes, fractions (0.05 is 5 %)
#                max_regression   how much worse than the baseline it may be, as a fraction of the baseline
#                level            "error" (exit code 3), "warn" or "off"
#                allow_missing    true: fine where it was not captured; otherwise that counts as failed
# [findings.ID]  level            "error" or "warn" where the finding stands in the report, "off" for never
#                min_severity     "critical", "high", "medium", "low" or "info": what is below does not count
#                new_only         true: what the baseline has too does not count
#                allow_missing    true: fine where the rule could not tell
# ID of a finding is its own or its rule's; "*" is any finding that no other one explains.
"""


def initial_budgets(document: ReportDocument) -> str:
    """Return a commented TOML file of budgets that the report keeps, with itself as its baseline."""
    return "\n".join([_HEAD, *_metrics(document), *_findings(document)])


def _metrics(document: ReportDocument) -> Iterator[str]:
    blocks = [block for section in document.sections for block in section.blocks]
    tiles = {key for block in blocks if isinstance(block, Tiles) for key in block.metrics}
    for key, metric in sorted(document.metrics.items(), key=lambda item: (item[0] not in tiles, item[0])):
        if metric.value is not None and metric.better is not None:
            yield "\n".join(_metric(key, metric, metric.value, "" if key in tiles else "# "))
    absent = [key for key, one in document.metrics.items() if one.value is None]
    if absent:
        yield f"# Not captured in this report: {', '.join(visible(key) for key in absent)}.\n"


def _metric(key: str, metric: Metric, value: float, off: str) -> Iterator[str]:
    """Yield a metric's table: in force where it is on a tile of the report, commented out elsewhere."""
    lower = metric.better == "lower"
    bound = value * (1 + _ROOM if lower else 1 - _ROOM)
    words = visible(metric.definition)
    yield f"# {visible(metric.title)}, now {quantity(value, metric.unit)}. {words}"
    yield f"{off}[metrics.{_key(key)}]"
    yield f"{off}max_regression = {_REGRESSIONS.get(metric.unit, _ROOM):g}"
    yield f"# {'max' if lower else 'min'} = {bound:.6g}  # {quantity(bound, metric.unit)}"
    yield ""


def _findings(document: ReportDocument) -> Iterator[str]:
    yield '[findings."*"]\nlevel = "error"\nmin_severity = "high"\nnew_only = true\n'
    for one in document.findings:
        yield f'# Found now: {visible(one.title)}\n[findings.{_key(one.id)}]\nlevel = "warn"\n'


def _key(text: str) -> str:
    return text if _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
