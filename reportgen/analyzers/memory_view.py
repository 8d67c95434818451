"""The memory section: tables, charts and cards of modules, spaces and buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from reportgen.analyzers.tables import table_of, unique_slugs
from reportgen.document import (
    Axis,
    Block,
    Card,
    Cell,
    Chart,
    ChartBlock,
    Column,
    Details,
    Field,
    Guide,
    Heading,
    Series,
    Table,
    TableBlock,
    Text,
)
from reportgen.memory.groups import layer_of
from reportgen.memory.model import ALLOCATION_TYPES, Buffer, by_padding
from reportgen.units import binary, percent

if TYPE_CHECKING:
    from reportgen.analyzers.memory import MemoryFacts, ModuleView, SpaceView

_MOST_CARDS = 60
_MAPPED = 250

_BUFFER_COLUMNS = (
    Column(name="name", title="Buffer", display="code"),
    Column(name="category", title="Category"),
    Column(name="size", unit="bytes", title="Size"),
    Column(name="share", unit="fraction", title="Share", display="bar", definition="Of the peak."),
    Column(name="unpadded", unit="bytes", title="Unpadded"),
    Column(name="expansion", title="Expansion", display="number", definition="Size over unpadded size."),
    Column(name="padding", unit="bytes", title="Padding"),
    Column(name="type", title="Type", definition="Parameter, output, constant, thread-local or temporary."),
    Column(name="order", unit="count", title="Order", definition="Place in program order at the peak."),
    Column(name="lifetime", title="Lifetime", definition="Events of the heap simulation, from definition to last use."),
    Column(name="shape", title="Shape", display="code"),
    Column(name="op", title="Framework op", display="code"),
    Column(name="source", title="Source", display="code"),
)


def memory_tables(facts: MemoryFacts) -> dict[str, Table]:
    """Return the tables: modules, and of the one that matters its spaces, buffers and their sums."""
    tables = {"memory_modules": _modules(facts), "memory_spaces": _spaces(facts.main)}
    main = facts.main.main
    if main is None:
        return tables
    ordered = _with_ids(main)
    largest = sorted(ordered, key=lambda entry: -entry[2].size)
    tables["memory_buffers"] = _buffers("Buffers at the peak, by size", largest, main, note=_rest(main))
    padded = {id(buffer) for buffer in by_padding(main.buffers)}
    wasteful = sorted((e for e in ordered if id(e[2]) in padded), key=lambda entry: -entry[2].padding)
    if wasteful:
        entries = [(order, f"padded-{row_id}", buffer) for order, row_id, buffer in wasteful[:50]]
        tables["memory_padding"] = _buffers("Buffers by padding", entries, main)
    tables["memory_types"] = _sums("By allocation type", "type", main, lambda buffer: buffer.allocation_type)
    tables["memory_scopes"] = _sums("By framework scope", "scope", main, lambda buffer: _scope(buffer.op_name))
    tables["memory_sources"] = _sums("By source line", "source", main, lambda buffer: buffer.source or "(no source)")
    vmem = facts.main.spaces.get(1)
    if vmem is not None and vmem.buffers:
        entries = [(order, f"vmem-{row_id}", buffer) for order, row_id, buffer in _with_ids(vmem)]
        entries.sort(key=lambda entry: -entry[2].size)
        tables["memory_vmem"] = _buffers("VMEM buffers at the peak, by size", entries[:100], vmem, note=_rest(vmem))
    return tables


def _modules(facts: MemoryFacts) -> Table:
    whole = sum(facts.times.values())
    columns = (
        Column(name="module", title="Module", display="code"),
        Column(name="peak", unit="bytes", title="Live peak"),
        Column(name="allocated", unit="bytes", title="Allocated"),
        Column(name="arguments", unit="bytes", title="Arguments"),
        Column(name="outputs", unit="bytes", title="Outputs"),
        Column(name="temporaries", unit="bytes", title="Temporaries"),
        Column(name="constants", unit="bytes", title="Constants"),
        Column(name="fragmentation", unit="bytes", title="Fragmentation"),
        Column(name="padding", unit="bytes", title="Padding"),
        Column(name="vmem", unit="bytes", title="VMEM peak"),
        Column(
            name="scoped_vmem", unit="bytes", title="Scoped VMEM", definition="Most that one op takes on its stack."
        ),
        Column(name="time_share", unit="fraction", title="Op time", definition="Share of the op time."),
    )
    rows = []
    for module in facts.modules:
        main, vmem = module.main, module.spaces.get(1)
        share = facts.times.get(module.program, 0.0) / whole if whole else None
        sizes: tuple[Cell, ...] = (None,) * 8
        if main is not None:
            types = main.by_type
            sizes = (
                main.live_peak, main.allocated, types["parameter"], types["output"], types["temporary"],
                types["constant"], main.fragmentation, main.live_peak - main.unpadded_peak,
            )  # fmt: skip
        rows.append((module.label, *sizes, vmem.live_peak if vmem else None, module.scoped_vmem, share))
    return Table(
        title="Modules by peak",
        columns=columns,
        rows=tuple(rows),
        row_ids=tuple(unique_slugs("memory-module", (module.label for module in facts.modules))),
        note="Main memory (HBM) of one device, from XLA's buffer assignment. Generated code is not in it.",
    )


def _spaces(module: ModuleView) -> Table:
    columns = (
        Column(name="space", title="Memory"),
        Column(name="allocated", unit="bytes", title="Allocated"),
        Column(name="peak", unit="bytes", title="Live peak"),
        Column(name="unpadded", unit="bytes", title="Unpadded peak"),
        Column(name="xprof_unpadded", unit="bytes", title="XProf's unpadded peak",
               definition="Counts parameters and outputs with their padding."),
        *(Column(name=name.replace("-", "_"), unit="bytes", title=name.capitalize()) for name in ALLOCATION_TYPES),
        Column(name="aliased", unit="bytes", title="Donated", definition="Parameters whose memory outputs take over."),
        Column(name="fragmentation", unit="bytes", title="Fragmentation"),
        Column(name="padding_share", unit="fraction", title="Padding", definition="Share of the live peak."),
    )  # fmt: skip
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            space.name, space.allocated, space.live_peak, space.unpadded_peak, space.xprof_unpadded_peak,
            *(space.by_type[name] for name in ALLOCATION_TYPES), space.aliased, space.fragmentation,
            1 - space.unpadded_peak / space.live_peak if space.live_peak else 0.0,
        )
        for space in module.spaces.values()
    )  # fmt: skip
    note = "Different memories: never to be added up."
    if module.scoped_vmem:
        stack = f"{module.scoped_vmem_instruction} takes {binary(module.scoped_vmem)} of scoped VMEM"
        note += f" Beside the VMEM buffers, {stack}."
    return Table(title=f"Memory spaces of {module.label}", columns=columns, rows=rows, note=note)


Entry = tuple[int, str, Buffer]


def _with_ids(space: SpaceView) -> list[Entry]:
    """Return the buffers in program order with their place and row id."""
    ids = unique_slugs("buffer", (buffer.name for buffer in space.buffers))
    return [(order, row_id, buffer) for order, (row_id, buffer) in enumerate(zip(ids, space.buffers, strict=True), 1)]


def _buffers(title: str, entries: Sequence[Entry], space: SpaceView, note: str = "") -> Table:
    rows = tuple(
        (
            buffer.name, buffer.category, buffer.size, buffer.size / space.live_peak if space.live_peak else None,
            buffer.unpadded_size, buffer.expansion, buffer.padding, buffer.allocation_type, order, _lifetime(buffer),
            buffer.shape, buffer.op_name, buffer.source,
        )
        for order, _, buffer in entries
    )  # fmt: skip
    return Table(
        title=title, columns=_BUFFER_COLUMNS, rows=rows, row_ids=tuple(row_id for _, row_id, _ in entries), note=note
    )


def _rest(space: SpaceView) -> str:
    parts = []
    for lump, what in ((space.small, "buffers below 16 KiB"), (space.others, "further buffers")):
        if lump.count:
            parts.append(f"{lump.count} {what}: {binary(lump.size)}, unpadded {binary(lump.unpadded_size)}.")
    return " ".join(parts)


def _lifetime(buffer: Buffer) -> str:
    return "whole program" if buffer.start is None else f"{buffer.start}–{buffer.end}"


def _scope(op_name: str) -> str:
    """The layer: forward and backward pass and loops of it have the same scope."""
    return layer_of(op_name) or "(no scope)"


def _sums(title: str, name: str, space: SpaceView, key: Callable[[Buffer], str]) -> Table:
    rows = [(key(buffer), buffer.size, buffer.unpadded_size) for buffer in space.buffers]
    rows += [("(small and further buffers)", lump.size, lump.unpadded_size) for lump in (space.small, space.others)]
    frame = pd.DataFrame(rows, columns=[name, "size", "unpadded"])
    sums = frame.groupby(name, sort=False).agg(
        size=("size", "sum"), unpadded=("unpadded", "sum"), buffers=("size", "size")
    )
    sums = sums[sums["size"] > 0].sort_values("size", ascending=False, kind="stable").reset_index()
    sums["share"] = sums["size"] / max(1, space.live_peak)
    columns = (
        Column(name=name, title=name.capitalize(), display="code"),
        Column(name="size", unit="bytes", title="Size at the peak"),
        Column(name="share", unit="fraction", title="Share", display="bar"),
        Column(name="unpadded", unit="bytes", title="Unpadded"),
    )
    return table_of(sums, title, columns, row_ids=unique_slugs(f"memory-{name}", sums[name]), most=100)


def memory_charts(facts: MemoryFacts) -> dict[str, Chart]:
    """Return the curve over the program, the lifetimes of the buffers at the peak, and the map of addresses."""
    main = facts.main.main
    if main is None or main.curve is None:
        return {}
    charts = {"memory_curve": _curve_chart(facts, main)}
    entries = [entry for entry in _with_ids(main) if entry[2].size][:_MAPPED]
    if entries:
        charts["memory_lifetimes"] = _lifetimes_chart(main, entries)
    mapped = [entry for entry in entries if entry[2].start is not None]
    if mapped:
        charts["memory_map"] = _map_chart(mapped)
    return charts


def _curve_chart(facts: MemoryFacts, main: SpaceView) -> Chart:
    assert main.curve is not None  # noqa: S101 - the caller looked
    capacity = facts.capacity.value
    guides = []
    if main.peak_position is not None:
        guides.append(Guide(label=f"peak {binary(main.live_peak)}", axis="x", value=float(main.peak_position)))
    if capacity and capacity < 20 * main.live_peak:
        guides.append(Guide(label=f"capacity {binary(capacity)}", axis="y", value=capacity))
    share = f", {percent(main.live_peak / capacity)} of the capacity" if capacity else ""
    positions = tuple(map(float, main.curve.positions))
    return Chart(
        title=f"Memory peaks at {binary(main.live_peak)}{share}",
        kind="curve",
        alt=f"Memory in use over the program: peak {binary(main.live_peak)} at {main.peak_instruction or 'its start'}, "
        f"{binary(main.unpadded_peak)} without padding.",
        x=Axis(label="Event of the heap simulation, in program order"),
        y=Axis(label="In use", unit="bytes"),
        series=(
            Series(name="in use", role="compute", x=positions, y=tuple(map(float, main.curve.live))),
            Series(name="without padding", role="neutral", x=positions, y=tuple(map(float, main.curve.unpadded))),
        ),
        guides=tuple(guides),
        table="memory_buffers",
    )


def _lifetimes_chart(main: SpaceView, entries: Sequence[Entry]) -> Chart:
    """Buffers at the peak in program order: a bar is as long as the buffer's life and as thick as its size."""
    end = float(main.curve.events if main.curve else 1)
    lower = 0.0
    marks = []
    for _, row_id, buffer in entries:
        life = (0.0, end) if buffer.start is None else (float(buffer.start), float(buffer.end or end))
        marks.append((*life, lower, lower + buffer.size, f"{buffer.name}: {binary(buffer.size)}", row_id))
        lower += buffer.size
    return _spans(
        "Lifetimes of the buffers at the peak, in program order",
        f"The {len(marks)} buffers alive at the peak, stacked in program order; each bar spans its buffer's life.",
        "In use at the peak",
        marks,
        main.peak_position,
    )


