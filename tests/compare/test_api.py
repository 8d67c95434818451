"""The Python API: what docs/api.md shows runs, and every public name is there and typed."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import reportgen
from tests.conftest import ROOT


def test_the_example_of_the_documentation_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    (tmp_path / "logs").symlink_to(ROOT / "sample_profiles" / "jax_cpu")
    (tmp_path / "budgets.toml").write_text("[metrics.step_time_mean]\nmax = 1e-9\n")
    monkeypatch.chdir(tmp_path)
    reportgen.report("logs/", "base", ["json"])
    found: dict[str, object] = {}
    exec(code, found)
    assert found["result"].passed is False
    assert found["comparison"].extra["comparison"]["decision"]["changed"] is False
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000


def test_public_names_are_there_and_described() -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for name in reportgen.__all__:
        value = getattr(reportgen, name)
        if inspect.isfunction(value):
            assert inspect.getdoc(value), name
            assert f"`{name}(" in text or name in ("keras_callback",), name


def test_type_checkers_see_what_is_loaded_late(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import reportgen\n"
        "document = reportgen.open_document('report.json')\n"
        "reveal_type(reportgen.check(document, 'budgets.toml').passed)\n"
        "reveal_type(reportgen.compare(document, document).verdict)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", str(program)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert 'Revealed type is "bool"' in done.stdout.replace("builtins.", ""), done.stdout
    assert 'Revealed type is "str"' in done.stdout.replace("builtins.", ""), done.stdout
    assert "error" not in done.stdout
