"""Rules: one module each. To add one, write a module and name it here, and write its page in docs/rules."""

from __future__ import annotations

from importlib.metadata import entry_points

from reportgen.rules.base import Rule

RULES: tuple[Rule, ...] = ()


def all_rules() -> tuple[Rule, ...]:
    """Return the built-in rules and those of installed packages (entry points of group `reportgen.rules`)."""
    found = {rule.id: rule for rule in RULES}
    for point in sorted(entry_points(group="reportgen.rules"), key=lambda entry: entry.name):
        rule = point.load()
        found.setdefault(rule.id, rule() if isinstance(rule, type) else rule)
    return tuple(found.values())
