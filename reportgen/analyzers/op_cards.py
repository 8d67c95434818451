"""Details of the largest ops: expression, source, the ops inside a fusion, and layouts with padding."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from reportgen.analyzers.tables import unique_slugs
from reportgen.document import Card, Column, Field, Table
from reportgen.profile.hlo import Instruction
from reportgen.profile.hlo_cost import flops
from reportgen.profile.hlo_roles import matrix_instruction
from reportgen.profile.matrix_unit import MatrixLayout, matrix_layout
from reportgen.profile.view import HostView

_MOST_MEMBERS = 40
_MOST_CARDS = 60
_NO_MEMBERS = frozenset({"parameter", "tuple", "get-tuple-element"})


@dataclass(frozen=True)
class Member:
    """An op inside a fusion: it has FLOPs, but no time of its own."""

    name: str
    opcode: str
    shape: str
    framework_op: str
    flops: float | None


@dataclass(frozen=True)
class OpDetail:
    """What the HLO tells of an op beyond the profile.

    Attributes:
        members: Ops inside a fusion, largest FLOPs first, at most 40; `member_count` says how many there are.
        layout: Of the dot or convolution that it is or holds; None for other ops.
        source, stack: Where in the user's program, where the profile itself does not tell.

    """

    members: tuple[Member, ...]
    member_count: int
    layout: MatrixLayout | None
    source: str
    stack: str
    operand_types: tuple[str, ...]


OpKey = tuple[int, str, str]


def op_details(view: HostView, ops: pd.DataFrame) -> dict[OpKey, OpDetail]:
    """Return details of ops whose module is in the profile, by program, module and name."""
    matrix_unit = view.active_cores[0].peaks.matrix_unit
    found: dict[OpKey, OpDetail] = {}
    for program, module_name, name in zip(ops["program"], ops["module"], ops["name"], strict=True):
        module = view.modules.get(int(program))
        instruction = module.by_name.get(name) if module is not None else None
        if module is None or instruction is None:
            continue
        inside = [member for member in module.fused_instructions(instruction) if member.opcode not in _NO_MEMBERS]
        members = [
            Member(member.name, member.opcode, str(member.shape), member.op_name, flops(module, member))
            for member in inside
        ]
        members.sort(key=lambda member: -(member.flops or 0.0))
        matrix = matrix_instruction(module, instruction)
        found[(int(program), module_name, name)] = OpDetail(
            members=tuple(members[:_MOST_MEMBERS]),
            member_count=len(members),
            layout=matrix_layout(matrix, matrix_unit) if matrix is not None else None,
            source=str(instruction.source or ""),
            stack="\n".join(map(str, instruction.stack)),
            operand_types=_types(instruction),
        )
    return found


def _types(instruction: Instruction) -> tuple[str, ...]:
    leaves = [leaf for operand in instruction.operands for leaf in operand.shape.leaves()]
    return tuple(dict.fromkeys(leaf.element_type for leaf in leaves))


def op_ids(ops: pd.DataFrame) -> list[str]:
    """Return a stable id a row of an op table, in its order: "op-fusion-42"."""
    return list(ops["row_id"]) if "row_id" in ops else unique_slugs("op", ops["name"])


def op_cards(ops: pd.DataFrame, details: dict[OpKey, OpDetail]) -> dict[str, Card]:
    """Return the cards of the largest ops by row id."""
    cards = {}
    for row_id, row in zip(op_ids(ops)[:_MOST_CARDS], ops.head(_MOST_CARDS).to_dict("records"), strict=True):
        detail = details.get((row["program"], row["_module_key"], row["name"]))
        cards[row_id] = _card(row, detail)
    return cards


def category_cards(table: Table) -> dict[str, Card]:
    """Return a card a row of a table of categories, by row id: all that the row holds."""
    return {
        row_id: Card(
            title=str(row[0]),
            fields=tuple(
                Field(label=column.title, value=value, unit=column.unit)
                for column, value in zip(table.columns[1:], row[1:], strict=True)
                if column.title and value not in (None, "")
            ),
        )
        for row_id, row in zip(table.row_ids, table.rows, strict=True)
    }


_FIELDS = (
    ("Category", "category", ""),
    ("Program", "module", ""),
    ("Framework op", "framework_op", ""),
    ("Source", "source", ""),
    ("Occurrences", "occurrences", "count"),
    ("Total time", "time_s", "seconds"),
    ("Self time", "self_s", "seconds"),
    ("Average time", "average_s", "seconds"),
    ("FLOPS utilisation", "flops_utilization", "fraction"),
    ("FLOP rate", "flop_rate", "flops/s"),
    ("HBM bandwidth utilisation", "hbm_utilization", "fraction"),
    ("HBM rate", "hbm_rate", "bytes/s"),
    ("On-chip read utilisation", "onchip_read_utilization", "fraction"),
    ("On-chip write utilisation", "onchip_write_utilization", "fraction"),
    ("Operational intensity", "intensity", "flops/byte"),
    ("Bound by", "bound_by", ""),
    ("Result shape", "shape", ""),
    ("Repeats", "deduplicated", ""),
)


def _card(row: Mapping[Hashable, Any], detail: OpDetail | None) -> Card:
    fields = []
    for label, name, unit in _FIELDS:
        value = row[name]
        if value is None or value == "" or value != value:  # noqa: PLR0124 - NaN
            continue
        fields.append(Field(label=label, value=value if isinstance(value, str) else float(value), unit=unit))
    if row["flops_utilization"] != row["flops_utilization"]:
        fields.append(Field(label="FLOPS utilisation", value="no cost model for this op"))
    if detail is not None and detail.source and not row["source"]:
        fields.append(Field(label="Source", value=detail.source))
    stack = str(row["stack"] or (detail.stack if detail else ""))
    if stack:
        fields.append(Field(label="Source stack", value=stack, display="code"))
    tables = []
    if detail is not None and detail.layout is not None:
        fields += _layout_fields(detail.layout)
        tables.append(_layout_table(detail.layout))
    if detail is not None and detail.members:
        tables.append(_members_table(detail))
    return Card(title=str(row["name"]), fields=tuple(fields), expression=str(row["expression"]), tables=tuple(tables))


def _layout_fields(layout: MatrixLayout) -> list[Field]:
    left, right, result = layout.tile_shares
    fields = [
        Field(label="Useful tile share, left operand", value=left, unit="fraction"),
        Field(label="Useful tile share, right operand", value=right, unit="fraction"),
        Field(label="Useful tile share, result", value=result, unit="fraction"),
    ]
    if layout.unit_share is not None:
        fields.append(Field(label="Useful share of the matrix unit", value=layout.unit_share, unit="fraction"))
    return fields


def _layout_table(layout: MatrixLayout) -> Table:
    names = dict(zip(("left", "right", "result"), layout.element_types, strict=True))
    ordered = sorted(
        layout.dimensions, key=lambda entry: (("left", "right", "result").index(entry.operand), entry.place)
    )
    return Table(
        title=f"Layout of {layout.opcode} {layout.instruction}",
        columns=(
            Column(name="operand", title="Operand"),
            Column(name="type", title="Type"),
            Column(name="dimension", title="Dimension"),
            Column(name="role", title="Role"),
            Column(name="size", unit="count", title="Size"),
            Column(name="padded_size", unit="count", title="Padded to"),
            Column(name="padding", title="Padding"),
        ),
        rows=tuple(
            (
                entry.operand,
                names[entry.operand],
                entry.dimension,
                entry.role,
                entry.size,
                entry.padded_size,
                "exact fit" if entry.size == entry.padded_size else f"{entry.padded_size - entry.size} added",
            )
            for entry in ordered
        ),
        note="Minor-most dimension first: the first lies on the tile's lanes, the second on its sublanes.",
    )


def _members_table(detail: OpDetail) -> Table:
    return Table(
        title="Ops inside",
        columns=(
            Column(name="name", title="Op", display="code"),
            Column(name="opcode", title="Opcode"),
            Column(name="flops", unit="flops", title="FLOPs"),
            Column(name="shape", title="Shape", display="code"),
            Column(name="framework_op", title="Framework op", display="code"),
        ),
        rows=tuple((m.name, m.opcode, m.flops, m.shape, m.framework_op) for m in detail.members),
        total_rows=detail.member_count if detail.member_count > len(detail.members) else None,
        note="Ops inside a fusion run as one: they have FLOPs, but no time of their own.",
    )
