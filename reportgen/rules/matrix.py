"""Diagnosis of every dot and convolution: one cause each, so that no two rules claim the same time.

What padding costs is the time that the same work would take less with dimensions that fill their tiles
(`reportgen.profile.matrix_cost`): filling the padding up is nearly free, leaving out a tile saves most of its share.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from reportgen.analyzers.classes import MATRIX
from reportgen.analyzers.matrix_ops import MatrixOp
from reportgen.profile.matrix_cost import LANES, SUBLANES, cost, padded, unaligned
from reportgen.profile.matrix_unit import LayoutDimension, MatrixLayout
from reportgen.rules.base import Evidences

Cause = Literal["precision", "padding", "memory", "low", "fine", "unknown"]
Range = tuple[float, float, float]

_CONVOLUTION = re.compile(r"conv", re.IGNORECASE)
_MATRIX_NAME = re.compile(r"dot_general|matmul|einsum|conv_general|conv2d|conv3d|convolution", re.IGNORECASE)
_MAYBE_MATRIX = frozenset({"custom-call", "custom fusion", "output fusion", "loop fusion"})
# A tile that a dimension barely enters can be left out; one that is mostly full had better be filled.
_BARELY = 0.12
_PASSES = {"high": 3, "highest": 6}
# Below it the law's own error is as large as what it predicts.
_LEAST = 0.1
_FEW = 0.2
_FAST_ENOUGH = 0.5
# A dot so far below the ridge waits for its weights, however its few rows are padded.
_STARVED = 0.25
# Below it neither memory nor the matrix unit is busy: the op is too small or held up.
_BUSY_MEMORY = 0.1
_SHORT = 5e-6


@dataclass(frozen=True)
class Change:
    """A dimension to change: its role and operand, its size, what it is padded to and the size to choose."""

    role: str
    size: int
    padded_size: int
    target: int

    def __str__(self) -> str:
        return f"{self.role} {self.size} takes the time of {self.padded_size}: make it {self.target}"


@dataclass(frozen=True)
class Diagnosis:
    """What limits one dot or convolution.

    Attributes:
        row: Its row in the table of ops.
        op: What the HLO tells; None where the profile has no HLO.
        kind: "dot" or "convolution".
        cause: The limit.
        saved: Low, likely and high saving, as shares of the op's time; None where no number is honest.
        changes: Dimensions to change, where padding is the cause.

    """

    row: dict[str, Any]
    op: MatrixOp | None
    kind: str
    cause: Cause
    saved: Range | None = None
    changes: tuple[Change, ...] = ()

    @property
    def time(self) -> float:
        """Self time in seconds, summed over cores."""
        return float(self.row["self_s"])

    @property
    def flops_utilization(self) -> float:
        """FLOPS utilisation; NaN where unknown."""
        return float(self.row["flops_utilization"])


def diagnoses(evidence: Evidences) -> tuple[Diagnosis, ...]:
    """Return a diagnosis of each dot and convolution, by self time."""
    return evidence.once("diagnoses", lambda shared: tuple(_diagnoses(shared)))


def _diagnoses(evidence: Evidences) -> Iterator[Diagnosis]:
    facts, profile = evidence.facts("matrix-ops"), evidence.facts("op-profile")
    known: dict[tuple[int, str, str], MatrixOp] = facts.ops if facts is not None else {}
    peaks = profile.peaks
    ridge = peaks.ridge if peaks is not None else None
    for row in evidence.ops.to_dict("records"):
        op = known.get((row["program"], row["_module_key"], row["name"]))
        name = f"{row['framework_op']} {row['category']}"
        if op is None and not _looks_like_matrix(row["category"], str(row["framework_op"])):
            continue
        kind = op.kind if op is not None else "convolution" if _CONVOLUTION.search(name) else "dot"
        yield diagnose({str(key): value for key, value in row.items()}, op, kind, ridge, profile.device)


def _looks_like_matrix(category: str, framework_op: str) -> bool:
    return category in MATRIX or (category in _MAYBE_MATRIX and bool(_MATRIX_NAME.search(framework_op)))


def diagnose(row: dict[str, Any], op: MatrixOp | None, kind: str, ridge: float | None, device: str) -> Diagnosis:
    """Return what limits a dot or convolution: the cause whose removal saves most, then memory, then the rest."""
    options: list[tuple[float, Cause, Range, tuple[Change, ...]]] = []
    if op is not None and device == "TPU":
        if op.precision in _PASSES:
            once, often = (cost(op.layout, op.window, op.unit, passes=n) for n in (1, _PASSES[op.precision]))
            likely = 1 - once / often
            options.append((likely, "precision", (0.7 * likely, likely, min(0.98, 1.3 * likely)), ()))
        changes = padding_changes(op.layout, op.window)
        starved = kind == "dot" and ridge is not None and float(row["intensity"]) < _STARVED * ridge
        if changes and not starved and (likely := saved_by(op, changes)) > _LEAST:
            options.append((likely, "padding", (0.6 * likely, likely, min(0.98, 1.5 * likely)), changes))
    if options:
        _, cause, saved, changes = max(options, key=lambda option: option[0])
        return Diagnosis(row, op, kind, cause, saved, changes)
    return Diagnosis(row, op, kind, _limit(row, ridge))


def _limit(row: dict[str, Any], ridge: float | None) -> Cause:
    flops, intensity = float(row["flops_utilization"]), float(row["hbm_intensity"])
    if math.isnan(flops) or ridge is None:
        return "unknown"
    if flops >= _FAST_ENOUGH:
        return "fine"
    if float(row["average_s"]) < _SHORT:
        return "low"
    if intensity < ridge and float(row["hbm_utilization"]) >= _BUSY_MEMORY:
        return "memory"
    return "low"


def _work(layout: MatrixLayout) -> list[LayoutDimension]:
    """Return the dimensions whose padding costs time: those of the result, and what the left operand contracts.

    A batch that leaves most lanes of the left operand empty counts with its padding there.
    """
    left = [entry for entry in layout.dimensions if entry.operand == "left"]
    contracted = [entry for entry in left if entry.role in ("feature in", "contracting")]
    sparse = {
        (entry.role, entry.size): entry
        for entry in left
        if entry.role == "batch" and entry.size <= _FEW * entry.padded_size
    }
    result = [entry for entry in layout.dimensions if entry.operand == "result"]
    return [*(sparse.get((entry.role, entry.size), entry) for entry in result), *contracted]


def padding_changes(layout: MatrixLayout, window: int) -> tuple[Change, ...]:
    """Return the dimensions whose padding costs time, each with the size to choose, the worst first.

    None where no size is known to help: with features on the lanes of the operand and the batch on those of the result,
    the op turns its data around inside and does not follow the law.
    """
    lanes = {entry.operand: entry.role for entry in layout.dimensions if entry.place == 0}
    if (lanes.get("left"), lanes.get("result")) == ("feature in", "batch"):
        return ()
    found = []
    for entry in _work(layout):
        if entry.size == entry.padded_size or entry.place > 1:
            continue
        floor = entry.padded_size - (LANES if entry.place == 0 else min(SUBLANES, entry.padded_size))
        barely = floor > 0 and (entry.size - floor) / entry.size <= _BARELY
        found.append(Change(entry.role, entry.size, entry.padded_size, floor if barely else entry.padded_size))
    if (odd := unaligned(layout, window)) is not None:
        full = math.ceil(odd.size / LANES) * LANES
        barely = full > LANES and (odd.size - full + LANES) / odd.size <= _BARELY
        found = [change for change in found if change.role != odd.role]
        found.append(Change(odd.role, odd.size, full, full - LANES if barely else full))
    return tuple(sorted(found, key=lambda change: change.size / change.padded_size))


def saved_by(op: MatrixOp, changes: tuple[Change, ...]) -> float:
    """Return the share of an op's time that the same work would take less after the changes."""
    sizes = {(change.role, change.size): change.target for change in changes}
    ratio = cost(op.layout, op.window, op.unit, sizes) / cost(op.layout, op.window, op.unit)
    return 1 - ratio * math.prod(change.size / change.target for change in changes)


def copy_saved(op: MatrixOp, changes: tuple[Change, ...], operand: str) -> float:
    """Return the same for a copy of one of its operands, whose time is that of the padded elements."""
    targets = {(change.role, change.size): change.target for change in changes}
    ratio = math.prod(
        padded(entry, targets.get((entry.role, entry.size), entry.size)) / entry.padded_size
        for entry in op.layout.dimensions
        if entry.operand == operand and entry.padded_size
    )
    return 1 - ratio * math.prod(change.size / change.target for change in changes)
