"""The pages of the rules, which the program brings along, as HTML inside a report."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import markdown

_RULE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_TITLE = re.compile(r"\A\s*<h1>.*?</h1>\s*", re.DOTALL)
_HEADING = re.compile(r"(</?h)([1-5])>")
_STYLE = re.compile(r' style="[^"]*"')
_LOCAL_LINK = re.compile(r'<a href="(?!https:)[^"]*"[^>]*>(.*?)</a>', re.DOTALL)


def folders() -> list[Path]:
    """Return where rule pages lie: in an installed package beside the code, in a source checkout in `docs/rules`."""
    package = Path(__file__).resolve().parent.parent
    return [package / "_rule_pages", package.parent / "docs" / "rules"]


@cache
def rule_page(rule: str) -> str:
    """Return a rule's page as HTML without its title, "" where there is none.

    The pages are our own text; links to other files are left out, since a report stands alone.
    """
    if not _RULE.fullmatch(rule):
        return ""
    path = next((found for folder in folders() if (found := folder / f"{rule}.md").is_file()), None)
    if path is None:
        return ""
    html = markdown.markdown(path.read_text(encoding="utf-8"), extensions=["fenced_code", "tables"])
    html = _LOCAL_LINK.sub(r"\1", _STYLE.sub("", _TITLE.sub("", html)))
    return _HEADING.sub(lambda found: f"{found[1]}{int(found[2]) + 1 if int(found[2]) > 2 else 4}>", html)
