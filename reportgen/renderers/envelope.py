"""The head of a mail: who, to whom, about what, when; nothing that is given can add a line to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from email.errors import HeaderParseError
from email.headerregistry import Address, HeaderRegistry
from typing import Any

from reportgen.charts.text import visible
from reportgen.errors import UsageError

_PARSE = HeaderRegistry()


@dataclass(frozen=True)
class Envelope:
    """The head of a mail; what is missing is left to whoever opens the draft.

    Attributes:
        sender: None for a draft without one.
        to: Recipients.
        subject: "" for the report's title and verdict.
        date: With its time zone; None for a draft without date and Message-ID.
        draft: Whether mail programs should open the file for editing rather than as a received mail.

    """

    sender: Address | None = None
    to: tuple[Address, ...] = ()
    subject: str = ""
    date: datetime | None = None
    draft: bool = True


def addresses(texts: Iterable[str]) -> tuple[Address, ...]:
    """Return the addresses of texts such as "a@example.com" or "Name <a@example.com>, b@example.com".

    Raises:
        UsageError: A text is no address, has letters beyond ASCII outside the name, or holds a control character.

    """
    return tuple(one for text in texts for one in _addresses(text))


def _addresses(text: str) -> tuple[Address, ...]:
    header = _parsed(plain_line(text, "an address"))
    found: tuple[Address, ...] = header.addresses if header else ()
    whole = header and not header.defects and all(group.display_name is None for group in header.groups)
    if not whole or not found or not all(one.username and one.domain for one in found):
        raise UsageError(f"{text!r}: expected a mail address such as team@example.com.")
    for one in found:
        plain_line(str(one), "an address")  # an encoded name may hide what the text did not show
        if not one.addr_spec.isascii():
            raise UsageError(
                f"{text!r}: expected an address in ASCII.", "Write the domain in its xn-- form; names may be anything."
            )
    return found


def _parsed(text: str) -> Any:
    try:
        return _PARSE("To", text)
    except (IndexError, ValueError, HeaderParseError):  # the library trips over "a@", or a line break in a coded name
        return None


def plain_line(text: str, what: str) -> str:
    """Return a text for the head.

    Raises:
        UsageError: It holds a line break, or another control character.

    """
    if visible(text) != text:
        raise UsageError(f"{visible(text)!r}: expected {what} on one line, found a line break or control character.")
    return text
