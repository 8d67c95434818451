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


def redact_excerpt(extra: Mapping[str, Any], redactor: Redactor, sentences: Mapping[str, str]) -> dict[str, Any]:
    """Return the short trace among a document's extra parts, redacted; nothing where there is none to be read.

    Args:
        extra: The document's extra parts.
        redactor: Replaces the names.
        sentences: Texts of the document that the trace repeats, with what became of them.

    """
    carried = extra.get(EXCERPT)
    if not isinstance(carried, Mapping):
        return {}
    try:
        packed = base64.b64decode(carried.get(_PACKED, ""), validate=True)
        content = gzip.GzipFile(fileobj=io.BytesIO(packed)).read(_MOST_BYTES + 1)
        trace = json.loads(content) if len(content) <= _MOST_BYTES else None
    except (OSError, EOFError, ValueError, TypeError, RecursionError, zlib.error, binascii.Error):
        return {}
    if trace is None:
        return {}
    walk = _Walk(redactor, sentences)
    text = json.dumps(walk.any(trace, redactor.name), separators=(",", ":")).encode()
    known = {key: walk.any(value, redactor.prose) for key, value in carried.items() if key not in (_PACKED, "host")}
    host = {"host": redactor.host(str(carried["host"]))} if "host" in carried else {}
    return {EXCERPT: {**known, **host, _PACKED: base64.b64encode(gzip.compress(text, 9, mtime=0)).decode()}}


class _Walk:
    def __init__(self, redactor: Redactor, sentences: Mapping[str, str]) -> None:
        self._redactor = redactor
        self._sentences = sentences

    def any(self, value: Any, apply: Callable[[str], str]) -> Any:
        if isinstance(value, str):
            return self._sentences.get(value) or apply(value)
        if isinstance(value, list):
            return [self.any(one, apply) for one in value]
        if isinstance(value, dict):
            if value.get("ph") == "M":  # names a process or a thread, mostly in our own words
                apply = self._redactor.prose
            return {
                key if key in _KEPT else self._redactor.prose(key): one if key in _KEPT else self.any(one, apply)
                for key, one in value.items()
            }
        return value
