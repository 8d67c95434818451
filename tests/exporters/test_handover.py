"""The report's buttons hand traces to Perfetto: from a file, under the page's policy, against a copy of the UI."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, Route, sync_playwright

from reportgen import api
from reportgen.document import ReportDocument
from tests.conftest import ROOT
from tests.exporters import perfetto_ui

pytestmark = pytest.mark.peer
PERFETTO = "https://ui.perfetto.dev"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ReportDocument]:
    folder = tmp_path_factory.mktemp("report")
    return folder, api.report(ROOT / "sample_profiles" / "tf_cpu", folder, ["html", "trace"]).document


@pytest.fixture(scope="module")
def browser_context() -> Iterator[BrowserContext]:
    if lacking := perfetto_ui.missing():
        pytest.skip(lacking)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(perfetto_ui.CHROMIUM), args=perfetto_ui.FLAGS)
        context = browser.new_context(service_workers="block")
        context.route("**/*", answer)
        yield context
        browser.close()


def answer(route: Route) -> None:
    """Perfetto's address leads to the local copy; nothing else but files is reached."""
    url = route.request.url
    if url.startswith("file:"):
        route.continue_()
        return
    path = perfetto_ui.folder() / (url.removeprefix(PERFETTO).partition("?")[0].strip("/") or "index.html")
    if not url.startswith(PERFETTO) or not path.is_file():
        route.abort()
        return
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    route.fulfill(body=path.read_bytes(), content_type="application/wasm" if path.suffix == ".wasm" else kind)


@pytest.fixture
def page(browser_context: BrowserContext, report: tuple[Path, ReportDocument]) -> Iterator[Page]:
    found = browser_context.new_page()
    requests: list[str] = []
    found.on("request", lambda request: requests.append(request.url))
    found.goto((report[0] / "report.html").as_uri())
    assert requests == [(report[0] / "report.html").as_uri()], "nothing is loaded before a click"
    yield found
    for other in browser_context.pages:
        other.close()


def slices_after_trust(perfetto: Page) -> int:
    """Say yes to Perfetto's question and return the number of slices of the trace that it then shows."""
    perfetto.get_by_role("button", name="Yes").click(timeout=60_000)
    perfetto.wait_for_function("window.app && window.app.trace && window.app.trace.engine", timeout=60_000)
    [[slices]] = perfetto.evaluate(perfetto_ui.QUERY, "select count(*) from slice")
    assert perfetto.evaluate(perfetto_ui.QUERY, perfetto_ui.FAULTS) == []
    return int(slices)


def test_the_short_trace_opens(page: Page, report: tuple[Path, ReportDocument]) -> None:
    with page.expect_popup() as popup:
        page.get_by_role("button", name="Open the short trace in Perfetto").click()
    carried = report[1].extra["trace_excerpt"]
    assert slices_after_trust(popup.value) >= carried["events"] > 0
    assert "asks there whether to trust this page" in page.locator(".opener .readout").inner_text()


def test_the_whole_trace_is_handed_over(page: Page, report: tuple[Path, ReportDocument]) -> None:
    button = page.get_by_role("button", name="Open the chosen file in Perfetto")
    assert button.is_disabled()
    page.locator("#trace-file").set_input_files(report[0] / "trace.json.gz")
    with page.expect_popup() as popup:
        button.click()
    assert slices_after_trust(popup.value) > 5 * report[1].extra["trace_excerpt"]["events"]


def test_with_the_network_off_the_page_says_so(browser_context: BrowserContext, page: Page) -> None:
    browser_context.set_offline(True)
    try:
        page.get_by_role("button", name="Open the short trace in Perfetto").click()
        assert "offline" in page.locator(".opener .readout").inner_text()
        assert browser_context.pages == [page]
    finally:
        browser_context.set_offline(False)


def test_where_perfetto_does_not_answer_the_page_says_so(browser_context: BrowserContext, page: Page) -> None:
    page.clock.install()
    browser_context.route(f"{PERFETTO}/**", lambda route: route.abort())
    try:
        with page.expect_popup():
            page.get_by_role("button", name="Open the short trace in Perfetto").click()
        page.clock.fast_forward(31_000)
        page.wait_for_function("document.querySelector('.opener .readout').textContent.includes('did not answer')")
    finally:
        browser_context.unroute(f"{PERFETTO}/**")


def test_the_carried_trace_is_small(report: tuple[Path, ReportDocument]) -> None:
    assert len(report[1].extra["trace_excerpt"]["gzip_base64"]) <= 300_000
