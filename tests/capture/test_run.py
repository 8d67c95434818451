"""`reportgen run` on real scripts: captured, and otherwise as if it were not there."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reportgen.capture import passthrough
from reportgen.capture.contents import look
from reportgen.capture.passthrough import run_through
from reportgen.capture.script import RunOptions, ScriptResult, run_script
from tests.capture.conftest import need
from tests.capture.servers import PROGRAMS, ROOT, environment

RUN = [sys.executable, "-m", "reportgen", "run", "--no-report"]


def program(name: str, *arguments: object) -> list[str]:
    return [sys.executable, str(PROGRAMS / name), *map(str, arguments)]


def run(
    output: Path, *command: str, options: tuple[str, ...] = (), text: str = "", **changes: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RUN, "-o", str(output), *options, "--", *command],
        input=text,
        capture_output=True,
        text=True,
        env=environment(**changes),
        cwd=ROOT,
        timeout=200,
        check=False,
    )


def steps_of(output: Path) -> int | None:
    """Return the number of steps in the one profile of an output folder."""
    (profile,) = output.glob("plugins/profile/*/*.xplane.pb")
    return look(profile.read_bytes()).steps


@pytest.mark.peer
def test_script_behaves_as_without(tmp_path: Path) -> None:
    need("jax")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("MARK = 'mine'\n")
    path = f"{tmp_path / 'own'}{os.pathsep}{ROOT}"
    command = program("jax_marked.py", 20, 3)
    alone = subprocess.run(
        command,
        input="ü\n",
        capture_output=True,
        text=True,
        env=environment(PYTHONPATH=path),
        cwd=ROOT,
        check=False,
    )
    done = run(tmp_path / "out", *command, text="ü\n", PYTHONPATH=path)
    assert json.loads(alone.stdout)["sitecustomize"] == "mine"
    assert json.loads(done.stdout) == json.loads(alone.stdout)
    assert done.stdout == alone.stdout
    assert (done.returncode, alone.returncode) == (3, 3)
    assert done.stderr.startswith(alone.stderr)
    assert "to stderr\n" in alone.stderr
    assert "reportgen: traced steps 5 to 14: " in done.stderr
    assert steps_of(tmp_path / "out") == 10
    assert {entry.name for entry in (tmp_path / "out").iterdir()} >= {"plugins"}
    assert not list((tmp_path / "out").glob(".trace*"))


@pytest.mark.peer
def test_steps_of_ones_own_choice(tmp_path: Path) -> None:
    need("jax")
    done = run(tmp_path, *program("jax_marked.py", 6, 0), options=("--steps", "1:3"))
    assert done.returncode == 0
    assert steps_of(tmp_path) == 2


@pytest.mark.peer
def test_script_that_ends_inside_the_window(tmp_path: Path) -> None:
    need("jax")
    done = run(tmp_path, *program("jax_marked.py", 8, 0))
    assert "traced steps 5 to 7" in done.stderr
    assert "the script ended inside the window" in done.stderr
    assert steps_of(tmp_path) == 3


@pytest.mark.peer
def test_script_with_fewer_steps_than_the_window_begins_with(tmp_path: Path) -> None:
    need("jax")
    done = run(tmp_path, *program("jax_marked.py", 2, 5))
    assert done.returncode == 5
    assert "nothing was captured: the script marked 2 step(s)" in done.stderr
    assert "--steps 0:2" in done.stderr
    assert not list(tmp_path.rglob("*.pb"))


@pytest.mark.peer
def test_script_without_marks_is_traced_for_a_time(tmp_path: Path) -> None:
    need("jax")
    done = run(tmp_path, *program("jax_plain.py", 2.5), options=("--delay", "200ms", "--duration", "500ms"))
    assert done.stdout == "done\n"
    assert "traced up to 0.5 s, since the script marks no steps" in done.stderr
    assert "cut short" not in done.stderr
    (profile,) = tmp_path.glob("plugins/profile/*/*.xplane.pb")
    assert b"PjitFunction" in profile.read_bytes()


@pytest.mark.peer
def test_script_without_marks_that_ends_too_soon(tmp_path: Path) -> None:
    need("jax")
    done = run(tmp_path, *program("jax_plain.py", 0.05), options=("--delay", "10s"))
    assert done.stdout == "done\n"
    assert "ended before 10 s had passed without a compilation" in done.stderr


@pytest.mark.peer
def test_script_that_traces_itself_gets_its_trace(tmp_path: Path) -> None:
    need("jax")
    done = run(tmp_path / "out", *program("jax_own_trace.py", tmp_path / "own"))
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "the script traces itself: the window ended there" in done.stderr
    assert (steps_of(tmp_path / "out"), steps_of(tmp_path / "own")) == (4, 5)


@pytest.mark.peer
def test_script_with_workers(tmp_path: Path) -> None:
    need("jax")
    done = run(tmp_path, *program("jax_workers.py"))
    assert (done.returncode, done.stdout) == (0, "[1, 2]\ndone\n")
    (profile,) = tmp_path.glob("plugins/profile/*/*.xplane.pb")
    assert look(profile.read_bytes()).steps == 3
    assert b"helper" not in profile.read_bytes()


@pytest.mark.peer
def test_script_behind_a_launcher(tmp_path: Path) -> None:
    need("jax")
    done = run(tmp_path, *program("launcher.py", PROGRAMS / "jax_marked.py", 8, 9))
    assert done.returncode == 9
    assert steps_of(tmp_path) == 3


@pytest.mark.peer
@pytest.mark.parametrize(
    ("name", "arguments", "options", "steps"),
    [("keras_fit.py", (20,), (), 10), ("tensorflow_plain.py", (2,), ("--delay", "100ms", "--duration", "500ms"), None)],
)
def test_tensorflow_scripts(
    name: str, arguments: tuple[object, ...], options: tuple[str, ...], steps: int | None, tmp_path: Path
) -> None:
    need("tensorflow")
    done = run(tmp_path, *program(name, *arguments), options=options)
    assert done.returncode == 0, done.stderr
    assert done.stdout in ("fitted on tensorflow\n", "done\n")
    (profile,) = tmp_path.glob("plugins/profile/*/*.xplane.pb")
    contents = look(profile.read_bytes())
    assert contents.events > 0
    assert steps is None or contents.steps == steps


@pytest.mark.peer
def test_interrupt_from_elsewhere_is_passed_on_and_the_trace_is_kept(tmp_path: Path) -> None:
    need("jax")
    command = [*RUN, "-o", str(tmp_path), "--steps", "5:100000", "--", *program("jax_endless.py")]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), cwd=ROOT
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "False False False\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert out == "interrupts: 1\n"
    assert process.returncode == 7
    assert "the script ended inside the window" in err
    assert steps_of(tmp_path) == 1  # the script gives all its steps one number


@pytest.mark.peer
def test_ctrl_c_on_a_terminal_reaches_the_script_once(tmp_path: Path) -> None:
    """The script sees terminals, as without; the terminal's Ctrl-C comes to it once, and not to us."""
    need("jax")
    child, terminal = pty.fork()
    if child == 0:  # the terminal's session leader
        os.chdir(ROOT)
        command = [*RUN, "-o", str(tmp_path), "--", *program("jax_endless.py")]
        os.execve(sys.executable, command, environment())
    seen = b""
    end = time.monotonic() + 150
    interrupted = False
    while time.monotonic() < end:
        try:
            seen += os.read(terminal, 4096)
        except OSError:
            break
        if b"True True True" in seen and not interrupted:
            os.write(terminal, b"\x03")
            interrupted = True
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert b"interrupts: 1\r\n" in seen
    assert b"\r\r\n" not in seen
    assert os.waitstatus_to_exitcode(status) == 7


