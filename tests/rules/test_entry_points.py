"""A rule of another package: its code, its test and its entry point are those of `docs/adding-a-rule.md`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "adding-a-rule.md").read_text(encoding="utf-8")
SAMPLE = ROOT / "sample_profiles" / "jax_cpu"
RULE, TEST = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
[TOML] = re.findall(r"^```toml\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
BROKEN = "raise RuntimeError('no such device')\n"
FAILING = """
from reportgen.rules.base import Rule

class Failing(Rule):
    id = "failing"
    title = "A rule that fails"
    needs = ()

    def check(self, evidence):
        raise ZeroDivisionError("at once")
"""
IMPOSTOR = """
from reportgen.rules.base import Fine, Rule

class Impostor(Rule):
    id = "too-few-steps"
    title = "Not the built-in one"

    def check(self, evidence):
        return Fine("all is well")
"""


def install(folder: Path, module: str, code: str, points: str) -> None:
    """Lay a distribution down as an installer leaves it: a module and its metadata."""
    (folder / f"{module}.py").write_text(code, encoding="utf-8")
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(points, encoding="utf-8")


def python(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), str(ROOT)])
    return subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=folder, capture_output=True, text=True, check=False, timeout=120,
        env=os.environ | {"PYTHONPATH": path},
    )  # fmt: skip


def report(folder: Path, *options: str) -> dict[str, object]:
    result = python(folder, "-m", "reportgen", "report", SAMPLE, "-o", "-", "--format", "json", *options)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The package of the document."""
    head, line = TOML.strip().split("\n")
    assert head == '[project.entry-points."reportgen.rules"]'
    name, target = re.fullmatch(r'([\w-]+) = "([\w:]+)"', line).groups()
    install(tmp_path, target.split(":")[0], RULE, f"[reportgen.rules]\n{name} = {target}\n")
    return tmp_path


def test_the_rule_of_the_document_has_about_twenty_lines() -> None:
    body = RULE.split("class ")[1].splitlines()
    assert sum(bool(line.strip()) for line in body) <= 25


def test_its_finding_stands_in_the_report(installed: Path) -> None:
    document = report(installed)
    found = next(finding for finding in document["findings"] if finding["rule"] == "step-goal")
    mean = document["metrics"]["step_period_mean"]["value"]
    assert found["evidence"][0]["value"] == pytest.approx(mean)
    assert found["title"] == f"Steps take {mean / 0.002:.1f} times our goal"
    assert found["threshold"]["value"] == 0.002
    assert found["severity"] != "info"
    steps = document["tables"]["steps"]
    time = [column["name"] for column in steps["columns"]].index("time")
    slowest = max(steps["rows"], key=lambda row: row[time])
    assert found["locations"] == [{"kind": "step", "name": str(slowest[0])}]


def test_its_threshold_and_state_can_be_changed(installed: Path) -> None:
    document = report(installed, "--set", "step-goal.goal=0.5")
    check = next(check for check in document["checks"] if check["rule"] == "step-goal")
    assert check["status"] == "fine"
    assert "the goal is 500" in check["reason"]
    assert "step-goal" not in {check["rule"] for check in report(installed, "--skip", "step-goal")["checks"]}


def test_it_is_listed_and_described(installed: Path) -> None:
    listed = json.loads(python(installed, "-m", "reportgen", "rules", "--format", "json").stdout)
    row = next(row for row in listed if row["id"] == "step-goal")
    assert [(limit["name"], limit["value"]) for limit in row["thresholds"]] == [("goal", 0.002)]
    page = python(installed, "-m", "reportgen", "rules", "step-goal").stdout
    assert page == "# Step time against our goal\n\nMean time from step to step above the goal.\n"


def test_the_test_of_the_document_passes(installed: Path) -> None:
    (installed / "test_step_goal.py").write_text(TEST, encoding="utf-8")
    result = python(installed, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_step_goal.py")
    assert "2 passed" in result.stdout, result.stdout


def test_a_rule_that_cannot_be_loaded_is_told_in_plain_words(tmp_path: Path) -> None:
    install(tmp_path, "broken", BROKEN, "[reportgen.rules]\nbroken = broken:Rule\n")
    result = python(tmp_path, "-m", "reportgen", "rules")
    assert result.returncode == 2
    assert "the rule 'broken' (broken:Rule) of an installed package cannot be loaded: no such device" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_rule_that_raises_leaves_the_others_alone(tmp_path: Path) -> None:
    install(tmp_path, "failing", FAILING, "[reportgen.rules]\nfailing = failing:Failing\n")
    checks = {check["rule"]: check for check in report(tmp_path)["checks"]}
    assert checks["failing"]["status"] == "error"
    assert checks["too-few-steps"]["status"] == "fine"


def test_the_id_of_a_built_in_rule_cannot_be_taken_over(tmp_path: Path) -> None:
    install(tmp_path, "impostor", IMPOSTOR, "[reportgen.rules]\ntoo-few-steps = impostor:Impostor\n")
    titles = [check["title"] for check in report(tmp_path)["checks"] if check["rule"] == "too-few-steps"]
    assert titles == ["Number of steps captured"]
