"""Redaction of the short trace that a report carries: gzipped JSON in base64."""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from reportgen.redact.redactor import Redactor

EXCERPT = "trace_excerpt"
_PACKED = "gzip_base64"
_MOST_BYTES = 1 << 26
# Fields of a trace event that are words of the format.
_KEPT = frozenset(("ph", "bp", "displayTimeUnit"))


def redact_excerpt(extra: Mapping[str, Any], redactor: Redactor) -> dict[str, Any]:
    """Return a document's extra parts with the short trace redacted, or without it where it cannot be read."""
    rest = {key: value for key, value in extra.items() if key != EXCERPT}
    carried = extra.get(EXCERPT)
    if not isinstance(carried, Mapping):
        return rest
    try:
        packed = base64.b64decode(carried.get(_PACKED, ""), validate=True)
        content = gzip.GzipFile(fileobj=io.BytesIO(packed)).read(_MOST_BYTES + 1)
        trace = json.loads(content) if len(content) <= _MOST_BYTES else None
    except (OSError, EOFError, ValueError, TypeError, RecursionError, zlib.error, binascii.Error):
        return rest
    if trace is None:
        return rest
    text = json.dumps(_redacted(trace, redactor), separators=(",", ":")).encode()
    known = {key: _redacted(value, redactor) for key, value in carried.items() if key not in (_PACKED, "host")}
    host = {"host": redactor.host(str(carried["host"]))} if "host" in carried else {}
    return rest | {EXCERPT: {**known, **host, _PACKED: base64.b64encode(gzip.compress(text, 9, mtime=0)).decode()}}


def _redacted(value: Any, redactor: Redactor, apply: Callable[[str], str] | None = None) -> Any:
    apply = apply or redactor.name
    if isinstance(value, str):
        return apply(value)
    if isinstance(value, list):
        return [_redacted(one, redactor, apply) for one in value]
    if isinstance(value, dict):
        if value.get("ph") == "M":  # names a process or a thread, mostly in our own words
            apply = redactor.prose
        return {key: one if key in _KEPT else _redacted(one, redactor, apply) for key, one in value.items()}
    return value
