"""The built wheel in an empty environment, on the oldest protobuf; and beside other frameworks in one process."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.conftest import ROOT

OLDEST_PROTOBUF = "protobuf==4.25.8"


def run(*command: str | Path, cwd: Path, timeout: float = 300) -> str:
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    result = subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
    return result.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of the wheel, what it needs, and pytest, on the oldest protobuf that it allows."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT, cwd=folder)
    venv.create(folder / "env", with_pip=True)
    wheel = next(folder.glob("reportgen-*.whl"))
    python = folder / "env" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", wheel, OLDEST_PROTOBUF, "pytest", "hypothesis", cwd=folder)
    return folder / "env" / "bin"


def test_the_wheel_makes_the_report_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    sample = ROOT / "sample_profiles" / "jax_cpu"
    run(installed / "reportgen", "report", sample, "-o", "out", cwd=tmp_path)
    assert (tmp_path / "out" / "report.html").read_text().startswith("<!doctype html>")
    document = json.loads((tmp_path / "out" / "report.json").read_text())
    assert document["metrics"]["step_count"]["value"] == 12
    program = "from reportgen.rules.pages import rule_page; print(rule_page('input-bound'))"
    assert len(run(installed / "python", "-c", program, cwd=tmp_path)) > 200


def test_the_wheels_bytes_equal_the_checkouts(installed: Path, tmp_path: Path) -> None:
    sample = ROOT / "sample_profiles" / "jax_cpu"
    arguments = ("report", str(sample), "-o", "-", "--format", "md")
    from_wheel = run(installed / "reportgen", *arguments, cwd=tmp_path)
    from_checkout = run(sys.executable, "-m", "reportgen", *arguments, cwd=ROOT)
    assert from_wheel == from_checkout


def test_the_core_of_the_suite_passes_on_the_oldest_protobuf(installed: Path, tmp_path: Path) -> None:
    version = run(installed / "python", "-c", "import google.protobuf as p; print(p.__version__)", cwd=tmp_path)
    assert version.startswith("4.25")
    tests = (
        "tests/wire",
        "tests/profile/test_intervals.py",
        "tests/profile/test_hlo.py",
        "tests/profile/test_shapes.py",
    )
    output = run(installed / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, cwd=ROOT)
    assert " passed" in output


MODULES = ("tensorflow", "jax", "xprof.convert.raw_to_tool_data", "reportgen.api")


@pytest.mark.peer
@pytest.mark.parametrize("order", list(itertools.permutations(MODULES))[::9])
def test_importing_beside_other_frameworks_in_any_order(order: tuple[str, ...], tmp_path: Path) -> None:
    for module in order:
        if importlib.util.find_spec(module.split(".")[0]) is None:
            pytest.skip(f"{module} is not installed: pip install reportgen[peers]")
    sample = ROOT / "sample_profiles" / "jax_cpu"
    imports = "\n".join(f"import {module}" for module in order)
    program = f"{imports}\nprint(reportgen.api.analyze({str(sample)!r}).metrics['step_count'].value)"
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr[-2000:]
    assert float(result.stdout.split()[-1]) == 12
