"""Samples remade now by the scripts that ship with them give the findings and figures of the committed ones."""

from __future__ import annotations

import gzip
import importlib.util
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from reportgen.api import analyze
from reportgen.document import ReportDocument
from reportgen.settings import Settings
from tests.conftest import ROOT

pytestmark = pytest.mark.peer

SCRIPTS = ROOT / "sample_profiles"
CAPTURES = {"jax_cpu": "jax", "jax_cpu_input_bound": "jax", "tf_cpu": "tensorflow", "tf_cpu_healthy": "tensorflow"}


def remade(name: str, folder: Path, peer: str) -> Path:
    if importlib.util.find_spec(peer) is None:
        pytest.skip(f"{peer} is not installed: pip install reportgen[peers]")
    command = [sys.executable, str(SCRIPTS / "make.py"), name, "-o", str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return folder / name


@cache
def committed(name: str) -> ReportDocument:
    return analyze(SCRIPTS / name, Settings(strict=True))


def value(document: ReportDocument, name: str) -> float:
    found = document.metrics[name].value
    assert found is not None
    return found


@pytest.mark.parametrize("name", sorted(CAPTURES))
def test_a_capture(name: str, tmp_path: Path) -> None:
    document = analyze(remade(name, tmp_path, CAPTURES[name]), Settings(strict=True))
    before = committed(name)
    assert value(document, "step_count") == value(before, "step_count")
    assert document.profile.step_source == before.profile.step_source
    assert document.profile.framework == before.profile.framework
    # The programs are the same, the machine's speed is not: what is counted is equal, shares are alike.
    assert _counts(document) == _counts(before)
    wait = abs(value(document, "input_wait_fraction") - value(before, "input_wait_fraction"))
    assert wait < 0.25
    # A loaded machine may make a healthy loop wait a little; the planted wait is always found.
    before_found = {finding.rule for finding in before.findings}
    if "input-bound" in before_found:
        assert "input-bound" in {finding.rule for finding in document.findings}
    measured = json.loads((tmp_path / name / "measured.json").read_text())
    assert measured.keys() == json.loads((SCRIPTS / name / "measured.json").read_text()).keys()


def _counts(document: ReportDocument) -> dict[str, float]:
    """FLOPs a run of each module, without its program id, which differs between captures."""
    table = document.tables["op_programs"]
    places = {column.name: at for at, column in enumerate(table.columns)}
    return {
        re.sub(r"\(\d+\)$", "", re.sub(r"_\d{6,}", "", str(row[places["module"]]))): float(
            row[places["model_flops"]] or 0
        )
        for row in table.rows
        if (row[places["model_flops"]] or 0) > 1e7  # type: ignore[operator]
    }


def test_the_timeline_of_resnet_is_modelled_to_the_same_bytes() -> None:
    """From the committed HLO and the compiler's cycle estimates; the compile itself takes two minutes."""
    program = (
        "import sys; sys.path[:0] = [sys.argv[1], sys.argv[2]]\n"
        "from pathlib import Path; from modelling import remodelled\n"
        "space = remodelled(Path(sys.argv[1]) / 'resnet50_tpu_v5e', 6)\n"
        "sys.stdout.buffer.write(space.SerializeToString(deterministic=True))"
    )
    command = [sys.executable, "-c", program, str(SCRIPTS), str(ROOT)]
    result = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    sample = gzip.decompress((SCRIPTS / "resnet50_tpu_v5e" / "sample-host.xplane.pb.gz").read_bytes())
    assert result.stdout == sample


def test_the_out_of_memory_compile_fails_with_the_same_figures(tmp_path: Path) -> None:
    folder = remade("oom_tpu_v5e", tmp_path, "libtpu")
    figures = [
        re.findall(r"[\d.]+[KMG]\b", (path / "message.txt").read_text()) for path in (folder, SCRIPTS / folder.name)
    ]
    assert figures[0] == figures[1]
    assert figures[0]
    totals = [_totals(path) for path in (folder, SCRIPTS / folder.name)]
    assert totals[0] == totals[1]


def _totals(folder: Path) -> list[str]:
    (report,) = folder.glob("*-memory-usage-report.txt.gz")
    return re.findall(r"Total bytes.*", gzip.decompress(report.read_bytes()).decode())
