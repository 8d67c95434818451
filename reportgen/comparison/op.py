"""An op of a report, with what it is recognised by in another report."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

from reportgen.document import Card, Cell, ReportDocument
from reportgen.units import PS_PER_SECOND

_LEAF = re.compile(r"\b(pred|token|opaque|bf16|[suf]\d+\w*|c\d+)\[([\d,<= ]*)\]")
_LAYOUT = re.compile(r"\{[^{}]*\}")
_FINGERPRINT = re.compile(r"\(\d+\)$")
_NUMBERS = re.compile(r"\d+")
_SUFFIX = re.compile(r"(\.\d+|\.clone|\.remat\d*)+$")
_CALL = re.compile(r"([\w.-]+)\((.*)\)")
# Scopes that frameworks add themselves: they name no part of the model.
_OWN_SCOPES = frozenset(
    ("while", "body", "cond", "scan", "remat", "checkpoint", "rematted_computation", "closed_call", "core_call",
     "custom_jvp_call", "custom_vjp_call", "shard_map", "pjit", "branch_0_fun", "branch_1_fun", "gradient_tape",
     "gradients", "StatefulPartitionedCall", "PartitionedCall")
)  # fmt: skip
_PROGRAM = frozenset(("jit", "pjit", "pmap", "xmap"))


@dataclass(frozen=True)
class Op:
    """An op of a report's table.

    Attributes:
        self_time: Seconds of all executions, summed over cores.
        time: Its part of the step, or of the capture, in seconds.
        row: Its row id in the report.
        flops: Of one execution; None where there is no cost model.
        inside: Framework ops inside a fusion, where the report has a card for it.

    """

    name: str
    category: str
    framework_op: str
    source: str
    module: str
    shape: str
    position: int
    self_time: float
    row: str
    flops: float | None = None
    time: float = 0.0
    inside: frozenset[str] = frozenset()

    def with_time(self, seconds: float) -> Op:
        """Return the op with its part of the step."""
        return replace(self, time=seconds)

    @cached_property
    def leaves(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Element type and dimensions of each array of the result."""
        return tuple(
            (kind, tuple(int(number) for number in _NUMBERS.findall(dimensions)))
            for kind, dimensions in _LEAF.findall(self.shape)
        )

    @cached_property
    def sizes(self) -> str:
        """The result shape without layouts."""
        return _LAYOUT.sub("", self.shape)

    @cached_property
    def program(self) -> str:
        """The module's name without what each compilation numbers anew."""
        return _NUMBERS.sub("#", _FINGERPRINT.sub("", self.module))

    @cached_property
    def stem(self) -> str:
        """The instruction's name without its number."""
        return _SUFFIX.sub("", self.name)

    @cached_property
    def path(self) -> str:
        """The framework's op without a final colon and what it says of the op's type."""
        return path_of(self.framework_op)

    @cached_property
    def scopes(self) -> tuple[str, ...]:
        """The user's scopes, outermost first, without the framework's own and without the op itself."""
        return scopes_of(self.framework_op)

    @cached_property
    def recomputed(self) -> bool:
        """Whether it computes again, for the backward pass, what the forward pass did not keep."""
        return "rematted_computation" in self.framework_op

    @cached_property
    def place(self) -> tuple[tuple[str, ...], str, bool, bool] | None:
        """The framework's op without the transformations around its scopes; None where there is none."""
        if not self.framework_op:
            return None
        return self.scopes, self.path.rsplit("/", 1)[-1], "transpose(" in self.framework_op, self.recomputed

    @cached_property
    def line(self) -> str:
        """The source line without the folder of the file, which may differ between two checkouts."""
        return self.source.rsplit("/", 1)[-1]


def path_of(framework_op: str) -> str:
    """Return a framework's op without a final colon and what it says of the op's type."""
    return framework_op.rpartition(":")[0] or framework_op


def scopes_of(framework_op: str) -> tuple[str, ...]:
    """Return the user's scopes of a framework's op: `layer_0` of `jit(step)/transpose(jvp(layer_0))/dot_general:`."""
    scopes = (_unwrapped(part) for part in path_of(framework_op).split("/")[:-1])
    return tuple(scope for scope, _ in groupby(scope for scope in scopes if scope and scope not in _OWN_SCOPES))


def _unwrapped(scope: str) -> str:
    """Return a scope without the transformations around it; "" where it names a whole program."""
    while call := _CALL.fullmatch(scope):
        if call[1] in _PROGRAM:
            return ""
        scope = call[2]
    return scope


def read_ops(document: ReportDocument) -> tuple[Op, ...]:
    """Return the ops of a report's table `hlo_ops`; empty where it has none."""
    table = document.tables.get("hlo_ops")
    if table is None:
        return ()
    places = {column.name: index for index, column in enumerate(table.columns)}
    ids = table.row_ids or ("",) * len(table.rows)
    found = []
    for number, (row, row_id) in enumerate(zip(table.rows, ids, strict=True)):
        cells = {name: row[place] for name, place in places.items()}
        texts = {name: str(cells.get(name) or "") for name in _TEXTS}
        found.append(
            Op(
                name=texts["name"],
                category=texts["category"],
                framework_op=texts["framework_op"],
                source=texts["source"],
                module=texts["module"],
                shape=texts["shape"],
                position=int(_number(cells.get("position"), number)),
                self_time=_number(cells.get("self_ps"), 0) / PS_PER_SECOND,
                row=row_id,
                flops=_flops(cells),
                inside=_inside(document.cards.get(row_id)),
            )
        )
    return tuple(found)


_TEXTS = ("name", "category", "framework_op", "source", "module", "shape")


def _flops(cells: Mapping[str, Cell]) -> float | None:
    flops, executions = _number(cells.get("model_flops"), 0), _number(cells.get("occurrences"), 0)
    return flops / executions if flops > 0 and executions > 0 else None


def _number(cell: Cell, absent: float) -> float:
    return float(cell) if isinstance(cell, int | float) else absent


def _inside(card: Card | None) -> frozenset[str]:
    """Return the framework ops inside a fusion, as its card lists them."""
    found: set[str] = set()
    for table in card.tables if card else ():
        places = [index for index, column in enumerate(table.columns) if column.name == "framework_op"]
        found |= {path_of(str(row[place])) for place in places for row in table.rows if row[place]}
    return frozenset(found)
