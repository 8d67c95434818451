"""Charts: what is drawn, what it says, and that a strict page can hold it."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from xml.etree import ElementTree as ET

import msgspec
import numpy as np
import pytest

from reportgen.charts.labels import spread
from reportgen.charts.palette import ROLES, css_colours
from reportgen.charts.picture import png, svg
from reportgen.charts.scale import scale
from reportgen.charts.text import middle, shortened, visible, visible_block
from reportgen.document import Axis, Chart, Guide, Series
from reportgen.renderers.cells import luminance
from tests.renderers.documents import GIB, realistic

CHARTS = realistic().charts
KNOWN_COLOURS = {*css_colours().values(), "none", "transparent"}


def parsed(picture: str) -> ET.Element:
    return ET.fromstring(picture)


@pytest.mark.parametrize("name", CHARTS)
def test_a_picture_is_fit_for_a_strict_page(name: str) -> None:
    picture = svg(CHARTS[name])
    for node in parsed(picture).iter():
        assert node.tag in ("svg", "g", "path", "text", "title", "a")
        assert not {"id", "style", "clip-path", "font-family"} & set(node.attrib)
        for colour in (node.get("fill"), node.get("stroke")):
            assert colour is None or colour in KNOWN_COLOURS
    assert parsed(picture).get("aria-label") == CHARTS[name].alt
    assert "http" not in picture


@pytest.mark.parametrize("name", CHARTS)
def test_same_chart_same_bytes(name: str) -> None:
    assert svg(CHARTS[name]) == svg(CHARTS[name])
    assert png(CHARTS[name]) == png(CHARTS[name])


def test_png_is_as_large_as_asked() -> None:
    small, large = (struct.unpack(">II", png(CHARTS["top_ops"], dpi)[16:24]) for dpi in (72, 144))
    assert small[0] == 760
    assert large == (2 * small[0], 2 * small[1])


def test_bars_have_lengths_in_proportion() -> None:
    chart = msgspec.structs.replace(
        CHARTS["top_ops"], categories=("a", "b"), series=(Series(name="s", y=(4.0, 1.0), labels=("a", "b")),)
    )
    paths = [node.get("d", "") for node in parsed(svg(chart)).iterfind("./g[@class='marks']/path")]
    long, short = (_width(path) for path in paths)
    assert long == pytest.approx(4 * short, rel=0.01)
    texts = [node.text for node in parsed(svg(chart)).iter("text")]
    assert {"a", "b", "4.00 s", "1.00 s"} <= set(texts)


def _width(path: str) -> float:
    xs = [float(x) for x in re.findall(r"[MH]([\d.]+)", path)]
    return max(xs) - min(xs)


def test_stacked_columns_point_at_their_rows_and_say_their_parts() -> None:
    picture = svg(CHARTS["step_time"], {"step-7": "row-7"})
    assert picture.count('data-row="row-7"') == 1
    link = next(node for node in parsed(picture).iter("a"))
    title = "".join(link.itertext())
    assert title == "Step 7: Compute 71.3 ms, Input 90.0 ms, Idle 8.00 ms"


def test_many_steps_are_drawn_by_their_slowest() -> None:
    values = [1.0] * 5000
    values[3333] = 9.0
    chart = msgspec.structs.replace(CHARTS["step_time"], series=(Series(name="s", role="compute", y=tuple(values)),))
    picture = svg(chart)
    assert "each column: the longest of 13" in picture
    assert "Step 3333: s 9.00 s" in picture
    bars = max((node.get("d", "") for node in parsed(picture).iter("path")), key=len)
    lefts = [float(x) for x in re.findall(r"M([\d.]+)", bars)]
    rights = [float(x) for x in re.findall(r"M[\d. ]+V[\d.]+H([\d.]+)", bars)]
    assert lefts[1:] == pytest.approx(rights[:-1], abs=0.11)
    assert len(picture) < 80_000


def test_a_thinned_curve_keeps_its_peak() -> None:
    values = np.ones(100_000) * GIB
    values[54_321] = 9 * GIB
    chart = Chart(
        title="", kind="curve", alt="", x=Axis(label="x"), y=Axis(label="y", unit="bytes"),
        series=(Series(name="Heap", y=tuple(values.tolist())),), guides=(Guide(label="top", value=9 * GIB),),
    )  # fmt: skip
    picture = svg(chart)
    guide = next(node.get("d", "") for node in parsed(picture).iter("path") if node.get("stroke-dasharray"))
    top = re.match(r"M[\d.]+ ([\d.]+)", guide).group(1)  # type: ignore[union-attr]
    assert f"V{top}" in picture
    assert len(picture) < 60_000


def test_lifetimes_on_a_curve_stay_unseen_until_pointed_at() -> None:
    ghosts = parsed(svg(CHARTS["memory"], {"op-fusion-0": "op-fusion-0"})).find("./g[@class='ghosts']")
    assert ghosts is not None
    assert ghosts.get("fill") == "transparent"
    assert [node.get("data-row") for node in ghosts if node.tag == "a"] == ["op-fusion-0"]


def test_a_curve_is_a_staircase() -> None:
    chart = Chart(
        title="",
        kind="curve",
        alt="",
        x=Axis(label="x"),
        y=Axis(label="y"),
        series=(Series(name="s", y=(1.0, 3.0, 2.0)),),
    )
    line = next(
        node.get("d", "")
        for node in parsed(svg(chart)).iter("path")
        if node.get("fill") == "none" and node.get("stroke-width") == "1.4"
    )
    assert re.sub(r"[\d. ]+", "", line) == "MHVHV"


def test_points_have_signs_of_their_series() -> None:
    groups = parsed(svg(CHARTS["roofline"])).findall("./g[@class='dots']")
    assert [len(group) for group in groups][:2] == [45, 15]
    assert groups[0][0].get("d") != groups[1][0].get("d")


def test_roofs_end_where_the_plot_ends() -> None:
    chart = msgspec.structs.replace(
        CHARTS["roofline"], guides=(Guide(label="roof", axis="roof", points=((1e-9, 1.0), (1e9, 1e18))),)
    )
    numbers = [
        float(one)
        for one in re.findall(r"-?[\d.]+", " ".join(node.get("d", "") for node in parsed(svg(chart)).iter("path")))
    ]
    assert max(numbers) <= 760
    assert min(numbers) >= -10


def test_text_is_never_mathematics_or_markup() -> None:
    chart = msgspec.structs.replace(CHARTS["top_ops"], categories=("$\\frac{a}{b}$", "<b>&", "\x00\u202e\ud800"))
    texts = [node.text for node in parsed(svg(chart)).iter("text")]
    assert {"$\\frac{a}{b}$", "<b>&", "␀⟨U+202E⟩⟨U+D800⟩"} <= set(texts)
    assert png(chart)


@pytest.mark.parametrize("kind", ["stacked_steps", "stacked_bars", "bars", "curve", "scatter", "spans"])
@pytest.mark.parametrize("values", [(), (0.0,), (float("nan"), float("inf"), -1.0), (5e-324, 1.7e308)])
def test_odd_data_is_drawn_somehow(kind: str, values: tuple[float, ...]) -> None:
    for log in (False, True):
        axis = Axis(label="v", unit="bytes", log=log and kind == "scatter")
        series = (Series(name="s", y=values, ends=values if kind == "spans" else ()), Series(name="none"))
        chart = Chart(title="", kind=kind, alt="", x=axis, y=axis, series=series, categories=tuple("c" for _ in values))  # type: ignore[arg-type]
        assert "nan" not in " ".join(node.get("d", "") for node in parsed(svg(chart)).iter())


def test_ticks_are_round_in_their_unit() -> None:
    assert scale(Axis(label="", unit="bytes"), [0, 15.9 * GIB], zero=True).labels == (
        "0 B",
        "5 GiB",
        "10 GiB",
        "15 GiB",
    )
    assert scale(Axis(label="", unit="seconds"), [0, 0.17], zero=True).labels == ("0 s", "50 ms", "100 ms", "150 ms")
    assert scale(Axis(label="", unit="count"), [1, 3]).labels == ("1", "2", "3")
    assert scale(Axis(label="", unit="flops/s", log=True), [2e10, 2e12]).labels[0] == "10 GFLOP/s"


def test_positions_follow_the_scale() -> None:
    log = scale(Axis(label="", log=True), [1, 1000])
    assert log.position([1, 10, 1000, 0, 1e9]).tolist() == pytest.approx([0, 1 / 3, 1, 0, 1])


def test_labels_move_apart() -> None:
    assert spread([0.5, 0.5, 0.52], 0.1) == pytest.approx([0.5, 0.6, 0.7])
    assert spread([0.95, 0.99], 0.1) == pytest.approx([0.9, 1.0])


def test_one_colour_a_role() -> None:
    light, dark = zip(*ROLES.values(), strict=True)
    assert len(set(light)) == len(light)
    assert len(set(dark)) == len(dark)


@pytest.mark.parametrize(("index", "paper"), [(0, 1.0), (1, luminance((0x14 / 255, 0x17 / 255, 0x1A / 255)))])
def test_colours_stand_out_from_the_paper(index: int, paper: float) -> None:
    """3:1 for what carries meaning (WCAG 2, 1.4.11); idle time may recede, and its numbers stand in a table."""
    for role, pair in ROLES.items():
        rgb = tuple(int(pair[index][at : at + 2], 16) / 255 for at in (1, 3, 5))
        light, dark = sorted((luminance(rgb), paper), reverse=True)  # type: ignore[arg-type]
        assert (light + 0.05) / (dark + 0.05) >= (1.7 if role == "idle" else 2.0), role


def test_visible_text() -> None:
    assert visible("a\tb\nc\x1b\u202e\ud800\x85") == "a␉b␊c␛⟨U+202E⟩⟨U+D800⟩⟨U+0085⟩"
    assert visible("naïve 中文 😀 العربية") == "naïve 中文 😀 العربية"
    assert visible_block("a\r\n\tb\r") == "a\n\tb␍"
    assert middle("abcdefghij", 5) == "ab…ij"
    assert len(middle("x" * 100, 7)) == 7
    assert shortened("a" * 50 + "b" * 50, 20) == "a" * 10 + " … 80 of 100 characters left out … " + "b" * 10


def test_matplotlib_is_imported_only_where_a_chart_is_drawn() -> None:
    code = "import sys, reportgen.renderers; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
