"""The HTML part in Chromium: 600 pixels and phone width, light and dark, with pictures and without."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from reportgen.document import ReportDocument
from reportgen.renderers.mail import render_mail
from tests.mail.reading import read, shown
from tests.renderers.documents import realistic
from tests.renderers.hostile import SAMPLES, poisoned
from tests.renderers.test_browser import CONTRASTS

pytestmark = pytest.mark.peer
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PAPER = "() => getComputedStyle(document.body).backgroundColor"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not CHROMIUM:
        pytest.skip("Chromium is not installed; on Debian: apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright drives Chromium: pip install playwright")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def opened(
    browser: Any, document: ReportDocument, *, width: int = 600, scheme: str = "light", images: bool = True
) -> Any:
    """Show a mail; the page keeps what it asked the network for, and what its scripts complained about."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.asked, page.alerts = [], []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("dialog", lambda dialog: page.alerts.append(dialog.message) or dialog.dismiss())
    page.set_content(shown(read(render_mail(document, attach="none").files["report.eml"]), images=images))
    return page


def assert_fits(page: Any) -> None:
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    worst, text = page.evaluate(CONTRASTS)[0]
    assert worst >= 4.5, text
    assert [url for url in page.asked if not url.startswith(("data:", "about:"))] == []


@pytest.mark.parametrize("width", [600, 360])
@pytest.mark.parametrize(("scheme", "paper"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(22, 24, 28)")])
def test_it_fits_and_is_readable(browser: Any, width: int, scheme: str, paper: str) -> None:
    page = opened(browser, realistic(), width=width, scheme=scheme)
    assert page.evaluate(PAPER) == paper
    assert_fits(page)
    sizes = page.evaluate("() => [...document.images].map((one) => [one.naturalWidth, one.clientWidth])")
    assert len(sizes) == 3
    assert all(natural >= 2 * 500 and width - 60 <= shown_ <= width for natural, shown_ in sizes)
    page.close()


def test_verdict_tiles_and_the_first_finding_stand_on_the_first_screen(browser: Any) -> None:
    page = opened(browser, realistic())
    bottom = page.get_by_text("Do first:").first.bounding_box()
    assert bottom is not None
    assert bottom["y"] + bottom["height"] < 900
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_without_pictures_the_words_remain(browser: Any, scheme: str) -> None:
    document = realistic()
    page = opened(browser, document, scheme=scheme, images=False)
    assert_fits(page)
    assert page.evaluate("() => [...document.images].every((one) => one.naturalWidth === 0 && one.alt.length > 20)")
    assert page.get_by_text(document.charts["roofline"].title).is_visible()
    page.close()


def test_without_the_style_sheet_it_stays_light_and_readable(browser: Any) -> None:
    page = opened(browser, realistic(), scheme="dark")
    page.evaluate("() => document.querySelector('style').remove()")
    assert page.evaluate(PAPER) == "rgb(255, 255, 255)"
    assert_fits(page)
    page.close()


def test_hostile_text_neither_acts_nor_breaks_the_layout(browser: Any) -> None:
    everything = " ".join(SAMPLES) + "x" * 400
    page = opened(browser, poisoned(realistic(), lambda text: f"{text} {everything}"))
    assert_fits(page)
    assert page.alerts == []
    assert page.evaluate("() => document.querySelectorAll('script, svg, form, a').length") == 0
    page.close()
