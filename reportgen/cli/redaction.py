"""Options of redaction, and what commands do with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from reportgen.redact import Redactor

Redact = Annotated[
    bool, typer.Option("--redact", help="Replace names of hosts, people, files, modules and scopes by pseudonyms.")
]
RedactKey = Annotated[
    Path | None,
    typer.Option(help="File with the key of the pseudonyms, made if needed: the same key gives the same pseudonyms."),
]
RedactShapes = Annotated[bool, typer.Option("--redact-shapes", help="Hide shapes too.")]


def redactor_of(redact: bool, key: Path | None, shapes: bool) -> Redactor | None:
    """Return what replaces names, None where nobody asked for it; a key, or hidden shapes, ask for it too."""
    if not (redact or key or shapes):
        return None
    from reportgen.redact import Redactor, load_key  # noqa: PLC0415

    return Redactor(load_key(key), hide_shapes=shapes)
