"""The command that runs a script and captures it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reportgen.cli import common

# So that the script's own options need no "--" before them.
CONTEXT_SETTINGS = {"allow_interspersed_args": False}


def run(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND...", help="The script: python train.py ARGS")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for profile and report.")] = Path(
        "reportgen-run"
    ),
    steps: Annotated[str, typer.Option(help="Steps to trace, as FIRST:END, the first step is 0.")] = "5:15",
    delay: Annotated[
        str, typer.Option(help="For scripts that mark no steps: time without a compilation before the window.")
    ] = "0.5s",
    duration: Annotated[str, typer.Option(help="For scripts that mark no steps: length of the window.")] = "2s",
    host_level: Annotated[int, typer.Option(min=0, max=3, help="Detail on the host's threads.")] = 2,
    device_level: Annotated[int, typer.Option(min=0, max=1, help="1 records the accelerator.")] = 1,
    python_level: Annotated[int, typer.Option(min=0, max=1, help="1 records every Python call (slow).")] = 0,
    dump: Annotated[bool, typer.Option(help="Let XLA write its programs, for the case that memory runs out.")] = True,
    report: Annotated[bool, typer.Option(help="Write the report of what was captured.")] = True,
) -> None:
    """Run a JAX or TensorFlow script unchanged, capture it, and report; exits with the script's own code."""
    from reportgen.capture.options import TraceLevels, parse_duration, parse_steps  # noqa: PLC0415
    from reportgen.capture.reporting import write_report  # noqa: PLC0415
    from reportgen.capture.script import RunOptions, run_script  # noqa: PLC0415

    options = RunOptions(
        steps=parse_steps(steps),
        quiet_s=parse_duration(delay),
        duration_s=parse_duration(duration),
        levels=TraceLevels(host_level, device_level, python_level),
        dump=dump,
    )
    result = run_script(command, output, options, common.warn, write_report if report else None)
    raise typer.Exit(result.exit_code)
