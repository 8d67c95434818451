"""The sample of a real failed compile: what its report says, and its advice against what was tried on the same step."""

from __future__ import annotations

from functools import cache

import pytest

from reportgen.memory.fixes.model import Fix
from reportgen.memory.oom.report import OomReport, oom_report
from tests.conftest import ROOT

# Bytes of HBM that the compiler gave the step's temporaries, by remedy; see sample_profiles/README.md.
TEMPORARIES = 22_768_648_704
TRIED = {"batch": 14.70e9, "remat": 9.08e9}
DONATED = round(21.55 * 2**30)


@cache
def sample() -> OomReport:
    return oom_report(ROOT / "sample_profiles" / "oom_tpu_v5e")


def fix(kind: str) -> Fix:
    return next(one for one in sample().fixes if one.kind == kind)


def test_what_does_not_fit() -> None:
    report = sample()
    assert (report.needed_bytes, report.capacity_bytes) == (23_302_628_352, round(15.75 * 2**30))
    assert report.by_type["temporaries"] == TEMPORARIES
    assert report.device_count == 4


def test_the_verdict_names_one_operation_of_many_layers() -> None:
    """No single layer holds much; eight attention squares, one a layer, hold three quarters."""
    assert "73.7 % of it in 8 activations bf16[16,16,2048,2048] of dot_general (train.py:26) in 8 layers" in (
        sample().verdict
    )


@pytest.mark.parametrize("kind", TRIED)
def test_what_a_remedy_saved_lies_in_its_range(kind: str) -> None:
    saved = TEMPORARIES - TRIED[kind]
    assert fix(kind).low <= saved <= fix(kind).high
    assert fix(kind).basis == "modelled"


def test_a_checkpoint_is_forecast_by_where_the_peak_moves() -> None:
    """Without its activations the step peaks at the logits, which no checkpoint of a layer removes."""
    assert fix("remat").likely == pytest.approx(TEMPORARIES - TRIED["remat"], rel=0.02)


def test_donation_is_no_way_out() -> None:
    needed = sample().needed_bytes or 0
    assert fix("donation").low <= needed - DONATED <= fix("donation").high
    assert fix("donation").high < (sample().exceeded_bytes or 0)
