"""The allocators' timeline against XProf's memory_profile."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from reportgen.analyzers.allocator import AllocatorAnalyzer, AllocatorPart
from reportgen.analyzers.base import Context
from reportgen.profile.view import HostView
from reportgen.settings import Settings
from reportgen.sources.load import load_host
from reportgen.sources.locate import find_run
from tests.builders import Space
from tests.parity import xprof


@cache
def allocators(path: Path) -> dict[str, AllocatorPart]:
    view = HostView(load_host(find_run(str(path)).files[0])[0], Settings())
    return {part.name: part for part in AllocatorAnalyzer().host(view) or ()}


def assert_summary(ours: AllocatorPart, theirs: dict[str, Any]) -> None:
    summary = theirs["profileSummary"]
    stats = summary["peakStats"]
    assert ours.stack == int(stats["stackReservedBytes"])
    assert ours.heap == int(stats["heapAllocatedBytes"])
    assert ours.free == int(stats["freeMemoryBytes"])
    assert ours.fragmentation == pytest.approx(stats["fragmentation"], abs=1e-6)
    # XProf prints the figure of one event, which may lie below the peak of the capture; ours is the largest recorded.
    assert ours.lifetime_peak in (int(summary["peakBytesUsageLifetime"]), ours.heap)
    assert ours.lifetime_peak >= int(summary["peakBytesUsageLifetime"])
    assert ours.capacity == int(summary["memoryCapacity"])
    # Several events reach the peak: ours is the first of them, XProf's one of them. XProf counts from the start of each
    # thread's line, which lies a quarter of a millisecond after the capture's.
    assert ours.peak_time * 1e12 <= int(summary["peakStatsTimePs"]) + 300_000_000


def test_peaks_of_the_v6e_capture_are_xprofs(profiles: Path) -> None:
    theirs = json.loads((profiles.parent / "peer-output" / "tpu_v6e_4chip" / "memory_profile.json").read_text())
    ours = allocators(profiles / "tpu_v6e_4chip")
    assert sorted(ours) == sorted(theirs["memoryProfilePerAllocator"])
    for name, part in ours.items():
        assert_summary(part, theirs["memoryProfilePerAllocator"][name])


@pytest.mark.peer
def test_peaks_of_the_v100_capture_are_xprofs(profiles: Path) -> None:
    theirs = xprof.answers(profiles / "gpu_v100_8x_tf2" / "worker0.xplane.pb")["memory_profile"]
    ours = allocators(profiles / "gpu_v100_8x_tf2")
    assert sorted(ours) == sorted(theirs["memoryProfilePerAllocator"])
    for name, part in ours.items():
        assert_summary(part, theirs["memoryProfilePerAllocator"][name])


def test_what_was_alive_at_the_peak_is_named_with_the_rest() -> None:
    space = Space()
    line = space.plane("/host:CPU").line("thread")
    free = 1000
    for start, name, address, size, op in (
        (1, "MemoryAllocation", 16, 300, "layer/a"),
        (2, "MemoryAllocation", 32, 200, "layer/b"),
        (3, "MemoryDeallocation", 16, 300, ""),
        (4, "MemoryAllocation", 16, 400, "layer/c"),
        (5, "MemoryDeallocation", 32, 200, ""),
    ):
        free += -size if name == "MemoryAllocation" else size
        used = 1000 - free + 50  # 50 bytes were handed out before the capture
        stats = {"allocator_name": "GPU_0_bfc", "bytes_reserved": 0, "bytes_allocated": used, "bytes_available": free}
        stats |= {"addr": address, "allocation_bytes": size, "tf_op": op, "peak_bytes_in_use": 700}
        line.event(name, start, 0, stats)
    analyzer = AllocatorAnalyzer()
    parts = analyzer.host(space.view())
    assert parts is not None
    (part,) = parts
    assert (part.peak, part.peak_time) == (650, pytest.approx(4e-9))
    assert list(zip(part.alive["op"], part.alive["bytes"], strict=True)) == [("layer/c", 400), ("layer/b", 200)]
    result = analyzer.merge([parts], Context(Settings(), {}))
    assert result.metrics["peak_memory"].value == 650
    assert "50 B of the heap" in result.tables["allocator-gpu-0-bfc-alive"].note
    assert result.metrics["memory_capacity"].value == 650 + 400


def test_a_profile_without_allocation_events_has_no_timeline() -> None:
    space = Space()
    space.plane("/host:CPU").line("thread").event("Other", 0, 1)
    assert AllocatorAnalyzer().host(space.view()) is None
