"""The HTML report: complete, honest about what is missing, cut to size, and safe whatever the text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reportgen.document import (
    Column,
    Field,
    Heading,
    KeyValues,
    ReportDocument,
    Section,
    Table,
    TableBlock,
    Text,
    Tiles,
)
from reportgen.renderers import render
from reportgen.renderers.cells import exact, flame_colours, luminance
from reportgen.renderers.html import render_html
from reportgen.renderers.rule_pages import rule_page
from reportgen.rules import pages
from tests.renderers import golden
from tests.renderers.documents import realistic
from tests.renderers.hostile import SAMPLES, poisoned
from tests.renderers.pages import Page, read


@pytest.fixture(scope="module")
def document() -> ReportDocument:
    return realistic()


@pytest.fixture(scope="module", autouse=True)
def no_rule_pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What these tests look at must not change with the text of the rules' pages."""
    empty = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "folders", lambda: [empty])
        rule_page.cache_clear()
        yield
    rule_page.cache_clear()


@pytest.fixture(scope="module")
def source(document: ReportDocument) -> str:
    return render(document, "html").files["report.html"].decode()


@pytest.fixture(scope="module")
def page(source: str) -> Page:
    return read(source.encode())


def test_golden(source: str) -> None:
    """Scripts, styles and their hashes stand in their own files; pictures depend on matplotlib's version."""
    text = re.sub(r"(?s)<(style|script)>.*?</\1>", r"<\1>...</\1>", source)
    text = re.sub(r"(?s)(<svg class=\"chart\" viewBox=\"0 0 760 [^>]*>).*?</svg>", r"\1...</svg>", text)
    golden.check("report.html", re.sub(r"sha256-[^']+", "sha256-...", text))


def test_same_document_same_bytes(document: ReportDocument, source: str) -> None:
    again = msgspec.json.decode(msgspec.json.encode(document), type=ReportDocument)
    assert render(again, "html").files["report.html"].decode() == source


def test_everything_is_there(document: ReportDocument, page: Page) -> None:
    wanted = [document.title, document.verdict, *document.profile.warnings]
    wanted += [metric.title for metric in document.metrics.values()]
    wanted += [finding.title for finding in document.findings]
    wanted += [action.code for finding in document.findings for action in finding.actions]
    wanted += [check.reason for check in document.checks]
    wanted += [section.title for section in document.sections]
    wanted += [table.title for table in document.tables.values()]
    wanted += [chart.title for chart in document.charts.values()]
    wanted += [card.expression for card in document.cards.values()]
    missing = [text for text in wanted if text not in page.text]
    assert not missing


def test_ids_are_stable(page: Page) -> None:
    wanted = {
        "finding-input-bound",
        "table-hlo_ops",
        "chart-roofline",
        "op-fusion-42",
        "step-7",
        "timeline-typical-step",
    }
    assert wanted <= set(page.ids)


def test_each_chart_has_a_text_for_those_who_cannot_see_it(document: ReportDocument, source: str) -> None:
    for chart in document.charts.values():
        assert f'aria-label="{chart.alt}"' in source


def test_missing_values_say_so_and_are_no_zero(page: Page, source: str) -> None:
    assert '<span class="value na">not captured</span>' in source
    assert "Capture with device_tracer_level=1." in page.text
    assert source.count('<td class="na">not captured</td>') >= 1


ODD_NUMBERS = {"endless": 10**5000, "deep": -(10**400), "inf": math.inf, "nan": math.nan, "tiny": 1e-320, "int": 2**63}


@pytest.mark.parametrize("value", ODD_NUMBERS.values(), ids=ODD_NUMBERS)
def test_numbers_without_measure_are_shown_somehow(document: ReportDocument, value: float) -> None:
    kinds = ("bar", "flame", "number", "text")
    units = ("fraction", "bytes", "seconds", "")
    columns = tuple(Column(name=unit + kind, unit=unit, display=kind) for kind in kinds for unit in units)  # type: ignore[arg-type]
    table = Table(title="t", columns=columns, rows=((value,) * len(columns),))
    sections = (Section(id="a", title="A", blocks=(TableBlock("t"), KeyValues((Field(label="f", value=value),)))),)
    odd = msgspec.structs.replace(document, tables={"t": table}, sections=sections)
    page = read(render_html(odd).files["report.html"])
    assert ("not finite" in page.text) == (value not in (1e-320, 2**63))
    assert render(odd, "md").files["report.md"]


def test_numbers_show_three_digits_and_keep_the_whole(source: str) -> None:
    assert f'title="{exact(0.1213, "seconds")}">121 ms <small>± 4.20 ms</small>' in source


