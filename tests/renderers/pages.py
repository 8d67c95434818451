"""A strict reader of pages: what a report holds, and whether any of it is alive that must not be."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"meta", "link", "input", "br", "img", "hr", "area", "base", "col", "embed", "source", "track", "wbr"})
TAGS = frozenset(
    re.split(
        r"\s+",
        "html head meta title link style body a div input label nav ol ul li main header footer section article "
        "h1 h2 h3 h4 h5 h6 p span bdi b i strong em small code pre dl dt dd details summary figure figcaption "
        "table caption thead tbody tr th td svg g path text script",
    )
)
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c\ud800-\udfff]")


@dataclass
class Page(HTMLParser):
    """A page taken apart; reading fails on unbalanced tags and on tags and attributes that a report never has.

    Attributes:
        ids: All ids, in order.
        links: All targets inside the page, without the #.
        tags: Names of all elements, in order.
        scripts, styles: Contents of the elements.
        texts: All text outside scripts and styles.

    """

    source: str
    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    scripts: list[tuple[str, str]] = field(default_factory=list)
    styles: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    policy: str = ""

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[tuple[str, dict[str, str | None]]] = []
        self.feed(self.source)
        self.close()
        assert not self._open, f"left open: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, f"a report has no <{tag}>"
        values = dict(attrs)
        for name, value in attrs:
            assert not name.startswith("on"), f"{name}={value!r}"
            assert name not in ("style", "src", "srcset", "action", "formaction", "xlink:href", "background"), name
        self._note(tag, values)
        if tag not in VOID:
            self._open.append((tag, values))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open[-1][0] == tag, f"</{tag}> closes {self._open[-1]}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        inside, values = self._open[-1] if self._open else ("", {})
        if inside == "script":
            self.scripts.append((values.get("type") or "", data))
        elif inside == "style":
            self.styles.append(data)
        else:
            self.texts.append(data)

    def _note(self, tag: str, values: dict[str, str | None]) -> None:
        self.tags.append(tag)
        if values.get("id"):
            self.ids.append(str(values["id"]))
        if values.get("http-equiv") == "Content-Security-Policy":
            self.policy = str(values["content"])
        target = values.get("href")
        if target is not None and tag != "link":
            assert target.startswith("#"), f"a link out of the page: {target}"
            self.links.append(target[1:])
        if tag == "link":
            assert values == {"rel": "icon", "href": "data:,"}
        for reference in (values.get("for"), values.get("aria-labelledby")):
            if reference:
                self.links.append(reference)

    @property
    def text(self) -> str:
        """All that is written on the page."""
        return " ".join(self.texts)


def read(data: bytes) -> Page:
    """Read a report and assert what holds for each: one policy, known scripts, unique ids, links that resolve."""
    source = data.decode()
    page = Page(source)
    assert not FORBIDDEN.search(source), repr(FORBIDDEN.search(source))
    assert len(page.ids) == len(set(page.ids)), sorted({one for one in page.ids if page.ids.count(one) > 1})
    assert not set(page.links) - set(page.ids), set(page.links) - set(page.ids)
    live = [text for kind, text in page.scripts if kind != "application/json"]
    assert len(live) == 1
    assert len(page.styles) == 1
    assert page.policy == (
        f"default-src 'none'; img-src data:; script-src '{_hash(live[0])}'; style-src '{_hash(page.styles[0])}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return page


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
