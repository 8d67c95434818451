"""The HTML report in Chromium, opened from a file: its policy, links, keyboard, themes, phone width and print."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reportgen.renderers import render
from tests.renderers.documents import realistic
from tests.renderers.hostile import SAMPLES, poisoned

pytestmark = pytest.mark.peer
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

# Every piece of text with its contrast against the first opaque background below it, worst first.
CONTRASTS = """() => {
  const channels = (text) => text.match(/[\\d.]+/g).map(Number);
  const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = (c) => c.slice(0, 3).map((v) => linear(v / 255))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || element.closest("script, style, title, .unseen, .skip")) continue;
    if (!element.checkVisibility()) continue;
    const inSvg = element.closest("svg");
    const ink = channels(inSvg ? getComputedStyle(element).fill : getComputedStyle(element).color);
    let below = element;
    while (below && (channels(getComputedStyle(below).backgroundColor)[3] ?? 1) === 0) below = below.parentElement;
    const paper = below ? channels(getComputedStyle(below).backgroundColor) : [255, 255, 255];
    const [high, low] = [light(ink), light(paper)].sort((a, b) => b - a);
    found.push([(high + 0.05) / (low + 0.05), walker.currentNode.textContent.trim().slice(0, 40)]);
  }
  return found.sort((a, b) => a[0] - b[0]);
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not CHROMIUM:
        pytest.skip("Chromium is not installed; on Debian: apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright drives Chromium: pip install playwright")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_bytes(render(realistic(), "html").files["report.html"])
    return path


Open = Callable[..., Any]


@pytest.fixture
def open_page(browser: Any, report: Path) -> Iterator[Open]:
    """Open a report and fail the test for any message, error or request at its end."""
    contexts, troubles = [], []

    def opened(width: int = 1280, height: int = 800, path: Path = report, part: str = "", **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: troubles.append(request.url) if request.url != path.as_uri() else None)
        page.goto(path.as_uri() + part)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert [trouble for trouble in troubles if not trouble.startswith("data:")] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_quiet_and_readable(open_page: Open, scheme: str) -> None:
    page = open_page(color_scheme=scheme)
    page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
    page.evaluate("for (const box of document.querySelectorAll('.switch')) box.checked = true")
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) > 500
    assert contrasts[0][0] >= 4.5, contrasts[:5]


def test_the_policy_is_enforced(browser: Any, tmp_path: Path, report: Path) -> None:
    """Scripts, handlers and styles that got into the page do nothing, so that silence elsewhere means something."""
    strange = "<script>document.title = 'taken'</script><p id=p style='color: red' onclick='document.title = 1'>x</p>"
    changed = tmp_path / "changed.html"
    changed.write_text(report.read_text(encoding="utf-8").replace("</main>", f"{strange}</main>"), encoding="utf-8")
    page, messages = browser.new_page(), []
    page.on("console", lambda message: messages.append(message.text))
    page.goto(changed.as_uri())
    page.click("#p")
    assert page.title() == realistic().title
    assert page.locator("#p").evaluate("(node) => getComputedStyle(node).color") != "rgb(255, 0, 0)"
    assert len(messages) == 3
    assert all("Content Security Policy" in message for message in messages)


def test_every_link_resolves_and_no_id_is_there_twice(open_page: Open) -> None:
    page = open_page()
    targets = page.evaluate("[...document.querySelectorAll('a[href]')].map((link) => link.getAttribute('href'))")
    assert len(targets) > 100
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((node) => node.id)")
    assert len(ids) == len(set(ids))
    assert {target.removeprefix("#") for target in targets} <= set(ids)


@pytest.mark.parametrize("width", [320, 390])
def test_a_phone_needs_no_sideways_scrolling(open_page: Open, width: int) -> None:
    page = open_page(width=width, height=800)
    page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_text("Contents", exact=True).click()
    page.locator("#contents").get_by_text("Memory").click()
    assert not page.locator("#contents ol").is_visible()
    assert page.evaluate("document.getElementById('memory').getBoundingClientRect().top") < 200


def test_first_screen_holds_verdict_tiles_and_three_findings(open_page: Open) -> None:
    page = open_page()
    for selector in ("h1", ".verdict", ".tile >> nth=5", ".finding >> nth=2"):
        box = page.locator(selector).first.bounding_box()
        assert box["y"] + box["height"] <= 800, selector


