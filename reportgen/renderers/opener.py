"""The short trace that a report carries, and what a page says beside the button that opens it in Perfetto."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from reportgen import units
from reportgen.document import ReportDocument
from reportgen.renderers.cells import line

EXTRA = "trace_excerpt"
_MOST_LETTERS = 300_000
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


@dataclass(frozen=True)
class Opener:
    """What the page shows of the short trace.

    Attributes:
        what: Which steps and events it holds; "" where the page does not carry it.
        data: What the script reads, ready for JSON.

    """

    what: str
    data: dict[str, str]


def opener_of(document: ReportDocument, carried: bool = True) -> Opener | None:
    """Return what opens traces; None where the document carries no short trace, or none that can be one.

    Args:
        document: The document.
        carried: Whether the page has room for the short trace.

    """
    found: Any = document.extra.get(EXTRA)
    content = found.get("gzip_base64") if isinstance(found, dict) else None
    if not isinstance(content, str) or len(content) > _MOST_LETTERS or not _BASE64.fullmatch(content):
        return None
    title = line(document.title, 100)
    if not carried:
        return Opener("", {"title": title})
    steps = [str(step) for step in found.get("steps", ()) if isinstance(step, int)]
    what = f"step{'s' if len(steps) > 1 else ''} {' and '.join(steps)}" if steps else "the time drawn above"
    cut = [line(str(text)) for text in found.get("cut", ())]
    events = found.get("events")
    held = f", {units.count(events)} events" if isinstance(events, int) else ""
    left_out = f"; left out: {'; '.join(cut)}" if cut else ""
    return Opener(
        what=f"{what}{held}, {units.binary(len(content) * 3 // 4)}{left_out}",
        data={"gzip": content, "title": title},
    )
