"""A mail taken apart as a mail program would, and its HTML read strictly."""

from __future__ import annotations

import base64
import re
from email import message_from_bytes, policy
from email.message import EmailMessage
from html.parser import HTMLParser

VOID = frozenset({"meta", "img", "wbr"})
TAGS = VOID | {
    "html", "head", "title", "style", "body", "table", "tr", "td", "th", "p", "h1", "h2", "h3", "ul", "li", "strong",
    "a",
}  # fmt: skip
ATTRIBUTES = {
    "lang", "charset", "name", "content", "class", "role", "width", "cellpadding", "cellspacing", "style", "align",
    "scope", "src", "alt", "href",
}  # fmt: skip


def read(content: bytes) -> EmailMessage:
    """Parse a message; a defect anywhere is a failure."""
    message = message_from_bytes(content, policy=policy.default)
    assert isinstance(message, EmailMessage)
    assert [part.defects for part in message.walk() if part.defects] == []
    return message


def part(message: EmailMessage, kind: str) -> str:
    """Return the text of the plain or HTML body."""
    body = message.get_body((kind,))
    assert body is not None
    text = body.get_content()
    assert isinstance(text, str)
    return text


def pictures(message: EmailMessage) -> dict[str, bytes]:
    """Return the pictures by their Content-IDs."""
    found = [one for one in message.walk() if one.get_content_type() == "image/png"]
    return {one["Content-ID"].strip("<>"): one.get_content() for one in found}


def shape(message: EmailMessage) -> list[str]:
    """Return the content types of all parts, in order."""
    return [one.get_content_type() for one in message.walk()]


def shown(message: EmailMessage, *, images: bool = True) -> str:
    """Return the HTML with its pictures inside, as a mail program shows it, or with none of them loaded."""
    html = part(message, "html")
    for cid, data in pictures(message).items():
        source = f"data:image/png;base64,{base64.b64encode(data).decode()}" if images else "about:blank#blocked"
        html = html.replace(f"cid:{cid}", source)
    return html


class Html(HTMLParser):
    """The HTML of a mail; reading fails on anything that mail programs drop or that could act.

    Attributes:
        images: Sources and alternative texts.
        links: Targets.
        text: All text, in order.

    """

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.images: list[tuple[str, str]] = []
        self.links: list[str] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, f"a mail has no <{tag}>"
        values = {name: value or "" for name, value in attrs}
        assert set(values) <= ATTRIBUTES, values
        style = values.get("style", "")
        assert re.fullmatch(r"[A-Za-z0-9 #%:;,.'\-]*", style), style
        assert not re.search(r"url|expression|flex|grid|position", style), style
        if tag == "img":
            self.images.append((values["src"], values["alt"]))
        if tag == "a":
            self.links.append(values["href"])
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("style", "title"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        """All text with single spaces."""
        return " ".join("".join(self.texts).split())
