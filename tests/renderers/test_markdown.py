"""Markdown and wiki markup: complete, inside the limits of trackers, and safe whatever the text."""

from __future__ import annotations

import html
import re

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from reportgen.charts.text import visible
from reportgen.document import Column, Heading, ReportDocument, Section, Table, TableBlock, from_json
from reportgen.errors import UsageError
from reportgen.renderers import render
from reportgen.renderers.dialects import DIALECTS
from tests.renderers import golden
from tests.renderers.documents import realistic
from tests.renderers.hostile import SAMPLES, poisoned

FLAVOURS = ("github", "gitlab", "jira")
OUR_TAGS = re.compile(r"</?details>|</?summary>|</?code>")
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60) | st.sampled_from(SAMPLES)


def markdown(document: ReportDocument, flavour: str = "github", **options: int) -> str:
    return render(document, "md", flavour=flavour, **options).files["report.md"].decode()


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_golden(flavour: str) -> None:
    golden.check(f"report.{flavour}.md", markdown(realistic(), flavour))


def test_stands_alone() -> None:
    document = realistic()
    text = markdown(document)
    for words in (document.title, document.verdict, "Waiting for input", "34.0 %", "33.0 ms per step", "not captured"):
        assert words in text
    for finding in document.findings:
        assert finding.title in text
    assert "jax.profiler.ProfileOptions().device_tracer_level = 1" in text


def test_the_least_important_goes_first_and_is_named() -> None:
    document = realistic()
    rendered = render(document, "md", max_chars=4000)
    text = rendered.files["report.md"].decode()
    assert len(text) <= 4000
    assert document.verdict in text
    assert document.findings[0].title in text
    assert "### Op profile" not in text
    assert rendered.warnings[0].startswith("report.md: Left out to stay under 4,000 characters: ")
    assert "Left out to stay under 4,000 characters" in text


@pytest.mark.parametrize("limit", [200, 1000, 2500, 6000])
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_never_longer_than_allowed(flavour: str, limit: int) -> None:
    assert len(markdown(realistic(), flavour, max_chars=limit)) <= limit


def test_sixty_thousand_characters_at_most() -> None:
    document = realistic()
    findings = tuple(msgspec.structs.replace(document.findings[0], id=f"f{index}") for index in range(300))
    rendered = render(msgspec.structs.replace(document, findings=findings), "md")
    assert 55_000 < len(rendered.files["report.md"].decode()) <= 60_000
    assert rendered.warnings


def test_wide_tables_keep_their_first_columns_with_values() -> None:
    columns = tuple(Column(name=f"c{index}", unit="seconds") for index in range(20))
    rows = (tuple(None if index == 0 else 0.5 for index in range(20)),)
    sections = (Section(id="a", title="A", blocks=(Heading(text="Part", id="p"), TableBlock("t"))),)
    document = msgspec.structs.replace(
        realistic(), tables={"t": Table(title="T", columns=columns, rows=rows)}, sections=sections
    )
    text = markdown(document)
    assert "| c1 | c2 | c3 | c4 | c5 | c6 | c7 | c8 | c9 |" in text
    assert "9 of 19 columns." in text
    assert "### A\n\n#### Part\n\n**T**" in text


def test_unknown_flavour() -> None:
    with pytest.raises(UsageError, match="bitbucket"):
        render(realistic(), "md", flavour="bitbucket")


def test_jira_cannot_fold() -> None:
    assert "<details>" not in markdown(realistic(), "jira")


@pytest.mark.parametrize("flavour", ["github", "gitlab"])
@pytest.mark.parametrize("text", SAMPLES)
def test_hostile_text_keeps_tables_and_is_no_markup(flavour: str, text: str) -> None:
    result = markdown(poisoned(realistic(), lambda given: text + given), flavour, max_chars=10**6)
    outside = _without_code(result)
    assert "<" not in OUR_TAGS.sub("", outside)
    assert not re.search(r"[@#](?=\w)", re.sub(r"&#\d+;", "&;", outside))
    assert "://" not in outside.replace(":&#8203;//", "")
    for table in re.findall(r"(?m)(?:^\|.*\|$\n?)+", result):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1, table


def _without_code(text: str) -> str:
    text = re.sub(r"(?ms)^(`{3,})\n.*?^\1$", "", text)
    return re.sub(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", "", text)


@settings(max_examples=300, deadline=None)
@given(ANY_TEXT)
def test_text_is_one_line_without_live_signs(text: str) -> None:
    for name in ("github", "gitlab"):
        line = DIALECTS[name].text(text)
        assert line.splitlines() in ([line], [])
        bare = re.sub(r"\\.|&#?\w+;", "", line)
        assert not re.search(r"[<>`*\[\]|~$]", bare)
        assert not re.search(r"^\s*(\d+[.)](\s|$)|[-+=#])", line)


READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def seen(source: str) -> str:
    """Return what a reader of Markdown sees of a source, asserting that nothing in it is markup."""
    rendered = READER.render(source)
    assert not set(re.findall(r"</?(\w+)", rendered)) - {"p", "code", "table", "thead", "tbody", "tr", "th", "td"}
    return html.unescape(re.sub(r"</?\w+[^>]*>", "", rendered)).replace("\u200b", "")


@settings(max_examples=300, deadline=None)
@given(ANY_TEXT)
@example("1. a")
@example("&amp; &#64; \\&lt;")
@example("#")
@example("---")
def test_markdown_shows_text_as_it_is(text: str) -> None:
    wanted = " ".join(visible(text).split())
    for name in ("github", "gitlab"):
        syntax = DIALECTS[name]
        assert " ".join(seen(syntax.text(text)).split()) == wanted
        assert " ".join(seen(syntax.code(text)).split()) == wanted
        table = syntax.table(["a", "b"], [False, True], [[syntax.text(text), syntax.code(text)]])
        assert READER.render(table).count("<td") == 2
        assert seen(table).split() == ["a", "b", *wanted.split(), *wanted.split()]


@settings(max_examples=300, deadline=None)
@given(ANY_TEXT)
def test_code_is_one_span(text: str) -> None:
    span = DIALECTS["github"].code(text)
    if span.startswith("<code>"):
        assert not re.search(r"[<>|`]", span.removeprefix("<code>").removesuffix("</code>"))
    else:
        fence = re.match("`+", span).group()  # type: ignore[union-attr]
        inner = span[len(fence) : -len(fence)]
        assert fence not in re.findall("`+", inner)
        assert "|" not in inner
        assert span.endswith(fence)


@settings(max_examples=200, deadline=None)
@given(ANY_TEXT)
def test_wiki_markup_of_strangers_is_escaped(text: str) -> None:
    bare = re.sub(r"\\.", "", DIALECTS["jira"].text(text))
    assert not re.search(r"[{}\[\]|*_^~!]", bare)


def test_json_holds_the_document() -> None:
    document = realistic()
    assert from_json(render(document, "json").files["report.json"]) == document


def test_json_of_half_characters() -> None:
    rendered = render(poisoned(realistic(), lambda text: text + "\ud800"), "json")
    assert from_json(rendered.files["report.json"]).verdict.endswith("\ufffd")
    assert rendered.warnings


def test_unknown_format() -> None:
    with pytest.raises(UsageError, match="docx"):
        render(realistic(), "docx")
