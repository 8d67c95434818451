"""Files that output is held against; `REPORTGEN_ACCEPT_GOLDEN=1` accepts what is written now."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


def check(name: str, text: str) -> None:
    """Compare a text with the golden file of that name."""
    path = FOLDER / name
    if os.environ.get("REPORTGEN_ACCEPT_GOLDEN") == "1":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    assert path.is_file(), f"no golden file {name}; run again with REPORTGEN_ACCEPT_GOLDEN=1 and look at it"
    assert text == path.read_text(encoding="utf-8"), f"{name} differs; if meant, accept: REPORTGEN_ACCEPT_GOLDEN=1"
