"""Names, times and numbers that break other traces, in the real Perfetto UI."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from reportgen.wire import xplane_pb2
from tests.builders import Space
from tests.exporters.perfetto_ui import PerfettoUI
from tests.exporters.traces import Trace

pytestmark = pytest.mark.peer

NAMES = [
    'quo"ted \\ back',
    "line\nbreak\ttab\rreturn",
    "control \x01\x02\x1b\x7f\x85",
    "nul \x00 inside",
    "separators \u2028 \u2029 \ufeff",
    "</script><b>&amp;",
    "漢字 \U0001f600 e\u0301",
    "\u202eright to left",
    '"},{"ph":"X"',
    "n" * 100_000,
]


def test_names_survive(perfetto: PerfettoUI) -> None:
    space = Space()
    line = space.plane("/host:CPU").line(NAMES[0])
    for number, name in enumerate(NAMES):
        line.event(name, number * 10, 5, {NAMES[0]: name})
    trace = Trace([space.view()])
    perfetto.load(trace.content)
    assert perfetto.faults() == []
    shown = [name for [name] in perfetto.query("select name from slice order by ts")]
    # This Perfetto reads escapes only in texts that hold an escaped quote, and shows them as they stand elsewhere.
    assert [name if '"' in name else json.loads(f'"{name}"') for name in shown] == NAMES
    assert [event["name"] for event in trace.of_kind("X")] == NAMES
    [[thread]] = perfetto.query("select name from thread where name glob 'quo*'")
    assert thread == NAMES[0]


def test_invalid_utf8_becomes_replacement_characters(perfetto: PerfettoUI) -> None:
    space = Space()
    space.plane("/host:CPU").line("main/1").event("placeholder", 0, 5)
    space.planes[0].proto.event_metadata[1].name = b"a\xff\xfeb\xed\xa0\x80"
    perfetto.load(Trace([space.view()]).content)
    assert perfetto.faults() == []
    [[name]] = perfetto.query("select name from slice")
    assert name == b"a\xff\xfeb\xed\xa0\x80".decode("utf-8", "replace")
    assert "\ufffd" in name


@pytest.mark.parametrize("seed", range(3))
def test_random_overlapping_picosecond_events_lose_nothing(perfetto: PerfettoUI, seed: int) -> None:
    """Dense events of all sorts: nested, adjacent, crossing, empty, equal; late ones after 20 hours."""
    random = np.random.default_rng(seed)
    space = Space()
    line = space.plane("/device:TPU:0").line("XLA TraceMe")
    expected: Counter[tuple[int, int]] = Counter()
    for base in (0, 72_000 * 10**12):
        lengths = random.integers(0, 9_000, 400) * random.integers(0, 2, 400)
        for start, length in zip(random.integers(0, 30_000, 400).tolist(), lengths.tolist(), strict=True):
            line.event("event")
            proto: xplane_pb2.XEvent = line.proto.events[-1]
            proto.offset_ps, proto.duration_ps = base + start, length
            begin, end = proto.offset_ps // 1000, (proto.offset_ps + length) // 1000
            expected[begin, end - begin] += 1
    perfetto.load(Trace([space.view()]).content)
    assert perfetto.faults() == []
    shown = Counter((start, duration) for start, duration in perfetto.query("select ts, dur from slice"))
    assert shown == expected


def test_64_bit_ids_and_exact_picoseconds_are_kept(perfetto: PerfettoUI) -> None:
    space = Space()
    space.plane("/host:CPU").line("main/1").event("a", 1.234, 5.678, {"id": 2**64 - 1, "run": -(2**63)})
    perfetto.load(Trace([space.view()]).content)
    rows = perfetto.query("select key, string_value from args where key like 'args.%'")
    assert dict(map(tuple, rows)) == {
        "args.id": str(2**64 - 1),
        "args.run": str(-(2**63)),
        "args.start_ps": "1234",
        "args.duration_ps": "5678",
    }


def test_flows_bind_to_their_slices(perfetto: PerfettoUI) -> None:
    space = Space()
    stream = space.plane("/device:GPU:0").line("Stream #1(Compute)")
    thread = space.plane("/host:CPU").line("main/1")
    for number in range(50):
        thread.event(f"launch {number}", number * 100, 20, {"correlation_id": number})
        stream.event(f"kernel {number}", number * 100 + 10, 60, {"correlation_id": number})
    perfetto.load(Trace([space.view()]).content)
    assert perfetto.faults() == []
    pairs = perfetto.query(
        "select o.name, i.name from flow f join slice o on o.id = f.slice_out join slice i on i.id = f.slice_in"
    )
    assert sorted(pairs) == sorted([f"launch {number}", f"kernel {number}"] for number in range(50))
