"""Options and habits that commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from reportgen.api import Written
    from reportgen.settings import Settings

Progress = Callable[[int, int], None]

PeakFlops = Annotated[
    float | None, typer.Option(help="Peak FLOP/s of one chip or GPU, in place of the profile's or the catalogue's.")
]
HbmBandwidth = Annotated[float | None, typer.Option(help="Peak memory bandwidth of one chip or GPU, bytes/s.")]
HbmCapacity = Annotated[float | None, typer.Option(help="Memory of one chip or GPU, bytes.")]
RunName = Annotated[str | None, typer.Option("--run", help="Name of the run; the newest by default.")]
Hosts = Annotated[list[str] | None, typer.Option("--host", help="Only this host; may be repeated.")]
Jobs = Annotated[int, typer.Option(min=0, help="Worker processes over hosts; 0 for one a core.")]
Strict = Annotated[bool, typer.Option("--strict", help="Fail when any part of the analysis fails.")]
Only = Annotated[list[str] | None, typer.Option(help="Only these rules; may be repeated or joined by commas.")]
Skip = Annotated[list[str] | None, typer.Option(help="Leave out these rules.")]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="RULE.THRESHOLD=VALUE", help="Change a threshold.")]
Flavour = Annotated[str, typer.Option(help="Of Markdown: github, gitlab or jira.")]
SettingsFile = Annotated[Path | None, typer.Option("--settings", help="TOML file of settings.")]


def make_settings(
    *,
    peak_flops: float | None = None,
    hbm_bandwidth: float | None = None,
    hbm_capacity: float | None = None,
    run: str | None = None,
    hosts: list[str] | None = None,
    jobs: int = 0,
    strict: bool = False,
    only: list[str] | None = None,
    skip: list[str] | None = None,
    thresholds: list[str] | None = None,
    file: Path | None = None,
) -> Settings:
    """Return the settings of a command: those of the file, with the options over them."""
    from dataclasses import replace  # noqa: PLC0415

    from reportgen.settings import Settings  # noqa: PLC0415

    settings = Settings().with_file(file) if file else Settings()
    given: dict[str, Any] = {
        "peak_flops": peak_flops,
        "hbm_bandwidth": hbm_bandwidth,
        "hbm_capacity": hbm_capacity,
        "run": run,
        "hosts": tuple(hosts or ()),
        "jobs": jobs,
        "strict": strict,
        "only": split(only),
        "skip": split(skip),
    }
    # A peak of 0 goes on to be refused; anything else that is empty was not given.
    kept: dict[str, Any] = {name: value for name, value in given.items() if value or isinstance(value, float)}
    settings = replace(settings, **kept)
    return settings.with_thresholds(thresholds or ())


def split(values: list[str] | None) -> tuple[str, ...]:
    """Return options that may be repeated or joined by commas."""
    return tuple(part.strip() for value in values or () for part in value.split(",") if part.strip())


@contextmanager
def progress_bar(label: str) -> Iterator[Progress | None]:
    """Give a function that shows progress on a terminal's stderr; None where stderr is no terminal, as in CI."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress as Bar  # noqa: PLC0415

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def warn(text: str) -> None:
    """Print a warning to stderr."""
    typer.echo(f"reportgen: {text}", err=True)


def tell(written: Written) -> None:
    """Print to stderr what was written, its warnings and its verdict."""
    from reportgen.units import binary  # noqa: PLC0415

    for warning in written.warnings:
        warn(warning)
    typer.echo(written.document.verdict, err=True)
    for file in written.files:
        typer.echo(f"wrote {file} ({binary(file.stat().st_size)})", err=True)
