"""What a mail about a report says: the parts that its HTML and its plain text share, cut to what a mail may hold."""

from __future__ import annotations

from dataclasses import dataclass

from reportgen import units
from reportgen.charts.text import middle, shortened, visible
from reportgen.document import (
    Action,
    Block,
    Cell,
    ChartBlock,
    Check,
    Column,
    Details,
    Finding,
    ReportDocument,
    Table,
    TableBlock,
    Tiles,
)
from reportgen.renderers import words
from reportgen.renderers.anchors import walk
from reportgen.renderers.cells import number
from reportgen.renderers.tables import has_value, is_numeric, readable

CHART_WIDTH = 600  # pixels
_TONES = {"critical": "#b3261e", "high": "#b54708", "medium": "#9a6700", "low": "#2563ab", "info": "#69727e"}
# What a reader of a mail wants first, of a report, an out-of-memory report and a comparison.
_TABLES = ("top_operations", "causes", "oom_fixes", "op_categories", "memory_modules", "memory_buffers", "oom_buffers")
_CHARTS = ("waterfall", "steps", "op_categories", "memory_curve", "input_wait", "roofline")
_COLUMNS = 5
_NAME = 60
_TEXT = 500
_WARNINGS = 3


@dataclass(frozen=True)
class Extent:
    """How much of a report a mail may hold."""

    findings: int = 8
    evidence: int = 3
    unchecked: int = 6
    rows: int = 10
    tables: int = 2
    charts: int = 3
    letters: int = _TEXT


# Tried in this order until the HTML part is small enough.
EXTENTS = (
    Extent(),
    Extent(rows=6, letters=300),
    Extent(findings=5, unchecked=3, rows=5, tables=1, letters=200),
    Extent(findings=3, evidence=1, unchecked=3, rows=3, tables=1, charts=1, letters=120),
    Extent(findings=2, evidence=0, unchecked=1, rows=0, tables=0, charts=0, letters=60),
)


@dataclass(frozen=True)
class TileView:
    """A metric with its number in words, or with the reason why it was not captured."""

    title: str
    value: str
    missing: bool


@dataclass(frozen=True)
class FindingView:
    """A finding in a few lines; `tone` is the colour of its severity."""

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
class TableView:
    """The first rows of a table, in words; `numeric` tells of each column whether it is written to the right."""

    title: str
    heads: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str

    def lines(self) -> list[str]:
        """Return the table as plain text in columns."""
        widths = [max(map(len, column)) for column in zip(self.heads, *self.rows, strict=True)]
        places = list(zip(widths, self.numeric, strict=True))
        return [
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, (width, right) in zip(row, places, strict=True)
            ).rstrip()
            for row in (self.heads, *self.rows)
        ]


@dataclass(frozen=True)
class Letter:
    """Everything that a mail says.

    Attributes:
        verdict: Its first sentence, and the rest.
        checked: Whether findings were looked for at all.

    """

    title: str
    verdict: tuple[str, str]
    facts: str
    warnings: tuple[str, ...]
    tiles: tuple[TileView, ...]
    findings: tuple[FindingView, ...]
    more_findings: str
    checked: bool
    nothing: str
    unchecked: tuple[str, ...]
    charts: tuple[ChartView, ...]
    tables: tuple[TableView, ...]
    link: str
    notes: tuple[str, ...]
    written: str


def letter_of(document: ReportDocument, extent: Extent, notes: tuple[str, ...], link: str = "") -> Letter:
    """Return what a mail says about a report.

    Args:
        document: The report.
        extent: How much of it.
        notes: Lines at the end: what is attached, what was left out.
        link: An address where the whole report lies; "" for none.

    """
    alone, explained = words.standing(document)
    rest = len(alone) + len(explained) - len(alone[: extent.findings])
    return Letter(
        title=_line(document.title, 200),
        verdict=words.first_sentence(_line(document.verdict, _TEXT)),
        facts=_line(" · ".join(words.facts(document)), _TEXT),
        warnings=_warnings(document, extent),
        tiles=_tiles(document),
        findings=tuple(_finding(one, document, extent) for one in alone[: extent.findings]),
        more_findings=f"{words.counted(rest, 'more finding')} in the full report." if rest > 0 else "",
        checked=bool(document.checks),
        nothing=words.NO_FINDINGS,
        unchecked=_unchecked(document, extent),
        charts=_charts(document, extent),
        tables=_tables(document, extent),
        link=link,
        notes=notes,
        written=_line(f"Written by {document.generator.name} {document.generator.version}.", 100),
    )


def _line(text: str, limit: int) -> str:
    return visible(shortened(text, limit))


def _blocks(document: ReportDocument) -> list[Block]:
    """Return the blocks that stand open, in the order of the report."""
    opened = [block for section in document.sections for block in section.blocks if not isinstance(block, Details)]
    return list(walk(tuple(opened)))


