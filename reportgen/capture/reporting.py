"""From a capture to its report: the one place where this part calls the rest of reportgen, and only by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

# Takes the run's folder and the folder for the report.
ReportHook = Callable[[Path, Path], object]
# Takes a file with what the program printed, the folder of XLA's dump (None without one), and the report's folder.
OomHook = Callable[[Path, Path | None, Path], object]


def write_report(run_folder: Path, output: Path) -> object:
    """Write the report of a captured run."""
    return import_module("reportgen.api").report(run_folder, output=output)


def write_oom_report(log: Path, dump: Path | None, output: Path) -> object:
    """Write the report of a program that ran out of memory."""
    return import_module("reportgen.api").oom(log, dump=dump, output=output)
