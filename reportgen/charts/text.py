"""Text from strangers made harmless to look at: every character visible, long ones cut in the middle."""

from __future__ import annotations

import re

# Control characters, lone surrogates, noncharacters, and the format characters that reorder or hide text.
_UNSEEN = (
    "\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\U000e0000-\U000e007f"
)
_IN_LINE = re.compile(f"[{_UNSEEN}]")
_IN_BLOCK = re.compile(f"(?![\n\t])[{_UNSEEN}]")


def _symbol(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"\u27e8U+{code:04X}\u27e9"


def visible(text: str) -> str:
    """Return one line of text with every unseen or reordering character as a symbol: a tab as ␉, U+202E as ⟨U+202E⟩."""
    return text if text.isascii() and text.isprintable() else _IN_LINE.sub(_symbol, text)


def visible_block(text: str) -> str:
    """Return the same for text of several lines: line breaks and tabs stay."""
    return _IN_BLOCK.sub(_symbol, text.replace("\r\n", "\n"))


def middle(text: str, limit: int) -> str:
    """Cut text in the middle so that at most `limit` characters are left, both ends and an ellipsis."""
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 2
    return f"{text[: limit - 1 - tail]}…{text[len(text) - tail :]}"


def shortened(text: str, limit: int) -> str:
    """Cut text in the middle and say how long it was."""
    if len(text) <= limit:
        return text
    half = limit // 2
    note = f" … {len(text) - 2 * half:,} of {len(text):,} characters left out … "
    return f"{text[:half]}{note}{text[-half:]}"
