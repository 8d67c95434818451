"""Run an unchanged script and capture it, with the agent in its process."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from reportgen.capture.bootstrap.reportgen_agent import SETTINGS_VARIABLE
from reportgen.capture.bootstrap.reportgen_agent.window import STEPPED, Settings, Status
from reportgen.capture.options import TraceLevels
from reportgen.capture.passthrough import run_through
from reportgen.capture.reporting import OomHook, ReportHook, write_oom_report, write_report
from reportgen.capture.store import adopt_trace
from reportgen.errors import UsageError

_BOOTSTRAP = Path(__file__).parent / "bootstrap"
_DUMP = "xla_dump"
_DUMP_FLAG = re.compile(r"--xla_dump_to=(\S+)")
_OUT_OF_MEMORY = re.compile(
    rb"RESOURCE_EXHAUSTED|ResourceExhausted|[Rr]an out of memory|Out of memory|OOM when allocating|ERROR_OUT_OF_MEMORY"
)
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
_KILLED = 128 + signal.SIGKILL
_log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True)
class RunOptions:
    """What to trace of a script.

    Attributes:
        steps: The first step of the window and the step before which it ends, counted from 0, for a script that marks
            its steps.
        quiet_s: For one that does not: seconds without a compilation before the window begins.
        duration_s: For the same: the window's length in seconds.
        levels: How much is recorded.
        dump: Whether XLA writes its programs to a temporary folder, for the case that memory runs out.

    """

    steps: tuple[int, int] = (5, 15)
    quiet_s: float = 0.5
    duration_s: float = 2.0
    levels: TraceLevels = field(default_factory=TraceLevels)
    dump: bool = True


@dataclass(frozen=True)
class ScriptResult:
    """What came of a script.

    Attributes:
        exit_code: The script's own, as a shell tells it.
        run_folder: The captured run; None where nothing was captured.
        oom_folder: What the script printed before memory ran out, and the programs that XLA compiled; None where
            memory did not run out.

    """

    exit_code: int
    run_folder: Path | None
    oom_folder: Path | None


def run_script(
    command: Sequence[str],
    output: Path,
    options: RunOptions | None = None,
    say: Callable[[str], None] = lambda _line: None,
    report: ReportHook | None = write_report,
    oom: OomHook = write_oom_report,
) -> ScriptResult:
    """Run a command, capture the Python process in it that trains, and report.

    Once the command runs, nothing that goes wrong here changes what is returned as its exit code.

    Args:
        command: The command and its arguments.
        output: Folder for the profile (in TensorBoard's layout) and the report; it is made.
        options: What to trace.
        say: Is told what came of it, a line at a time.
        report: Writes the report of a captured run; None for no report.
        oom: Writes the report of a script that ran out of memory.

    Raises:
        UsageError: There is no command, or the folder cannot be written.

    """
    options = options or RunOptions()
    if not command:
        raise UsageError("No command to run.", "Write: reportgen run -- python train.py")
    try:
        output.mkdir(parents=True, exist_ok=True)
        traces = Path(tempfile.mkdtemp(prefix=".trace-", dir=output)).absolute()
    except OSError as error:
        raise UsageError(f"{output}: cannot write there ({error.strerror or error}).") from None
    control = Path(tempfile.mkdtemp(prefix="reportgen-"))
    try:
        environment, dump = _environment(options, control, traces)
        try:
            exit_code, printed = run_through(command, environment)
        except OSError as error:
            say(f"{command[0]}: {error.strerror or error}")
            return ScriptResult(_NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE, None, None)
        run_folder = _attempt(lambda: _keep_trace(traces, control, output, options, say), say)
        oom_folder = None
        if exit_code and _OUT_OF_MEMORY.search(printed):
            oom_folder = _attempt(lambda: _keep_oom(printed, control, output, say), say)
        if oom_folder is not None:
            moved = oom_folder / _DUMP
            _attempt(lambda: oom(oom_folder / "output.log", moved if moved.is_dir() else dump, output), say)
        if exit_code == _KILLED:
            say("the script was killed from outside; where the machine's own memory ran out, its kernel log says so")
        if run_folder is not None and report is not None:
            _attempt(lambda: _report(report, run_folder, output, say), say)
        return ScriptResult(exit_code, run_folder, oom_folder)
    finally:
        shutil.rmtree(control, ignore_errors=True)
        shutil.rmtree(traces, ignore_errors=True)


def _attempt(work: Callable[[], T], say: Callable[[str], None]) -> T | None:
    """Do something after the script that must not hide the script's own end."""
    try:
        return work()
    except Exception as error:
        _log.debug("after the script", exc_info=True)
        say(f"the report could not be written: {error}")
    except KeyboardInterrupt:
        say("interrupted: there is no report")
    return None


def _report(report: ReportHook, run_folder: Path, output: Path, say: Callable[[str], None]) -> None:
    report(run_folder, output)
    say(f"the report is in {output}")


def _environment(options: RunOptions, control: Path, traces: Path) -> tuple[dict[str, str], Path | None]:
    """Return the script's environment, with the agent on its path, and the folder of XLA's dump."""
    environment = dict(os.environ)
    pythonpath = environment.get("PYTHONPATH")
    settings = Settings(
        control=str(control),
        traces=str(traces),
        pythonpath=pythonpath,
        first=options.steps[0],
        end=options.steps[1],
        quiet_s=options.quiet_s,
        duration_s=options.duration_s,
        **asdict(options.levels),
    )
    environment[SETTINGS_VARIABLE] = json.dumps(asdict(settings))
    environment["PYTHONPATH"] = os.pathsep.join([str(_BOOTSTRAP), *([pythonpath] if pythonpath else [])])
    flags = environment.get("XLA_FLAGS", "")
    if own := _DUMP_FLAG.search(flags):
        return environment, Path(own[1])
    if not options.dump:
        return environment, None
    dump = control / _DUMP
    environment["XLA_FLAGS"] = f"{flags} --xla_dump_to={dump} --xla_dump_hlo_as_proto".strip()
    return environment, dump


def _keep_trace(
    traces: Path, control: Path, output: Path, options: RunOptions, say: Callable[[str], None]
) -> Path | None:
    """Move the trace to its place in the output folder, and tell what it is or why there is none."""
    run_folder = adopt_trace(traces, output)
    for line in _account(_statuses(control), options, run_folder):
        say(line)
    return run_folder


def _keep_oom(printed: bytes, control: Path, output: Path, say: Callable[[str], None]) -> Path:
    """Keep what the script printed and what XLA dumped at our request."""
    folder = output / datetime.now().strftime("oom_%Y_%m_%d_%H_%M_%S")
    folder.mkdir()
    (folder / "output.log").write_bytes(printed)
    if (control / _DUMP).is_dir():
        shutil.move(control / _DUMP, folder / _DUMP)
    say(f"the script ran out of memory; what it printed and compiled is in {folder}")
    return folder


def _statuses(control: Path) -> list[Status]:
    return [Status(**json.loads(path.read_text(encoding="utf-8"))) for path in sorted(control.glob("status-*.json"))]


def _account(statuses: list[Status], options: RunOptions, run_folder: Path | None) -> Iterator[str]:
    """Tell what was traced, or why nothing was."""
    traced = [status for status in statuses if status.saved]
    for status in traced:
        if status.kind == STEPPED:
            last = min(options.steps[1], status.steps) - 1
            yield f"traced steps {options.steps[0]} to {last}: {run_folder}"
        else:
            yield f"traced up to {options.duration_s:g} s, since the script marks no steps: {run_folder}"
    if not traced:
        yield f"nothing was captured: {_why_nothing(statuses, options)}"
    for note in dict.fromkeys(note for status in traced or statuses for note in status.notes):
        yield f"note: {note}"


def _why_nothing(statuses: list[Status], options: RunOptions) -> str:
    if not statuses:
        return "no Python process let the hook in; python -E, -I and -S do not, nor what is older than Python 3.9"
    if failures := [status.failure for status in statuses if status.failure]:
        return failures[0]
    if not any(status.frameworks for status in statuses):
        return "the script imported neither JAX nor TensorFlow"
    if steps := max(status.steps for status in statuses):
        return (
            f"the script marked {steps} step(s), and the window begins at step {options.steps[0]} (the first is 0); "
            f"try --steps 0:{steps}"
        )
    return (
        f"the script marked no steps, and ended before {options.quiet_s:g} s had passed without a compilation; mark "
        "the steps, or try a shorter --delay"
    )
