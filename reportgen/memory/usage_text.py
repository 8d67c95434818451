"""XLA's `*-memory-usage-report.txt`: exact totals per memory space, and rows rounded to two digits.

Where it is all that there is, it still gives the totals and the largest rows with their shapes.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from reportgen.errors import InputError
from reportgen.memory.model import ALLOCATION_TYPES, UNKNOWN, Allocation, Buffer, ModuleMemory, SpaceMemory, space_name
from reportgen.memory.oom.sizes import parse_size
from reportgen.profile.shapes import Shape, parse_prefix

_SPACE = re.compile(r"^Memory Space: (\S+) \(color=(\d+)\)\s*$")
_TOTAL = re.compile(r"^Total bytes: (\d+)")
_ROW = re.compile(r"^\s*\S+\(\s*\d+%\);\s*(\S+);\s*(\d+);\s*(\d+);\s?(.*)$")
_HEADING = "cumulative_size;"
_COUNT = re.compile(r"^\d+×")


class Row(NamedTuple):
    """A place in an allocation: its rounded size, offset, how many values use it, and their shapes."""

    size: int
    offset: int
    values: int
    shapes: str


class Space(NamedTuple):
    """A memory space of the report: exact total, and for each allocation its rows."""

    name: str
    color: int
    total: int
    allocations: list[list[Row]]


def parse_usage_report(text: str) -> list[Space]:
    """Read a memory-usage report.

    Raises:
        InputError: It holds no memory space.

    """
    spaces: list[Space] = []
    for line in text.split("\n"):
        if match := _SPACE.match(line):
            spaces.append(Space(match[1], int(match[2]), 0, []))
        elif not spaces:
            continue
        elif match := _TOTAL.match(line):
            spaces[-1] = spaces[-1]._replace(total=int(match[1]))
        elif line.lstrip().startswith(_HEADING):
            spaces[-1].allocations.append([])
        elif spaces[-1].allocations and (match := _ROW.match(line)):
            row = Row(parse_size(match[1]) or 0, int(match[2]), int(match[3]), match[4])
            spaces[-1].allocations[-1].append(row)
    if not spaces:
        raise InputError("The memory-usage report holds no line such as 'Memory Space: default (color=0)'.")
    return spaces


def memory_from_usage_report(text: str, name: str) -> ModuleMemory:
    """Account for a module by its usage report alone.

    Totals are exact; buffers have rounded sizes and no names; what holds them, and when, is not in the report.
    """
    spaces = {space.color: _space(space) for space in parse_usage_report(text) if space.total}
    note = "Only XLA's memory-usage report is there: sizes of buffers are rounded; their lifetimes are not captured."
    return ModuleMemory(name, 0, "", spaces, None, "", (note,))


def _space(space: Space) -> SpaceMemory:
    buffers = [
        _buffer(row, number, place) for number, rows in enumerate(space.allocations) for place, row in enumerate(rows)
    ]
    allocations = [
        Allocation(number, sum(row.size for row in rows), UNKNOWN, aliased=False, parameter=None, buffers=())
        for number, rows in enumerate(space.allocations)
    ]
    return SpaceMemory(
        color=space.color,
        name=space_name(space.color),
        allocated_bytes=space.total,
        live_peak_bytes=space.total,
        unpadded_peak_bytes=min(space.total, sum(buffer.unpadded_size for buffer in buffers)),
        xprof_peak_bytes=space.total,
        xprof_unpadded_peak_bytes=space.total,
        peak_event=None,
        by_type=dict.fromkeys(ALLOCATION_TYPES, 0) | {UNKNOWN: space.total},
        output_bytes=0,
        aliased_bytes=0,
        allocations=tuple(allocations),
        buffers=tuple(buffers),
        peak_buffers=tuple(buffers),
        curve=None,
    )


def _buffer(row: Row, allocation: int, place: int) -> Buffer:
    shape = _first_shape(row.shapes)
    unpadded = shape.unpadded_bytes if shape and not shape.is_tuple else row.size
    return Buffer(
        id=allocation * 1_000_000 + place,
        name=f"allocation {allocation} at {row.offset}",
        instruction="",
        index=(),
        category="",
        allocation_type=UNKNOWN,
        size=row.size,
        unpadded_size=min(unpadded, row.size),
        shape=str(shape) if shape else row.shapes,
        op_name="",
        source="",
        stack=(),
        allocation=allocation,
        offset=row.offset,
    )


def _first_shape(text: str) -> Shape | None:
    """The first shape of a list such as `5×bf16[8,128], f32[2]`."""
    try:
        return parse_prefix(_COUNT.sub("", text.strip()))[0]
    except InputError:
        return None
