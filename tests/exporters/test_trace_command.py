"""The trace command, and traces of runs of several hosts."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reportgen.errors import InputError
from reportgen.exporters.limits import TraceLimits
from reportgen.exporters.of_run import write_run_trace
from reportgen.settings import Settings
from reportgen.sources.locate import find_run
from tests.builders import Space
from tests.conftest import ROOT

SAMPLE = ROOT / "sample_profiles" / "tf_cpu"


def command(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    line = [sys.executable, "-m", "reportgen", "trace", *map(str, arguments)]
    return subprocess.run(line, cwd=cwd, capture_output=True, check=False, env=os.environ, timeout=120)


def read(content: bytes) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(gzip.decompress(content))
    return document


def test_it_writes_a_file_and_says_what_it_holds(tmp_path: Path) -> None:
    done = command(SAMPLE, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json.gz"]
    slices = [event for event in read((tmp_path / "trace.json.gz").read_bytes())["traceEvents"] if event["ph"] == "X"]
    assert f"{len(slices):,} events".encode() in done.stderr


def test_it_writes_to_stdout_and_cuts(tmp_path: Path) -> None:
    done = command(SAMPLE, "-o", "-", "--steps", "3:4", "--max-events", "500", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = read(done.stdout)
    assert sum(event["ph"] == "X" for event in document["traceEvents"]) == 500
    assert [text.split(" ", 1)[1] for text in document["metadata"]["cut"]] == [
        "events are outside the chosen steps",
        "shorter events are over the limit of events",
    ]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "9:1"], "expected FIRST:LAST"),
        (["--steps", "x"], "expected FIRST:LAST"),
        (["--steps", "900:901"], "its steps are"),
    ],
)
def test_wrong_usage_ends_with_2_and_leaves_no_file(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = command(SAMPLE, *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message.encode() in done.stderr
    assert list(tmp_path.iterdir()) == []


def host_file(folder: Path, name: str, start_ns: int) -> None:
    space = Space()
    space.proto.hostnames.append(name)
    space.plane("/host:CPU").line("main/1").event("work", 100, 10)
    space.plane("Task Environment", {"profile_start_time": start_ns, "profile_stop_time": start_ns + 1000})
    (folder / f"{name}.xplane.pb").write_bytes(space.proto.SerializeToString())


def test_hosts_of_a_run_stand_on_the_clock_of_the_earliest(tmp_path: Path) -> None:
    for name, start in (("a", 7_000), ("b", 2_000), ("c", 4_000)):
        host_file(tmp_path, name, 10**18 + start)
    (tmp_path / "d.xplane.pb").write_bytes(b"\xff" * 100)
    with (tmp_path / "trace.json.gz").open("wb") as stream:
        summary, unread = write_run_trace(find_run(str(tmp_path)), Settings(), stream, TraceLimits())
    events = [event for event in read((tmp_path / "trace.json.gz").read_bytes())["traceEvents"] if event["ph"] == "X"]
    assert [event["ts"] for event in events] == [5.1, 0.1, 2.1]
    assert summary.hosts == ["a", "b", "c"]
    assert [message.split(":")[0] for message in unread] == ["d.xplane.pb"]


def test_where_no_host_can_be_read_the_reason_is_raised(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.xplane.pb").write_bytes(b"\xff" * 100)
    with (tmp_path / "out").open("wb") as stream, pytest.raises(InputError, match=r"a\.xplane\.pb"):
        write_run_trace(find_run(str(tmp_path)), Settings(), stream, TraceLimits())
