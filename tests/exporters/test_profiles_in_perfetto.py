"""Every profile's trace, opened in the real Perfetto UI and compared with the profile, event by event."""

from __future__ import annotations

import io
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from reportgen.exporters.perfetto import write_trace
from reportgen.profile.view import HostView
from reportgen.settings import Settings
from reportgen.sources.load import load_host
from reportgen.sources.locate import find_run
from tests.conftest import ROOT
from tests.exporters.perfetto_ui import PerfettoUI

SAMPLES = sorted((ROOT / "sample_profiles").glob("*/**/*.xplane.pb*"))
THIRD_PARTY = [
    "tpu_v6e_4chip/host0.xplane.pb",
    "gpu_v100_8x_tf2/worker0.xplane.pb",
    "gpu_mi300x_jax/host0.xplane.pb",
    "gpu_gtx1080ti_pjrt/host0.xplane.pb",
    "trace_json/vllm_tpu.trace.json.gz",
]
SLICES = """
select p.name as section, coalesce(t.name, k.name) as track, k.type, s.name, s.ts, s.dur
from slice s join track k on s.track_id = k.id
left join thread_track tt on tt.id = k.id left join thread t using (utid)
left join process_track pt on pt.id = k.id
left join process p on p.upid = coalesce(t.upid, pt.upid)
"""
Slices = Counter[tuple[str, int, int]]
ASYNC = "legacy_async_process_slice"
LANE = re.compile(r" \(lane \d+\)$")


def host_of(path: Path) -> HostView:
    return HostView(load_host(find_run(str(path)).files[0])[0], Settings())


def expected_slices(view: HostView) -> dict[tuple[str, str], Slices]:
    """Name, start and duration in whole nanoseconds of every event of each line, by section and line."""
    titles = sections_of(view)
    found: dict[tuple[str, str], Slices] = {}
    for plane in view.profile.planes:
        if plane.name == "/host:metadata":
            continue
        for index, line in enumerate(plane.lines):
            if line.display_name.startswith(("_counters_", "counters_")):
                continue
            events = plane.events([index])
            names = [plane.display_names[row] if row >= 0 else "unnamed" for row in events.names.tolist()]
            section = titles.get(plane.name, f"{view.profile.name} {plane.name}")
            slices = found.setdefault((section, line.display_name or f"line {line.id}"), Counter())
            columns = (names, events.starts.tolist(), events.durations.tolist(), events.occurrences.tolist())
            for name, start, duration, occurrences in zip(*columns, strict=True):
                if not occurrences:
                    begin, end = max(0, start // 1000), max(0, (start + duration) // 1000)
                    slices[name, begin, end - begin] += 1
    return {track: slices for track, slices in found.items() if slices}


def sections_of(view: HostView) -> dict[str, str]:
    """Title of the section of each plane, by the plane's name."""
    host = view.profile.name
    titles = {core.plane.name: core.id.label for core in view.cores if not core.plane.name.startswith("/host:")}
    return {"/host:CPU": f"{host} threads"} | titles


def shown_slices(groups: dict[tuple[Any, ...], list[int]]) -> dict[tuple[str, str], Slices]:
    """Return Perfetto's slices by section and track, lanes joined."""
    found: dict[tuple[str, str], Slices] = {}
    for (section, track, kind, name), times in groups.items():
        title = "Async XLA Ops" if kind == ASYNC else LANE.sub("", track)
        slices = found.setdefault((section, title), Counter())
        for start, duration in zip(times[::2], times[1::2], strict=True):
            slices[name, start, duration] += 1
    return found


def unnumbered(slices: Slices) -> Slices:
    """Asynchronous events are named without the number of their instance."""
    found: Slices = Counter()
    for (name, start, duration), count in slices.items():
        found[re.sub(r"(?<=.)(\.\d+)+$", "", name), start, duration] += count
    return found


@pytest.mark.peer
@pytest.mark.parametrize("path", [pytest.param(path, id=path.relative_to(ROOT).parts[1]) for path in SAMPLES])
def test_sample(perfetto: PerfettoUI, path: Path) -> None:
    check(perfetto, path)


@pytest.mark.peer
@pytest.mark.parametrize("name", THIRD_PARTY)
def test_third_party_profile(perfetto: PerfettoUI, profiles: Path, name: str) -> None:
    check(perfetto, profiles / name)


def check(perfetto: PerfettoUI, path: Path) -> None:
    view = host_of(path)
    stream = io.BytesIO()
    summary = write_trace([view], stream)
    perfetto.load(stream.getvalue())
    assert perfetto.faults() == []
    shown = shown_slices(perfetto.grouped(SLICES, 4))
    assert sum(map(Counter.total, shown.values())) == summary.events + summary.marks
    expected = expected_slices(view)
    assert sum(map(Counter.total, expected.values())) > 0
    for (section, track), slices in expected.items():
        assert shown[section, track] == (unnumbered(slices) if track == "Async XLA Ops" else slices), (section, track)
    extra = {track for section, track in shown.keys() - expected.keys()}
    assert all("(derived)" in track or track in {"findings", "slowest steps"} for track in extra), extra
    [[flows]] = perfetto.query("select count(*) from flow")
    assert flows == summary.flows
    [[counters]] = perfetto.query("select count(*) from counter")
    assert counters == summary.counters
