"""Where everything of a document stands on a page: which tables are placed where, and the id of each part."""

from __future__ import annotations

from collections.abc import Iterator

from reportgen.document import Block, ChartBlock, Details, Heading, ReportDocument, TableBlock, TimelineBlock
from reportgen.renderers.base import Ids

_OWN_IDS = ("top", "content", "contents", "data-quality", "contents-switch", "rules-title")


def walk(blocks: tuple[Block, ...]) -> Iterator[Block]:
    """Yield blocks in reading order, folded ones too."""
    for block in blocks:
        yield block
        if isinstance(block, Details):
            yield from walk(block.blocks)


class Anchors:
    """The ids of a page for one document.

    Attributes:
        sections: Ids by position of the section.
        headings: Ids by `id()` of the heading's block.
        findings, charts, tables, timelines: Ids by the document's ids, of those that the page has.
        rules: Ids of the pages of the rules that found something, by rule.
        folded: Tables that stand in no block of their own, folded under a chart: from table to chart.

    """

    def __init__(self, document: ReportDocument) -> None:
        ids = Ids()
        for own in _OWN_IDS:
            ids.claim(own)
        blocks = [block for section in document.sections for block in walk(section.blocks)]
        shown_charts = [one.chart for one in blocks if isinstance(one, ChartBlock) and one.chart in document.charts]
        shown_timelines = [
            one.timeline for one in blocks if isinstance(one, TimelineBlock) and one.timeline in document.timelines
        ]
        own_tables = {one.table for one in blocks if isinstance(one, TableBlock)}
        self.folded: dict[str, str] = {}
        for key in shown_charts:
            table = document.charts[key].table
            if table in document.tables and table not in own_tables:
                self.folded.setdefault(table, key)
        shown_tables = [key for key in (*_in_order(blocks), *self.folded) if key in document.tables]

        self.sections = [ids.claim(section.id) for section in document.sections]
        self.headings = {id(one): ids.claim(one.id) for one in blocks if isinstance(one, Heading)}
        self.findings = {one.id: ids.claim("finding", one.id) for one in document.findings}
        self.rules = {rule: ids.claim("rule", rule) for rule in dict.fromkeys(one.rule for one in document.findings)}
        self.charts = {key: ids.claim("chart", key) for key in dict.fromkeys(shown_charts)}
        self.tables = {key: ids.claim("table", key) for key in dict.fromkeys(shown_tables)}
        self.timelines = {key: ids.claim("timeline", key) for key in dict.fromkeys(shown_timelines)}
        self._rows: dict[tuple[str, str], tuple[str, int]] = {}
        self._cards: dict[str, tuple[str, str, int]] = {}
        for key in self.tables:
            self._claim_rows(document, key, ids)

    def _claim_rows(self, document: ReportDocument, key: str, ids: Ids) -> None:
        for index, row in enumerate(document.tables[key].row_ids):
            if row and (key, row) not in self._rows:
                self._rows[key, row] = (ids.claim(row), index)
                if row in document.cards and row not in self._cards:
                    self._cards[row] = (key, ids.claim("card", row), index)

    def row(self, table: str, row: str, limit: int) -> str:
        """Return the id of a row, "" where it is not among the first `limit` rows of a table on the page."""
        anchor, index = self._rows.get((table, row), ("", 0))
        return anchor if index < limit else ""

    def rows(self, table: str, limit: int) -> dict[str, str]:
        """Return the ids of rows by the document's row ids: of a table, and of others for what it does not hold."""
        found: dict[str, str] = {}
        for (key, row), (anchor, index) in self._rows.items():
            if index < limit and (key == table or row not in found):
                found[row] = anchor
        return found

    def card(self, row: str, limit: int) -> tuple[str, str]:
        """Return the table and the id of a row's card, two times "" where it has none or is cut."""
        table, anchor, index = self._cards.get(row, ("", "", 0))
        return (table, anchor) if index < limit else ("", "")


def _in_order(blocks: list[Block]) -> list[str]:
    return [one.table for one in blocks if isinstance(one, TableBlock)]
