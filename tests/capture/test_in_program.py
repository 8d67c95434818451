"""Profiles that a program takes of itself; a fault is logged, and training goes on."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reportgen.capture import in_program
from reportgen.capture.in_program import StepProfiler, profiled
from reportgen.errors import UsageError
from tests.capture.conftest import need
from tests.capture.servers import PROGRAMS, environment


def outcome(name: str, folder: Path, python: str = sys.executable, **changes: str) -> Any:
    command = [python, str(PROGRAMS / name), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(**changes), timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.peer
def test_jax(tmp_path: Path) -> None:
    need("jax")
    told = outcome("jax_in_program.py", tmp_path)
    reports = [["context", 1], ["context", 1], ["steps", 3], ["short", 2], ["outer", 0], ["raises", 0]]
    assert told["reports"] == reports
    assert told["error"] == "of the training"
    assert told["left"] == []
    none, inner, fails, file = told["logged"]
    assert none == "nothing was profiled: 2 step(s) ran, the first to profile is 2"
    assert inner.startswith("the trace could not be started: Profile has already been started")
    assert fails == "the report could not be written: no report today"
    assert file.startswith("the trace could not be started: [Errno 17]")


@pytest.mark.peer
@pytest.mark.parametrize("backend", ["jax", "tensorflow"])
def test_keras(backend: str, tmp_path: Path) -> None:
    need("keras")
    need(backend)
    told = outcome("keras_in_program.py", tmp_path, KERAS_BACKEND=backend)
    assert told == {"reports": [4], "epochs": 3, "backend": backend}


@pytest.mark.peer
def test_pytorch_xla(tmp_path: Path) -> None:
    python = os.environ.get("REPORTGEN_TORCH_XLA_PYTHON", sys.executable)
    if python == sys.executable and importlib.util.find_spec("torch_xla") is None:
        pytest.skip("torch_xla is not installed; REPORTGEN_TORCH_XLA_PYTHON names a Python that has it")
    assert outcome("torch_in_program.py", tmp_path, python) == {"reports": [1], "marks": True}


def test_no_framework_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_program, "framework_in_use", lambda: None)
    ran = False
    with caplog.at_level(logging.WARNING), profiled(tmp_path):
        ran = True
    assert ran
    assert "Neither JAX, TensorFlow nor PyTorch/XLA was imported" in caplog.text


@pytest.mark.parametrize("steps", [(5, 5), (-1, 3), (4, 2)])
def test_empty_range_is_refused_before_training(steps: tuple[int, int], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no range of steps"):
        StepProfiler(tmp_path, steps)


def test_unknown_framework_is_refused_before_training(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'mxnet' is no framework"):
        StepProfiler(tmp_path, framework="mxnet")


def test_importing_it_imports_no_framework() -> None:
    code = (
        "import sys, reportgen.capture.in_program;"
        "print(sorted({'jax', 'tensorflow', 'keras', 'torch', 'numpy', 'grpc'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    assert done.stdout == "[]\n"
