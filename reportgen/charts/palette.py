"""Colours by what they stand for, the same in every chart: after Okabe and Ito, told apart by the colour-blind too.

Figures are drawn in the light colours. In SVG each becomes a CSS variable of the page, which knows the dark ones.
"""

from __future__ import annotations

from reportgen.document import Role

# Role -> colour on a light and on a dark background; no two roles share a light colour, since it is their key in SVG.
ROLES: dict[Role, tuple[str, str]] = {
    "compute": ("#0072b2", "#3d9bd8"),
    "input": ("#e69f00", "#e9ab23"),
    "output": ("#b7a900", "#d9cf4a"),
    "host_transfer": ("#d55e00", "#ef7d2b"),
    "collectives": ("#b9589a", "#d98bbd"),
    "idle": ("#b4bcc5", "#59626d"),
    "data_formatting": ("#56b4e9", "#8fd0f5"),
    "custom_call": ("#009e73", "#2bbd93"),
    "other": ("#7d8793", "#9aa4b0"),
    "accent": ("#2563ab", "#7ab0ee"),
    "neutral": ("#69727e", "#aab2bc"),
    "warning": ("#b3261e", "#ff8a80"),
}
INK = "#1a1d21"
MUTED = "#59616b"
GRID = "#d9dee4"
PAPER = "#ffffff"

_CHROME = {MUTED: "var(--muted)", GRID: "var(--grid)", INK: "currentColor", PAPER: "var(--paper)"}


def colour(role: Role) -> str:
    """Return the colour of a role on a light background, as #rrggbb."""
    return ROLES[role][0]


def css_colours() -> dict[str, str]:
    """Return how a page names each colour of a figure: from #rrggbb to a CSS variable or `currentColor`."""
    return {light: f"var(--{role.replace('_', '-')})" for role, (light, _) in ROLES.items()} | _CHROME
