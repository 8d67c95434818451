"""Measure the report command against XProf's `get_overview` on the same generated profile, in one run.

    python benchmarks/report.py [--repeats 3] [--four-million]

Each program runs as a whole process on a fresh copy; the best of the repeats counts, since other work on the machine
only ever adds time. Prints times, peak memory and ratios; writes nothing but temporary files.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from generate import write_profile

BIN = Path(sys.executable).parent


class Run(NamedTuple):
    """Wall seconds, peak memory in bytes, and what the program printed."""

    seconds: float
    memory: int
    output: str


def measured(command: list[str], folder: Path) -> Run:
    """Run a command to its end and measure it and its children."""
    log = folder / "output.txt"
    start = time.perf_counter()
    with log.open("wb") as stream:
        child = os.posix_spawn(
            command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, stream.fileno(), n) for n in (1, 2)]
        )
        _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - start
    output = log.read_text(errors="replace")
    if status:
        raise SystemExit(f"{' '.join(command)} failed:\n{output[-2000:]}")
    return Run(seconds, usage.ru_maxrss * 1024, output)


def best(runs: list[Run]) -> Run:
    """Return the fastest run with the smallest peak memory of all."""
    fastest = min(runs, key=lambda run: run.seconds)
    return fastest._replace(memory=min(run.memory for run in runs))


def ours(profile: Path, folder: Path) -> Run:
    """Run the whole report command: HTML, Markdown and JSON."""
    out = folder / "out"
    return measured(
        [str(BIN / "reportgen"), "report", str(profile), "-o", str(out), "--format", "html,md,json"], folder
    )


def xprofs(profile: Path, folder: Path) -> Run:
    """Run XProf's overview on a fresh copy, without its cache."""
    logdir = folder / "log"
    shutil.rmtree(logdir, ignore_errors=True)
    run = logdir / "plugins" / "profile" / "run"
    run.mkdir(parents=True)
    shutil.copy(profile, run / "host.xplane.pb")
    return measured([str(BIN / "xprof"), "get_overview", "run", "--logdir", str(logdir), "--bypass_cache"], folder)


def step_time(output: str) -> str:
    """Return the step time that XProf printed, or a dash."""
    found = re.search(r'"steptime_ms_average"\s*:\s*"?([\d.]+)|average[^\d]{0,40}([\d.]+) ?ms', output)
    return next((group for group in found.groups() if group), "-") if found else "-"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--four-million", action="store_true", help="Also measure how time grows to 4,000,000 events.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        profile = folder / "million.xplane.pb"
        write_profile(profile, events=1_000_000)
        print(f"profile: 1,000,000 device events, {profile.stat().st_size / 1e6:.1f} MB")
        pairs = [(ours(profile, folder), xprofs(profile, folder)) for _ in range(arguments.repeats)]
        mine, theirs = best([pair[0] for pair in pairs]), best([pair[1] for pair in pairs])
        print(f"reportgen report (html, md, json): {mine.seconds:.2f} s, {mine.memory / 1e6:.0f} MB")
        print(f"xprof get_overview:                {theirs.seconds:.2f} s, {theirs.memory / 1e6:.0f} MB")
        verdict = next((line for line in mine.output.splitlines() if "step" in line), "-")
        print(f"both saw the steps: xprof {step_time(theirs.output)} ms; reportgen: {verdict}")
        print(f"ratio: time {mine.seconds / theirs.seconds:.2f}, memory {mine.memory / theirs.memory:.2f}")
        if arguments.four_million:
            large = folder / "four.xplane.pb"
            write_profile(large, events=4_000_000)
            four = best([ours(large, folder) for _ in range(arguments.repeats)])
            ratio = four.seconds / mine.seconds
            print(f"4,000,000 events: {four.seconds:.2f} s, {ratio:.2f} times as long as 1,000,000")


if __name__ == "__main__":
    main()
