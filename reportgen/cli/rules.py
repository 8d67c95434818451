"""The command that lists the rules, or prints the page of one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reportgen.cli import common

if TYPE_CHECKING:
    from reportgen.rules.base import Rule
    from reportgen.settings import Settings

FORMATS = ("text", "json", "md")
Row = dict[str, Any]


def rules(
    rule: Annotated[str | None, typer.Argument(metavar="[ID]", help="Print this rule's page.")] = None,
    form: Annotated[str, typer.Option("--format", help="Of the list: text, json or md.")] = "text",
    only: common.Only = None,
    skip: common.Skip = None,
    thresholds: common.Set = None,
    settings_file: common.SettingsFile = None,
) -> None:
    """List the rules with their thresholds, as the same options of `report` make them; or print a rule's page."""
    from reportgen.errors import UsageError  # noqa: PLC0415
    from reportgen.rules import all_rules  # noqa: PLC0415

    every = all_rules()
    if rule is not None:
        sys.stdout.write(_page(every, rule))
        return
    if form not in FORMATS:
        raise UsageError(f"--format {form}: expected one of {', '.join(FORMATS)}.")
    settings = common.make_settings(only=only, skip=skip, thresholds=thresholds, file=settings_file)
    rows = _rows(every, settings)
    sys.stdout.write({"text": _as_text, "json": _as_json, "md": _as_markdown}[form](rows))


def _page(every: Sequence[Rule], name: str) -> str:
    """Return a rule's page; of another package's rule, which has none, its title and description."""
    from inspect import cleandoc  # noqa: PLC0415

    from reportgen.errors import UsageError  # noqa: PLC0415
    from reportgen.rules.pages import rule_page  # noqa: PLC0415

    rule = next((rule for rule in every if rule.id == name), None)
    if rule is None:
        raise UsageError(f"no rule is called {name!r}.", "`reportgen rules` lists them all.")
    try:
        return rule_page(name)
    except KeyError:
        return f"# {rule.title}\n\n{cleandoc(type(rule).__doc__ or '')}\n"


def _rows(every: Sequence[Rule], settings: Settings) -> list[Row]:
    """Return each rule with its state and thresholds.

    Raises:
        UsageError: The settings name an unknown rule or threshold.

    """
    from reportgen.rules.run import is_on, limits_of, refuse_unknown  # noqa: PLC0415

    refuse_unknown(every, settings)
    return [
        {
            "id": rule.id,
            "title": rule.title,
            "state": "on" if is_on(rule, settings) else "off",
            "thresholds": [
                {
                    "name": limit.name,
                    "value": limit.value,
                    "default": default.value,
                    "changed": limit.value != default.value,
                    "unit": limit.unit,
                    "reason": limit.reason,
                }
                for limit, default in zip(limits_of(rule, settings), rule.thresholds, strict=True)
            ],
        }
        for rule in every
    ]


def _as_json(rows: list[Row]) -> str:
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"


def _as_text(rows: list[Row]) -> str:
    width = max(len(row["id"]) for row in rows)
    return "".join(line + "\n" for row in rows for line in _lines(row, width))


def _lines(row: Row, width: int) -> Iterator[str]:
    yield f"{row['id']:{width}}  {row['state']:3}  {row['title']}"
    for limit in row["thresholds"]:
        yield f"    {limit['name']} = {_value(limit)} {limit['unit']}. {limit['reason']}"


def _as_markdown(rows: list[Row]) -> str:
    lines = ["| rule | state | title | threshold | value | unit | reason |", "|---|---|---|---|--:|---|---|"]
    for row in rows:
        head = [f"`{row['id']}`", row["state"], row["title"]]
        for limit in row["thresholds"] or [None]:
            cells = [f"`{limit['name']}`", _value(limit), limit["unit"], limit["reason"]] if limit else [""] * 4
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in (*head, *cells)) + " |")
    return "\n".join(lines) + "\n"


def _value(limit: Row) -> str:
    value = f"{limit['value']:.10g}"
    return f"{value} (changed, by default {limit['default']:.10g})" if limit["changed"] else value
