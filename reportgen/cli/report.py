"""The command that makes a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reportgen.cli import common, redaction

_SERVER = "grpc://"


def report(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A profile, run folder, log folder or grpc://HOST:PORT.")],
    output: Annotated[
        str, typer.Option("--output", "-o", help="Folder to write to; - writes one format to stdout.")
    ] = "out",
    formats: Annotated[
        str, typer.Option("--format", help="Which of html, md, json, trace, joined by commas.")
    ] = "html,md,json,trace",
    list_runs: Annotated[
        bool, typer.Option("--list", help="Print the runs and hosts that are there, and end.")
    ] = False,
    run: common.RunName = None,
    host: common.Hosts = None,
    peak_flops: common.PeakFlops = None,
    hbm_bandwidth: common.HbmBandwidth = None,
    hbm_capacity: common.HbmCapacity = None,
    only: common.Only = None,
    skip: common.Skip = None,
    thresholds: common.Set = None,
    settings_file: common.SettingsFile = None,
    jobs: common.Jobs = 0,
    strict: common.Strict = False,
    flavour: common.Flavour = "github",
    redact: redaction.Redact = False,
    redact_key: redaction.RedactKey = None,
    redact_shapes: redaction.RedactShapes = False,
) -> None:
    """Analyse a profile and write its report: HTML, Markdown, JSON and a trace for Perfetto."""
    if list_runs:
        _list(path)
        return
    from reportgen import api  # noqa: PLC0415
    from reportgen.output import write_stdout  # noqa: PLC0415

    settings = common.make_settings(
        peak_flops=peak_flops,
        hbm_bandwidth=hbm_bandwidth,
        hbm_capacity=hbm_capacity,
        run=run,
        hosts=host,
        jobs=jobs,
        strict=strict,
        only=only,
        skip=skip,
        thresholds=thresholds,
        file=settings_file,
    )
    chosen = common.split([formats])
    redactor = redaction.redactor_of(redact, redact_key, redact_shapes)
    if path.startswith(_SERVER):
        path = _captured(path, output)
        if redactor is not None:
            common.warn(f"the captured profile itself is not redacted: do not pass on {path}.")
    to_stdout = output == "-"
    if to_stdout and len(chosen) != 1:
        common.warn(f"-o - writes exactly one format, found {len(chosen)}: give --format html, md, json or trace.")
        raise typer.Exit(2)
    with common.progress_bar("Analysing") as progress:
        if to_stdout:
            write_stdout(api.report_bytes(path, chosen[0], settings, progress, redactor, flavour))
            return
        written = api.report(path, output, chosen, settings, progress, redactor, flavour)
    common.tell(written)


def _captured(addresses: str, output: str) -> str:
    """Capture from profiler servers and return the run's folder, beside the report; here, where - is the output."""
    from reportgen.capture.client import capture_run  # noqa: PLC0415

    folder = Path("." if output == "-" else output)
    result = capture_run([addresses], folder, progress=common.warn)
    for host in result.missing:
        common.warn(f"{host.address}: {host.reason}")
    return str(result.run_folder)


def _list(path: str) -> None:
    from reportgen.sources.locate import describe_runs, list_runs  # noqa: PLC0415

    for line in describe_runs(list_runs(path)):
        typer.echo(line)
