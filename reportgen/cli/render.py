"""The command that renders a report again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reportgen.cli import common, redaction

if TYPE_CHECKING:
    from reportgen.document import ReportDocument
    from reportgen.renderers import Rendered

FORMATS = ("html", "md", "json", "mail", "csv", "parquet")


def render(
    report: Annotated[str, typer.Argument(metavar="REPORT", help="A report.json (also .gz), of any schema so far.")],
    to: Annotated[str, typer.Option("--to", help=f"Which of {', '.join(FORMATS)}, joined by commas.")] = "html,md",
    output: Annotated[
        str, typer.Option("--output", "-o", help="Folder to write to; - writes one format to stdout.")
    ] = "out",
    flavour: common.Flavour = "github",
    max_chars: Annotated[int, typer.Option(min=1000, help="Longest Markdown.")] = 60_000,
    table: Annotated[list[str] | None, typer.Option(help="Only these tables, for csv and parquet.")] = None,
    redact: redaction.Redact = False,
    redact_key: redaction.RedactKey = None,
    redact_shapes: redaction.RedactShapes = False,
) -> None:
    """Render a report again, in any format: the same bytes as when it was made."""
    from reportgen import delivery  # noqa: PLC0415
    from reportgen.errors import UsageError  # noqa: PLC0415
    from reportgen.output import write_files, write_stdout  # noqa: PLC0415
    from reportgen.redact import refuse_leaks  # noqa: PLC0415

    chosen = common.split([to])
    if not chosen or set(chosen) - set(FORMATS):
        raise UsageError(f"--to {to}: expected some of {', '.join(FORMATS)}.")
    redactor = redaction.redactor_of(redact, redact_key, redact_shapes)
    document = delivery.redacted(delivery.open_document(report), redactor)
    options: dict[str, Any] = {"flavour": flavour, "max_chars": max_chars}
    files: dict[str, bytes] = {}
    for form in chosen:
        rendered = _rendered(document, form, options if form == "md" else {}, common.split(table))
        files |= rendered.files
        for warning in rendered.warnings:
            common.warn(warning)
    refuse_leaks(files, redactor)
    if output == "-":
        if len(files) != 1:
            raise UsageError(f"-o - writes exactly one file, found {len(files)}.", "Give --to html, md, json or mail.")
        write_stdout(next(iter(files.values())))
        return
    for path in write_files(Path(output), files):
        typer.echo(f"wrote {path}", err=True)


def _rendered(document: ReportDocument, form: str, options: dict[str, Any], tables: tuple[str, ...]) -> Rendered:
    from reportgen import renderers  # noqa: PLC0415

    if form in ("csv", "parquet"):
        from reportgen.exporters.tables import export_tables  # noqa: PLC0415

        return renderers.Rendered(export_tables(document, form, tables))
    return renderers.render(document, form, **options)
