"""The command that is a gate for CI."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reportgen.cli import common

if TYPE_CHECKING:
    from reportgen.document import ReportDocument
    from reportgen.gate import GateResult

FORMATS = ("text", "md", "json")


def check(
    report: Annotated[str, typer.Argument(metavar="REPORT", help="A report.json (also .gz), or a profile.")],
    budget: Annotated[Path | None, typer.Option("--budget", help="TOML file of limits.")] = None,
    baseline: Annotated[
        str | None, typer.Option(help="A report.json or profile that max_regression and new_only refer to.")
    ] = None,
    init: Annotated[
        bool, typer.Option("--init", help="Print a commented budget file for this report, and end.")
    ] = False,
    form: Annotated[str, typer.Option("--format", help="Of the table on stdout: text, md or json.")] = "text",
    junit: Annotated[Path | None, typer.Option(help="Write the result as JUnit XML to this file.")] = None,
    badge: Annotated[Path | None, typer.Option(help="Write a badge (SVG) to this file.")] = None,
    badge_metric: Annotated[str, typer.Option(help="The metric on the badge.")] = "step_time_mean",
    annotate: Annotated[
        bool | None,
        typer.Option(
            "--annotate/--no-annotate", help="GitHub annotations on stderr; by default where GITHUB_ACTIONS is set."
        ),
    ] = None,
) -> None:
    """Hold a report against budgets: exit code 3, with a table of what failed and by how much, where one fails."""
    from reportgen import delivery  # noqa: PLC0415
    from reportgen.errors import UsageError  # noqa: PLC0415

    document = delivery.open_document(report)
    if init:
        from reportgen.gate.initial import initial_budgets  # noqa: PLC0415

        typer.echo(initial_budgets(document), nl=False)
        return
    if budget is None:
        raise UsageError("there is nothing to check against.", "Give --budget FILE; --init prints one to start from.")
    if form not in FORMATS:
        raise UsageError(f"--format {form}: expected one of {', '.join(FORMATS)}.")
    result = delivery.check(document, budget, baseline)
    _write_files(document, result, junit, badge, badge_metric)
    _tell(result, form, annotate if annotate is not None else os.environ.get("GITHUB_ACTIONS") == "true")
    if not result.passed:
        raise typer.Exit(3)


def _write_files(
    document: ReportDocument, result: GateResult, junit: Path | None, badge: Path | None, metric: str
) -> None:
    from reportgen.gate.badge import badge as drawn  # noqa: PLC0415
    from reportgen.gate.junit import as_junit  # noqa: PLC0415
    from reportgen.output import write_files  # noqa: PLC0415

    if junit:
        write_files(junit.parent, {junit.name: as_junit(result)})
    if badge:
        write_files(badge.parent, {badge.name: drawn(document, metric, result)})


def _tell(result: GateResult, form: str, annotate: bool) -> None:
    from reportgen.gate import texts  # noqa: PLC0415

    shown = {"text": texts.as_text, "md": texts.as_markdown, "json": texts.as_json}[form](result)
    sys.stdout.write(shown)
    if annotate:
        sys.stderr.write(texts.as_annotations(result))
    if not result.passed and form != "text":
        common.warn(texts.summary(result))