def test_only_the_first_warnings_are_open(document: ReportDocument) -> None:
    profile = msgspec.structs.replace(document.profile, warnings=("one", "two", "three", "four"))
    text = render_html(msgspec.structs.replace(document, profile=profile)).files["report.html"].decode()
    assert "2 more data-quality warnings" in text


def test_modelled_timeline_is_said_at_the_top(document: ReportDocument, page: Page) -> None:
    assert "Modelled timeline" not in page.text
    profile = msgspec.structs.replace(document.profile, timeline_basis="modelled")
    modelled = read(render_html(msgspec.structs.replace(document, profile=profile)).files["report.html"])
    assert modelled.text.index("Modelled timeline") < modelled.text.index("Step time")


def test_how_the_timeline_was_modelled_is_said_once(document: ReportDocument) -> None:
    warnings = ("Modelled timeline: nobody ran this program.", "Another warning.")
    profile = msgspec.structs.replace(document.profile, timeline_basis="modelled", warnings=warnings)
    page = read(render_html(msgspec.structs.replace(document, profile=profile)).files["report.html"])
    assert page.text.count("Nobody ran this program.") == 1
    assert "computed from the compiled program" not in page.text
    assert "Another warning." in page.text


def test_checks_stand_in_their_groups(page: Page) -> None:
    places = [page.text.index(words) for words in ("checked and fine", "not applicable here", "could not be checked")]
    assert places == sorted(places)
    assert "jax.profiler.ProfileOptions().device_tracer_level = 1" in page.text


def test_lines_of_text_are_paragraphs(document: ReportDocument) -> None:
    sections = (Section(id="a", title="A", blocks=(Text("first line\n\nsecond line\x1b"),)),)
    source = render_html(msgspec.structs.replace(document, sections=sections)).files["report.html"].decode()
    assert '<p class="text"><bdi>first line</bdi></p>\n<p class="text"><bdi>second line␛</bdi></p>' in source


def test_no_finding_is_said(document: ReportDocument) -> None:
    page = read(render_html(msgspec.structs.replace(document, findings=())).files["report.html"])
    assert "Nothing was found that is worth changing" in page.text


def test_ten_rows_are_open_and_the_rest_folded(source: str) -> None:
    steps = source[source.index('id="table-steps"') :]
    rows = re.findall(r'<tr id="step-\d+"( class="rest")?>', steps)
    assert rows == [""] * 10 + [' class="rest"'] * 14


def test_cut_tables_say_how_many_rows_there_were(page: Page) -> None:
    assert "60 of 1,234 rows." in page.text


def test_a_card_stands_after_its_row(source: str) -> None:
    assert re.search(
        r'<tr id="op-fusion-3">(?:(?!</tr>).)*</tr><tr class="card" id="card-op-fusion-3">', source, re.DOTALL
    )


def test_marks_link_to_rows(source: str) -> None:
    chart = source[source.index('id="chart-top_ops"') :].partition("</svg>")[0]
    assert '<a href="#op-fusion-3" data-row="op-fusion-3" tabindex="-1">' in chart
    assert "<title>fusion.3</title>" in chart


def test_same_id_twice_in_a_document_is_told_apart(document: ReportDocument) -> None:
    twice = Section(id="findings", title="Again", blocks=(Heading(text="h", id="findings"), TableBlock("steps")))
    page = read(
        render_html(msgspec.structs.replace(document, sections=(*document.sections, twice))).files["report.html"]
    )
    assert {"findings", "findings-2", "findings-3"} <= set(page.ids)


def test_references_to_nothing_are_no_links(document: ReportDocument) -> None:
    sections = (Section(id="a", title="A", blocks=(TableBlock("none"), Tiles(metrics=("none",)), Text("only this"))),)
    page = read(render_html(msgspec.structs.replace(document, sections=sections)).files["report.html"])
    assert "only this" in page.text


def test_the_timeline_is_data_for_its_script(page: Page) -> None:
    data = json.loads(next(text for kind, text in page.scripts if kind == "application/json"))
    assert data["duration"] == 0.121
    assert [len(lane) for lane in data["lanes"]] == [600, 4, 12]
    assert data["names"][data["lanes"][1][2]] == "wait for input"


def test_long_expressions_are_cut_in_the_middle_with_their_length(document: ReportDocument) -> None:
    card = msgspec.structs.replace(document.cards["op-fusion-3"], expression="a" * 60_000 + "z" * 40_000)
    text = read(render_html(msgspec.structs.replace(document, cards={"op-fusion-3": card})).files["report.html"]).text
    assert "of 100,000 characters left out" in text
    assert "a" * 2000 + " …" in text
    assert "… " + "z" * 2000 in text


