"""Captures from real servers: JAX, TensorFlow, PyTorch/XLA; one, two and eight hosts."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import threading
import time
from pathlib import Path

import pytest

from reportgen.capture.client import capture_run
from reportgen.capture.options import CaptureOptions, CaptureResult, TraceLevels
from reportgen.errors import CaptureError
from reportgen.wire import xplane_pb2
from tests.capture.conftest import need
from tests.capture.servers import Program, free_port

pytestmark = pytest.mark.peer
# A loaded machine may run no step in a short time: then it is tried for longer.
SHORT = CaptureOptions(duration_s=0.4, until_steps=1)


def read(path: Path) -> xplane_pb2.XSpace:
    return xplane_pb2.XSpace.FromString(path.read_bytes())


def event_names(space: xplane_pb2.XSpace) -> set[str]:
    return {
        plane.event_metadata[event.metadata_id].name.decode()
        for plane in space.planes
        for line in plane.lines
        for event in line.events
    }


def started_ns(space: xplane_pb2.XSpace) -> int:
    """Return when the profiler began, Unix nanoseconds."""
    plane = next(plane for plane in space.planes if plane.name == "Task Environment")
    values = {plane.stat_metadata[stat.metadata_id].name: stat.uint64_value for stat in plane.stats}
    return int(values[b"profile_start_time"])


def count_marks(space: xplane_pb2.XSpace) -> int:
    return sum(
        plane.event_metadata[event.metadata_id].name == b"train"
        for plane in space.planes
        for line in plane.lines
        for event in line.events
    )


def capture_in_background(
    addresses: list[str], logdir: Path, duration_s: float
) -> tuple[threading.Thread, list[CaptureResult]]:
    """Start a capture in a thread; returns when the servers record."""
    results: list[CaptureResult] = []
    begun = threading.Event()

    def capture() -> None:
        options = CaptureOptions(duration_s=duration_s)
        results.append(capture_run(addresses, logdir, options, lambda _line: begun.set()))

    thread = threading.Thread(target=capture)
    thread.start()
    assert begun.wait(20)
    time.sleep(0.4)
    return thread, results


@pytest.mark.parametrize("server", ["jax_server", "tensorflow_server"])
def test_one_server(server: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    program: Program = request.getfixturevalue(server)
    result = capture_run([program.address], tmp_path / "logs", SHORT)
    (host,) = result.captured
    assert re.fullmatch(r"\d{4}(_\d\d){5}", result.run_folder.name)
    assert (
        host.path == tmp_path / "logs/plugins/profile" / result.run_folder.name / f"127.0.0.1_{program.port}.xplane.pb"
    )
    space = read(host.path)
    assert space.hostnames == [host.hostname]
    assert host.hostname
    assert host.size == host.path.stat().st_size
    assert host.steps == count_marks(space)
    assert host.steps
    assert (result.missing, result.warnings, result.interrupted) == ((), (), False)
    assert [file.name for file in result.run_folder.iterdir()] == [host.path.name]


def test_pytorch_xla(tmp_path: Path) -> None:
    """Its profiler of 2.9 does not know emit_xspace: it writes to the shared disk, and that is read."""
    python = os.environ.get("REPORTGEN_TORCH_XLA_PYTHON", sys.executable)
    if python == sys.executable and importlib.util.find_spec("torch_xla") is None:
        pytest.skip("torch_xla is not installed; REPORTGEN_TORCH_XLA_PYTHON names a Python that has it")
    with Program("torch_server.py", lifetime_s=60, python=python) as program:
        program.ready()
        result = capture_run([program.address], tmp_path, SHORT)
    (host,) = result.captured
    assert host.steps == count_marks(read(host.path))
    assert host.steps


def test_levels_reach_the_server(jax_server: Program, tmp_path: Path) -> None:
    options = CaptureOptions(duration_s=0.4, levels=TraceLevels(host=2, device=1, python=1))
    with_python = event_names(read(capture_run([jax_server.address], tmp_path, options).captured[0].path))
    without = event_names(read(capture_run([jax_server.address], tmp_path, SHORT).captured[0].path))
    assert {name for name in with_python if name.startswith("$")}
    assert not {name for name in without if name.startswith("$")}


def test_host_level_0_on_a_cpu_is_empty_and_says_what_to_change(jax_server: Program, tmp_path: Path) -> None:
    options = CaptureOptions(duration_s=0.2, levels=TraceLevels(host=0))
    with pytest.raises(CaptureError, match=r"came back empty(.|\n)*--host-level 1"):
        capture_run([jax_server.address], tmp_path, options)
    assert list(tmp_path.iterdir()) == []


def test_delay_moves_the_start(jax_server: Program, tmp_path: Path) -> None:
    asked = time.time()
    result = capture_run([jax_server.address], tmp_path, CaptureOptions(duration_s=0.2, delay_s=0.7))
    begun = started_ns(read(result.captured[0].path)) / 1e9 - asked
    assert 0.6 <= begun <= 5


def test_again_and_longer_until_enough_steps(jax_server: Program, tmp_path: Path) -> None:
    told: list[str] = []
    options = CaptureOptions(duration_s=0.1, until_steps=60, longest_s=20)
    result = capture_run([jax_server.address], tmp_path, options, told.append)
    assert result.captured[0].steps is not None
    assert result.captured[0].steps >= 60
    assert any("fewer than 60 steps: again" in line for line in told)
    assert [folder.name for folder in (tmp_path / "plugins/profile").iterdir()] == [result.run_folder.name]


def test_too_few_steps_after_the_longest_capture_is_a_warning(jax_server: Program, tmp_path: Path) -> None:
    options = CaptureOptions(duration_s=0.1, until_steps=5000, longest_s=0.3)
    result = capture_run([jax_server.address], tmp_path, options)
    assert len(result.warnings) == 1
    assert re.search(r"\d+ of the 5000 steps asked for were caught", result.warnings[0])


def test_busy_server_is_tried_again(jax_server: Program, tmp_path: Path) -> None:
    thread, first = capture_in_background([jax_server.address], tmp_path / "first", 2)
    second = capture_run([jax_server.address], tmp_path / "second", SHORT)
    thread.join()
    assert first[0].captured[0].steps
    assert second.captured[0].steps


def test_busy_server_is_named_when_patience_ends(jax_server: Program, tmp_path: Path) -> None:
    thread, first = capture_in_background([jax_server.address], tmp_path / "first", 2)
    with pytest.raises(CaptureError, match="busy: another capture is running"):
        capture_run([jax_server.address], tmp_path / "second", CaptureOptions(duration_s=0.2, busy_wait_s=0))
    thread.join()
    assert first[0].captured


def test_idle_server_gives_an_empty_trace(tmp_path: Path) -> None:
    need("jax")
    with Program("jax_server.py", pause_ms=-1, lifetime_s=60) as program:
        program.ready()
        with pytest.raises(CaptureError, match=r"came back empty: nothing ran(.|\n)*--duration"):
            capture_run([program.address], tmp_path, CaptureOptions(duration_s=0.2))
    assert list(tmp_path.iterdir()) == []


def test_waits_for_a_server_that_is_not_up_yet(tmp_path: Path) -> None:
    need("jax")
    with Program("jax_server.py", lifetime_s=60) as program:  # not ready yet: importing JAX takes a while
        with pytest.raises(CaptureError, match="nothing listens"):
            capture_run([program.address], tmp_path, SHORT)
        options = CaptureOptions(duration_s=0.4, wait_s=60, until_steps=3)
        assert capture_run([program.address], tmp_path, options).captured[0].steps


def test_two_hosts(eight_servers: list[Program], tmp_path: Path) -> None:
    addresses = [program.address for program in eight_servers[:2]]
    result = capture_run([",".join(addresses)], tmp_path, SHORT)
    assert [host.address for host in result.captured] == addresses
    assert all(host.steps for host in result.captured)


def test_eight_hosts_begin_together(eight_servers: list[Program], tmp_path: Path) -> None:
    result = capture_run([program.address for program in eight_servers], tmp_path, CaptureOptions(duration_s=1))
    assert (len(result.captured), result.missing) == (8, ())
    starts = [started_ns(read(host.path)) for host in result.captured]
    assert max(starts) - min(starts) < 1e9
    assert len({host.path for host in result.captured}) == 8
    assert all(host.steps for host in result.captured)


def test_half_of_the_hosts_missing(eight_servers: list[Program], tmp_path: Path) -> None:
    absent = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    present = [program.address for program in eight_servers[:2]]
    result = capture_run([present[0], absent[0], present[1], absent[1]], tmp_path, SHORT)
    assert [host.address for host in result.captured] == present
    assert [host.address for host in result.missing] == absent
    assert all("nothing listens" in host.reason and "start_server" in host.hint for host in result.missing)


def test_a_busy_host_begins_late_and_is_named(eight_servers: list[Program], tmp_path: Path) -> None:
    busy, free = eight_servers[0].address, eight_servers[1].address
    thread, _ = capture_in_background([busy], tmp_path / "first", 2)
    result = capture_run([busy, free], tmp_path / "second", SHORT)
    thread.join()
    assert len(result.captured) == 2
    (warning,) = result.warnings
    assert re.search(rf"{busy}: was busy and began \d+\.\d s after the common start", warning)


def test_server_killed_in_mid_capture(eight_servers: list[Program], tmp_path: Path) -> None:
    with Program("jax_server.py", lifetime_s=60) as victim:
        victim.ready()
        addresses = [eight_servers[0].address, victim.address]
        thread, results = capture_in_background(addresses, tmp_path, 3)
        victim.process.kill()
        thread.join()
    (result,) = results
    assert [host.address for host in result.captured] == addresses[:1]
    (missing,) = result.missing
    assert missing.address == victim.address
    assert "the connection broke during the capture" in missing.reason
