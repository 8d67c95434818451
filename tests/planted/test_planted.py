"""Every planted fault is found first, its repaired twin is left alone, and the savings are those of the twin."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from reportgen.document import Finding
from reportgen.rules import RULES
from reportgen.rules.parts import WIDEST
from reportgen.rules.run import run_rules
from reportgen.settings import Settings
from tests.planted.cases import CASES, FIXTURES, Outcome, analyse, fixture, outcome
from tests.planted.report import KEPT, report
from tests.planted.savings import largest_of_twin, predictions

# Rules that say how things stand and never find a fault.
NEVER_FIND = {"compute-bound"}
# A limit that no profile reaches; of "too-few-steps" the one that every profile does.
NEVER = {"too-few-steps": 0.0}
# Limits beyond the one that a finding names, without which it is found all the same.
ALSO = {"input-bound": ("moderate", "high")}


@pytest.mark.parametrize("name", CASES)
def test_the_right_rule_comes_first(name: str) -> None:
    found = outcome(name, "faulty")
    assert found.first == CASES[name].rule, [finding.id for finding in found.verdicts.findings]


@pytest.mark.parametrize("name", CASES)
def test_the_right_rule_is_silent_on_the_twin(name: str) -> None:
    assert outcome(name, "repaired").of(CASES[name].rule) is None


@pytest.mark.parametrize("name", CASES)
def test_no_saving_of_note_is_named_for_the_twin(name: str) -> None:
    assert largest_of_twin(outcome(name, "repaired")) < 0.02


def test_every_rule_has_a_case() -> None:
    assert {rule.id for rule in RULES} - NEVER_FIND == {case.rule for case in CASES.values()}


def test_every_fixture_belongs_to_a_case() -> None:
    known = {f"{name}-{kind}" for name in CASES for kind in ("faulty", "repaired")}
    files = {path.name.removesuffix(".xplane.pb.gz") for path in FIXTURES.glob("*.xplane.pb.gz")}
    assert {file for file in files if not file.startswith("healthy-")} <= known


def test_the_kept_report_is_of_these_cases() -> None:
    assert report() == KEPT.read_text(encoding="utf-8"), "run `make planted`"


def test_likely_savings_are_near_those_of_the_twins() -> None:
    errors = {one.case: one.error for one in predictions()}
    assert len(errors) >= 20
    near = sum(abs(error) <= 0.25 for error in errors.values())
    assert near >= 0.8 * len(errors), errors


def test_savings_of_the_twins_lie_in_the_ranges() -> None:
    outside = {one.case: one for one in predictions() if not one.inside}
    assert len(outside) <= 0.1 * len(list(predictions())), outside


@pytest.mark.parametrize("name", CASES)
def test_ranges_are_in_order_and_narrow(name: str) -> None:
    for kind in ("faulty", "repaired"):
        for finding in outcome(name, kind).verdicts.findings:
            if saving := finding.saving:
                assert 0 < saving.low <= saving.likely <= saving.high <= WIDEST * saving.low * 1.001


@pytest.mark.parametrize("name", CASES)
def test_a_saving_of_time_is_at_most_the_step(name: str) -> None:
    found = outcome(name, "faulty")
    step = found.analysis.results["steps"].facts.mean_period
    savings = [finding.saving for finding in found.verdicts.findings]
    assert all(saving.high <= step * 1.001 for saving in savings if saving and saving.unit == "seconds")


@pytest.mark.parametrize("name", CASES)
def test_rows_that_findings_name_exist(name: str) -> None:
    found = outcome(name, "faulty")
    tables = {key: table for result in found.analysis.results.values() for key, table in result.tables.items()}
    for finding in found.verdicts.findings:
        places = [(item.table, item.row) for item in finding.evidence]
        for table, row in [*places, *((place.table, place.row) for place in finding.locations)]:
            assert not table or table in tables, (finding.id, table)
            assert not row or row in tables[table].row_ids, (finding.id, table, row)


@pytest.mark.parametrize("name", CASES)
def test_a_finding_holds_what_a_reader_needs(name: str) -> None:
    finding = _planted(name, outcome(name, "faulty"))
    assert finding.threshold is not None
    assert finding.evidence
    assert finding.actions
    assert finding.title
    assert finding.summary.endswith(".")


@pytest.mark.parametrize("name", CASES)
def test_its_threshold_decides(name: str) -> None:
    """With its limit out of reach the finding is gone: no number beside the thresholds decides."""
    rule, found = CASES[name].rule, outcome(name, "faulty")
    finding = _planted(name, found)
    assert finding.threshold is not None
    limits = {f"{rule}.{limit}": NEVER.get(rule, 1e12) for limit in ALSO.get(rule, (finding.threshold.name,))}
    settings = Settings(strict=True, only=(rule,), thresholds=limits)
    again = run_rules(replace(found.analysis, settings=settings), RULES).findings
    assert finding.id not in {one.id for one in again}


def _planted(name: str, found: Outcome) -> Finding:
    finding = found.of(CASES[name].rule)
    assert finding is not None
    return finding


def test_the_example_of_a_small_convolution() -> None:
    """bf16 10×32×32×5, 3×3, to 64 features: batch padded to 128, features to 8, 4.9 % of the operand's tiles useful."""
    found = outcome("padding-seed", "faulty")
    finding = _planted("padding-seed", found)
    assert "batch 10 to 128" in finding.title
    assert "feature in 5 to 8" in finding.title
    assert any("useful tile share 4.88 % of the left operand" in item.text for item in finding.evidence)
    (op,) = found.analysis.results["matrix-ops"].facts.ops.values()
    left = {(entry.role, entry.size): entry.padded_size for entry in op.layout.dimensions if entry.operand == "left"}
    assert left[("batch", 10)] == 128
    assert left[("feature in", 5)] == 8
    assert math.isclose(op.layout.tile_shares[0], 10 * 5 / (128 * 8))


def test_the_answer_follows_the_layout() -> None:
    """With three features the tile is T(4,128), so they are padded to 4."""
    assert "feature in 3 to 4" in _planted("padding-seed-three", outcome("padding-seed-three", "faulty")).title


def test_a_vocabulary_that_loses_nothing_is_left_alone() -> None:
    found = analyse(fixture("healthy-vocabulary"))
    assert not found.verdicts.findings
    (op,) = found.analysis.results["matrix-ops"].facts.ops.values()
    assert 50257 in {entry.size for entry in op.layout.dimensions}


def test_a_batch_that_waits_for_weights_is_not_called_padded() -> None:
    assert analyse(fixture("healthy-batch-of-six")).of("padding-waste") is None