def test_exit_code_of_a_signal_and_of_commands_that_cannot_run(tmp_path: Path) -> None:
    (tmp_path / "no-program").write_text("")
    assert run(tmp_path, "sh", "-c", "kill -TERM $$").returncode == 128 + signal.SIGTERM
    killed = run(tmp_path, "sh", "-c", "kill -KILL $$")
    assert killed.returncode == 137
    assert "was killed from outside" in killed.stderr
    missing = run(tmp_path, "no-such-command")
    assert missing.returncode == 127
    assert "no-such-command: No such file" in missing.stderr
    assert run(tmp_path, str(tmp_path / "no-program")).returncode == 126


def test_termination_is_passed_on(tmp_path: Path) -> None:
    script = "trap 'echo stopped; exit 5' TERM; echo ready; sleep 20 & wait"
    process = subprocess.Popen(
        [*RUN, "-o", str(tmp_path), "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(),
        cwd=ROOT,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    assert process.stdout.readline() == "stopped\n"
    assert process.wait(60) == 5
    process.stdout.close()


def start_and_signal(number: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the exit code of a child during whose start a signal came to us."""
    start = subprocess.Popen

    def start_slowly(*arguments: object, **options: object) -> object:
        child = start(*arguments, **options)  # type: ignore[call-overload]
        os.kill(os.getpid(), number)
        return child

    monkeypatch.setattr(subprocess, "Popen", start_slowly)
    return run_through(["sleep", "2"], environment())[0]


def test_signal_that_comes_while_the_script_is_being_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """It once got lost between the start of the process and the moment when it was known."""
    assert start_and_signal(signal.SIGTERM, monkeypatch) == 128 + signal.SIGTERM


@pytest.mark.parametrize(("sends", "code"), [(True, 0), (False, 128 + signal.SIGINT)])
def test_interrupt_that_the_terminal_sends_itself_is_not_sent_again(
    sends: bool, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passthrough, "_terminal_sends_signals", lambda: sends)
    assert start_and_signal(signal.SIGINT, monkeypatch) == code


def test_order_of_output_and_errors_in_one_place_stays(tmp_path: Path) -> None:
    script = "for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; done"
    done = subprocess.run(
        [*RUN, "-o", str(tmp_path), "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(),
        cwd=ROOT,
        check=True,
    )
    assert done.stdout.split()[:18] == [f"{stream}{number}" for number in range(1, 10) for stream in "oe"]


def test_program_that_lets_no_hook_in(tmp_path: Path) -> None:
    done = run(tmp_path, sys.executable, "-I", "-c", "print('isolated')")
    assert (done.returncode, done.stdout) == (0, "isolated\n")
    assert "no Python process let the hook in" in done.stderr


def test_script_without_a_framework(tmp_path: Path) -> None:
    done = run(tmp_path, sys.executable, "-c", "import sys; sys.exit(3)")
    assert done.returncode == 3
    assert "imported neither JAX nor TensorFlow" in done.stderr


def test_script_that_fails_shows_its_own_traceback(tmp_path: Path) -> None:
    done = run(tmp_path, sys.executable, "-c", "1 / 0")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert "reportgen_agent" not in done.stderr


def test_options_of_the_script_need_no_dashes_before_them(tmp_path: Path) -> None:
    command = [*RUN, "-o", str(tmp_path), sys.executable, "-c", "import sys; print(sys.argv[1:])", "--steps", "9"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), cwd=ROOT, check=True)
    assert done.stdout == "['--steps', '9']\n"


def test_wrong_range_of_steps_is_refused_before_the_script_runs(tmp_path: Path) -> None:
    done = run(tmp_path, "echo", "ran", options=("--steps", "5"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "no range of steps" in done.stderr


class Hooks:
    """Stands in for the reports."""

    def __init__(self) -> None:
        self.reports: list[tuple[Path, Path]] = []
        self.ooms: list[tuple[bytes, set[str], Path]] = []
        self.said: list[str] = []

    def run(self, command: list[str], output: Path, options: RunOptions | None = None) -> ScriptResult:
        return run_script(command, output, options, self.said.append, self.report, self.oom)

    def report(self, run_folder: Path, output: Path) -> None:
        assert list(run_folder.glob("*.xplane.pb"))
        self.reports.append((run_folder, output))

    def oom(self, log: Path, dump: Path | None, output: Path) -> None:
        names = {file.name for file in dump.iterdir()} if dump is not None else set()
        self.ooms.append((log.read_bytes(), names, output))


@pytest.mark.peer
def test_report_lies_in_the_output_folder(tmp_path: Path) -> None:
    need("jax")
    done = run(tmp_path, *program("jax_marked.py", 12, 2), options=("--report",))
    assert done.returncode == 2
    assert f"the report is in {tmp_path}" in done.stderr
    assert "train" in (tmp_path / "report.md").read_text() + (tmp_path / "report.json").read_text()


@pytest.mark.peer
def test_report_is_made_from_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("jax")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    hooks = Hooks()
    result = hooks.run(program("jax_marked.py", 8, 0), tmp_path)
    assert hooks.reports == [(result.run_folder, tmp_path)]
    assert (result.exit_code, result.oom_folder, hooks.ooms) == (0, None, [])


@pytest.mark.peer
def test_compilation_that_runs_out_of_memory(tmp_path: Path) -> None:
    need("libtpu")
    need("jax")
    hooks = Hooks()
    result = hooks.run(program("jax_oom.py"), tmp_path)
    assert result.exit_code == 1
    ((log, dumped, output),) = hooks.ooms
    assert b"RESOURCE_EXHAUSTED" in log
    assert b"exceeds available HBM" in log
    assert any(name.endswith("jit_step.after_optimizations.hlo.pb") or ".after_opt" in name for name in dumped)
    assert output == tmp_path
    assert result.oom_folder is not None
    assert (result.oom_folder / "output.log").read_bytes() == log
    assert (result.oom_folder / "xla_dump").is_dir()


def test_out_of_memory_without_a_dump(tmp_path: Path) -> None:
    hooks = Hooks()
    script = "import sys; sys.stderr.write('RESOURCE_EXHAUSTED: Out of memory while trying to allocate'); sys.exit(4)"
    result = hooks.run([sys.executable, "-c", script], tmp_path, RunOptions(dump=False))
    assert result.exit_code == 4
    assert hooks.ooms == [(b"RESOURCE_EXHAUSTED: Out of memory while trying to allocate", set(), tmp_path)]


def test_out_of_memory_that_the_script_survived_is_none(tmp_path: Path) -> None:
    hooks = Hooks()
    result = hooks.run([sys.executable, "-c", "import sys; sys.stderr.write('Out of memory')"], tmp_path)
    assert (result.exit_code, result.oom_folder, hooks.ooms) == (0, None, [])


def test_dump_of_ones_own_is_used_and_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "module.hlo.pb").write_bytes(b"")
    monkeypatch.setenv("XLA_FLAGS", f"--xla_a=1 --xla_dump_to={tmp_path / 'mine'}")
    hooks = Hooks()
    script = "import os, sys; sys.stderr.write(os.environ['XLA_FLAGS'] + ' Ran out of memory'); sys.exit(1)"
    hooks.run([sys.executable, "-c", script], tmp_path / "out")
    ((log, dumped, _),) = hooks.ooms
    assert log == f"--xla_a=1 --xla_dump_to={tmp_path / 'mine'} Ran out of memory".encode()
    assert dumped == {"module.hlo.pb"}
    assert (tmp_path / "mine" / "module.hlo.pb").exists()


def test_report_that_fails_does_not_change_the_exit_code(tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        raise ValueError("no report today")

    said: list[str] = []
    script = "import sys; sys.stderr.write('Out of memory'); sys.exit(4)"
    result = run_script([sys.executable, "-c", script], tmp_path, None, said.append, fail, fail)
    assert result.exit_code == 4
    assert "the report could not be written: no report today" in said
