"""Amounts of memory as messages write them: 48.50G, 6.00MiB, 384.0KiB, 165425291480 bytes, 0x8000000."""

from __future__ import annotations

import re

# XLA's and TensorFlow's suffixes are binary, with or without the "iB".
SIZE = r"\d[\d,]*(?:\.\d+)?\s?(?:[KMGTPE]i?B?|B|bytes?)?(?!\w)"
_PARTS = re.compile(r"(\d[\d,]*(?:\.\d+)?)\s?([KMGTPE]?)")
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}


def parse_size(text: str | None) -> int | None:
    """Read an amount of memory in bytes; None where the text is none, such as "unknown size"."""
    if text is None:
        return None
    text = text.strip()
    if text.lower().startswith("0x"):
        return int(text, 16)
    match = _PARTS.match(text)
    if match is None or len(match[1]) > 30:
        return None
    return round(float(match[1].replace(",", "")) * (1 << (10 * _POWERS[match[2]])))
