"""The document itself, for machines."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from reportgen.document import ReportDocument, to_json
from reportgen.renderers.base import Rendered

NAME = "report.json"
_SURROGATE = re.compile("[\ud800-\udfff]")


def render_json(document: ReportDocument) -> Rendered:
    """Render a document as `report.json`, from which every other format can be made again.

    JSON in UTF-8 cannot hold half a character of UTF-16, which names from a profile may have: it is written as U+FFFD.
    """
    try:
        return Rendered({NAME: to_json(document)})
    except UnicodeEncodeError:
        whole = msgspec.convert(_whole(msgspec.to_builtins(document)), ReportDocument)
        return Rendered({NAME: to_json(whole)}, (f"{NAME}: characters that UTF-8 cannot hold were replaced.",))


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(item) for item in value]
    return value
