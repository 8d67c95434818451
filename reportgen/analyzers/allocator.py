"""The allocators' timeline: memory that was really handed out on each device, from allocation events on the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reportgen.analyzers.base import Context, Result, SectionId
from reportgen.analyzers.tables import slug, table_of, unique_slugs
from reportgen.document import Axis, Block, Chart, ChartBlock, Column, Guide, Heading, Metric, Series, Table, TableBlock
from reportgen.profile.model import Events, Kind, Plane
from reportgen.profile.view import HostView
from reportgen.units import PS_PER_SECOND, binary, percent

_EVENTS = ("MemoryAllocation", "MemoryDeallocation")
_NUMBERS = (
    "bytes_reserved", "bytes_allocated", "bytes_available", "peak_bytes_in_use", "requested_bytes", "allocation_bytes",
    "addr", "index_on_host", "device_ordinal",
)  # fmt: skip
_TEXTS = ("allocator_name", "tf_op", "region_type", "data_type", "shape")
_MOST_POINTS = 1000
_MOST_ROWS = 100
_MOST_CHARTS = 4


@dataclass(frozen=True)
class AllocatorPart:
    """What one allocator did, in bytes.

    Attributes:
        host, name: Which allocator: its name, or the number of its device.
        times: Seconds from the capture's start, of the points of the curves.
        used, available: In use (stack and heap) and free, at those points, the largest use of equal stretches.
        peak_time: Seconds at which use was highest.
        stack, heap, free: At the peak.
        fragmentation: Share of the free memory that no single block can use, at the peak, as recorded.
        lifetime_peak: Most bytes in use since the program's start, as the allocator recorded it.
        events: Allocations and deallocations.
        alive: What was handed out during the capture and alive at the peak: op, region, type, shape, count, bytes.

    """

    host: str
    name: str
    times: tuple[float, ...]
    used: tuple[int, ...]
    available: tuple[int, ...]
    peak_time: float
    stack: int
    heap: int
    free: int
    fragmentation: float
    lifetime_peak: int
    events: int
    alive: pd.DataFrame

    @property
    def peak(self) -> int:
        """Most bytes in use during the capture."""
        return self.stack + self.heap

    @property
    def capacity(self) -> int:
        """Bytes that the allocator manages."""
        return self.peak + self.free

    @property
    def label(self) -> str:
        """Such as "GPU_0_bfc" or "device 3"."""
        return f"device {self.name}" if self.name.isdigit() else self.name


@dataclass(frozen=True)
class AllocatorFacts:
    """All allocators, the fullest first."""

    allocators: tuple[AllocatorPart, ...]


class AllocatorAnalyzer:
    """Memory over time per device and allocator."""

    id: ClassVar[str] = "allocator"
    title: ClassVar[str] = "Allocators"
    section: ClassVar[SectionId] = "memory"

    def host(self, view: HostView) -> tuple[AllocatorPart, ...] | None:
        """Return the allocators of one host that recorded events."""
        found: list[AllocatorPart] = []
        for plane in view.profile.of_kind(Kind.HOST):
            frame = _events_of(plane)
            if frame is not None:
                groups = frame.groupby("allocator", sort=True)
                found += [_allocator(view.profile.name, str(name), group) for name, group in groups]
        return tuple(found) or None

    def merge(self, parts: Sequence[tuple[AllocatorPart, ...]], context: Context) -> Result:
        """Return the allocators of all hosts, the fullest first."""
        allocators = sorted(
            (allocator for part in parts for allocator in part),
            key=lambda entry: (-entry.peak / max(1, entry.capacity), entry.host, entry.name),
        )
        facts = AllocatorFacts(tuple(allocators))
        shown = allocators[:_MOST_CHARTS]
        names = unique_slugs("allocator", (entry.label for entry in shown))
        charts = {name: _chart(entry) for name, entry in zip(names, shown, strict=True)}
        alive = {
            f"{name}-alive": _alive_table(entry) for name, entry in zip(names, shown, strict=True) if len(entry.alive)
        }
        blocks: list[Block] = [Heading("Allocators during the capture", "memory-allocators"), TableBlock("allocators")]
        for name in names:
            blocks.append(ChartBlock(name))
            if f"{name}-alive" in alive:
                blocks.append(TableBlock(f"{name}-alive", open_rows=5))
        return Result(
            metrics=_metrics(facts, context),
            tables={"allocators": _table(facts)} | alive,
            charts=charts,
            blocks=tuple(blocks),
            facts=facts,
        )


def _events_of(plane: Plane) -> pd.DataFrame | None:
    """Return a plane's allocation events in order of time, a row each; None where it has none."""
    kinds = {row for row, name in enumerate(plane.event_names) if name in _EVENTS}
    if not kinds or "bytes_allocated" not in plane.stat_names.values():
        return None
    bare = plane.events(plane.line_indices())
    lines = np.unique(bare.lines[np.isin(bare.names, list(kinds))]).tolist()
    events = plane.events(lines, (*_NUMBERS, *_TEXTS, "fragmentation"))
    events = events.where(np.isin(events.names, list(kinds)))
    events = events.where(np.argsort(events.starts, kind="stable"))
    if not len(events):
        return None
    frame = pd.DataFrame({name: events.stats[name].integers(0) for name in _NUMBERS})
    frame["fragmentation"] = _doubles(events, "fragmentation")
    for name in _TEXTS:
        frame[name] = [text or "" for text in events.texts(name)]
    frame["time_ps"] = events.starts
    allocates = np.array([name == _EVENTS[0] for name in plane.event_names] + [False])
    frame["allocates"] = allocates[events.names]
    frame["allocator"] = _allocator_names(events, frame)
    return frame


