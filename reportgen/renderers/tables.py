"""Tables as HTML: rows with their cards, the first ones open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from markupsafe import Markup

from reportgen.document import Cell, Column, Table
from reportgen.renderers.cells import cell, line, link

_MAX_COLUMNS = 60

Rows = tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class RowLinks:
    """What belongs to a row: its id, the id of its card, and the card's body where it stands in this table."""

    anchor: str = ""
    card: str = ""
    body: str = ""


@dataclass(frozen=True)
class TableView:
    """A table ready for its template.

    Attributes:
        anchor: Id of the table, "" for one inside a card.
        shown: Number of rows on the page.
        total: Number of rows that there were.
        defined: Columns whose meaning is told.
        folded: Number of rows that are shown on demand.
        columns: Number of columns; those after the twelfth are shown on demand.

    """

    anchor: str
    title: str
    note: str
    defined: list[Column]
    head: Markup
    body: Markup
    shown: int
    total: int
    folded: int
    columns: int


def table_view(
    table: Table, *, anchor: str, open_rows: int, limit: int, links: Callable[[str], RowLinks] | None = None
) -> TableView:
    """Return a table's rows as HTML, at most `limit`, those after `open_rows` marked as folded.

    Columns without a single value are left out and named in the note.
    """
    rows = table.rows[:limit]
    filled = [index for index in readable(table) if has_value(rows, index) or not rows]
    shown = filled[:_MAX_COLUMNS]
    columns = [table.columns[index] for index in shown]
    parts = []
    for index, values in enumerate(rows):
        row = table.row_ids[index] if index < len(table.row_ids) else ""
        found = links(row) if links and row else RowLinks()
        cells = [values[place] if place < len(values) else None for place in shown]
        parts.append(_row(columns, cells, found, folded=index >= open_rows))
    heads = [_heading(column, numeric=is_numeric(rows, index)) for index, column in zip(shown, columns, strict=True)]
    return TableView(
        anchor=anchor,
        title=line(table.title, 300),
        note=line(" ".join(filter(None, (_left_out(table, filled, rows), table.note)))),
        defined=[column for column in columns if column.definition],
        head=Markup("".join(heads)),  # noqa: S704 - escaped in _heading
        body=Markup("".join(parts)),  # noqa: S704 - escaped in cells
        shown=len(rows),
        total=max(table.total_rows or 0, len(table.rows)),
        folded=max(0, len(rows) - open_rows),
        columns=len(columns),
    )


def readable(table: Table) -> list[int]:
    """Return the places of the columns that are meant for people."""
    return [index for index, column in enumerate(table.columns) if column.display != "machine"]


def has_value(rows: Rows, index: int) -> bool:
    """Return whether a column holds any value."""
    return any(index < len(row) and row[index] is not None for row in rows)


def is_numeric(rows: Rows, index: int) -> bool:
    """Return whether a column holds numbers, judged by its first value."""
    first = next((row[index] for row in rows if index < len(row) and row[index] is not None), None)
    return isinstance(first, int | float) and not isinstance(first, bool)


def _left_out(table: Table, filled: list[int], rows: Rows) -> str:
    absent = [table.columns[index] for index in readable(table) if index not in set(filled)]
    empty = [column.title or column.name for column in absent]
    parts = [f"Not captured: {', '.join(empty)}." if empty and rows else ""]
    if len(filled) > _MAX_COLUMNS:
        parts.append(f"{_MAX_COLUMNS} of {len(filled)} columns.")
    return " ".join(filter(None, parts))


def _row(columns: list[Column], values: list[Cell], links: RowLinks, *, folded: bool) -> str:
    own = next((index for index, column in enumerate(columns) if column.display == "code"), 0)
    cells = [cell(value, column) for value, column in zip(values, columns, strict=True)]
    if links.card and values and isinstance(values[own], str):
        cells[own] = f"<td>{link(str(values[own]), links.card)}</td>"
    kind = ' class="rest"' if folded else ""
    anchor = f' id="{links.anchor}"' if links.anchor else ""
    row = f"<tr{anchor}{kind}>{''.join(cells)}</tr>"
    if not links.body:
        return row
    return f'{row}<tr class="card" id="{links.card}"><td colspan="{len(cells)}">{links.body}</td></tr>'


def _heading(column: Column, *, numeric: bool) -> str:
    kind = ' class="n"' if numeric else ""
    title = f' title="{escape(line(column.definition, 600))}"' if column.definition else ""
    return f'<th scope="col"{kind}{title}>{escape(line(column.title or column.name, 120))}</th>'
