"""The command that writes a trace for Perfetto."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reportgen.cli import common, redaction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reportgen.document import Finding
    from reportgen.redact import Redactor

_LEVEL_HELP = "1: steps, modules, counters; 2: also ops and framework ops; 3: also source lines and host threads."


def trace(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A profile, run folder or log folder.")],
    output: Annotated[str, typer.Option("--output", "-o", help="File to write; - for stdout.")] = "trace.json.gz",
    run: common.RunName = None,
    host: common.Hosts = None,
    steps: Annotated[str, typer.Option(metavar="FIRST:LAST", help="Only these steps, both included.")] = "",
    level: Annotated[int, typer.Option(min=1, max=3, help=_LEVEL_HELP)] = 3,
    max_events: Annotated[int | None, typer.Option(min=1, help="At most so many events: the longest.")] = None,
    report: Annotated[Path | None, typer.Option(help="A report.json whose findings the trace marks.")] = None,
    peak_flops: common.PeakFlops = None,
    hbm_bandwidth: common.HbmBandwidth = None,
    redact: redaction.Redact = False,
    redact_key: redaction.RedactKey = None,
    redact_shapes: redaction.RedactShapes = False,
) -> None:
    """Write a trace that ui.perfetto.dev opens: all hosts, cores, threads and counters in one file."""
    from reportgen.exporters.limits import Level, TraceLimits  # noqa: PLC0415
    from reportgen.exporters.of_run import write_run_trace  # noqa: PLC0415
    from reportgen.output import atomic  # noqa: PLC0415
    from reportgen.redact import clean_run  # noqa: PLC0415
    from reportgen.sources.locate import find_run  # noqa: PLC0415

    settings = common.make_settings(run=run, hosts=host, peak_flops=peak_flops, hbm_bandwidth=hbm_bandwidth)
    limits = TraceLimits(max_events, _range(steps), level=Level(level))
    redactor = redaction.redactor_of(redact, redact_key, redact_shapes)
    findings = _findings(report, redactor)
    with clean_run(find_run(path, settings.run, settings.hosts), redactor) as found:
        if output == "-":
            import sys  # noqa: PLC0415

            summary, unread = write_run_trace(found, settings, sys.stdout.buffer, limits, findings)
        else:
            with atomic(Path(output)) as temporary, temporary.open("wb") as stream:
                summary, unread = write_run_trace(found, settings, stream, limits, findings)
    for message in unread:
        common.warn(message)
    common.warn(f"{output}: {summary}")


def _range(text: str) -> tuple[int, int] | None:
    from reportgen.errors import UsageError  # noqa: PLC0415

    if not text:
        return None
    first, _, last = text.partition(":")
    try:
        found = int(first), int(last or first)
    except ValueError:
        found = (1, 0)
    if found[0] > found[1]:
        raise UsageError(f"--steps {text}: expected FIRST:LAST as in 3:5, or one number.")
    return found


def _findings(report: Path | None, redactor: Redactor | None) -> Sequence[Finding]:
    from reportgen.document import from_json  # noqa: PLC0415
    from reportgen.errors import InputError  # noqa: PLC0415
    from reportgen.redact import redacted  # noqa: PLC0415

    if report is None:
        return ()
    try:
        return redacted(from_json(report.read_bytes(), report.name), redactor).findings
    except OSError as error:
        raise InputError(f"{report}: cannot be read ({error.strerror}).") from None
