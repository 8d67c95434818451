"""From data frames to the document's tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from reportgen.document import Cell, Column, Table

_MOST_ROWS = 1000


def rows_of(frame: pd.DataFrame, columns: Sequence[Column]) -> tuple[tuple[Cell, ...], ...]:
    """Return the rows of a frame as plain values, in the order of the columns; NaN becomes None."""
    lists = [_cells(frame[column.name]) for column in columns]
    return tuple(zip(*lists, strict=True))


def _cells(series: pd.Series[Any]) -> list[Cell]:
    missing = series.isna().tolist()
    return [None if gone else _plain(value) for value, gone in zip(series.tolist(), missing, strict=True)]


def _plain(value: Any) -> Cell:
    return value if isinstance(value, str | float | int | bool) else str(value)


def table_of(
    frame: pd.DataFrame,
    title: str,
    columns: Sequence[Column],
    *,
    row_ids: Iterable[str] = (),
    note: str = "",
    most: int = _MOST_ROWS,
) -> Table:
    """Return a table of a frame's first rows.

    Args:
        frame: Holds a column for each of `columns` by name.
        title: The table's title.
        columns: What to show, in order.
        row_ids: One a row of the frame; may be empty.
        note: See `Table.note`.
        most: How many rows are kept; the table says when there were more.

    """
    return Table(
        title=title,
        columns=tuple(columns),
        rows=rows_of(frame.head(most), columns),
        row_ids=tuple(row_ids)[:most],
        total_rows=len(frame) if len(frame) > most else None,
        note=note,
    )


def slug(text: str) -> str:
    """Return a name as part of an id: lower case, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", text[:200].lower()).strip("-") or "x"


def unique_slugs(prefix: str, names: Iterable[str]) -> list[str]:
    """Return one id a name; names that collide are numbered in their order."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        base = f"{prefix}-{slug(name)}"
        seen[base] = seen.get(base, 0) + 1
        found.append(base if seen[base] == 1 else f"{base}--{seen[base]}")
    return found
