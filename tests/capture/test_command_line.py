"""The capture command as a process: what it prints where, its exit codes, and Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reportgen.capture.client import capture_run
from reportgen.capture.options import CaptureOptions
from tests.capture.servers import ROOT, Program, StandIn, environment, free_port, make_profile, serving

CAPTURE = [sys.executable, "-m", "reportgen", "capture"]


def capture(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [*CAPTURE, *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment(), cwd=ROOT, timeout=150, check=False
    )


def test_prints_the_run_folder_alone_on_stdout(tmp_path: Path) -> None:
    with serving(StandIn(make_profile(steps=4))) as address:
        done = capture(address, "-o", tmp_path, "--duration", "10ms", "--python-level", "1")
    assert done.returncode == 0
    (run,) = (tmp_path / "plugins/profile").iterdir()
    assert done.stdout == f"{run}\n"
    assert f"{address} (stand-in): 4 step(s)" in done.stderr


def test_options_reach_the_server(tmp_path: Path) -> None:
    server = StandIn(make_profile())
    with serving(server) as address:
        levels = ["--host-level", "3", "--device-level", "0", "--python-level", "1"]
        assert capture(address, "-o", tmp_path, "--duration", "20ms", *levels).returncode == 0
    sent = server.requests[0].opts
    assert (sent.host_tracer_level, sent.device_tracer_level, sent.python_tracer_level) == (3, 0, 1)
    assert sent.duration_ms == 20


def test_missing_hosts_are_a_warning_and_exit_code_0(tmp_path: Path) -> None:
    absent = f"127.0.0.1:{free_port()}"
    with serving(StandIn(make_profile())) as address:
        done = capture(address, absent, "-o", tmp_path, "--duration", "10ms")
    assert done.returncode == 0
    assert f"warning: {absent} is missing: nothing listens there" in done.stderr


def test_all_hosts_missing_is_exit_code_4(tmp_path: Path) -> None:
    done = capture(f"127.0.0.1:{free_port()}", "-o", tmp_path)
    assert (done.returncode, done.stdout) == (4, "")
    assert "reportgen: 127.0.0.1:" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["nowhere"], ["a:1", "--duration", "soon"], ["a:1", "--host-level", "9"], []])
def test_wrong_usage_is_exit_code_2(arguments: list[str], tmp_path: Path) -> None:
    done = capture(*arguments, "-o", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr


def test_ctrl_c_keeps_what_came_and_stops_the_server(jax_server: Program, tmp_path: Path) -> None:
    command = [*CAPTURE, jax_server.address, "-o", str(tmp_path), "--duration", "300s"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), cwd=ROOT
    )
    assert process.stderr is not None
    assert "capturing 300 s" in process.stderr.readline()
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted: the servers were told to stop" in err
    (profile,) = Path(out.strip()).iterdir()
    assert b"train" in profile.read_bytes()
    free = CaptureOptions(duration_s=0.3, busy_wait_s=0, until_steps=1)
    assert capture_run([jax_server.address], tmp_path, free).captured[0].steps


def test_ctrl_c_before_anything_came(tmp_path: Path) -> None:
    command = [*CAPTURE, f"127.0.0.1:{free_port()}", "-o", str(tmp_path), "--wait", "40s"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment(), cwd=ROOT)
    assert process.stderr is not None
    assert "waiting up to 40 s" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted: nothing was captured" in err
    assert list(tmp_path.iterdir()) == []


def test_importing_the_commands_is_cheap() -> None:
    code = (
        "import sys, reportgen.cli.capture, reportgen.cli.run;"
        "print(sorted({'numpy', 'pandas', 'grpc', 'matplotlib', 'google.protobuf'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    assert done.stdout == "[]\n"
