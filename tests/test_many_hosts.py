"""A run of 64 hosts and 256 cores in two slices."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reportgen.api import analyze
from reportgen.document import ReportDocument, to_json
from reportgen.renderers import render
from reportgen.settings import Settings
from tests.parity import xprof
from tests.pod import write_pod


@pytest.fixture(scope="module")
def pod(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pod")
    write_pod(folder)
    return folder


@pytest.fixture(scope="module")
def document(pod: Path) -> ReportDocument:
    return analyze(pod, Settings(jobs=1, strict=True))


def test_the_report_is_small_and_complete(document: ReportDocument) -> None:
    html = render(document, "html")
    assert len(html.files["report.html"]) < 2_000_000
    assert html.warnings == ()
    assert document.title.endswith("256 × TPU v6 Lite, 64 hosts")
    assert len(document.tables["cores"].rows) == 256
    assert all(row[1] == pytest.approx(0.0010124) for row in document.tables["cores"].rows)


def test_the_slow_host_is_named(document: ReportDocument) -> None:
    columns = [column.name for column in document.tables["hosts"].columns]
    rows = [dict(zip(columns, row, strict=True)) for row in document.tables["hosts"].rows]
    assert rows[0]["host"] == "pod-host-37"
    assert rows[0]["slowness"] == pytest.approx(0.2, abs=0.001)
    assert [row["host"] for row in rows if row["straggler"]] == ["pod-host-37"]


def test_collectives_within_and_across_slices_are_told_apart(document: ReportDocument) -> None:
    reach = {(row[0], row[1]): row[3] for row in document.tables["collectives"].rows}
    assert set(reach) == {("all-reduce", "within a slice"), ("send", "across slices"), ("recv", "across slices")}
    assert reach["recv", "across slices"] == pytest.approx(60e-6 * 256 * 5)


@pytest.mark.peer
def test_totals_equal_xprofs_over_the_same_files(pod: Path, document: ReportDocument) -> None:
    answers = xprof.answers(*sorted(pod.rglob("*.xplane.pb")))
    root = answers["op_profile"]["byProgram"]
    total = document.metrics["total_device_time"].value
    assert total is not None
    assert round(total * 1e12) == root["metrics"]["rawTime"]
    columns = [column.name for column in document.tables["hlo_ops"].columns]
    ours = {
        row[columns.index("name")]: (row[columns.index("time_ps")], row[columns.index("occurrences")])
        for row in document.tables["hlo_ops"].rows
    }
    theirs = {
        row["hlo_op_name"]: (round(row["total_time"] * 1e6), int(row["occurrences"]))
        for row in xprof.rows(answers["hlo_stats"])
        if row["category"] != "IDLE"
    }
    assert len(theirs) == 44
    assert ours == theirs


def test_several_processes_give_the_same_report(tmp_path: Path) -> None:
    write_pod(tmp_path, hosts=5, slow_host=2)
    one, three = (analyze(tmp_path, Settings(jobs=jobs, strict=True)) for jobs in (1, 3))
    assert to_json(one) == to_json(three)


_MEASURE = """
import resource, sys
from reportgen.api import analyze
from reportgen.settings import Settings
analyze(sys.argv[1], Settings(jobs=1))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def _peak_kib(folder: Path) -> int:
    result = subprocess.run([sys.executable, "-c", _MEASURE, str(folder)], check=True, capture_output=True, text=True)
    return int(result.stdout)


def test_memory_does_not_grow_with_the_number_of_hosts(pod: Path, tmp_path: Path) -> None:
    write_pod(tmp_path, hosts=4, slow_host=1)
    # 60 more hosts may add their small parts, not their events.
    assert _peak_kib(pod) < _peak_kib(tmp_path) + 60 * 512


def test_an_unreadable_host_is_named_and_the_rest_reported(tmp_path: Path) -> None:
    paths = write_pod(tmp_path, hosts=3, slow_host=9)
    paths[1].write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    document = analyze(tmp_path, Settings(strict=True))
    assert document.profile.hosts == ("pod-host-0", "pod-host-2")
    assert any("pod-host-1.xplane.pb" in warning and "Git LFS" in warning for warning in document.profile.warnings)


def test_hosts_that_recorded_the_same_name_are_told_apart_by_their_files(tmp_path: Path) -> None:
    """Regression: two files of one recorded host name counted as the same cores."""
    paths = write_pod(tmp_path, hosts=2, slow_host=9)
    (paths[1].parent / "copy.xplane.pb").write_bytes(paths[1].read_bytes())
    document = analyze(tmp_path, Settings(strict=True))
    assert document.profile.hosts == ("pod-host-1 (copy)", "pod-host-0", "pod-host-1 (pod-host-1)")
    assert len({row[0] for row in document.tables["cores"].rows}) == 12
