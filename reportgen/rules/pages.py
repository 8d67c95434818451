"""The page of a rule: one Markdown file, the text of the report, the mail and `reportgen rules ID`."""

from __future__ import annotations

import re
from pathlib import Path

_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def folders() -> list[Path]:
    """Return where pages lie: in an installed package beside the code, in a source checkout in `docs/rules`."""
    package = Path(__file__).resolve().parent.parent
    return [package / "_rule_pages", package.parent / "docs" / "rules"]


def rule_page(rule_id: str) -> str:
    """Return the Markdown text of a rule's page.

    Raises:
        KeyError: There is no page of that name. Names that are not kebab case, paths among them, are not looked up.

    """
    if not _ID.fullmatch(rule_id):
        raise KeyError(rule_id)
    path = next((found for folder in folders() if (found := folder / f"{rule_id}.md").is_file()), None)
    if path is None:
        raise KeyError(rule_id)
    return path.read_text(encoding="utf-8")
