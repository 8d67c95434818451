"""`reportgen rules`: the list in three formats, states and changed thresholds, and the page of a rule."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import markdown
import pytest
from typer.testing import CliRunner

from reportgen.cli import app
from reportgen.errors import UsageError
from reportgen.rules import RULES
from reportgen.rules.pages import rule_page
from tests.conftest import ROOT


def listed(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["rules", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def rows(*arguments: str) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in json.loads(listed("--format", "json", *arguments))}


def limit(row: dict[str, Any], name: str) -> dict[str, Any]:
    return next(limit for limit in row["thresholds"] if limit["name"] == name)


def test_every_rule_is_listed_with_what_it_declares() -> None:
    found = rows()
    for rule in RULES:
        row = found[rule.id]
        assert (row["title"], row["state"]) == (rule.title, "on")
        told = [(one["name"], one["value"], one["unit"], one["reason"]) for one in row["thresholds"]]
        assert told == [(one.name, one.value, one.unit, one.reason) for one in rule.thresholds]
        assert not any(one["changed"] for one in row["thresholds"])


def test_only_and_skip_switch_rules_off() -> None:
    off = {name for name, row in rows("--skip", "straggler,custom-call").items() if row["state"] == "off"}
    assert off == {"straggler", "custom-call"}
    on = {name for name, row in rows("--only", "precision", "--only", "host-bound").items() if row["state"] == "on"}
    assert on == {"precision", "host-bound"}


def test_a_changed_threshold_is_marked() -> None:
    changed = limit(rows("--set", "straggler.score=5")["straggler"], "score")
    assert changed | {"reason": ""} == {
        "name": "score", "value": 5, "default": 3.5, "changed": True, "unit": "modified z score", "reason": "",
    }  # fmt: skip
    text = listed("--set", "straggler.score=5")
    assert "score = 5 (changed, by default 3.5) modified z score. Iglewicz" in text
    assert text.count("(changed") == 1


def test_a_settings_file_counts_as_in_a_report(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('skip = ["straggler"]\n[thresholds.clock-skew]\nearly = 0.001\n', encoding="utf-8")
    found = rows("--settings", str(file))
    assert found["straggler"]["state"] == "off"
    assert limit(found["clock-skew"], "early")["value"] == 0.001
    assert limit(found["clock-skew"], "early")["changed"]
    assert not limit(found["clock-skew"], "share")["changed"]


def test_the_text_names_every_rule_and_threshold_on_a_line() -> None:
    lines = listed("--skip", "straggler").splitlines()
    assert [line.split()[:2] for line in lines if not line.startswith(" ")] == [
        [rule.id, "off" if rule.id == "straggler" else "on"] for rule in RULES
    ]
    assert sum(line.startswith("    ") for line in lines) == sum(len(rule.thresholds) for rule in RULES)
    assert "    size = 1048576 bytes. Below a MiB latency decides, not bandwidth." in lines
    assert "    early = 1e-06 seconds. Clocks are read to about a microsecond." in lines


def test_the_markdown_is_one_table() -> None:
    text = listed("--format", "md")
    html = markdown.markdown(text, extensions=["tables"])
    assert html.count("<table>") == 1
    assert html.count("<tr>") == 1 + sum(max(1, len(rule.thresholds)) for rule in RULES)
    assert "<code>padding-waste</code>" in html


def test_a_rules_page_is_printed() -> None:
    assert listed("padding-waste") == rule_page("padding-waste")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-rule"], "no rule is called 'no-such-rule'"),
        (["../architecture"], "no rule is called '../architecture'"),
        (["--only", "no-such-rule"], "no rule is called 'no-such-rule'"),
        (["--set", "straggler.speed=1"], "no threshold is called 'straggler.speed'"),
        (["--set", "straggler.score=fast"], "expected RULE.THRESHOLD=NUMBER"),
        (["--format", "html"], "expected one of text, json, md"),
    ],
)
def test_what_is_not_there_is_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        CliRunner().invoke(app, ["rules", *arguments], catch_exceptions=False)


def test_its_help_imports_no_rules() -> None:
    program = (
        "import sys\nsys.argv = ['reportgen', 'rules', '--help']\nfrom reportgen.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(sorted({'numpy', 'pandas', 'reportgen.rules'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[]"
    assert "--set" in result.stdout