def _map_chart(entries: Iterable[Entry]) -> Chart:
    """Temporaries at the peak: address against time."""
    marks = [
        (
            float(b.start or 0),
            float(b.end or 0),
            float(b.offset),
            float(b.offset + b.size),
            f"{b.name}: {binary(b.size)}",
            i,
        )
        for _, i, b in entries
    ]
    return _spans(
        "Where the temporaries at the peak lie in memory",
        f"{len(marks)} temporaries alive at the peak: offset in their allocation against time.",
        "Offset in the allocation",
        marks,
        None,
    )


Mark = tuple[float, float, float, float, str, str]


def _spans(title: str, alt: str, label: str, marks: Sequence[Mark], peak: int | None) -> Chart:
    starts, ends, lower, upper, labels, row_ids = zip(*marks, strict=True)
    return Chart(
        title=title,
        kind="spans",
        alt=alt,
        x=Axis(label="Event of the heap simulation, in program order"),
        y=Axis(label=label, unit="bytes"),
        series=(
            Series(
                name="buffers", role="compute", x=starts, ends=ends, y=lower, tops=upper, labels=labels, row_ids=row_ids
            ),
        ),
        guides=(Guide(label="peak", axis="x", value=float(peak)),) if peak is not None else (),
        table="memory_buffers",
    )


