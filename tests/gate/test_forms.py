"""The gate's result as CI systems read it, and the command with its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from reportgen.cli import main
from reportgen.document import ReportDocument, from_json, to_json
from reportgen.errors import UsageError
from reportgen.gate import Budgets, GateResult, check, read_budgets
from reportgen.gate.badge import badge
from reportgen.gate.budgets import budgets_from
from reportgen.gate.initial import initial_budgets
from reportgen.gate.junit import as_junit
from reportgen.gate.texts import as_annotations, as_json, as_markdown, as_text
from tests.renderers.documents import realistic
from tests.renderers.hostile import SAMPLES, poisoned

LIMITS = {
    "metrics": {
        "step_time_mean": {"max": 0.1},
        "flops_utilization": {"min": 0.3},
        "peak_memory": {"max": 1 << 30, "level": "warn"},
    },
    "findings": {"*": {"min_severity": "high"}},
}


def result(change: Callable[[str], str] = str) -> GateResult:
    return check(poisoned(realistic(), change), _limits(change))


def _limits(change: Callable[[str], str]) -> Budgets:
    metrics = {change(key): value for key, value in LIMITS["metrics"].items()}
    return budgets_from({**LIMITS, "metrics": metrics})


def test_text_says_what_failed_and_by_how_much() -> None:
    lines = as_text(result()).splitlines()
    assert lines[0].split() == ["Limit", "of", "Limit", "Found", "Missed", "by"]
    assert any(
        line.startswith("FAILED") and "step_time_mean" in line and "21.3 ms too much (21.3 %)" in line for line in lines
    )
    assert any(line.startswith("warning") and "peak_memory" in line for line in lines)
    assert any(line.startswith("ok") and "flops_utilization" in line for line in lines)
    assert lines[-1] == "3 of 5 limits failed, 1 warned, 1 kept."


def test_json() -> None:
    content = json.loads(as_json(result()))
    assert content["passed"] is False
    assert {one["status"] for one in content["outcomes"]} == {"failed", "warned", "passed"}


@pytest.mark.parametrize("enemy", SAMPLES)
def test_text_from_strangers_breaks_no_form(enemy: str) -> None:
    bad = result(lambda text: f"{text}{enemy}")
    root = ET.fromstring(as_junit(bad))
    assert len(root.findall(".//testcase")) == len(bad.outcomes)
    assert as_annotations(bad).count("\n") == len(bad.failed) + len(bad.warned)
    assert all(line.startswith(("::error title=", "::warning title=")) for line in as_annotations(bad).splitlines())
    rows = [line for line in as_markdown(bad).splitlines() if line.startswith("|")]
    assert [row.count("|") for row in rows] == [6] * (len(bad.outcomes) + 2)
    assert "<script" not in as_markdown(bad)
    assert len(as_text(bad).splitlines()) == len(bad.outcomes) + 2
    assert ET.fromstring(badge(poisoned(realistic(), lambda text: text + enemy), f"step_time_mean{enemy}")) is not None


def test_junit_has_the_form_that_jenkins_demands() -> None:
    root = ET.fromstring(as_junit(result()))
    assert root.tag == "testsuites"
    assert set(root.attrib) <= {"name", "time", "tests", "failures", "errors"}
    for suite in root:
        assert suite.tag == "testsuite"
        assert {"name", "tests", "failures", "errors"} <= set(suite.attrib)
        assert int(suite.attrib["tests"]) == len(suite)
        assert int(suite.attrib["failures"]) == len(suite.findall("./testcase/failure"))
        for case in suite:
            assert set(case.attrib) == {"name", "classname", "time"}
            assert [child.tag for child in case] in ([], ["failure"], ["system-out"])
            assert all(set(child.attrib) <= {"message", "type"} for child in case)
    assert int(root.attrib["failures"]) == len(result().failed) == 3


def test_annotations_escape_what_ends_a_command() -> None:
    limits = budgets_from({"metrics": {"a:b,c%": {"max": 1}}})
    assert as_annotations(check(realistic(), limits)) == (
        "::error title=metric a%3Ab%2Cc%25::a:b,c%25: no such metric in the report; the limit is max 1.\n"
    )


def test_a_badge_shows_the_metric_in_the_colour_of_the_result() -> None:
    passed = check(realistic(), budgets_from({"metrics": {"step_time_mean": {"max": 1}}}))
    picture = badge(realistic(), result=passed).decode()
    assert ">step time<" in picture
    assert ">121 ms<" in picture
    assert "#2e7d32" in picture
    assert "#b3261e" in badge(realistic(), result=result()).decode()
    assert ">not captured<" in badge(realistic(), "device_idle_fraction").decode()
    with pytest.raises(UsageError, match="no metric 'nothing'"):
        badge(realistic(), "nothing")


def test_initial_budgets_are_kept_by_the_report_itself(tmp_path: Path) -> None:
    path = tmp_path / "budgets.toml"
    path.write_text(initial_budgets(realistic()))
    budgets = read_budgets(path)
    assert set(budgets.metrics) == {key for key, one in realistic().metrics.items() if one.value is not None}
    assert check(realistic(), budgets, realistic()).passed
    slower = _with_step_time(realistic(), 1.06)
    assert [one.id for one in check(slower, budgets, realistic()).failed] == ["step_time_mean"]


def _with_step_time(document: ReportDocument, factor: float) -> ReportDocument:
    content = json.loads(to_json(document))
    content["metrics"]["step_time_mean"]["value"] *= factor
    return from_json(json.dumps(content).encode())


@pytest.mark.parametrize("enemy", SAMPLES)
def test_initial_budgets_hold_what_strangers_wrote_as_comments(tmp_path: Path, enemy: str) -> None:
    path = tmp_path / "budgets.toml"
    ids = {"step_time_mean", "flops_utilization"}
    document = poisoned(
        realistic(), lambda text: text if text in ids else f"{text}\n[metrics.planted]\nmax = 1 {enemy}"
    )
    path.write_text(initial_budgets(document), encoding="utf-8", errors="replace")
    assert "planted" not in read_budgets(path).metrics


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "report.json").write_bytes(to_json(realistic()))
    (tmp_path / "slow.json").write_bytes(to_json(_with_step_time(realistic(), 1.2)))
    (tmp_path / "budgets.toml").write_text("[metrics.step_time_mean]\nmax_regression = 0.05\n")
    (tmp_path / "broken.toml").write_text("[metrics.step_time_mean]\nmaximum = 1\n")
    (tmp_path / "no.json").write_text("{}")
    return tmp_path


@pytest.fixture
def run(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs `reportgen check` in the folder of files; gives exit code, stdout and stderr."""
    monkeypatch.chdir(files)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)

    def command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["reportgen", "check", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return command


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("report.json", "--budget", "budgets.toml", "--baseline", "report.json"), 0, "1 kept."),
        (("slow.json", "--budget", "budgets.toml", "--baseline", "report.json"), 3, "worse (20.0 %)"),
        (("slow.json", "--budget", "budgets.toml"), 2, "no baseline"),
        (("slow.json", "--budget", "broken.toml"), 2, "maximum"),
        (("slow.json", "--budget", "absent.toml"), 2, "absent.toml"),
        (("slow.json",), 2, "--budget"),
        (("no.json", "--budget", "budgets.toml"), 4, "no.json"),
        (("absent.json", "--budget", "budgets.toml"), 4, "absent.json"),
        (("report.json", "--init"), 0, "[metrics.step_time_mean]"),
    ],
)
def test_exit_codes(run: Callable[..., tuple[int, str, str]], arguments: tuple[str, ...], code: int, said: str) -> None:
    ended, out, err = run(*arguments)
    assert (ended, said in out + err) == (code, True), out + err


def test_the_command_writes_its_files_and_annotates_on_github(
    files: Path, run: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    code, out, err = run(
        "slow.json", "--budget", "budgets.toml", "--baseline", "report.json", "--format", "md", "--junit",
        "out/junit.xml", "--badge", "out/badge.svg",
    )  # fmt: skip
    assert code == 3
    assert out.startswith("### Performance gate: failed")
    assert err.startswith("::error title=metric step_time_mean::")
    assert ET.parse(files / "out" / "junit.xml").getroot().attrib["failures"] == "1"
    assert "#b3261e" in (files / "out" / "badge.svg").read_text()