def test_without_javascript_everything_is_reachable(open_page: Open) -> None:
    page = open_page(java_script_enabled=False)
    last = page.locator("#op-fusion-59")
    assert not last.is_visible()
    page.get_by_text("Show all 60 rows").click()
    assert last.is_visible()
    page.locator("#op-fusion-3 a").click()
    assert page.locator("#card-op-fusion-3").is_visible()
    page.get_by_text("Why, where and how").first.click()
    assert page.get_by_text("Read files in parallel").first.is_visible()
    assert page.locator("#timeline-typical-step g.lane path").first.is_visible()
    assert page.locator("th button, .tools").count() == 0


def test_a_link_to_a_folded_row_shows_it(open_page: Open) -> None:
    for script in (True, False):
        page = open_page(part="#op-fusion-42", java_script_enabled=script)
        assert page.locator("#op-fusion-42").is_visible()


def test_a_table_without_open_rows_is_shut_until_it_is_asked_for(open_page: Open) -> None:
    for script in (True, False):
        page = open_page(java_script_enabled=script)
        box = page.locator("#table-environment")
        assert not box.locator("table").is_visible()
        box.get_by_text("Run environment: 4 rows").click()
        assert box.get_by_text("TPU v5 lite").is_visible()
        page = open_page(part="#table-environment", java_script_enabled=script)
        assert page.locator("#table-environment").get_by_text("TPU v5 lite").is_visible()
        page = open_page(java_script_enabled=script)
        page.emulate_media(media="print")
        assert page.locator("#table-environment").get_by_text("TPU v5 lite").is_visible()


def test_sorting_by_keyboard(open_page: Open) -> None:
    page = open_page()
    heading = page.locator("#table-hlo_ops th").nth(3)
    heading.locator("button").focus()
    page.keyboard.press("Enter")
    assert heading.get_attribute("aria-sort") == "descending"
    page.keyboard.press("Enter")
    assert heading.get_attribute("aria-sort") == "ascending"
    first = page.locator("#table-hlo_ops tbody tr:not(.card)").first
    assert first.get_attribute("id") == "op-fusion-59"
    assert first.is_visible()
    assert page.locator("#table-hlo_ops tbody tr:not(.card):visible").count() == 10


def test_missing_values_sort_last_and_cards_follow_their_rows(open_page: Open) -> None:
    page = open_page()
    button = page.locator("#table-hlo_ops th").nth(6).locator("button")
    for _ in range(2):
        button.click()
        ids = page.evaluate("[...document.querySelectorAll('#table-hlo_ops tbody > tr')].map((row) => row.id)")
        missing = {f"op-fusion-{index}" for index in range(8, 60, 9)}
        assert set([one for one in ids if not one.startswith("card-")][-len(missing) :]) == missing
        assert ids[ids.index("op-fusion-7") + 1] == "card-op-fusion-7"


def test_filtering_by_keyboard(open_page: Open) -> None:
    page = open_page()
    box = page.get_by_role("searchbox", name="Filter rows: XLA operations")
    box.focus()
    page.keyboard.type("all-reduce fusion.5")
    assert page.locator("#table-hlo_ops tbody tr:visible").evaluate_all("(rows) => rows.map((row) => row.id)") == [
        "op-fusion-52",
        "op-fusion-57",
    ]
    assert page.locator("#table-hlo_ops [role=status]").inner_text() == "2 of 60 rows"
    box.fill("")
    assert page.locator("#table-hlo_ops tbody tr:visible").count() == 10


def test_cards_open_beside_their_rows_and_one_at_a_time_on_phones(open_page: Open) -> None:
    for width, both in ((1280, True), (390, False)):
        page = open_page(width=width, height=800)
        first, second = page.locator("#op-fusion-0 a"), page.locator("#op-fusion-1 a")
        first.focus()
        page.keyboard.press("Enter")
        assert first.get_attribute("aria-expanded") == "true"
        assert page.locator("#card-op-fusion-0").is_visible()
        second.click()
        assert page.locator("#card-op-fusion-1").is_visible()
        assert page.locator("#card-op-fusion-0").is_visible() == both
        second.click()
        assert not page.locator("#card-op-fusion-1").is_visible()


def test_charts_and_rows_point_at_each_other(open_page: Open) -> None:
    page = open_page()
    mark = page.locator("#chart-top_ops a[data-row=op-fusion-2]")
    row = page.locator("#op-fusion-2")
    mark.hover()
    assert "on" in (row.get_attribute("class") or "").split()
    row.hover()
    assert "on" in (mark.get_attribute("class") or "").split()
    assert page.locator("#chart-roofline a[data-row=op-fusion-2]").get_attribute("class") == "on"
    row.locator("td").nth(2).click()
    page.mouse.move(0, 0)
    assert mark.get_attribute("class") == "on"
    row.locator("td").nth(2).click()
    page.mouse.move(0, 0)
    assert mark.get_attribute("class") == ""
    mark.click()
    assert page.evaluate("location.hash") == "#op-fusion-2"
    assert row.bounding_box()["y"] < 800