def _doubles(events: Events, name: str) -> NDArray[np.float64]:
    column = events.stats[name]
    return np.where(column.present, column.bits.view(np.float64), 0.0)


def _allocator_names(events: Events, frame: pd.DataFrame) -> list[str]:
    """Return which allocator each event belongs to: by name, else by the device's number."""
    device = np.where(events.stats["device_ordinal"].present, frame["device_ordinal"], frame["index_on_host"])
    return [name or str(number) for name, number in zip(frame["allocator_name"], device.tolist(), strict=True)]


def _allocator(host: str, name: str, frame: pd.DataFrame) -> AllocatorPart:
    used = (frame["bytes_reserved"] + frame["bytes_allocated"]).to_numpy()
    peak = int(np.argmax(used))
    stretch = -(-len(used) // _MOST_POINTS)
    starts = range(0, len(used), stretch)
    points = sorted({0, len(used) - 1, *(start + int(np.argmax(used[start : start + stretch])) for start in starts)})
    at_peak = frame.iloc[peak]
    return AllocatorPart(
        host=host,
        name=name,
        times=tuple((frame["time_ps"].to_numpy()[points] / PS_PER_SECOND).tolist()),
        used=tuple(used[points].tolist()),
        available=tuple(frame["bytes_available"].to_numpy()[points].tolist()),
        peak_time=float(at_peak["time_ps"]) / PS_PER_SECOND,
        stack=int(at_peak["bytes_reserved"]),
        heap=int(at_peak["bytes_allocated"]),
        free=int(at_peak["bytes_available"]),
        fragmentation=float(at_peak["fragmentation"]),
        lifetime_peak=int(frame["peak_bytes_in_use"].max()),
        events=len(frame),
        alive=_alive(frame.iloc[: peak + 1]),
    )


def _alive(until_peak: pd.DataFrame) -> pd.DataFrame:
    """Return what was allocated up to the peak and not freed by then, equal ones as one row."""
    last = until_peak.drop_duplicates("addr", keep="last")
    alive = last[last["allocates"]]
    keys = ["tf_op", "region_type", "data_type", "shape"]
    groups = alive.groupby(keys, sort=False)["allocation_bytes"].agg(["size", "sum"]).reset_index()
    groups.columns = ["op", "region", "type", "shape", "count", "bytes"]
    return groups.sort_values("bytes", ascending=False, kind="stable").head(_MOST_ROWS).reset_index(drop=True)


def _metrics(facts: AllocatorFacts, context: Context) -> Mapping[str, Metric]:
    fullest = facts.allocators[0]
    peak = Metric(
        title="Allocator's peak",
        value=fullest.peak,
        unit="bytes",
        better="lower",
        definition="Most bytes in use during the capture, stack and heap, of the allocator that came nearest to its "
        "capacity.",
        source=f"allocation events of {fullest.label} on {fullest.host}",
    )
    found = {"allocator_peak": peak}
    if context.facts("memory") is None:  # no module tells more: the allocator's figures are the profile's
        found["peak_memory"] = peak
        found["memory_capacity"] = Metric(
            title="Memory capacity",
            value=fullest.capacity,
            unit="bytes",
            better="higher",
            definition="Bytes that the allocator manages: in use and free at its peak.",
            source=peak.source,
        )
    return found


def _table(facts: AllocatorFacts) -> Table:
    rows = [
        {
            "allocator": entry.label, "host": entry.host, "peak": entry.peak,
            "share": entry.peak / max(1, entry.capacity), "stack": entry.stack, "heap": entry.heap, "free": entry.free,
            "capacity": entry.capacity,
            "fragmentation": entry.fragmentation, "lifetime_peak": entry.lifetime_peak, "peak_time": entry.peak_time,
            "events": entry.events,
        }
        for entry in facts.allocators
    ]  # fmt: skip
    columns = (
        Column(name="allocator", title="Allocator"),
        Column(name="host", title="Host"),
        Column(name="peak", unit="bytes", title="Peak", definition="Stack and heap during the capture."),
        Column(name="share", unit="fraction", title="Of capacity", display="bar"),
        Column(name="stack", unit="bytes", title="Stack", definition="Reserved for programs, at the peak."),
        Column(name="heap", unit="bytes", title="Heap", definition="Allocated for arrays, at the peak."),
        Column(name="free", unit="bytes", title="Free", definition="At the peak."),
        Column(name="capacity", unit="bytes", title="Capacity"),
        Column(name="fragmentation", unit="fraction", title="Fragmentation", definition="At the peak, as recorded."),
        Column(name="lifetime_peak", unit="bytes", title="Lifetime peak", definition="Recorded since the start."),
        Column(name="peak_time", unit="seconds", title="Peak at"),
        Column(name="events", unit="count", title="Events"),
    )
    ids = [f"allocator-row-{slug(row['host'])}-{slug(row['allocator'])}" for row in rows]  # type: ignore[arg-type]
    return table_of(pd.DataFrame(rows), "Allocators", columns, row_ids=ids, most=256)


def _alive_table(entry: AllocatorPart) -> Table:
    columns = (
        Column(name="op", title="Framework op", display="code"),
        Column(name="bytes", unit="bytes", title="Bytes"),
        Column(name="count", unit="count", title="Count"),
        Column(name="region", title="Region"),
        Column(name="type", title="Type"),
        Column(name="shape", title="Shape", display="code"),
    )
    rest = entry.heap - int(entry.alive["bytes"].sum())
    note = (
        f"{binary(rest)} of the heap were handed out before the capture, or are not in these rows." if rest > 0 else ""
    )
    return table_of(entry.alive, f"Alive at the peak of {entry.label}", columns, note=note)


def _chart(entry: AllocatorPart) -> Chart:
    share = percent(entry.peak / max(1, entry.capacity))
    return Chart(
        title=f"{entry.label} on {entry.host} peaks at {binary(entry.peak)}, {share} of its capacity",
        kind="curve",
        alt=f"Memory in use by {entry.label} over the capture, peak {binary(entry.peak)} of {binary(entry.capacity)}.",
        x=Axis(label="Time", unit="seconds"),
        y=Axis(label="In use", unit="bytes"),
        series=(Series(name="in use", role="compute", x=entry.times, y=tuple(map(float, entry.used))),),
        guides=(
            Guide(label=f"peak {binary(entry.peak)}", axis="x", value=entry.peak_time),
            Guide(label=f"capacity {binary(entry.capacity)}", axis="y", value=float(entry.capacity)),
        ),
        table="allocators",
    )
