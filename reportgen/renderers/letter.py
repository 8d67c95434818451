"""What a mail about a report says: the parts that its HTML and its plain text share, cut to what a mail may hold."""

from __future__ import annotations

from dataclasses import dataclass

from reportgen import units
from reportgen.charts.text import middle, shortened, visible
from reportgen.document import Cell, ChartBlock, Column, Finding, ReportDocument, Table, TableBlock, Tiles
from reportgen.renderers import words
from reportgen.renderers.anchors import walk
from reportgen.renderers.cells import number

CHART_WIDTH = 600
_TONES = {"critical": "#b3261e", "high": "#b54708", "medium": "#9a6700", "low": "#2563ab", "info": "#69727e"}
# Tables that a reader of a mail wants, in this order; a comparison has its own.
_TABLES = ("causes", "top_operations", "op_categories", "memory_modules")
_CHARTS = ("waterfall", "steps", "op_categories", "input_wait", "memory_timeline")
_COLUMNS = 5
_NAME = 60
_TEXT = 500


@dataclass(frozen=True)
class Extent:
    """How much of a report a mail may hold."""

    findings: int = 8
    evidence: int = 3
    rows: int = 10
    tables: int = 2
    charts: int = 3
    letters: int = _TEXT


# Tried in this order until the HTML part is small enough.
EXTENTS = (
    Extent(),
    Extent(rows=6, letters=300),
    Extent(findings=5, rows=5, tables=1, letters=200),
    Extent(findings=3, evidence=1, rows=3, tables=1, charts=1, letters=120),
    Extent(findings=2, evidence=0, rows=0, tables=0, charts=0, letters=60),
)


@dataclass(frozen=True)
class TileView:
    """A metric with its number in words."""

    title: str
    value: str


@dataclass(frozen=True)
class FindingView:
    """A finding in a few lines."""

    title: str
    severity: str
    tone: str
    saving: str
    summary: str
    evidence: tuple[str, ...]
    action: str
    place: str


@dataclass(frozen=True)
class ChartView:
    """A chart's words, and the Content-ID of its picture."""

    key: str
    cid: str
    title: str
    alt: str
    width: int = CHART_WIDTH


@dataclass(frozen=True)
class Head:
    """A column's heading and alignment."""

    text: str
    align: str


