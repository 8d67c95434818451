"""Tables as HTML: rows with their cards, the first ones open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from markupsafe import Markup

from reportgen.document import Cell, Column, Table
from reportgen.renderers.cells import cell, line, link

_MAX_COLUMNS = 60


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


def table_view(
    table: Table, *, anchor: str, open_rows: int, limit: int, links: Callable[[str], RowLinks] | None = None
) -> TableView:
    """Return a table's rows as HTML, at most `limit`, those after `open_rows` marked as folded."""
    rows, columns = table.rows[:limit], table.columns[:_MAX_COLUMNS]
    fewer = f"{len(columns)} of {len(table.columns)} columns. " if len(columns) < len(table.columns) else ""
    parts = []
    for index, values in enumerate(rows):
        row = table.row_ids[index] if index < len(table.row_ids) else ""
        found = links(row) if links and row else RowLinks()
        parts.append(_row(table, values, found, folded=index >= open_rows))
    return TableView(
        anchor=anchor,
        title=line(table.title, 300),
        note=line(fewer + table.note),
        defined=[column for column in columns if column.definition],
        head=Markup("".join(_heading(column) for column in columns)),  # noqa: S704 - escaped in _heading
        body=Markup("".join(parts)),  # noqa: S704 - escaped in cells
        shown=len(rows),
        total=max(table.total_rows or 0, len(table.rows)),
        folded=max(0, len(rows) - open_rows),
    )


def _row(table: Table, values: tuple[Cell, ...], links: RowLinks, *, folded: bool) -> str:
    own = _named_column(table)
    cells = []
    for index, (value, column) in enumerate(zip(values, table.columns[:_MAX_COLUMNS], strict=False)):
        if index == own and links.card and isinstance(value, str):
            cells.append(f"<td>{link(value, links.card)}</td>")
        else:
            cells.append(cell(value, column))
    kind = ' class="rest"' if folded else ""
    anchor = f' id="{links.anchor}"' if links.anchor else ""
    row = f"<tr{anchor}{kind}>{''.join(cells)}</tr>"
    if not links.body:
        return row
    return f'{row}<tr class="card" id="{links.card}"><td colspan="{len(cells)}">{links.body}</td></tr>'


def _named_column(table: Table) -> int:
    return next((index for index, column in enumerate(table.columns) if column.display == "code"), 0)


def _heading(column: Column) -> str:
    kind = "" if column.display in ("text", "code", "flag") else ' class="n"'
    title = f' title="{escape(line(column.definition, 600))}"' if column.definition else ""
    return f'<th scope="col"{kind}{title}>{escape(line(column.title or column.name, 120))}</th>'