def memory_cards(facts: MemoryFacts) -> dict[str, Card]:
    """Return the cards of the largest buffers at the peak, by row id."""
    main = facts.main.main
    if main is None:
        return {}
    largest = sorted(_with_ids(main), key=lambda entry: -entry[2].size)[:_MOST_CARDS]
    return {row_id: _card(buffer) for _, row_id, buffer in largest}


def _card(buffer: Buffer) -> Card:
    fields = [
        Field(label="Category", value=buffer.category),
        Field(label="Size", value=buffer.size, unit="bytes"),
        Field(label="Unpadded size", value=buffer.unpadded_size, unit="bytes"),
        Field(label="Expansion", value=f"{buffer.expansion:.3g} ×"),
        Field(label="Extra memory", value=buffer.padding, unit="bytes"),
        Field(label="Shape", value=buffer.shape, display="code"),
        Field(label="Framework op", value=buffer.op_name or "not recorded", display="code"),
        Field(label="Allocation type", value=buffer.allocation_type),
        Field(label="Lifetime", value=_lifetime(buffer)),
        Field(label="Source", value=buffer.source or "not recorded", display="code"),
    ]
    if buffer.stack:
        fields.append(Field(label="Source stack", value="\n".join(buffer.stack), display="code"))
    return Card(title=buffer.name, fields=tuple(fields))


