"""The report for a ticket: stands alone, the most important first, as long as the tracker takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reportgen import units
from reportgen.charts.text import middle, shortened
from reportgen.document import (
    Block,
    Cell,
    ChartBlock,
    Check,
    Column,
    Details,
    Finding,
    Heading,
    KeyValues,
    Notice,
    ReportDocument,
    Section,
    Table,
    TableBlock,
    Text,
    Tiles,
)
from reportgen.errors import UsageError
from reportgen.renderers import words
from reportgen.renderers.anchors import walk
from reportgen.renderers.base import Rendered
from reportgen.renderers.cells import number
from reportgen.renderers.dialects import DIALECTS, Markdown
from reportgen.renderers.tables import has_value, is_numeric, readable

NAME = "report.md"
MAX_CHARACTERS = 60_000
_ROWS = 10
_NAME = 100
_TEXT = 600
_NOTE_ROOM = 600
_COLUMNS = 9
_OPEN, _FOLDED = 6, 8  # ranks of what a reader sees at once, and of what the report folds


@dataclass(frozen=True)
class _Part:
    """A part of the text, what it is called where it is left out, and how soon that happens: high ranks first."""

    text: str
    name: str
    rank: int


def render_markdown(document: ReportDocument, *, flavour: str = "github", max_chars: int = MAX_CHARACTERS) -> Rendered:
    """Render `report.md` for "github", "gitlab" or "jira" (whose wiki markup is no Markdown).

    The least important parts are left out until at most `max_chars` characters are left, and named.

    Raises:
        UsageError: There is no such flavour.

    """
    if flavour not in DIALECTS:
        known = ", ".join(DIALECTS)
        raise UsageError(f"Expected a flavour of Markdown ({known}), found {flavour!r}.", f"Use one of {known}.")
    ticket = _Ticket(document, DIALECTS[flavour])
    text, cut = _fitted([part for part in ticket.parts() if part.text], ticket.syntax, max_chars)
    return Rendered({NAME: text.encode()}, (f"{NAME}: {cut}",) if cut else ())


def _fitted(parts: list[_Part], syntax: Markdown, max_chars: int) -> tuple[str, str]:
    kept = list(parts)
    left_out: list[str] = []
    size = sum(len(part.text) + 2 for part in parts)
    while size > max_chars - (_NOTE_ROOM if left_out else 0) and len(kept) > 1:
        least = max(range(len(kept)), key=lambda index: (kept[index].rank, index))
        size -= len(kept[least].text) + 2
        left_out.insert(0, kept.pop(least).name)
    text = "\n\n".join(part.text for part in kept)
    if not left_out and len(text) < max_chars:
        return text + "\n", ""
    names = ", ".join(dict.fromkeys(left_out))
    cut = f"Left out to stay under {max_chars:,} characters: {middle(names or 'the end', 200)}."
    note = "\n\n" + syntax.text(cut) + "\n"
    return text[: max(0, max_chars - len(note))] + note[:max_chars], cut


class _Ticket:
    """The parts of one document in one syntax."""

    def __init__(self, document: ReportDocument, syntax: Markdown) -> None:
        self.document = document
        self.syntax = syntax

    def parts(self) -> Iterator[_Part]:
        """Yield the parts in the order of the report."""
        yield _Part(self._head(), "the head", 0)
        yield _Part(self._tiles(), "key numbers", 1)
        alone, explained = words.standing(self.document)
        if alone or self.document.checks:
            yield _Part(self._heading(3, "Findings"), "findings", 1)
        if not alone and self.document.checks:
            yield _Part(self.syntax.text(words.NO_FINDINGS), "findings", 1)
        for index, finding in enumerate(alone):
            yield _Part(self._finding(finding), f"finding {finding.id}", 2 if index < 3 else 4)
        for finding in explained:
            yield _Part(self._finding(finding), f"finding {finding.id}", 7)
        for status, title in reversed(words.CHECK_GROUPS):
            yield _Part(
                self._checks(status, title), f"checks {title}", 9 if status in ("fine", "not_applicable") else 3
            )
        for section in self.document.sections:
            yield from self._section(section)
        written = f"Written by {self.document.generator.name} {self.document.generator.version}."
        yield _Part(self.syntax.text(written), "the program's name", 10)

    def _line(self, text: str, limit: int = _TEXT) -> str:
        return self.syntax.text(shortened(text, limit))

    def _heading(self, level: int, text: str) -> str:
        return self.syntax.heading(level, self._line(text))

    def _head(self) -> str:
        document, syntax = self.document, self.syntax
        modelled, others = words.modelled_and_warnings(document)
        warnings = [*([f"Modelled timeline. {modelled}"] if modelled else []), *others]
        shown = [self._line(one) for one in warnings[:5]]
        if len(warnings) > 5:
            shown.append(f"{len(warnings) - 5} more warnings in the full report.")
        parts = [
            self._heading(2, document.title),
            syntax.bold(self._line(document.verdict)),
            self._line(" · ".join(words.facts(document))),
            syntax.bullets([f"⚠ {one}" for one in shown]),
        ]
        return "\n\n".join(filter(None, parts))

    def _tiles(self) -> str:
        blocks = [block for section in self.document.sections for block in walk(section.blocks)]
        keys = [key for block in blocks if isinstance(block, Tiles) for key in block.metrics]
        rows = []
        for key in dict.fromkeys(keys):
            if metric := self.document.metrics.get(key):
                cells = (metric.title, words.metric_words(metric), f"{metric.definition} ({metric.basis})")
                rows.append([self._line(cell) for cell in cells])
        return self.syntax.table(["Metric", "Value", "Definition"], [False, True, False], rows) if rows else ""

    def _finding(self, finding: Finding) -> str:
        syntax = self.syntax
        saving = f", saves about {words.saving_short(finding.saving, self.document)}" if finding.saving else ""
        explained = f" (explained by {finding.silenced_by})" if finding.silenced_by else ""
        head = self._heading(4, f"{finding.severity.capitalize()}: {finding.title}{saving}{explained}")
        evidence = [self._line(words.evidence_words(one.text, one.value, one.unit)) for one in finding.evidence[:6]]
        actions = []
        for action in finding.actions[:6]:
            name = words.FRAMEWORKS.get(action.framework, action.framework)
            actions.append(syntax.bold("Do" + (f" ({name})" if name else "") + ":") + " " + self._line(action.text))
        parts = [head, self._line(finding.summary), syntax.bullets([*evidence, *actions])]
        return "\n\n".join(filter(None, [*parts, self._finding_details(finding)]))

    def _finding_details(self, finding: Finding) -> str:
        syntax = self.syntax
        facts = [f"Rule {syntax.code(finding.rule)}, confidence {finding.confidence}"]
        if finding.threshold:
            facts.append("Threshold: " + self._line(words.threshold_words(finding.threshold)))
        if finding.saving:
            facts.append("Saving: " + self._line(words.saving_whole(finding.saving, self.document)))
        for place in finding.locations[:10]:
            source = f" at {syntax.code(shortened(place.source, _NAME))}" if place.source else ""
            facts.append(f"{place.kind.capitalize()} {syntax.code(shortened(place.name, _NAME))}{source}")
        codes = [
            f"{self._line(action.text)}\n\n{syntax.block(shortened(action.code, 2000))}"
            for action in finding.actions
            if action.code
        ]
        return syntax.fold("Where, threshold, saving and code", "\n\n".join([syntax.bullets(facts), *codes]))

    def _checks(self, status: str, title: str) -> str:
        found = [one for one in self.document.checks if one.status == status]
        if not found:
            return ""
        body = self.syntax.bullets([self._check(one) for one in found])
        summary = f"{len(found)} {title}"
        if status in ("cannot_tell", "error"):
            return f"{self._heading(4, summary)}\n\n{body}"
        return self.syntax.fold(summary, body)

    def _check(self, check: Check) -> str:
        remedy = f" To find out: {self._line(check.remedy)}" if check.remedy else ""
        reason = f": {self._line(check.reason)}" if check.reason else ""
        return f"{self.syntax.bold(self._line(check.title))}{reason}{remedy}"

    def _section(self, section: Section) -> Iterator[_Part]:
        parts: list[_Part] = []
        heading = ""
        for block in section.blocks:
            for inner in walk((block,)):
                if isinstance(inner, Heading):
                    heading = self._heading(4, inner.text) + "\n\n"
                elif body := self._block(inner):
                    rank = _FOLDED if isinstance(block, Details) else _OPEN
                    parts.append(_Part(heading + body, f"parts of {section.title}", rank))
                    heading = ""
        if parts:
            yield _Part(self._heading(3, section.title), section.title, _OPEN)
        yield from parts

    def _block(self, block: Block) -> str:
        match block:
            case Text():
                lines = shortened(block.text, _TEXT * 4).splitlines()
                return "\n\n".join(self.syntax.text(one) for one in lines if one.strip())
            case Notice():
                code = f"\n\n{self.syntax.block(shortened(block.code, 1000))}" if block.code else ""
                return self._line(block.text) + code
            case TableBlock() if block.table in self.document.tables and block.open_rows:
                return self._table(self.document.tables[block.table], min(block.open_rows, _ROWS))
            case ChartBlock() if block.chart in self.document.charts:
                chart = self.document.charts[block.chart]
                return f"{self.syntax.bold(self._line(chart.title))}. {self._line(chart.alt)}"
            case KeyValues():
                values = [self._line(f"{one.label}: {_plain(one.value, one.unit)}") for one in block.fields[:40]]
                return self.syntax.bullets(values)
        return ""

    def _table(self, table: Table, limit: int) -> str:
        rows = table.rows[:limit]
        filled = [index for index in readable(table) if has_value(rows, index)]
        kept = filled[:_COLUMNS]
        columns = [table.columns[index] for index in kept]
        cells = [
            [self._cell(row[index] if index < len(row) else None, table.columns[index]) for index in kept]
            for row in rows
        ]
        heads = [self._line(column.title or column.name) for column in columns]
        total = max(table.total_rows or 0, len(table.rows))
        note = [
            f"{len(rows)} of {total:,} rows." if total > len(rows) else "",
            f"{len(kept)} of {len(filled)} columns." if len(filled) > len(kept) else "",
            table.note,
        ]
        parts = [
            self.syntax.bold(self._line(table.title)),
            self.syntax.table(heads, [is_numeric(rows, index) for index in kept], cells) if cells else "",
            self._line(" ".join(filter(None, note))),
        ]
        return "\n\n".join(filter(None, parts))

    def _cell(self, value: Cell, column: Column) -> str:
        if isinstance(value, str) and column.display == "code":
            return self.syntax.code(middle(value, _NAME))
        text = middle(_plain(value, column.unit), _NAME * 2)
        return self.syntax.text(text) or " "


def _plain(value: Cell, unit: str) -> str:
    if value is None:
        return units.NOT_CAPTURED
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else number(value, unit)
