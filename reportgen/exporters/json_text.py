"""Pieces of JSON text for many events at a time."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]

# Readers of JSON keep whole numbers exact up to here; beyond it they are written as strings.
EXACT_INTEGER = 1 << 53
PS_PER_NS = 1000
_NS_PER_US = 1000
_quote = json.JSONEncoder(ensure_ascii=False).encode


def quoted(text: str, limit: int | None = None) -> str:
    """Return a JSON string; a text beyond the limit is cut and ends in "…"."""
    if limit is not None and len(text) > limit:
        text = f"{text[:limit]}…"
    return _quote(text)


def number(value: int | float) -> str:
    """Return a JSON value that keeps the number: a string for whole numbers beyond 2**53 and for what is not finite."""
    if isinstance(value, int):
        return str(value) if -EXACT_INTEGER <= value <= EXACT_INTEGER else f'"{value}"'
    return repr(value) if math.isfinite(value) else f'"{value}"'


def whole_nanoseconds(starts: Times, durations: Times) -> tuple[Times, Times]:
    """Return start and end in nanoseconds, each rounded down by itself, so that nesting and adjacency survive.

    Args:
        starts: Picoseconds.
        durations: Picoseconds.

    """
    return starts // PS_PER_NS, (starts + durations) // PS_PER_NS


def microseconds(nanoseconds: Times, suffix: str = "") -> tuple[list[int], Iterator[str]]:
    """Return whole nanoseconds as microseconds: the whole part, and point, fraction and a suffix as text."""
    whole, rest = np.divmod(nanoseconds, _NS_PER_US)
    return whole.tolist(), map(_fractions(suffix).__getitem__, rest.tolist())


@cache
def _fractions(suffix: str) -> list[str]:
    return [f".{ns:03d}{suffix}" for ns in range(_NS_PER_US)]
