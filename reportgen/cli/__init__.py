"""The command line: one module a command; this one joins them."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from reportgen import __version__
from reportgen.cli import capture, check, compare, mail, oom, render, report, rules, run, trace
from reportgen.errors import ReportgenError

app = typer.Typer(
    name="reportgen",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="One self-contained report from an XLA profile: what is slow, what filled the memory, why, and what to do.",
    epilog="Exit codes: 0 done; 1 a fault of reportgen; 2 wrong usage; 3 a budget failed; 4 the input cannot be used.",
)
app.command()(report.report)
app.command()(capture.capture)
app.command()(trace.trace)
app.command()(oom.oom)
app.command()(check.check)
app.command()(compare.compare)
app.command()(render.render)
app.command()(mail.mail)
app.command()(rules.rules)
app.command(context_settings=run.CONTEXT_SETTINGS)(run.run)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"reportgen {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; errors that a user can act on go to stderr in plain words, with their exit code."""
    try:
        app()
    except ReportgenError as error:
        sys.stderr.write(f"reportgen: {error.message}\n" + (f"{error.hint}\n" if error.hint else ""))
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.exit(141)
