"""A JAX device memory profile given to `report`: alone, and in the folder of a run."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

from reportgen import api
from reportgen.errors import InputError
from reportgen.settings import Settings
from tests.conftest import ROOT

from .test_pprof import profile

SAMPLE = ROOT / "sample_profiles" / "jax_cpu"


def written(folder: Path) -> Path:
    file = folder / "memory.prof"
    file.write_bytes(gzip.compress(profile().SerializeToString()))
    return file


def test_alone(tmp_path: Path) -> None:
    document = api.report(written(tmp_path), tmp_path / "out", ["html", "md", "json", "trace"]).document
    assert document.verdict == (
        "5.29 KiB are alive on 2 devices: 5.00 KiB in 3 buffers, 300 B in 1 executable; "
        "94.5 % of it made at train.py:30."
    )
    assert document.metrics["live_memory"].value == 5420
    for table in ("kinds", "lines", "stacks"):
        rows = document.tables[f"live_memory_{table}"].rows
        assert sum(row[1] for row in rows) == 5420  # type: ignore[misc]
    assert [row[:2] for row in document.tables["live_memory_devices"].rows] == [("TPU_0", 4096), ("TPU_1", 1024)]
    assert document.tables["live_memory_stacks"].rows[0][-1] == "train.py:30"
    assert "train.py:30" in api.rendered(document, "html").decode()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["report.html", "report.json", "report.md"]


def test_analyzed_and_as_bytes(tmp_path: Path) -> None:
    file = written(tmp_path)
    assert api.rendered(api.analyze(file), "md") == api.report_bytes(file, "md")


def test_what_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cpu.prof").write_bytes(b"\x00\x01\x02")
    with pytest.raises(InputError, match="device memory profile"):
        api.analyze(tmp_path / "cpu.prof")
    with pytest.raises(InputError, match="no such file"):
        api.analyze(tmp_path / "absent.prof")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A copy of a sample with two memory profiles and a file that only ends like one."""
    folder = Path(shutil.copytree(SAMPLE, tmp_path / "run"))
    beside = next(folder.rglob("*.xplane.pb*")).parent
    written(beside)
    shutil.copy(beside / "memory.prof", beside / "second.prof")
    (beside / "cpu.prof").write_bytes(b"\x00\x01\x02")
    return folder


def test_beside_a_profile(run: Path) -> None:
    document = api.analyze(run, Settings(jobs=1))
    memory = next(section for section in document.sections if section.id == "memory")
    assert memory.blocks[-1].table == "live_memory_2_stacks"  # type: ignore[union-attr]
    assert document.metrics["live_memory"].value == document.metrics["live_memory_2"].value == 5420
    assert any("cpu.prof" in warning for warning in document.profile.warnings)
    plain = api.analyze(SAMPLE, Settings(jobs=1))
    assert "live_memory" not in plain.metrics
    assert {name: metric.value for name, metric in plain.metrics.items()}.items() <= {
        name: metric.value for name, metric in document.metrics.items()
    }.items()
