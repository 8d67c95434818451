"""What a report is made of: metrics, tables, charts, cards and the blocks that arrange them.

Plain, frozen data without behaviour. Analyzers fill them, renderers draw them, and all of it is report.json.
Text is plain text: it may come from a profile, so renderers escape it and never read markup in it.
Values are raw (seconds, bytes, fractions, counts); `unit` says which, and `reportgen.units` formats them.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Cell = str | float | int | bool | None
Basis = Literal["measured", "derived", "modelled", "catalogue", "heuristic"]
Role = Literal[
    "compute", "input", "output", "host_transfer", "collectives", "idle", "data_formatting", "custom_call",
    "other", "accent", "neutral", "warning",
]  # fmt: skip


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """One number of the report.

    Attributes:
        title: Short label, as on a tile.
        value: The number, or None where it was not captured.
        unit: "seconds", "bytes", "fraction", "count", "flops/s", "bytes/s"... (see `units.quantity`).
        definition: How it is computed, with its denominator.
        basis: Where such a number comes from: measured, derived, modelled...
        source: The lines, stats or options that it was computed from.
        better: Which direction is an improvement; None where neither is.
        reason: Why there is no value, and how to capture it; None where there is one.
        spread: A second number that belongs to it, such as the standard deviation, in the same unit.

    """

    title: str
    value: float | None
    unit: str
    definition: str
    basis: Basis = "measured"
    source: str = ""
    better: Literal["lower", "higher"] | None = None
    reason: str | None = None
    spread: float | None = None


class Column(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A column of a table.

    Attributes:
        name: Stable snake_case name.
        unit: Unit of its numbers ("" for text and plain numbers).
        title: Heading for people; the name where empty.
        display: "text", "number", "code" (an expression or name from the profile), "bar" (a share with a thin
            bar), "flame" (a utilisation, red to green), "flag" (yes or no), "machine" (for report.json alone).
        definition: What the column means.

    """

    name: str
    unit: str = ""
    title: str = ""
    display: Literal["text", "number", "code", "bar", "flame", "flag", "machine"] = "text"
    definition: str = ""


class Table(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Rows of raw values.

    Attributes:
        row_ids: One stable slug a row, such as "op-fusion-42", for anchors and links; empty for none. A card of
            that id belongs to the row.
        total_rows: How many rows there were before the table was cut; None where it was not.
        note: What the reader must know: how it was computed, what was cut.

    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    row_ids: tuple[str, ...] = ()
    total_rows: int | None = None
    note: str = ""


class Axis(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An axis: its label, the unit of its numbers and its scale."""

    label: str
    unit: str = ""
    log: bool = False


class Series(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One series of a chart.

    Attributes:
        name: Direct label.
        role: What it stands for; the same role has the same colour in every chart.
        x: Positions; empty for 0, 1, 2...
        y: Values, as long as `x`.
        ends: For kind "spans": end position of each rectangle (x is its start).
        tops: For kind "spans": upper edge of each rectangle (y is its lower edge).
        labels: One label a mark, for pointing at it; may be empty.
        row_ids: One row id a mark, linking it to a table row; may be empty.

    """

    name: str
    role: Role = "accent"
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()
    ends: tuple[float, ...] = ()
    tops: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()
    row_ids: tuple[str, ...] = ()


class Guide(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line across a chart with its label: a capacity, a peak, a mean; or a roof through two points."""

    label: str
    axis: Literal["x", "y", "roof"] = "y"
    value: float = 0.0
    points: tuple[tuple[float, float], ...] = ()


class Chart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A chart as data; how it is drawn stands in `reportgen.charts` alone.

    Attributes:
        title: The take-away, as a sentence.
        kind: "stacked_steps" (series stacked over steps), "stacked_bars" (one horizontal bar a category),
            "bars" (horizontal), "curve" (a step curve over positions), "scatter", "spans" (rectangles over x).
        alt: Text for those who cannot see it: the take-away and the main numbers.
        categories: Labels of the categories of bars, or of the lanes of spans.
        table: Id of the table that holds its numbers.

    """

    title: str
    kind: Literal["stacked_steps", "stacked_bars", "bars", "curve", "scatter", "spans"]
    alt: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    guides: tuple[Guide, ...] = ()
    categories: tuple[str, ...] = ()
    table: str = ""


class Field(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of a card: a raw value with its unit, or text."""

    label: str
    value: Cell
    unit: str = ""
    display: Literal["text", "code"] = "text"


class Card(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Details of one thing, such as an op or a buffer, shown beside its table row of the same id."""

    title: str
    fields: tuple[Field, ...]
    expression: str = ""
    tables: tuple[Table, ...] = ()


class Lane(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One track of a timeline, as parallel columns.

    Attributes:
        starts: Seconds from the timeline's start.
        durations: Seconds.
        names: Index of each event's name in the timeline's `names`.
        roles: Index of each event's role in the timeline's `roles`.

    """

    title: str
    group: str
    starts: tuple[float, ...]
    durations: tuple[float, ...]
    names: tuple[int, ...]
    roles: tuple[int, ...]


class Timeline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A stretch of time on several tracks: cores and host threads."""

    title: str
    alt: str
    start: float
    duration: float
    lanes: tuple[Lane, ...]
    names: tuple[str, ...]
    roles: tuple[Role, ...]
    note: str = ""


class Text(msgspec.Struct, frozen=True, tag="text"):
    """A paragraph."""

    text: str


class Heading(msgspec.Struct, frozen=True, tag="heading"):
    """A heading inside a section."""

    text: str
    id: str


class Tiles(msgspec.Struct, frozen=True, tag="tiles"):
    """Metrics as tiles, by their ids."""

    metrics: tuple[str, ...]


class TableBlock(msgspec.Struct, frozen=True, tag="table"):
    """A table by its id, the first `open_rows` open and the rest folded."""

    table: str
    open_rows: int = 10


class ChartBlock(msgspec.Struct, frozen=True, tag="chart"):
    """A chart by its id."""

    chart: str


class TimelineBlock(msgspec.Struct, frozen=True, tag="timeline"):
    """A timeline by its id."""

    timeline: str


class KeyValues(msgspec.Struct, frozen=True, tag="key_values"):
    """Labelled values."""

    fields: tuple[Field, ...]


class Notice(msgspec.Struct, frozen=True, tag="notice"):
    """What is missing here and the line that captures it next time."""

    text: str
    code: str = ""


class Details(msgspec.Struct, frozen=True, tag="details"):
    """Blocks folded behind a summary that says what is inside."""

    summary: str
    blocks: tuple[Block, ...]


class Findings(msgspec.Struct, frozen=True, tag="findings"):
    """All findings as cards, worst first."""


class Checks(msgspec.Struct, frozen=True, tag="checks"):
    """What was checked and is fine, what does not apply, and what could not be checked."""


Block = (
    Text | Heading | Tiles | TableBlock | ChartBlock | TimelineBlock | KeyValues | Notice | Details | Findings | Checks
)


class Section(msgspec.Struct, frozen=True):
    """A section of the report, in the order of the document."""

    id: str
    title: str
    blocks: tuple[Block, ...]
