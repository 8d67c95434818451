"""Cells, names and numbers as HTML, in plain Python: a report has tens of thousands of them."""

from __future__ import annotations

import math
from html import escape

from reportgen import units
from reportgen.charts.text import middle, shortened, visible, visible_block
from reportgen.document import Cell, Column

FLAME_STEPS = 20
_NAME_LETTERS = 44
_TEXT_LETTERS = 160
_MAX_WHOLE = 1200
_HUGE = 10**300
_MISSING = '<td class="na">not captured</td>'


def exact(value: float, unit: str) -> str:
    """Return a number in full, with the name of its unit."""
    return f"{bounded(value)!r} {unit}".rstrip()


def bounded(value: float) -> float:
    """Return a number, infinite where it is a whole number that no float can hold: JSON knows no limit."""
    return value if isinstance(value, float) or abs(value) < _HUGE else math.copysign(math.inf, value > 0 or -1)


def number(value: float, unit: str) -> str:
    """Format a number; a plain whole number, such as that of a step, stays as it is."""
    value = bounded(value)
    return str(value) if unit == "" and isinstance(value, int) else units.quantity(value, unit)


def cell(value: Cell, column: Column) -> str:
    """Return a `<td>`."""
    if value is None:
        return _MISSING
    if isinstance(value, bool):
        return f"<td>{'<b>yes</b>' if value else 'no'}</td>"
    if isinstance(value, str):
        return f"<td>{name(value) if column.display == 'code' else words(value)}</td>"
    value = bounded(value)
    text = number(value, column.unit)
    whole = "" if text.replace(",", "") == str(value) else f' title="{escape(exact(value, column.unit))}"'
    if column.display == "bar":
        return f'<td class="n bar"{whole}><i class="w{_hundredths(value)}"></i>{text}</td>'
    if column.display == "flame":
        return f'<td class="n"{whole}><b class="f{flame_step(value)}">{text}</b></td>'
    return f'<td class="n"{whole}>{text}</td>'


def _hundredths(fraction: float) -> int:
    return round(100 * min(max(fraction, 0.0), 1.0)) if math.isfinite(fraction) else 0


def name(text: str) -> str:
    """Return a name from the profile, cut in the middle, with the whole on demand."""
    shown = visible(text)
    if len(shown) <= _NAME_LETTERS:
        return f"<code>{isolated(shown)}</code>"
    whole, short = isolated(shortened(shown, _MAX_WHOLE)), isolated(middle(shown, _NAME_LETTERS))
    return f'<details class="name"><summary><code>{short}</code></summary><code>{whole}</code></details>'


def link(text: str, anchor: str) -> str:
    """Return a name as a link, cut in the middle, with the whole as its title."""
    shown = visible(text)
    whole = f' title="{escape(shortened(shown, _MAX_WHOLE))}"' if len(shown) > _NAME_LETTERS else ""
    return f'<a href="#{anchor}"{whole}><code>{isolated(middle(shown, _NAME_LETTERS))}</code></a>'


def words(text: str) -> str:
    """Return text of a cell; long text folds."""
    shown = visible(text)
    if len(shown) <= _NAME_LETTERS:
        return isolated(shown)
    if len(shown) <= _TEXT_LETTERS:
        return f'<span class="long">{isolated(shown)}</span>'
    whole, short = isolated(shortened(shown, _MAX_WHOLE)), isolated(middle(shown, _TEXT_LETTERS))
    return f'<details class="name long"><summary>{short}</summary>{whole}</details>'


def isolated(text: str) -> str:
    """Return text as HTML whose direction of writing cannot reach its surroundings; plain ASCII has only one."""
    return escape(text) if text.isascii() else f"<bdi>{escape(text)}</bdi>"


def field_text(text: str, display: str) -> str:
    """Return a labelled value's text as HTML."""
    shown = isolated(visible(shortened(text, _MAX_WHOLE)))
    return f"<code>{shown}</code>" if display == "code" else shown


def line(text: str, limit: int = 2000) -> str:
    """Return one line of text, shortened in the middle where it is very long; not yet escaped."""
    return visible(shortened(text, limit))


def block(text: str, limit: int = 4000) -> str:
    """Return text with its line breaks, shortened in the middle where it is very long; not yet escaped."""
    return visible_block(shortened(text, limit))


def flame_step(fraction: float) -> int:
    """Return which of the colours from red to green stands for a utilisation."""
    return round(FLAME_STEPS * min(max(fraction, 0.0), 1.0)) if math.isfinite(fraction) else 0


def flame_colours() -> list[tuple[int, str, str]]:
    """Return (step, background, ink) from red over yellow (25 %) to green (100 %), ink being the more readable one.

    The hue follows XProf's op profile: with g the root of the utilisation, (0.7, 1.4 g, 0) below a half and
    (1.4 (1 - g), 0.7, 0) above.
    """
    result = []
    for step in range(FLAME_STEPS + 1):
        g = math.sqrt(step / FLAME_STEPS)
        rgb = (0.7, 1.4 * g, 0.0) if g < 0.5 else (1.4 * (1 - g), 0.7, 0.0)
        ink = "#000" if luminance(rgb) > 0.179 else "#fff"  # where black and white are equally readable
        result.append((step, "#" + "".join(f"{round(255 * part):02x}" for part in rgb), ink))
    return result


def luminance(rgb: tuple[float, float, float]) -> float:
    """Return the relative luminance of a colour given as shares of red, green and blue (WCAG 2, sRGB)."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