@pytest.mark.parametrize("rows", [500, 20_000])
def test_two_megabytes_at_most_and_what_was_cut_is_said(document: ReportDocument, rows: int) -> None:
    wide = document.tables["hlo_ops"]
    columns = tuple(msgspec.structs.replace(wide.columns[0], name=f"c{index}") for index in range(30))
    tables = {
        f"t{index}": Table(title=f"t{index}", columns=columns, rows=tuple((f"name {row}",) * 30 for row in range(rows)))
        for index in range(20 if rows < 1000 else 2)
    }
    blocks = tuple(TableBlock(key) for key in tables)
    sections = (*document.sections, Section(id="wide", title="Wide", blocks=blocks))
    large = msgspec.structs.replace(document, tables=document.tables | tables, sections=sections)
    rendered = render_html(large)
    page = read(rendered.files["report.html"])
    assert len(rendered.files["report.html"]) <= 2_000_000
    if rows < 1000:
        assert len(rendered.warnings) == 1
        assert "detail cards" in rendered.warnings[0]
        assert rendered.warnings[0].removeprefix("report.html: ") in page.text
    else:
        assert rendered.warnings == ()
        assert "200 of 20,000 rows." in page.text


def test_even_an_endless_document_fits(document: ReportDocument) -> None:
    finding = document.findings[0]
    long = "x" * 5000
    findings = tuple(msgspec.structs.replace(finding, id=f"f{index}", title=long, summary=long) for index in range(600))
    checks = tuple(msgspec.structs.replace(document.checks[1], reason=long) for _ in range(1000))
    sections = tuple(Section(id=f"s{i}", title=long, blocks=(Text(long),) * 50) for i in range(200))
    large = msgspec.structs.replace(
        document, findings=findings, checks=checks, sections=(*document.sections[:2], *sections)
    )
    rendered = render_html(large)
    assert len(rendered.files["report.html"]) <= 2_000_000
    assert "lists end after" in rendered.warnings[0]


def test_colours_of_utilisation_are_readable() -> None:
    for _, back, ink in flame_colours():
        rgb = tuple(int(back[at : at + 2], 16) / 255 for at in (1, 3, 5))
        light, dark = sorted((luminance(rgb), 1.0 if ink == "#fff" else 0.0), reverse=True)  # type: ignore[arg-type]
        assert (light + 0.05) / (dark + 0.05) >= 4.5, back
    assert flame_colours()[0][1] == "#b20000"
    assert flame_colours()[20][1] == "#00b200"


@pytest.mark.parametrize("text", SAMPLES)
def test_hostile_text_everywhere_is_harmless(document: ReportDocument, text: str) -> None:
    calm = read(render(poisoned(document, lambda given: "calm " + given), "html").files["report.html"])
    page = read(render(poisoned(document, lambda given: f"{text}{given}"), "html").files["report.html"])
    folding = {"details", "summary", "code", "bdi", "pre", "p", "span"}  # long names fold, lines are blocks
    assert [tag for tag in page.tags if tag not in folding] == [tag for tag in calm.tags if tag not in folding]


def test_hostile_text_stays_readable(document: ReportDocument) -> None:
    page = read(render(poisoned(document, lambda text: f"<b>\x1b\u202e{text}"), "html").files["report.html"])
    assert "<b>␛⟨U+202E⟩34 % of every step waits for input" in page.text


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.text(st.characters(exclude_categories=()), max_size=40) | st.sampled_from(SAMPLES), min_size=1, max_size=8
    )
)
def test_any_text_anywhere_is_harmless(document: ReportDocument, texts: list[str]) -> None:
    """Each text of the document gets one of the given ones, by its own length, so that neighbours differ."""
    changed = poisoned(document, lambda given: given + texts[len(given) % len(texts)])
    read(render(changed, "html").files["report.html"])


def test_pages_of_rules_that_found_something_come_along(
    document: ReportDocument, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "# Input bound\n\nWhy: [others](other.md), [web](https://example.invalid).\n\n## Fix\n\n| a |\n|--:|\n| 1 |\n"
    )
    (tmp_path / "input-bound.md").write_text(text, encoding="utf-8")
    monkeypatch.setattr(pages, "folders", lambda: [tmp_path])
    rule_page.cache_clear()
    source = render_html(document).files["report.html"].decode()
    rule_page.cache_clear()
    page = read(source.replace('<a href="https://example.invalid">web</a>', "web").encode())
    assert {"rule-input-bound"} <= set(page.ids) & set(page.links)
    assert "rule-padding" not in page.ids
    assert "Why: others, web." in page.text
    assert "<h4>Fix</h4>" in source
    assert "<h1>Bound" not in source


def test_pages_of_rules_are_never_read_from_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "secret.md").write_text("secret", encoding="utf-8")
    monkeypatch.setattr(pages, "folders", lambda: [tmp_path / "pages"])
    assert rule_page("../secret") == ""
    assert rule_page("/etc/passwd") == ""
    assert rule_page("no-such-rule") == ""
