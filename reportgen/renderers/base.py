"""What every renderer is made of: its result, its templates and the ids of a page."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import jinja2
import msgspec
from markupsafe import Markup

from reportgen.renderers.cells import block, exact, field_text, line, name, number

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_MAX_ID = 96


class Rendered(msgspec.Struct, frozen=True):
    """Files by their names, and what the user should know of them, such as what was cut."""

    files: dict[str, bytes]
    warnings: tuple[str, ...] = ()


# A pure function from a document, and options by name, to files: the same bytes for the same arguments.
Renderer = Callable[..., Rendered]


def template_folders() -> list[Path]:
    """Return where templates lie: in an installed package beside the code, in a source checkout at its root."""
    package = Path(__file__).resolve().parent.parent
    return [package / "_templates", package.parent / "templates"]


@cache
def environment() -> jinja2.Environment:
    """Return the environment of all templates: everything is escaped, and an unknown name is an error."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(template_folders()),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )

    found.filters |= {
        "line": line,
        "block": block,
        "quantity": number,
        "exact": exact,
        "name": lambda text: Markup(name(text)),  # noqa: S704 - escaped there
        "field_text": lambda text, display: Markup(field_text(text, display)),  # noqa: S704 - escaped there
    }
    return found


class Ids:
    """Ids of one page: made of safe letters, each given once."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def claim(self, *parts: str) -> str:
        """Return an id made of the parts; one that is taken gets a number."""
        wanted = "-".join(filter(None, (_UNSAFE.sub("-", part).strip("-") for part in parts)))[:_MAX_ID] or "item"
        name, number = wanted, 1
        while name in self._given:
            number += 1
            name = f"{wanted}-{number}"
        self._given.add(name)
        return name
