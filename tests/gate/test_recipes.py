"""The recipes of docs/ci.md, run: every shell step, in an environment with nothing in it."""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

from reportgen.gate.budgets import budgets_from
from tests.conftest import ROOT

RECIPES = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
# What the machine of a CI service brings along, as far as the recipes call it: each call is written down.
STAND_INS = {
    "pip": "",
    "buildkite-agent": "cat > annotation.md",
    "gh": textwrap.dedent("""
        case "$*" in
          *"run list"*) if [ -d main ]; then echo 17; fi;;
          *"run download"*) cp -r main base;;
          *"--paginate"*) if [ -f comment.id ]; then cat comment.id; fi;;
          *POST*) echo 42 > comment.id; cp comment.md posted.md;;
          *PATCH*) cp comment.md posted.md;;
        esac
    """),
    "python": 'mkdir -p logs; cp -r "$SAMPLE"/. logs',
}


def section(title: str) -> str:
    return RECIPES.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def fenced(text: str, language: str) -> str:
    return re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)[1]


def github_steps() -> list[str]:
    """The `run` of each step, in order."""
    text = fenced(section("GitHub Actions"), "yaml")
    blocks = re.findall(r"^( +)run: (\|\n(?:\1  .*\n|\n)+|.*\n)", text, re.MULTILINE)
    return [textwrap.dedent(block.removeprefix("|\n")) for _, block in blocks]


def gitlab_steps() -> list[str]:
    text = fenced(section("GitLab"), "yaml").split("script:\n", 1)[1].split("artifacts:", 1)[0]
    return [line.strip().removeprefix("- ") for line in text.strip().splitlines()]


def jenkins_steps() -> list[str]:
    return [textwrap.dedent(re.search(r"'''\n(.*?)'''", fenced(section("Jenkins"), "groovy"), re.DOTALL)[1])]


def buildkite_steps() -> list[str]:
    text = fenced(section("Buildkite"), "yaml")
    return [textwrap.dedent(text.split("command: |\n", 1)[1].split("    artifact_paths", 1)[0])]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty folder, with the commands that a CI machine has."""
    tools = tmp_path / "bin"
    tools.mkdir()
    scripts = STAND_INS | {"reportgen": f'exec "{sys.executable}" -m reportgen "$@"'}
    for name, script in scripts.items():
        note = "" if name == "reportgen" else f'echo "{name} $*" >> calls.txt\n'
        (tools / name).write_text(f"#!/bin/sh\nset -e\n{note}{script}\n")
        (tools / name).chmod((tools / name).stat().st_mode | stat.S_IEXEC)
    work = tmp_path / "work"
    work.mkdir()
    (work / "budgets.toml").write_text("[metrics.step_time_mean]\nmax = 10.0\n")
    return work


def run(steps: list[str], workspace: Path, **variables: str) -> list[int]:
    """Run steps as CI services do, one shell each, until one fails; the environment holds nothing else."""
    environment = {
        "PATH": f"{workspace.parent / 'bin'}:/usr/bin:/bin", "HOME": str(workspace), "LANG": "C.UTF-8",
        "SAMPLE": str(ROOT / "sample_profiles" / "jax_cpu"), "PYTHONPATH": str(ROOT), "CI": "true", **variables,
    }  # fmt: skip
    codes = []
    for step in steps:
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", step], cwd=workspace, env=environment, capture_output=True,
            text=True, check=False, timeout=300,
        )  # fmt: skip
        codes.append(done.returncode)
        if done.returncode:
            assert done.returncode == 3, done.stderr
            break
    return codes


def on_github(workspace: Path) -> list[int]:
    return run(
        github_steps(), workspace, GITHUB_ACTIONS="true", GITHUB_REPOSITORY="owner/name", PULL_REQUEST="7",
        GITHUB_STEP_SUMMARY=str(workspace / "summary.md"),
    )  # fmt: skip


def test_github_actions(workspace: Path) -> None:
    assert len(github_steps()) == 6
    assert on_github(workspace) == [0] * 6
    assert {
        "report.html",
        "report.json",
        "report.md",
        "trace.json.gz",
        "comparison.md",
        "junit.xml",
        "badge.svg",
    } <= {path.name for path in (workspace / "out").iterdir()}
    summary = (workspace / "summary.md").read_bytes()
    assert 1000 < len(summary) < 1 << 20
    assert (workspace / "posted.md").read_text().startswith("<!-- reportgen -->\n")
    assert len((workspace / "posted.md").read_text()) < 65_536
    assert "POST" in (workspace / "calls.txt").read_text()
    (workspace / "calls.txt").unlink()
    shutil.copytree(workspace / "out", workspace / "main")  # main has a report by now
    shutil.rmtree(workspace / "base")
    assert on_github(workspace) == [0] * 6
    calls = (workspace / "calls.txt").read_text()
    assert "PATCH repos/owner/name/issues/comments/42" in calls  # the comment is updated, not written again
    assert "POST" not in calls
    assert "run download 17" in calls


def test_a_failed_budget_fails_the_run_and_leaves_its_results(workspace: Path) -> None:
    (workspace / "budgets.toml").write_text("[metrics.step_time_mean]\nmax = 1e-6\n")
    assert on_github(workspace) == [0] * 5 + [3]
    assert "<failure" in (workspace / "out" / "junit.xml").read_text()


@pytest.mark.parametrize(
    "steps", [gitlab_steps(), jenkins_steps(), buildkite_steps()], ids=["gitlab", "jenkins", "buildkite"]
)
def test_other_services(workspace: Path, steps: list[str]) -> None:
    assert set(run(steps, workspace)) == {0}
    assert (workspace / "out" / "report.html").stat().st_size > 10_000
    assert (workspace / "out" / "junit.xml").read_text().startswith("<?xml")
    (workspace / "budgets.toml").write_text("[metrics.step_time_mean]\nmax = 1e-6\n")
    assert run(steps, workspace)[-1] == 3


def test_the_budgets_of_the_documentation_are_understood() -> None:
    budgets = budgets_from(tomllib.loads(fenced(section("The gate"), "toml")))
    assert set(budgets.metrics) == {"step_time_mean", "peak_memory"}
    assert budgets.findings["*"].new_only