def _warnings(document: ReportDocument, extent: Extent) -> tuple[str, ...]:
    modelled, rest = words.modelled_and_warnings(document)
    found = [*([f"Modelled timeline. {modelled}"] if modelled else []), *rest]
    return _first(found, _WARNINGS, "more warning", extent)


def _first(lines: list[str], limit: int, noun: str, extent: Extent) -> tuple[str, ...]:
    shown = [_line(one, extent.letters) for one in lines[:limit]]
    rest = len(lines) - len(shown)
    return (*shown, *([f"{words.counted(rest, noun)} in the full report."] if rest else []))


def _tiles(document: ReportDocument) -> tuple[TileView, ...]:
    keys = next((block.metrics for block in _blocks(document) if isinstance(block, Tiles)), ())
    metrics = [document.metrics[key] for key in keys if key in document.metrics]
    return tuple(
        TileView(_line(one.title, 100), _line(words.metric_words(one), 200), one.value is None) for one in metrics[:12]
    )


def _finding(finding: Finding, document: ReportDocument, extent: Extent) -> FindingView:
    saving, places = finding.saving, finding.locations[:3]
    return FindingView(
        title=_line(finding.title, extent.letters),
        severity=finding.severity.capitalize(),
        tone=_TONES[finding.severity],
        saving=f"Saves about {words.saving_short(saving, document)} ({saving.basis})." if saving else "",
        summary=_line(finding.summary, extent.letters),
        evidence=tuple(
            _line(words.evidence_words(one.text, one.value, one.unit), extent.letters)
            for one in finding.evidence[: extent.evidence]
        ),
        action=_action(finding.actions[0], extent) if finding.actions else "",
        place=f"Where: {', '.join(_name(one.name, one.source) for one in places)}" if places else "",
    )


def _action(action: Action, extent: Extent) -> str:
    framework = words.FRAMEWORKS[action.framework]
    return (f"{framework}: " if framework else "") + _line(action.text, extent.letters)


def _name(name: str, source: str) -> str:
    return middle(visible(name), _NAME) + (f" at {middle(visible(source), _NAME)}" if source else "")


def _unchecked(document: ReportDocument, extent: Extent) -> tuple[str, ...]:
    found = [_check(one) for one in document.checks if one.status in ("cannot_tell", "error")]
    return _first(found, extent.unchecked, "more check", extent)


def _check(check: Check) -> str:
    reason = f": {check.reason}" if check.reason else ""
    return f"{check.title}{reason}" + (f" To find out: {check.remedy}" if check.remedy else "")


def _charts(document: ReportDocument, extent: Extent) -> tuple[ChartView, ...]:
    shown = dict.fromkeys(block.chart for block in _blocks(document) if isinstance(block, ChartBlock))
    keys = [key for key in dict.fromkeys((*_CHARTS, *shown)) if key in shown and key in document.charts]
    return tuple(
        ChartView(
            key=key,
            cid=f"chart-{place}@reportgen",
            title=_line(document.charts[key].title, 200),
            alt=_line(document.charts[key].alt, _TEXT),
        )
        for place, key in enumerate(keys[: extent.charts], 1)
    )


def _tables(document: ReportDocument, extent: Extent) -> tuple[TableView, ...]:
    shown = dict.fromkeys(block.table for block in _blocks(document) if isinstance(block, TableBlock))
    keys = [key for key in dict.fromkeys((*_TABLES, *shown)) if key in shown and key in document.tables]
    tables = [document.tables[key] for key in keys]
    return tuple(_table(one, extent) for one in [one for one in tables if one.rows][: extent.tables])


def _table(table: Table, extent: Extent) -> TableView:
    rows = table.rows[: extent.rows]
    kept = [place for place in readable(table) if has_value(rows, place)][:_COLUMNS]
    total = max(table.total_rows or 0, len(table.rows))
    columns = [table.columns[place] for place in kept]
    more = f"{len(rows)} of {units.count(total)} rows." if total > len(rows) else ""
    return TableView(
        title=_line(table.title, 100),
        heads=tuple(_line(one.title or one.name, _NAME) for one in columns),
        numeric=tuple(is_numeric(rows, place) for place in kept),
        rows=tuple(
            tuple(_cell(row[place] if place < len(row) else None, table.columns[place]) for place in kept)
            for row in rows
        ),
        note=_line(" ".join(filter(None, (more, table.note))), extent.letters),
    )


def _cell(value: Cell, column: Column) -> str:
    if value is None:
        return units.NOT_CAPTURED
    if isinstance(value, bool):
        return "yes" if value else "no"
    return middle(visible(value), _NAME) if isinstance(value, str) else number(value, column.unit)
