"""From a log to the lines that may belong to an out-of-memory error: no prefixes, no colours, no hard wraps.

A log may have megabytes of other text; only windows around lines that mention memory are looked at further.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

MAX_TEXT_BYTES = 2**28
_WORDS = (
    *(
        "memory",
        "exhausted",
        "oom",
        "hbm",
        "alloc",
        "chunk",
        "inuse",
        "limit:",
        "stats:",
        "size:",
        "shape:",
        "operator:",
    ),
    *("buffer ", "xla label", "fragmentation", "requirement", "largest program"),
)
_BEFORE, _AFTER = 3, 12
_MAX_LINES = 200_000
_MAX_LINE = 100_000
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r(?!\n)")
_SOURCE = re.compile(r"\.(?:cc|cpp|cu|h|py|go):\d+$")
_LONGEST_PREFIX = 300
_PREFIX = re.compile(
    r"""\s*(?:
        \d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,\d]*(?:Z|[+-]\d\d:?\d\d)?\s*(?:std(?:out|err)\s+[FP]\s)?:?
      | \[\d{1,5}\](?=\s) | \[rank\d+\]:? | \[?\d+\]?:(?=\s) | \((?:pid|\w+\s+pid)=[^)\n]{0,80}\)
      | [\w./-]{1,60}\s{1,20}\|
      | (?:ERROR|WARNING|INFO|CRITICAL|FATAL):[\w.]{0,40}:
    )\s?""",
    re.VERBOSE,
)
_MAX_PREFIXES = 5
_MAX_JOINED = 1000
_SAME_START = 8
_ENDS = (".", ":", ";", "!", "?", ")", "]", "}")
_SHORTEST_WRAP = 60
_OWN_LINE = re.compile(
    r"^(?:\s|$|---|=====|Buffer(?:Assignment)?\b|Peak buffers|Total |Program |Output |Largest |Stats|Limit|InUse|Max"
    r"|Num|Hint|Traceback|RESOURCE_EXHAUSTED|Scoped |Ran out|jax|\w+Error|HLO|Memory|E\d{4}|\[)"
)


class Line(NamedTuple):
    """A cleaned line with its number in the text, counted from 1."""

    number: int
    text: str


def relevant_windows(text: str) -> list[list[Line]]:
    """Cut the stretches that may hold an error out of a text, and clean their lines."""
    raw = _with_line_breaks(text[:MAX_TEXT_BYTES]).split("\n")
    mentioned = [number for number, line in enumerate(raw) if _mentions_memory(line)]
    windows = []
    for first, last in _spans(mentioned, len(raw)):
        numbered = [Line(number + 1, _uncoloured(raw[number])) for number in range(first, last)]
        windows.append([Line(line.number, without_prefix(line.text)) for line in _unwrapped(numbered)])
    return windows


def without_prefix(line: str) -> str:
    """Take timestamps, ranks, levels and "file.cc:88]" off the start of a line."""
    bracket = line.find("]", 0, _LONGEST_PREFIX)
    if bracket > 0 and _SOURCE.search(line, 0, bracket):
        return line[bracket + 1 :].removeprefix(" ")
    for _ in range(_MAX_PREFIXES):
        match = _PREFIX.match(line)
        if match is None:
            break
        line = line[match.end() :]
    return line


def _mentions_memory(line: str) -> bool:
    lowered = line[:_MAX_LINE].lower()
    return len(lowered) > 4 and any(word in lowered for word in _WORDS)


def _with_line_breaks(text: str) -> str:
    """Undo the escaping of messages that were logged as a string on one line."""
    text = text.replace("\r\n", "\n")
    if "\\n" not in text:
        return text
    lines = text.split("\n")
    escaped = (line.count("\\n") >= 2 and _mentions_memory(line) for line in lines)
    return "\n".join(
        line.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"') if is_escaped else line
        for line, is_escaped in zip(lines, escaped, strict=True)
    )


def _spans(mentioned: list[int], count: int) -> list[tuple[int, int]]:
    """Ranges of lines around the ones that mention memory, joined where they touch."""
    spans: list[list[int]] = []
    for number in mentioned[:_MAX_LINES]:
        first, last = max(0, number - _BEFORE), min(count, number + _AFTER)
        if spans and first <= spans[-1][1]:
            spans[-1][1] = last
        else:
            spans.append([first, last])
    return [(first, last) for first, last in spans]


def _uncoloured(line: str) -> str:
    return _ESCAPES.sub("", line[:_MAX_LINE])


def _may_continue(before: str, line: str) -> bool:
    """Whether a line may be the rest of the one before: it has no prefix, nor begins with the same words."""
    same_start = before[:_SAME_START] == line[:_SAME_START]
    return not same_start and not _OWN_LINE.match(line) and without_prefix(line) == line


def _unwrapped(lines: list[Line]) -> list[Line]:
    """Join lines that a terminal broke at a fixed width, in the middle of words.

    A line was broken where it leaves a quote open, or where it is the widest or as wide as several others, and the next
    line begins with neither a blank nor a prefix nor a word that begins a line of its own.
    """
    width_of = [len(line.text.expandtabs(8)) for line in lines]
    widths = Counter(width_of)
    widest = max(width_of, default=0)
    groups: list[list[Line]] = []
    broken = False
    quotes = 0
    for line, width in zip(lines, width_of, strict=True):
        continues = broken and _may_continue(groups[-1][-1].text, line.text)
        if continues and len(groups[-1]) < _MAX_JOINED:
            groups[-1].append(line)
        else:
            groups.append([line])
            quotes = 0
        quotes += line.text.count('"')
        in_word = width == widest and not line.text.endswith(_ENDS)
        broken = width >= _SHORTEST_WRAP and (quotes % 2 == 1 or widths[width] > 1 or in_word)
    return [Line(group[0].number, "".join(line.text for line in group)[:_MAX_LINE]) for group in groups]
