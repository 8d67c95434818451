"""The command that captures from profiler servers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reportgen.cli import common

if TYPE_CHECKING:
    from reportgen.capture.options import CaptureResult

_INTERRUPTED = 130


def capture(
    servers: Annotated[
        list[str], typer.Argument(metavar="HOST:PORT...", help="Profiler servers, also HOST:PORT,HOST:PORT.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Log folder to write to.")] = Path("logs"),
    duration: Annotated[str, typer.Option(help="How long to record: 2s, 500ms.")] = "2s",
    delay: Annotated[str, typer.Option(help="Time from the request to the common start of all hosts.")] = "0s",
    host_level: Annotated[int, typer.Option(min=0, max=3, help="Detail on the host's threads.")] = 2,
    device_level: Annotated[int, typer.Option(min=0, max=1, help="1 records the accelerator.")] = 1,
    python_level: Annotated[int, typer.Option(min=0, max=1, help="1 records every Python call (slow).")] = 0,
    wait: Annotated[str, typer.Option(help="How long to wait for servers that are not up yet.")] = "0s",
    busy_wait: Annotated[str, typer.Option(help="How long to retry while another capture runs.")] = "30s",
    until_steps: Annotated[
        int | None, typer.Option(min=1, help="Capture again, longer, until so many steps are caught.")
    ] = None,
    longest: Annotated[str, typer.Option(help="Longest recording that --until-steps may lead to.")] = "60s",
    connect_timeout: Annotated[str, typer.Option(help="How long a server may take to answer at all.")] = "10s",
    collect_timeout: Annotated[str, typer.Option(help="How long a profile may take after the recording.")] = "120s",
    tls: Annotated[bool, typer.Option("--tls", help="Encrypt; profiler servers themselves cannot.")] = False,
    tls_ca: Annotated[Path | None, typer.Option(help="File with the authorities to trust, for --tls.")] = None,
    server_logdir: Annotated[
        str | None, typer.Option(help="Where an older server, which cannot send its profile, shall write it.")
    ] = None,
) -> None:
    """Capture a profile from running programs over gRPC; prints the run's folder.

    Exit codes: 0 done, also when some hosts are missing; 2 wrong usage; 4 no host gave a profile; 130 Ctrl-C.
    """
    from reportgen.capture.client import capture_run  # noqa: PLC0415
    from reportgen.capture.options import CaptureOptions, TraceLevels, parse_duration  # noqa: PLC0415

    options = CaptureOptions(
        duration_s=parse_duration(duration),
        delay_s=parse_duration(delay),
        levels=TraceLevels(host_level, device_level, python_level),
        wait_s=parse_duration(wait),
        busy_wait_s=parse_duration(busy_wait),
        connect_timeout_s=parse_duration(connect_timeout),
        collect_timeout_s=parse_duration(collect_timeout),
        until_steps=until_steps,
        longest_s=parse_duration(longest),
        tls=tls or tls_ca is not None,
        tls_ca=tls_ca,
        server_logdir=server_logdir,
    )
    try:
        result = capture_run(servers, output, options, common.warn)
    except KeyboardInterrupt:
        common.warn("interrupted: nothing was captured")
        raise typer.Exit(_INTERRUPTED) from None
    _tell(result)
    typer.echo(result.run_folder)
    if result.interrupted:
        raise typer.Exit(_INTERRUPTED)


def _tell(result: CaptureResult) -> None:
    from reportgen.units import binary  # noqa: PLC0415

    for host in result.captured:
        steps = "steps unknown" if host.steps is None else f"{host.steps} step(s)"
        name = f" ({host.hostname})" if host.hostname else ""
        common.warn(f"{host.address}{name}: {steps}, {binary(host.size)}")
    for missing in result.missing:
        common.warn(
            f"warning: {missing.address} is missing: {missing.reason}." + (f" {missing.hint}" if missing.hint else "")
        )
    for warning in result.warnings:
        common.warn(f"warning: {warning}")
    if result.interrupted:
        common.warn("interrupted: the servers were told to stop, what they had recorded was kept")
