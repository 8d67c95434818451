"""The pages of the rules, which the program brings along, as HTML inside a report."""

from __future__ import annotations

import re
from functools import cache

import markdown

_TITLE = re.compile(r"\A\s*<h1>.*?</h1>\s*", re.DOTALL)
_HEADING = re.compile(r"(</?h)([1-5])>")
_STYLE = re.compile(r' style="[^"]*"')
_LOCAL_LINK = re.compile(r'<a href="(?!https:)[^"]*"[^>]*>(.*?)</a>', re.DOTALL)


@cache
def rule_page(rule: str) -> str:
    """Return a rule's page as HTML without its title, "" where there is none.

    The pages are our own text; links to other files are left out, since a report stands alone.
    """
    from reportgen.rules import pages  # noqa: PLC0415 - rules need pandas, reports without findings do not

    try:
        text = pages.rule_page(rule)
    except KeyError:
        return ""
    html = markdown.markdown(text, extensions=["fenced_code", "tables"])
    html = _LOCAL_LINK.sub(r"\1", _STYLE.sub("", _TITLE.sub("", html)))
    return _HEADING.sub(lambda found: f"{found[1]}{int(found[2]) + 1 if int(found[2]) > 2 else 4}>", html)
