"""The contract between rules and their pages: headings, thresholds, code that parses, text that renders."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import reportgen.rules
from reportgen.analyzers.input_pipeline.advice import ADVICE
from reportgen.document import Action
from reportgen.memory.fixes import steps as memory_steps
from reportgen.memory.fixes.model import Step
from reportgen.renderers import rule_pages
from reportgen.rules import RULES, pages
from reportgen.rules.base import Rule
from reportgen.rules.pages import rule_page
from tests.conftest import ROOT

FOLDER = ROOT / "docs" / "rules"
SECTIONS = [
    "What it means", "How it is computed", "How to fix it", "How the saving is worked out", "When it is wrong",
]  # fmt: skip
FOR_YEARS = [
    "padding-waste", "memory-bound-conv", "memory-bound-dot", "low-flops", "vector-bound", "precision",
    "data-formatting", "data-shuffle", "host-transfer", "input-bound", "host-bound", "recompilation",
    "exposed-collectives", "small-collectives", "straggler", "core-imbalance", "memory-near-capacity",
    "memory-padding", "missing-donation", "costly-remat", "vmem-pressure", "fragmentation", "unstable-steps",
    "too-few-steps", "idle-chips", "dropped-events", "clock-skew", "impossible-efficiency", "custom-call",
]  # fmt: skip
IDS = [rule.id for rule in RULES]
every_rule = pytest.mark.parametrize("rule", RULES, ids=IDS)


def prose(page: str) -> str:
    return re.sub(r"`[^`]*`", "", re.sub(r"```.*?```", "", page, flags=re.DOTALL))


def test_ids_are_kebab_case_and_unique_and_the_fixed_ones_are_there() -> None:
    assert len(set(IDS)) == len(IDS)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in IDS)
    assert len(FOR_YEARS) == 29
    assert set(FOR_YEARS) <= set(IDS)


def test_there_is_a_page_for_each_rule_and_no_other() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(IDS)


@every_rule
def test_a_page_has_the_rules_title_and_all_sections(rule: Rule) -> None:
    page = rule_page(rule.id)
    assert page.startswith(f"# {rule.title}\n")
    assert re.findall(r"^## (.+)$", page, flags=re.MULTILINE) == SECTIONS
    parts = re.split(r"^## .+$", page, flags=re.MULTILINE)[1:]
    assert all(part.strip() for part in parts)
    assert 30 <= len(page.splitlines()) <= 70


@every_rule
def test_a_page_names_each_threshold_with_its_default(rule: Rule) -> None:
    rows = re.findall(
        r"^\| `([a-z0-9-]+\.\w+)` \| (\S+)[^|]* \| ([^|]+) \| ([^|]+) \|$", rule_page(rule.id), re.MULTILINE
    )
    told = [(name, float(value), unit, reason) for name, value, unit, reason in rows]
    assert told == [(f"{rule.id}.{limit.name}", limit.value, limit.unit, limit.reason) for limit in rule.thresholds]


@every_rule
def test_a_page_names_what_silences_the_rule(rule: Rule) -> None:
    page = rule_page(rule.id)
    assert [name for name in rule.silenced_by if f"`{name}`" not in page] == []
    others = [other for other in IDS if other != rule.id]
    assert all(any(name == other or name.startswith(f"{other}-") for other in others) for name in rule.silenced_by)
    assert ("half as much silences this one" in page) == bool(rule.silenced_by)


@every_rule
def test_a_page_has_no_html_and_links_inside_the_documentation_only(rule: Rule) -> None:
    text = prose(rule_page(rule.id))
    assert not re.search(r"<[a-zA-Z/!]", text)
    assert "://" not in text
    for target in re.findall(r"\]\(([^)]*)\)", rule_page(rule.id)):
        path = (FOLDER / target).resolve()
        assert path.is_file()
        assert path.is_relative_to(ROOT / "docs")


@every_rule
def test_a_pages_python_parses(rule: Rule) -> None:
    page = rule_page(rule.id)
    for code in re.findall(r"^```python\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE):
        ast.parse(code)
    assert page.count("```") % 2 == 0


@every_rule
def test_a_page_renders_as_it_is_meant(rule: Rule) -> None:
    html = rule_pages.rule_page(rule.id)
    page = rule_page(rule.id)
    assert html.count("<h4>") == len(SECTIONS)
    assert html.count("<table>") == len(re.findall(r"^\|---", page, flags=re.MULTILINE))
    assert html.count("<pre>") == page.count("```") // 2
    assert html.count("<ol>") == bool(re.search(r"^1\. ", page, flags=re.MULTILINE))
    text = re.sub(r"<pre>.*?</pre>|<code>.*?</code>", "", html, flags=re.DOTALL)
    assert not re.search(r"\|---|```|^\d\. |^- |\*\*", text, flags=re.MULTILINE)


def actions(value: object) -> Iterator[Action | Step]:
    if isinstance(value, Action | Step):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from actions(part)


def advice() -> Iterator[tuple[str, str]]:
    """Return the code of every action that a rule may give, with where it stands."""
    for module in pkgutil.iter_modules(reportgen.rules.__path__):
        content = vars(importlib.import_module(f"reportgen.rules.{module.name}"))
        yield from ((module.name, one.code) for value in content.values() for one in actions(value))
    yield from ((cause, one.code) for cause, found in ADVICE.items() for one in found.actions)
    yield from (("memory", one.code) for value in vars(memory_steps).values() for one in actions(value))


def test_the_python_of_every_action_parses() -> None:
    codes = {(place, code) for place, code in advice() if code and not code.startswith("reportgen ")}
    assert len(codes) > 50
    wrong = []
    for place, code in sorted(codes):
        try:
            ast.parse(code)
        except SyntaxError as error:
            wrong.append((place, code, str(error)))
    assert wrong == []


@pytest.mark.parametrize(
    "name", ["no-such-rule", "", "../architecture", "/etc/passwd", "Straggler", "straggler.md", "a\nb"]
)
def test_a_page_that_is_not_there_is_a_key_error(name: str) -> None:
    with pytest.raises(KeyError):
        rule_page(name)


def test_the_pages_of_the_wheel_come_before_those_of_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [folder.name for folder in pages.folders()] == ["_rule_pages", "rules"]
    wheel, checkout = tmp_path / "wheel", tmp_path / "checkout"
    for folder in (wheel, checkout):
        folder.mkdir()
        (folder / "some-rule.md").write_text(folder.name, encoding="utf-8")
    (checkout / "other-rule.md").write_text("µ", encoding="utf-8")
    monkeypatch.setattr(pages, "folders", lambda: [wheel, checkout])
    assert rule_page("some-rule") == "wheel"
    assert rule_page("other-rule") == "µ"
