"""The tables of a report as data: pandas frames, CSV and Parquet files."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

from reportgen.document import Cell, Column, ReportDocument, Table
from reportgen.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

FORMATS = ("csv", "parquet")
FOLDER = "tables"
INDEX = "tables.json"
_INT64 = 1 << 63
_TEXTS = ("text", "code", "flag")
_FILE = re.compile(r"[^A-Za-z0-9_.-]+")
# A cell that begins so is a formula for a spreadsheet; names come from strangers.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def frame(table: Table) -> pd.DataFrame:
    """Return a table as a frame: raw values in the columns' units, the row ids as index where the table has any.

    Columns of text hold strings, of flags booleans, of numbers int64 where all are whole and none is missing, else
    float64; what was not captured is missing.
    """
    import pandas as pd  # noqa: PLC0415 - takes a while, and most outputs need none

    columns = {
        column.name: _series([row[place] if place < len(row) else None for row in table.rows], column)
        for place, column in enumerate(table.columns)
    }
    index = pd.Index(table.row_ids, name="row_id", dtype="object") if table.row_ids else pd.RangeIndex(len(table.rows))
    return pd.DataFrame({name: series.set_axis(index) for name, series in columns.items()}, index=index)


def _series(values: list[Cell], column: Column) -> pd.Series[Any]:
    import pandas as pd  # noqa: PLC0415

    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pd.Series(values, dtype="bool" if None not in values else "boolean")
    if str in kinds or bool in kinds or (not kinds and column.display in _TEXTS and not column.unit):
        return pd.Series([None if value is None else str(value) for value in values], dtype="object")
    numbers = [value for value in values if isinstance(value, int)]
    whole = len(numbers) == len(values) > 0 and all(-_INT64 <= value < _INT64 for value in numbers)
    return pd.Series(values, dtype="int64" if whole else "float64")


def export_tables(document: ReportDocument, form: str, names: Iterable[str] = ()) -> dict[str, bytes]:
    """Return the tables of a report as files, and `tables.json`, which tells titles, units and definitions.

    Args:
        document: The report.
        form: "csv" or "parquet".
        names: Ids of tables; all where none is named.

    Raises:
        UsageError: There is no such format or table, or pyarrow is missing for Parquet.

    """
    if form not in FORMATS:
        raise UsageError(f"tables are written as {' or '.join(FORMATS)}, not as {form!r}.")
    wanted = list(names) or list(document.tables)
    if unknown := [name for name in wanted if name not in document.tables]:
        raise UsageError(f"the report has no table {unknown[0]!r}.", f"Tables: {', '.join(document.tables)}.")
    write = _csv if form == "csv" else _parquet
    files = {f"{FOLDER}/{_FILE.sub('-', name)}.{form}": write(document.tables[name]) for name in wanted}
    return files | {f"{FOLDER}/{INDEX}": _index({name: document.tables[name] for name in wanted})}


def _index(tables: Mapping[str, Table]) -> bytes:
    content = {
        name: {
            "title": table.title,
            "note": table.note,
            "rows": len(table.rows),
            "total_rows": table.total_rows or len(table.rows),
            "columns": [msgspec.to_builtins(column) for column in table.columns],
        }
        for name, table in tables.items()
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


def _csv(table: Table) -> bytes:
    """Return RFC 4180 text in UTF-8; text that a spreadsheet would take for a formula gets an apostrophe before it."""
    safe = msgspec.structs.replace(
        table,
        rows=tuple(tuple(_harmless(cell) for cell in row) for row in table.rows),
        row_ids=tuple(str(_harmless(row)) for row in table.row_ids),
    )
    text = frame(safe).to_csv(index=bool(table.row_ids), lineterminator="\r\n")
    return str(text).encode("utf-8", errors="replace")


def _harmless(cell: Cell) -> Cell:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def _parquet(table: Table) -> bytes:
    try:
        import_module("pyarrow")
    except ImportError:
        raise UsageError("Parquet needs pyarrow, which is not installed.", "pip install 'reportgen[parquet]'") from None
    stream = io.BytesIO()
    frame(table).to_parquet(stream, engine="pyarrow", index=bool(table.row_ids))
    return stream.getvalue()