def memory_blocks(facts: MemoryFacts, left_out: int) -> tuple[Block, ...]:
    """Return how the section reads."""
    tables, charts = memory_tables(facts), memory_charts(facts)
    blocks: list[Block] = [Text(_sentence(facts)), TableBlock("memory_spaces")]
    blocks += [ChartBlock(chart) for chart in ("memory_curve", "memory_lifetimes") if chart in charts]
    if "memory_buffers" in tables:
        blocks += [Heading("Buffers at the peak", "memory-buffers"), TableBlock("memory_buffers")]
    folded: list[Block] = [ChartBlock("memory_map")] if "memory_map" in charts else []
    names = ("memory_padding", "memory_types", "memory_scopes", "memory_sources", "memory_vmem")
    folded += [TableBlock(name) for name in names if name in tables]
    if folded:
        blocks.append(Details("By padding, type, scope, source line; map of addresses; VMEM", tuple(folded)))
    blocks += [Heading("All modules", "memory-all"), TableBlock("memory_modules", open_rows=5)]
    notes = list(facts.main.notes)
    if left_out:
        notes.append(f"{left_out} smaller modules are left out.")
    return (*blocks, *(Text(note) for note in notes))


def _sentence(facts: MemoryFacts) -> str:
    main = facts.main.main
    if main is None:
        return f"{facts.main.label} takes no main memory."
    capacity = facts.capacity.value
    room = (
        f" of {binary(capacity)} ({facts.capacity.source}), headroom {binary(capacity - main.allocated)}"
        if capacity
        else ""
    )
    padding = main.live_peak - main.unpadded_peak
    return (
        f"{facts.main.label} needs {binary(main.allocated)}{room}. At the peak {binary(main.live_peak)} are in use, "
        f"of which padding takes {binary(padding)} ({percent(padding / main.live_peak) if main.live_peak else '0 %'}); "
        f"fragmentation takes {binary(main.fragmentation)}."
    )
