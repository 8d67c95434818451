"""The law for the time of dots and convolutions, held against the TPU compiler's own cycle estimates."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import pytest

from reportgen.analyzers.matrix_ops import MatrixOp
from reportgen.profile.matrix_unit import LayoutDimension, MatrixLayout
from reportgen.rules.matrix import padding_changes, saved_by
from tests.planted.cases import FIXTURES

UNITS = {"v5e": 128, "v5p": 128, "v6e": 256}
# Which of the sizes each role is: batch, side, features in, features out, kernel.
PLACES = {"batch": 0, "feature in": 2, "feature out": 3}
LEAST = 0.1


class Pair(NamedTuple):
    """What filling or leaving a tile saves, as predicted and as the compiler's cycles say, for the same work."""

    sizes: tuple[int, ...]
    predicted: float
    actual: float

    @property
    def near(self) -> bool:
        return self.actual > 0 and abs(self.predicted / self.actual - 1) <= 0.25


@cache
def pairs(device: str) -> tuple[Pair, ...]:
    """Every convolution of the sweep that should change its sizes, with the one that it should become."""
    rows = json.loads(gzip.decompress((FIXTURES / f"cycles-{device}.json.gz").read_bytes()))
    cycles = {(row["kind"], tuple(row["sizes"])): row["cycles"] for row in rows}
    return tuple(_pairs(rows, cycles, UNITS[device]))


def _pairs(rows: list[dict[str, Any]], cycles: dict[Any, int], unit: int) -> Iterator[Pair]:
    for row in rows:
        sizes = tuple(row["sizes"])
        op = _op(row, sizes[4] ** 2 if row["kind"] == "convolution" else 1, unit)
        changes = padding_changes(op.layout, op.window)
        predicted = saved_by(op, changes) if changes else 0.0
        if row["kind"] != "convolution" or predicted < LEAST or not {c.role for c in changes} <= set(PLACES):
            continue
        target = list(sizes)
        for change in changes:
            target[PLACES[change.role]] = change.target
        twin = cycles.get(("convolution", tuple(target)))
        if twin is not None:
            yield Pair(sizes, predicted, 1 - twin * math.prod(sizes) / math.prod(target) / row["cycles"])


def _op(row: dict[str, Any], window: int, unit: int) -> MatrixOp:
    layout = MatrixLayout(
        instruction="",
        opcode="convolution",
        dimensions=tuple(LayoutDimension(*entry) for entry in row["layout"]),
        tile_shares=(1.0, 1.0, 1.0),
        unit_share=None,
        element_types=tuple(row["types"]),
    )
    return MatrixOp(row["kind"], layout, "default", ("bf16", "bf16"), window, unit)


@pytest.mark.parametrize(("device", "share"), [("v5e", 0.9), ("v5p", 0.8), ("v6e", 0.6)])
def test_most_predictions_are_near_the_compilers(device: str, share: float) -> None:
    found = pairs(device)
    assert len(found) >= 40
    assert sum(pair.near for pair in found) >= share * len(found), [pair for pair in found if not pair.near]


@pytest.mark.parametrize("device", UNITS)
def test_filling_output_features_up_costs_nothing(device: str) -> None:
    """What the law rests on: 100 output features on the lanes take the time of 128."""
    rows = json.loads(gzip.decompress((FIXTURES / f"cycles-{device}.json.gz").read_bytes()))
    cycles = {tuple(row["sizes"]): row["cycles"] for row in rows}
    assert cycles[(64, 32, 128, 100, 3)] == pytest.approx(cycles[(64, 32, 128, 128, 3)], rel=0.01)


def test_a_contraction_that_fills_the_unit_is_not_changed() -> None:
    rows = json.loads(gzip.decompress((FIXTURES / "cycles-v5e.json.gz").read_bytes()))
    full = next(row for row in rows if row["sizes"] == [64, 32, 128, 128, 3])
    assert padding_changes(_op(full, 9, 128).layout, 9) == ()