@dataclass(frozen=True)
class TableView:
    """The first rows of a table, in words."""

    title: str
    heads: tuple[Head, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str


@dataclass(frozen=True)
class Letter:
    """Everything that a mail says; `checked` tells whether findings were looked for at all."""

    title: str
    verdict: str
    facts: str
    warnings: tuple[str, ...]
    tiles: tuple[TileView, ...]
    findings: tuple[FindingView, ...]
    more_findings: str
    checked: bool
    nothing: str
    charts: tuple[ChartView, ...]
    tables: tuple[TableView, ...]
    foot: tuple[str, ...]


def letter_of(document: ReportDocument, extent: Extent, foot: tuple[str, ...], link: str = "") -> Letter:
    """Return what a mail says about a report.

    Args:
        document: The report.
        extent: How much of it.
        foot: Lines at the end: what is attached, what was left out.
        link: An address where the whole report lies; "" for none.

    """
    alone, explained = words.standing(document)
    rest = len(alone) + len(explained) - len(alone[: extent.findings])
    written = f"Written by {document.generator.name} {document.generator.version}."
    return Letter(
        title=_line(document.title, 200),
        verdict=_line(document.verdict, _TEXT),
        facts=_line(" · ".join(words.facts(document)), _TEXT),
        warnings=_warnings(document, extent),
        tiles=_tiles(document),
        findings=tuple(_finding(one, document, extent) for one in alone[: extent.findings]),
        more_findings=f"{words.counted(rest, 'more finding')} in the full report." if rest > 0 else "",
        checked=bool(document.checks),
        nothing=words.NO_FINDINGS,
        charts=_charts(document, extent),
        tables=_tables(document, extent),
        foot=(*((f"The whole report: {_line(link, _TEXT)}",) if link else ()), *foot, written),
    )


def _line(text: str, limit: int) -> str:
    return visible(shortened(text, limit))


def _warnings(document: ReportDocument, extent: Extent) -> tuple[str, ...]:
    modelled, rest = words.modelled_and_warnings(document)
    found = [*([f"Modelled timeline. {modelled}"] if modelled else []), *rest]
    more = [f"{words.counted(len(found) - 3, 'more warning')} in the full report."] if len(found) > 3 else []
    return tuple(_line(one, extent.letters) for one in [*found[:3], *more])


def _tiles(document: ReportDocument) -> tuple[TileView, ...]:
    blocks = [block for section in document.sections for block in walk(section.blocks)]
    first = next((block for block in blocks if isinstance(block, Tiles)), Tiles(()))
    metrics = (document.metrics[key] for key in first.metrics if key in document.metrics)
    return tuple(TileView(_line(one.title, 100), _line(words.metric_words(one), 200)) for one in metrics)


def _finding(finding: Finding, document: ReportDocument, extent: Extent) -> FindingView:
    saving = words.saving_short(finding.saving, document) if finding.saving else ""
    basis = f" ({finding.saving.basis})" if finding.saving else ""
    action = next(iter(finding.actions), None)
    places = [
        middle(visible(one.name), _NAME) + (f" at {middle(visible(one.source), _NAME)}" if one.source else "")
        for one in finding.locations[:3]
    ]
    return FindingView(
        title=_line(finding.title, extent.letters),
        severity=finding.severity.capitalize(),
        tone=_TONES[finding.severity],
        saving=f"Saves about {saving}{basis}" if saving else "",
        summary=_line(finding.summary, extent.letters),
        evidence=tuple(
            _line(words.evidence_words(one.text, one.value, one.unit), extent.letters)
            for one in finding.evidence[: extent.evidence]
        ),
        action=_line(action.text, extent.letters) if action else "",
        place=f"Where: {', '.join(places)}" if places else "",
    )


def _charts(document: ReportDocument, extent: Extent) -> tuple[ChartView, ...]:
    blocks = [block for section in document.sections for block in walk(section.blocks)]
    shown = dict.fromkeys(block.chart for block in blocks if isinstance(block, ChartBlock))
    keys = [key for key in dict.fromkeys((*_CHARTS, *shown)) if key in shown and key in document.charts]
    return tuple(
        ChartView(
            key=key,
            cid=f"chart-{number_}@reportgen",
            title=_line(document.charts[key].title, 200),
            alt=_line(document.charts[key].alt, _TEXT),
        )
        for number_, key in enumerate(keys[: extent.charts], 1)
    )


def _tables(document: ReportDocument, extent: Extent) -> tuple[TableView, ...]:
    blocks = [block for section in document.sections for block in walk(section.blocks)]
    shown = {block.table for block in blocks if isinstance(block, TableBlock)}
    keys = [key for key in _TABLES if key in shown and key in document.tables]
    return tuple(_table(document.tables[key], extent) for key in keys[: extent.tables])


def _table(table: Table, extent: Extent) -> TableView:
    rows = table.rows[: extent.rows]
    filled = [place for place in range(len(table.columns)) if any(row[place] not in (None, "") for row in rows)]
    kept = filled[:_COLUMNS]
    columns = [table.columns[place] for place in kept]
    total = table.total_rows or len(table.rows)
    return TableView(
        title=_line(table.title, 100),
        heads=tuple(Head(_line(one.title or one.name, _NAME), _align(one)) for one in columns),
        rows=tuple(tuple(_cell(row[place], table.columns[place]) for place in kept) for row in rows),
        note=f"{len(rows)} of {units.count(total)} rows." if total > len(rows) else "",
    )


def _align(column: Column) -> str:
    return "left" if column.display in ("code", "flag") or (column.display == "text" and not column.unit) else "right"


def _cell(value: Cell, column: Column) -> str:
    if value is None:
        return units.NOT_CAPTURED
    if isinstance(value, bool):
        return "yes" if value else "no"
    return middle(visible(value), _NAME) if isinstance(value, str) else number(value, column.unit)
