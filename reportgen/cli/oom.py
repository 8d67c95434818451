"""The command that reports on an out-of-memory error."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from reportgen.cli import common, redaction


def oom(
    source: Annotated[
        str,
        typer.Argument(
            metavar="PATH", help="XLA dump folder, HloProto, profile or log with the error; - for standard input."
        ),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", help="Folder to write to; - writes one format to stdout.")
    ] = "out",
    formats: Annotated[
        str, typer.Option("--format", help="Which of html, md, json, joined by commas.")
    ] = "html,md,json",
    dump: Annotated[Path | None, typer.Option(help="Dump folder that belongs to the log.")] = None,
    hbm_capacity: common.HbmCapacity = None,
    flavour: common.Flavour = "github",
    redact: redaction.Redact = False,
    redact_key: redaction.RedactKey = None,
    redact_shapes: redaction.RedactShapes = False,
) -> None:
    """Say what filled the memory, and ways to fit with the bytes that each saves."""
    from reportgen import api  # noqa: PLC0415
    from reportgen.output import write_stdout  # noqa: PLC0415

    chosen = common.split([formats])
    if output == "-" and len(chosen) != 1:
        common.warn(f"-o - writes exactly one format, found {len(chosen)}: give --format html, md or json.")
        raise typer.Exit(2)
    text = sys.stdin.buffer.read().decode("utf-8", "replace") if source == "-" else None
    capacity = int(hbm_capacity) if hbm_capacity else None
    redactor = redaction.redactor_of(redact, redact_key, redact_shapes)
    document = api.oom_document_of(source, text=text, dump=dump, capacity=capacity)
    if output == "-":
        write_stdout(api.rendered(document, chosen[0], redactor, flavour))
        return
    written = api.write_document(document, output, chosen, redactor, flavour)
    common.tell(written)
