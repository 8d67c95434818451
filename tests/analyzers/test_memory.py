"""The memory section against XLA's and XProf's own figures."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from reportgen.analyzers.base import Context, Result
from reportgen.analyzers.memory import MemoryAnalyzer
from reportgen.profile.view import HostView
from reportgen.settings import Settings
from reportgen.sources.load import load_host
from reportgen.sources.locate import find_run
from tests.conftest import ROOT

SAMPLE = ROOT / "sample_profiles" / "resnet50_tpu_v5e"


@cache
def result_of(path: Path) -> Result:
    view = HostView(load_host(find_run(str(path)).files[0])[0], Settings())
    analyzer = MemoryAnalyzer()
    part = analyzer.host(view)
    assert part is not None
    return analyzer.merge([part], Context(view.settings, {}))


def column(result: Result, table: str, name: str) -> list[object]:
    found = result.tables[table]
    at = [entry.name for entry in found.columns].index(name)
    return [row[at] for row in found.rows]


def test_the_sample_peaks_where_xprof_says() -> None:
    """XProf's memory viewer prints 4,449.7 MiB of HBM and 111.3 MiB of VMEM for it."""
    result = result_of(SAMPLE)
    peak = result.metrics["peak_memory"].value
    assert peak is not None
    assert round(peak / 2**20, 1) == 4449.7
    vmem = dict(zip(column(result, "memory_spaces", "space"), column(result, "memory_spaces", "peak"), strict=True))
    assert round(vmem["VMEM"] / 2**20, 1) == 111.3  # type: ignore[operator]
    assert result.metrics["memory_capacity"].value == 16 * 2**30


def test_buffers_at_the_peak_add_up_to_the_peak() -> None:
    result = result_of(SAMPLE)
    main = result.facts.main.main
    total = sum(buffer.size for buffer in main.buffers) + main.small.size + main.others.size
    assert total == main.live_peak
    unpadded = sum(b.unpadded_size for b in main.buffers) + main.small.unpadded_size + main.others.unpadded_size
    assert unpadded == main.unpadded_peak


@pytest.mark.parametrize("table", ["memory_types", "memory_scopes", "memory_sources"])
def test_every_grouping_adds_up_to_the_peak(table: str) -> None:
    result = result_of(SAMPLE)
    assert sum(column(result, table, "size")) == result.facts.main.main.live_peak  # type: ignore[arg-type]
    assert sum(column(result, table, "share")) == pytest.approx(1)  # type: ignore[arg-type]


def test_the_curve_reaches_the_peak_where_it_is_marked() -> None:
    result = result_of(SAMPLE)
    curve = result.charts["memory_curve"]
    peak = next(guide for guide in curve.guides if guide.axis == "x")
    series = curve.series[0]
    assert max(series.y) == result.metrics["peak_memory"].value
    assert series.x[series.y.index(max(series.y))] == peak.value


def test_lifetimes_stack_to_the_peak_and_link_to_rows_and_cards() -> None:
    result = result_of(SAMPLE)
    marks = result.charts["memory_lifetimes"].series[0]
    rows = set(result.tables["memory_buffers"].row_ids)
    assert marks.y[1:] == marks.tops[:-1]
    assert set(marks.row_ids) <= rows
    assert set(result.cards) <= rows
    assert all(start <= end for start, end in zip(marks.x, marks.ends, strict=True))


def test_modules_of_a_real_profile_are_xprofs(profiles: Path) -> None:
    """The peaks of all four modules of the v6e capture, as XProf's memory viewer prints them."""
    result = result_of(profiles / "tpu_v6e_4chip")
    ours = dict(zip(column(result, "memory_modules", "module"), column(result, "memory_modules", "peak"), strict=True))
    peers = sorted((profiles.parent / "peer-output" / "tpu_v6e_4chip").glob("memory_viewer_*_ms0.json"))
    assert len(peers) == len(ours) == 4
    for path in peers:
        name = path.name.removeprefix("memory_viewer_").removesuffix("_ms0.json")
        theirs = json.loads(path.read_text())
        label = next(label for label in ours if str(label).split("(")[0] == name)
        assert ours[label] / 2**20 == pytest.approx(theirs["peakHeapMib"], rel=1e-6)  # type: ignore[operator]
    assert str(result.facts.main.label).startswith("jit_f(")


def test_a_profile_without_modules_has_no_memory_section(profiles: Path) -> None:
    view = HostView(load_host(find_run(str(profiles / "gpu_v100_8x_tf2")).files[0])[0], Settings())
    assert MemoryAnalyzer().host(view) is None
