"""The command that compares reports."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reportgen.cli import common, redaction

FORMATS = ("html", "md", "json")
_NAME = "comparison"


def compare(
    reports: Annotated[
        list[str],
        typer.Argument(
            metavar="BASE... NEW", help="Reports (report.json), profiles or run folders; the last is the new one."
        ),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", help="Folder to write comparison.html, .md and .json to; - for stdout.")
    ] = "out",
    formats: Annotated[
        str, typer.Option("--format", help="Which of html, md, json, joined by commas.")
    ] = "html,md,json",
    flavour: common.Flavour = "github",
    min_effect: Annotated[
        float, typer.Option(help="With one or two bases: the smallest relative change that is called one.")
    ] = 0.05,
    error_rate: Annotated[
        float, typer.Option(help="With three bases or more: the share of repeats that may be called a change.")
    ] = 0.01,
    redact: redaction.Redact = False,
    redact_key: redaction.RedactKey = None,
    redact_shapes: redaction.RedactShapes = False,
) -> None:
    """Say what changed between captures, where it comes from, and whether it exceeds the noise; exits 0 either way."""
    from reportgen import delivery  # noqa: PLC0415
    from reportgen.errors import UsageError  # noqa: PLC0415
    from reportgen.output import write_files, write_stdout  # noqa: PLC0415
    from reportgen.redact import refuse_leaks  # noqa: PLC0415
    from reportgen.renderers import render  # noqa: PLC0415

    chosen = common.split([formats])
    if not chosen or set(chosen) - set(FORMATS):
        raise UsageError(f"--format {formats}: expected some of {', '.join(FORMATS)}.")
    if output == "-" and len(chosen) != 1:
        raise UsageError(f"-o - writes exactly one format, found {len(chosen)}.", "Give --format html, md or json.")
    redactor = redaction.redactor_of(redact, redact_key, redact_shapes)
    document = delivery.compare(*reports, error_rate=error_rate, min_effect=min_effect, redactor=redactor)
    typer.echo(document.verdict, err=True)
    for form in chosen:
        rendered = render(document, form, **({"flavour": flavour} if form == "md" else {}))
        for warning in rendered.warnings:
            common.warn(warning)
        refuse_leaks(rendered.files, redactor)
        files = {name.replace("report", _NAME, 1): content for name, content in rendered.files.items()}
        if output == "-":
            write_stdout(b"".join(files.values()))
            continue
        for path in write_files(Path(output), files):
            typer.echo(f"wrote {path}", err=True)
