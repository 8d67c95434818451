"""Tables of the report of an out-of-memory error."""

from __future__ import annotations

from reportgen.document import Cell, Column, Table
from reportgen.memory.oom.report import OomReport

_MOST_ROWS = 200


def types_table(report: OomReport) -> Table:
    """Bytes by what they hold."""
    total = sum(report.by_type.values())
    columns = (
        Column(name="holds", title="What it holds"),
        Column(name="size", unit="bytes", title="Size"),
        Column(name="share", unit="fraction", title="Share", display="bar"),
    )
    sizes = [(name, size) for name, size in report.by_type.items() if size]
    rows: tuple[tuple[Cell, ...], ...] = tuple((name, size, size / total) for name, size in sizes)
    return Table(title=f"{report.memory_space} by what it holds", columns=columns, rows=rows)


def buffers_table(report: OomReport) -> Table:
    """The largest buffers that a message or dump lists."""
    columns = (
        Column(name="buffer", title="Buffer", display="code"),
        Column(name="size", unit="bytes", title="Size"),
        Column(name="unpadded", unit="bytes", title="Unpadded"),
        Column(name="expansion", title="Expansion", display="number", definition="Size over unpadded size."),
        Column(name="type", title="Type"),
        Column(name="shape", title="Shape", display="code"),
        Column(name="op", title="Framework op", display="code"),
        Column(name="source", title="Source", display="code"),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            buffer.label or buffer.shape,
            buffer.size,
            buffer.unpadded_size,
            buffer.expansion,
            buffer.allocation_type or None,
            buffer.shape,
            buffer.op_name or None,
            buffer.source or None,
        )
        for buffer in report.buffers[:_MOST_ROWS]
    )
    cut = len(report.buffers) if len(report.buffers) > _MOST_ROWS else None
    return Table(title="Largest buffers", columns=columns, rows=rows, total_rows=cut)


def fixes_table(report: OomReport) -> Table:
    """Ways to fit with the bytes that each saves."""
    columns = (
        Column(name="fix", title="Way to fit"),
        Column(name="likely", unit="bytes", title="Likely saving"),
        Column(name="low", unit="bytes", title="At least"),
        Column(name="high", unit="bytes", title="At most"),
        Column(
            name="fits", title="Fits then", display="flag", definition="Whether it fits with the likely saving alone."
        ),
        Column(name="basis", title="Basis"),
    )
    over = report.exceeded_bytes
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (fix.title, fix.likely, fix.low, fix.high, None if over is None else fix.likely >= over, fix.basis)
        for fix in report.fixes
    )
    note = "Savings overlap and must not be added up."
    return Table(title="Ways to fit", columns=columns, rows=rows, note=note)


def allocator_tables(report: OomReport) -> dict[str, Table]:
    """A BFC allocator's bins and its chunks in use; empty tables where the message holds none."""
    message = report.message
    bins = message.bins if message else ()
    chunks = message.chunks if message else ()
    bin_columns = (
        Column(name="bin", unit="bytes", title="Chunks from"),
        Column(name="chunks", unit="count", title="Chunks"),
        Column(name="used", unit="count", title="In use"),
        Column(name="total", unit="bytes", title="Bytes"),
        Column(name="in_use", unit="bytes", title="Bytes in use"),
    )
    chunk_columns = (
        Column(name="number", unit="count", title="Chunks in use"),
        Column(name="size", unit="bytes", title="Size of each"),
        Column(name="total", unit="bytes", title="Together"),
    )
    chunk_rows = tuple((c.number, c.size, c.number * c.size) for c in chunks[:_MOST_ROWS])
    return {
        "oom_bins": Table(title="Bins of the allocator", columns=bin_columns, rows=tuple(tuple(b) for b in bins)),
        "oom_chunks": Table(title="Chunks in use by size", columns=chunk_columns, rows=chunk_rows),
    }
