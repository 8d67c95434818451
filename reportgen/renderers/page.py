"""What the templates of the HTML report ask for: every part of a document, cut to limits, ready to be written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from markupsafe import Markup

from reportgen.document import Block, Card, Heading, Metric, ReportDocument, Saving, Section, Tiles
from reportgen.renderers import words
from reportgen.renderers.anchors import Anchors
from reportgen.renderers.base import environment
from reportgen.renderers.cells import exact, line
from reportgen.renderers.opener import Opener, opener_of
from reportgen.renderers.rule_pages import rule_page
from reportgen.renderers.tables import RowLinks, TableView, table_view
from reportgen.renderers.timeline import TimelineView, timeline_view

Item = TypeVar("Item")


class Pictures(Protocol):
    """Draws a document's charts by their ids, each once."""

    def __call__(self, key: str, rows: Mapping[str, str], *, labels: bool) -> str:
        """Return the SVG of a chart whose marks link to rows, given as ids of the page by the document's row ids."""
        ...


@dataclass(frozen=True)
class Limits:
    """How much of a document a page may show.

    Attributes:
        cards: Detail cards a table, those of its first rows.
        rows: Rows a table.
        letters: Characters of an expression or a paragraph.
        items: Findings, checks, blocks and the like, each.
        labels: Whether marks of charts say what they are.
        trace: Whether the short trace is carried; else only the file beside the page can be handed over.
        pictures: Whether charts and timelines are drawn.

    """

    cards: int = 100
    rows: int = 200
    letters: int = 4000
    items: int = 400
    labels: bool = True
    trace: bool = True
    pictures: bool = True


@dataclass(frozen=True)
class ChartView:
    """A chart ready for its template: its picture, and its table, folded here or by its id elsewhere."""

    anchor: str
    title: str
    picture: Markup
    table: TableView | None
    table_anchor: str


@dataclass(frozen=True)
class SavingView:
    """A saving in words: at the head of a card, and in full."""

    short: str
    whole: str
    exact: str


class Page:
    """One document on one page, within limits.

    Attributes:
        findings, silenced: Findings that stand by themselves, and those that another one explains.
        verdict, more_verdict: The verdict's first sentence, and what follows.
        facts: What was profiled, on what, when.
        modelled, warnings: How the timeline was modelled, if it was; and the other data-quality warnings.
        check_groups: (status, title, checks) of every outcome but "found".

    """

    def __init__(self, document: ReportDocument, limits: Limits, anchors: Anchors, pictures: Pictures) -> None:
        self.document = document
        self.limits = limits
        self.anchors = anchors
        self._pictures = pictures
        self._tables_done: set[str] = set()
        self.findings, self.silenced = words.standing(document)
        self.verdict, self.more_verdict = words.first_sentence(document.verdict)
        self.facts = words.facts(document)
        self.modelled, self.warnings = words.modelled_and_warnings(document)
        pages = {rule: rule_page(rule) for rule in anchors.rules}
        self.rule_pages = {rule: Markup(html) for rule, html in pages.items() if html}  # noqa: S704 - our own text
        self.check_groups = [
            (status, title, found)
            for status, title in words.CHECK_GROUPS
            if (found := [one for one in document.checks if one.status == status])
        ]

    def some(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return as many of the items as the page may show."""
        return items[: self.limits.items]

    def counted(self, number: int, noun: str) -> str:
        """Return a number with its noun: 1 host, 64 hosts."""
        return words.counted(number, noun)

    def only_tiles(self, section: Section) -> bool:
        """Return whether a section holds nothing but tiles, which need no heading."""
        return all(isinstance(part, Tiles) for part in section.blocks)

    def kind(self, part: Block) -> str:
        """Return the tag of a block, which names its template."""
        return str(part.__struct_config__.tag)

    def metric(self, key: str) -> Metric | None:
        """Return a metric by its id."""
        return self.document.metrics.get(key)

    def rule_page(self, rule: str) -> str:
        """Return the id of the page of a rule in this report, "" where there is none."""
        return self.anchors.rules[rule] if rule in self.rule_pages else ""

    def heading(self, part: Heading) -> str:
        """Return the id of a heading."""
        return self.anchors.headings[id(part)]

    def table(self, key: str, open_rows: int) -> TableView | None:
        """Return a table at its place, None where it is unknown or stands further up."""
        anchor = self.anchors.tables.get(key)
        if anchor is None or key in self._tables_done:
            return None
        self._tables_done.add(key)
        limit = self.limits.rows
        return table_view(
            self.document.tables[key],
            anchor=anchor,
            open_rows=min(open_rows, limit),
            limit=limit,
            links=lambda row: self._row_links(key, row),
        )

    def _row_links(self, table: str, row: str) -> RowLinks:
        limit = min(self.limits.cards, self.limits.rows)
        owner, card = self.anchors.card(row, limit)
        body = card_body(self.document.cards[row], self.limits.letters) if owner == table else ""
        return RowLinks(self.anchors.row(table, row, self.limits.rows), card, body)

    def row(self, table: str, row: str) -> str:
        """Return the id of a table's row, "" where the page does not show it."""
        return self.anchors.row(table, row, self.limits.rows)

    def chart(self, key: str) -> ChartView | None:
        """Return a chart with its picture."""
        anchor = self.anchors.charts.get(key)
        if anchor is None:
            return None
        chart = self.document.charts[key]
        rows = self.anchors.rows(chart.table, self.limits.rows)
        picture = self._pictures(key, rows, labels=self.limits.labels) if self.limits.pictures else ""
        own = self.anchors.folded.get(chart.table) == key
        return ChartView(
            anchor=anchor,
            title=line(chart.title, 300),
            picture=Markup(picture),  # noqa: S704 - escaped where it is drawn
            table=self.table(chart.table, self.limits.rows) if own else None,
            table_anchor="" if own else self.anchors.tables.get(chart.table, ""),
        )

    def timeline(self, key: str) -> TimelineView | None:
        """Return a timeline, None where it is unknown or pictures are off."""
        anchor = self.anchors.timelines.get(key)
        return timeline_view(self.document.timelines[key], anchor) if anchor and self.limits.pictures else None

    @property
    def opener(self) -> Opener | None:
        """What hands traces to Perfetto; None where the document has no trace, or pictures are off."""
        return opener_of(self.document, self.limits.trace) if self.limits.pictures else None

    def saving(self, saving: Saving) -> SavingView:
        """Return a saving in words."""
        whole = line(words.saving_whole(saving, self.document))
        return SavingView(words.saving_short(saving, self.document), whole, exact(saving.likely, saving.unit))

    def framework(self, name: str) -> str:
        """Return the name of a framework for people."""
        return words.FRAMEWORKS.get(name, name)


def card_body(card: Card, letters: int) -> str:
    """Return a detail card as HTML."""
    views = [table_view(one, anchor="", open_rows=len(one.rows), limit=50) for one in card.tables]
    template = environment().get_template("html/card.html.j2")
    return template.render(card=card, views=views, letters=letters)
