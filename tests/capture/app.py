"""The two commands alone, as a program: python -m tests.capture.app capture ..."""

from __future__ import annotations

import typer

from reportgen.cli.capture import capture
from reportgen.cli.run import CONTEXT_SETTINGS, run

app = typer.Typer(add_completion=False)
app.command()(capture)
app.command(context_settings=CONTEXT_SETTINGS)(run)

if __name__ == "__main__":
    app()
