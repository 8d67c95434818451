"""The short trace: the stretches that were asked for, small enough whatever the profile."""

from __future__ import annotations

import gzip
import json
from typing import Any

from reportgen.exporters.excerpt import trace_excerpt
from reportgen.profile.view import HostView
from tests.builders import Space


def view_of(events: int, name: str = "event") -> HostView:
    space = Space()
    line = space.plane("/host:CPU").line("main/1")
    for number in range(events):
        line.event(f"{name} {number}", number * 1000, 1 + number * 7 % 991)
    return space.view()


def slices(content: bytes) -> list[dict[str, Any]]:
    return [event for event in json.loads(gzip.decompress(content))["traceEvents"] if event["ph"] == "X"]


def test_it_holds_what_overlaps_the_stretches() -> None:
    found = trace_excerpt(view_of(100), [(10_000_000, 12_000_000), (50_200_000, 51_500_000)])
    assert found is not None
    assert [event["name"] for event in slices(found[0])] == [f"event {number}" for number in (10, 11, 50, 51)]
    assert found[1].cut == {"events are outside the chosen steps": 96}


def test_the_shortest_events_go_first_until_it_is_small_enough() -> None:
    found = trace_excerpt(view_of(30_000), [(0, 10**12)], most_bytes=20_000)
    assert found is not None
    content, summary = found
    assert len(content) <= 20_000
    kept = slices(content)
    assert len(kept) == summary.events > 200
    assert summary.cut["shorter events are over the limit of events"] == 30_000 - len(kept)
    assert min(event["dur"] for event in kept) >= 0.9


def test_there_is_none_where_names_alone_are_too_long() -> None:
    assert trace_excerpt(view_of(40, "x" * 2000), [(0, 10**12)], most_bytes=500) is None
