"""The last look: what was replaced must be in no output."""

from __future__ import annotations

import base64
import binascii
import gzip
import html
import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from email import message_from_bytes, policy

from reportgen.errors import ReportgenError
from reportgen.redact.redactor import Redactor
from reportgen.redact.words import allowed, vocabulary

_WORD = re.compile(r"[\w$][\w$.\-]*")
_PART = re.compile(r"[^\W_]+")
_PACKED = re.compile(r"H4sI[A-Za-z0-9+/]{40,}")  # gzip in base64
_SHORTEST = 3
_DEEPEST = 4


def leaks(files: Mapping[str, bytes], redactor: Redactor) -> tuple[str, ...]:
    """Return "file: name" for each replaced name that is still in a file, compressed and packed ones included.

    Names that are words of reportgen's own texts or of the allow-list are not searched for: any report has them.
    """
    wanted = {name for name in redactor.replaced if len(name) >= _SHORTEST and not _ordinary(name)}
    found = []
    for name, content in files.items():
        seen: set[str] = set()
        for text in _texts(content, _DEEPEST):
            seen |= _hits(text, wanted)
        found += [f"{name}: {one}" for one in sorted(seen)]
    return tuple(found)


def refuse_leaks(files: Mapping[str, bytes], redactor: Redactor | None) -> None:
    """Refuse files that still hold a replaced name; where nothing was replaced there is nothing to refuse.

    Raises:
        ReportgenError: One does.

    """
    if redactor is not None and (found := leaks(files, redactor)):
        raise ReportgenError(
            f"redaction failed: {len(found)} names were left ({', '.join(found[:3])}). Nothing was written.",
            "This is a fault of reportgen: please report where such a name stands, without the name.",
        )


def _ordinary(name: str) -> bool:
    parts = [part.lower() for part in _PART.findall(name)]
    return name in allowed() or all(part in vocabulary() or part.isdigit() for part in parts)


def _hits(text: str, wanted: set[str]) -> set[str]:
    words = set(_WORD.findall(text))
    words |= {part for word in words for part in _PART.findall(word)}
    words |= {word.rstrip(".-") for word in words}
    hits = words & wanted
    return hits | {name for name in wanted - hits if not _WORD.fullmatch(name) and name in text}


def _texts(content: bytes, depth: int) -> Iterator[str]:
    """Yield what a file holds as text: unpacked, and with HTML's and JSON's escapes undone."""
    inner = _unpacked(content) if depth else None
    if inner is not None:
        for part in inner:
            yield from _texts(part, depth - 1)
        return
    text = content.decode("utf-8", errors="replace")
    yield text
    for packed in _PACKED.findall(text) if depth else ():
        with suppress(binascii.Error):
            yield from _texts(base64.b64decode(packed + "=" * (-len(packed) % 4)), depth - 1)
    if "&" in text:
        yield html.unescape(text)
    if "\\u" in text:
        yield re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text)


def _unpacked(content: bytes) -> list[bytes] | None:
    try:
        if content.startswith(b"\x1f\x8b"):
            return [gzip.decompress(content)]
        if content.startswith(b"PK\x03\x04"):
            archive = zipfile.ZipFile(io.BytesIO(content))
            return [archive.read(name) for name in archive.namelist()] + [" ".join(archive.namelist()).encode()]
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile):
        return None
    if b"MIME-Version:" in content[:4096]:
        message = message_from_bytes(content, policy=policy.default)
        parts = [part.get_payload(decode=True) for part in message.walk() if not part.is_multipart()]
        return [part for part in parts if isinstance(part, bytes)] + [content.split(b"\n\n", 1)[0]]
    return None
