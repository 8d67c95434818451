"""A gate's result as a table of text or Markdown, as JSON, and as annotations of GitHub."""

from __future__ import annotations

import msgspec

from reportgen.charts.text import visible
from reportgen.gate.check import GateResult, Outcome

_SIGNS = {"failed": "FAILED", "warned": "warning", "passed": "ok"}
_HEADS = ("", "Limit of", "Limit", "Found", "Missed by")
_WIDEST = 60
_MOST_ANNOTATIONS = 10  # GitHub shows ten of a kind a step


def summary(result: GateResult) -> str:
    """Return one sentence: how many limits were kept and missed."""
    if not result.outcomes:
        return "No limit was checked: the budgets are empty."
    kept = len(result.outcomes) - len(result.failed) - len(result.warned)
    parts = [f"{len(result.failed)} of {len(result.outcomes)} limits failed"] if result.failed else []
    parts += [f"{len(result.warned)} warned"] if result.warned else []
    return ", ".join([*parts, f"{kept} kept"]) + "."


def as_text(result: GateResult) -> str:
    """Return a table with aligned columns for a terminal or a log."""
    rows = [_HEADS, *(_row(one) for one in result.outcomes)] if result.outcomes else []
    cells = [[cell if len(cell) <= _WIDEST else cell[: _WIDEST - 1] + "…" for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([*lines, summary(result)]) + "\n"


def as_markdown(result: GateResult) -> str:
    """Return a section of Markdown for a job's summary or a comment."""
    lines = [f"### Performance gate: {'passed' if result.passed else 'failed'}", "", summary(result)]
    if result.outcomes:
        lines += ["", f"| {' | '.join(_HEADS)} |", "|" + " :-- |" * len(_HEADS)]
        lines += [f"| {' | '.join(map(_cell, _row(one)))} |" for one in result.outcomes]
    return "\n".join(lines) + "\n"


def as_json(result: GateResult) -> str:
    """Return the result for machines."""
    content = {"passed": result.passed, **msgspec.to_builtins(result)}
    return msgspec.json.format(msgspec.json.encode(content), indent=1).decode() + "\n"


def as_annotations(result: GateResult) -> str:
    """Return GitHub's workflow commands, a line a missed limit: errors first, ten of each kind at most."""
    lines = []
    for command, missed in (("error", result.failed), ("warning", result.warned)):
        for one in missed[:_MOST_ANNOTATIONS]:
            title = _escaped(f"{one.kind} {one.id}").replace(":", "%3A").replace(",", "%2C")
            lines.append(f"::{command} title={title}::{_escaped(sentence(one))}\n")
    return "".join(lines)


def sentence(outcome: Outcome) -> str:
    """Return what became of a limit as one sentence."""
    missed = f", {outcome.excess}" if outcome.excess else ""
    return f"{outcome.title}: {outcome.actual}{missed}; the limit is {outcome.limit}."


def _row(outcome: Outcome) -> tuple[str, ...]:
    cells = (_SIGNS[outcome.status], outcome.id, outcome.limit, outcome.actual, outcome.excess)
    return tuple(visible(cell) for cell in cells)


def _cell(text: str) -> str:
    """Return text for a cell of GitHub's Markdown: as code where it could mean anything else."""
    if not text or text.replace(" ", "").replace(".", "").replace("%", "").isalnum():
        return text
    shown = "".join(f"&#{ord(c)};" if c in "|\\`*_[]<>&~#@$:!" else c for c in text)
    return f"<span>{shown}</span>"


def _escaped(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
