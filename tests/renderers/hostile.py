"""Documents whose every text comes from an enemy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from reportgen.document import ReportDocument

# Fields whose values are words of the schema, not text.
_CLOSED = frozenset({"type", "kind", "role", "roles", "display", "basis", "timeline_basis", "status", "severity"})
_CLOSED |= {"confidence", "framework", "better", "unit", "axis"}

SAMPLES = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>'",
    "</style></script></title><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "a|b`c``d\\|e\\`f",
    "\x00\x01\x07\x1b[31m\x7f\x85\r\n\tend",
    "\u202egnp.exe\u2066x\u2069\u200f\u061c",
    "\ud800lone\udfff",
    "$\\frac{a}{b}$ _x_ *y* ~~z~~ [l](javascript:alert(1))",
    "@everyone #123 !45 org/repo#6 https://example.invalid www.example.invalid",
    "\u0627\u0644\u0639\u0631\u0628\u064a\u0629 \u4e2d\u6587 \U0001f600",
    "{code}{noformat}[~user] PROJ-1",
)


def poisoned(document: ReportDocument, change: Callable[[str], str]) -> ReportDocument:
    """Return a document with every free text, id and reference changed, so that references still hold."""
    data = msgspec.to_builtins(document)
    return msgspec.convert(_changed(data, change, ""), ReportDocument)


def _changed(value: Any, change: Callable[[str], str], field: str) -> Any:
    if isinstance(value, str):
        return value if field in _CLOSED or not value else change(value)
    if isinstance(value, dict):
        free = field in ("metrics", "tables", "charts", "cards", "timelines", "versions", "options")
        return {change(key) if free else key: _changed(item, change, key) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_changed(item, change, field if isinstance(item, str) else "") for item in value]
    return value
