"""The syntax of tickets: GitHub's and GitLab's Markdown, and Jira's wiki markup.

All text may come from strangers: it shows as it is, and is never read as markup, a mention, a reference or a link.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from reportgen.charts.text import visible, visible_block

_PART = "\u200b"  # a space of no width, which `visible` never leaves: parts a sign from what it would refer to
_SIGNS = re.compile(r"[\\`*\[\]~|]|(?<![^\W_])_|_(?![^\W_])")
_LEADING = re.compile(r"^\s*(?:(\d+)([.)])(?=\s|$)|([-+=#]))")
_LINK = re.compile(r"(?i)(?<=:)//|(?<=www)\.")
_BACKTICKS = re.compile(r"`+")
_WIKI_SIGNS = re.compile(r"[\\{}\[\]*_+^~|!?#@<>-]")


class Markdown:
    """GitHub-flavoured Markdown.

    Attributes:
        folds: Whether it can fold.

    """

    folds = True
    _references = re.compile(r"[@#](?=[\w./\"-])")

    def text(self, text: str) -> str:
        """Return one line of plain text."""
        result = self._references.sub(lambda sign: sign.group() + _PART, visible(text).strip())
        result = _LINK.sub(lambda sign: _PART + sign.group(), result)
        result = _SIGNS.sub(lambda sign: "\\" + sign.group(), escape(result, quote=False))
        result = _LEADING.sub(lambda found: f"{found[1]}\\{found[2]}" if found[1] else "\\" + found[3], result)
        return result.replace(_PART, "&#8203;").replace("$", "&#36;")

    def code(self, text: str) -> str:
        """Return text in letters of equal width, fit for a table's cell too."""
        shown = visible(text)
        if "|" in shown:  # cells end at bars, even inside code
            return "<code>" + "".join(f"&#{ord(c)};" if c in "|\\`*_[]<>&~#@$:" else c for c in shown) + "</code>"
        longest = max((len(run) for run in _BACKTICKS.findall(shown)), default=0)
        fence = "`" * (longest + 1)
        pad = " " if shown[:1] in ("`", " ", "") or shown[-1:] in ("`", " ") else ""
        return f"{fence}{pad}{shown}{pad}{fence}"

    def bold(self, text: str) -> str:
        """Return text, already in this syntax, in bold."""
        return f"**{text}**"

    def heading(self, level: int, text: str) -> str:
        """Return a heading; `text` is already in this syntax."""
        return f"{'#' * level} {text}"

    def bullets(self, items: Sequence[str]) -> str:
        """Return a list; the items are already in this syntax."""
        return "\n".join(f"- {item}" for item in items)

    def block(self, text: str) -> str:
        """Return lines of code."""
        shown = visible_block(text)
        longest = max((len(run) for run in _BACKTICKS.findall(shown)), default=0)
        fence = "`" * max(3, longest + 1)
        return f"{fence}\n{shown}\n{fence}"

    def table(self, heads: Sequence[str], right: Sequence[bool], rows: Sequence[Sequence[str]]) -> str:
        """Return a table of cells that are already in this syntax; `right` says which columns hold numbers."""
        lines = [heads, ["--:" if one else ":--" for one in right], *rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def fold(self, summary: str, body: str) -> str:
        """Return a body, already in this syntax, folded behind a summary of plain text."""
        head = escape(self._references.sub(lambda sign: sign.group() + _PART, visible(summary)))
        return f"<details><summary>{head}</summary>\n\n{body}\n\n</details>"


class GitLab(Markdown):
    """GitLab's Markdown, which has more kinds of references."""

    _references = re.compile(r"[@#!~%$](?=[\w./\"-])")


class Jira(Markdown):
    """Jira's wiki markup, which cannot fold."""

    folds = False

    def text(self, text: str) -> str:
        """Return one line of plain text."""
        return _WIKI_SIGNS.sub(lambda sign: "\\" + sign.group(), visible(text).strip())

    def code(self, text: str) -> str:
        """Return text in letters of equal width."""
        return "{{" + self.text(text) + "}}"

    def bold(self, text: str) -> str:
        """Return text, already in this syntax, in bold."""
        return f"*{text}*"

    def heading(self, level: int, text: str) -> str:
        """Return a heading; `text` is already in this syntax."""
        return f"h{level}. {text}"

    def bullets(self, items: Sequence[str]) -> str:
        """Return a list; the items are already in this syntax."""
        return "\n".join(f"* {item}" for item in items)

    def block(self, text: str) -> str:
        """Return lines of code."""
        shown = visible_block(text).replace("{noformat", "{ noformat")
        return f"{{noformat}}\n{shown}\n{{noformat}}"

    def table(self, heads: Sequence[str], right: Sequence[bool], rows: Sequence[Sequence[str]]) -> str:  # noqa: ARG002
        """Return a table of cells that are already in this syntax; numbers cannot be moved to the right."""
        lines = [f"|| {' || '.join(heads)} ||", *(f"| {' | '.join(row)} |" for row in rows)]
        return "\n".join(lines)

    def fold(self, summary: str, body: str) -> str:
        """Return a heading and the body, since nothing folds."""
        return f"{self.heading(4, self.text(summary))}\n\n{body}"


DIALECTS: dict[str, Markdown] = {"github": Markdown(), "gitlab": GitLab(), "jira": Jira()}