def test_marks_by_keyboard(open_page: Open) -> None:
    page = open_page()
    page.locator("#chart-top_ops a[data-row]").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.row") == "op-fusion-2"
    assert "on" in page.locator("#op-fusion-2").get_attribute("class")
    assert page.locator("#chart-top_ops a[tabindex='0']").count() == 1


def test_lifetimes_show_on_the_curve_when_their_row_is_pointed_at(open_page: Open) -> None:
    page = open_page()
    ghost = page.locator("#chart-memory .ghosts a[data-row=op-fusion-1] path")
    assert ghost.evaluate("(node) => getComputedStyle(node).visibility") == "hidden"
    page.locator("#op-fusion-1").hover()
    assert ghost.evaluate("(node) => getComputedStyle(node).visibility") == "visible"


def test_a_timeline_measures_zooms_and_names_events(open_page: Open) -> None:
    page = open_page()
    figure = page.locator("#timeline-typical-step")
    figure.scroll_into_view_if_needed()
    chart, readout = figure.locator("svg.chart"), figure.locator(".readout")
    box = chart.bounding_box()
    lane = box["y"] + box["height"] * (20 + 18 + 9) / 80
    page.mouse.move(box["x"] + box["width"] * 0.3, lane)
    assert readout.inner_text() == "chip 0 Steps: wait for input, 41 ms, starts at 0 s"
    left, right = (box["x"] + box["width"] * (190 + 810 * share) / 1000 for share in (0.25, 0.75))
    page.mouse.move(left, lane)
    page.mouse.down()
    page.mouse.move(right, lane)
    page.mouse.up()
    measured = re.match(r"Selected ([\d.]+) ms", readout.inner_text())
    assert measured
    assert float(measured.group(1)) == pytest.approx(60.5, abs=0.5)
    first = figure.locator("g.lane").first.locator("path").first
    ends = re.compile(r"M([\d.]+) .*?([\d.]+)z$")
    before = ends.match(first.get_attribute("d"))
    figure.get_by_role("button", name="Zoom to selection").click()
    ticks = figure.locator("g.ticks text").all_text_contents()
    assert ticks[0] == "40 ms"
    chart.focus()
    page.keyboard.press("0")
    after = ends.match(first.get_attribute("d"))
    assert float(after.group(1)) == pytest.approx(float(before.group(1)), abs=0.2)


def test_print_has_everything_open(open_page: Open) -> None:
    for script in (True, False):
        page = open_page(java_script_enabled=script)
        page.emulate_media(media="print")
        if script:
            page.evaluate("dispatchEvent(new Event('beforeprint'))")
            assert page.locator("details:not([open])").count() == 0
        for words in ("MXU: the matrix unit", "Below a tenth other causes are larger.", "The spread is 3.5 %"):
            assert page.get_by_text(words).first.is_visible(), words
        assert page.locator("#op-fusion-59").is_visible()
        assert page.locator("#card-op-fusion-3").is_visible()
        assert not page.locator("#contents").is_visible()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_a_pdf_of_all_sections(open_page: Open, paper: str) -> None:
    pdf = open_page().pdf(format=paper)
    assert pdf.count(b"/Type /Page\n") >= len(realistic().sections) - 1


def test_hostile_text_is_quiet(open_page: Open, tmp_path: Path) -> None:
    """Each text gets one of the hostile ones, by its length."""
    document = poisoned(realistic(), lambda given: SAMPLES[len(given) % len(SAMPLES)] + given)
    path = tmp_path / "report.html"
    path.write_bytes(render(document, "html").files["report.html"])
    page = open_page(width=390, path=path)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("img, iframe, object").count() == 0


def test_a_modelled_timeline_stands_on_the_first_screen(open_page: Open, tmp_path: Path) -> None:
    document = realistic()
    profile = msgspec.structs.replace(document.profile, timeline_basis="modelled")
    path = tmp_path / "report.html"
    path.write_bytes(render(msgspec.structs.replace(document, profile=profile), "html").files["report.html"])
    assert open_page(path=path).get_by_text("Modelled timeline.").bounding_box()["y"] < 300
