"""The samples that ship: their verdicts name the bottleneck."""

from __future__ import annotations

import json
import pickle

import pytest

from reportgen.analyzers.input_pipeline import InputPipelineAnalyzer
from reportgen.analyzers.input_pipeline.present import verdict_text
from reportgen.settings import Settings
from tests.analyzers.input_pipeline.support import analyze, facts_of, result_of, sample, view_of


def measured_waits(name: str, key: str) -> list[float]:
    """What the loop measured in milliseconds, without the first step."""
    found = json.loads((sample(name).parents[3] / "measured.json").read_text())
    return list(found[key])[1:]


@pytest.mark.parametrize(
    ("name", "key", "level", "stage"),
    [
        ("jax_cpu_input_bound", "loader_wait_ms", "highly", "train.py:51 load"),
        ("tf_cpu", "input_wait_ms", "highly", "Iterator::Root::PaddedBatchV2::Map"),
        ("jax_cpu", "loader_wait_ms", "not", ""),
        ("tf_cpu_healthy", "input_wait_ms", "not", ""),
    ],
)
def test_verdict(name: str, key: str, level: str, stage: str) -> None:
    facts = facts_of(sample(name))
    waits = measured_waits(name, key)
    assert facts.means is not None
    assert facts.verdict.level == level
    assert stage in verdict_text(facts)
    difference = abs(1e3 * facts.means.wait_s - sum(waits) / len(waits))
    assert difference <= max(0.1 * sum(waits) / len(waits), 0.02 * 1e3 * facts.means.period_s)


def test_waits_between_annotations_belong_to_the_step_that_follows() -> None:
    steps = facts_of(sample("jax_cpu_input_bound")).steps
    assert (steps["period_ps"] - steps["time_ps"] > 20e9).all()  # the annotations leave the loader out
    assert (steps["wait_ps"] > 20e9).all()
    assert list(steps["step"]) == list(range(1, 12))


def test_thresholds_can_be_set() -> None:
    view = view_of(sample("tf_cpu"))
    settings = Settings(thresholds={"input-bound.moderate": 0.5, "input-bound.high": 0.9})
    facts = analyze(view, settings=settings).facts
    assert facts.verdict.level == "moderately"
    assert "50.0 %" in verdict_text(facts)
    assert "90.0 %" in verdict_text(facts)


def test_hidden_input_is_no_wait() -> None:
    healthy, bound = facts_of(sample("tf_cpu_healthy")).means, facts_of(sample("tf_cpu")).means
    assert healthy is not None
    assert bound is not None
    assert healthy.hidden_s > 10 * healthy.wait_s  # the prefetching map runs beside the step
    assert bound.hidden_s < 0.01 * bound.wait_s


def test_part_is_small_and_plain() -> None:
    for name in ("jax_cpu_input_bound", "tf_cpu"):
        part = InputPipelineAnalyzer().host(view_of(sample(name)))
        assert len(pickle.dumps(part)) < 20_000


def test_several_hosts_show_the_one_that_waits() -> None:
    bound, healthy = view_of(sample("tf_cpu")), view_of(sample("tf_cpu_healthy"))
    both = analyze(bound, healthy).facts
    alone = facts_of(sample("tf_cpu"))
    assert both.means.wait_s == pytest.approx(alone.means.wait_s)  # type: ignore[union-attr]
    assert both.blame.where == "Iterator::Root::PaddedBatchV2::Map"
    doubled = analyze(bound, bound).facts
    assert doubled.means == alone.means
    assert doubled.categories == {name: 2 * time for name, time in alone.categories.items()}


def test_result_is_consistent() -> None:
    """Every block names something that is there; tables and charts agree."""
    result = result_of(sample("tf_cpu"))
    named = [
        *(getattr(block, "table", "") for block in result.blocks),
        *(getattr(block, "chart", "") for block in result.blocks),
    ]
    assert {name for name in named if name} <= {*result.tables, *result.charts}
    assert {*result.tables} == {
        "input_statistics", "input_steps", "input_stages", "input_categories", "input_ops", "host_activity"
    }  # fmt: skip
    steps = result.tables["input_steps"]
    shares = [row[[column.name for column in steps.columns].index("share")] for row in steps.rows]
    assert result.charts["input_wait"].series[0].y == pytest.approx(shares)
    assert len(steps.row_ids) == len(steps.rows)
    for metric in result.metrics.values():
        assert (metric.value is None) == (metric.reason is not None)


def test_evidence_points_at_rows() -> None:
    result = result_of(sample("tf_cpu"))
    rows = {evidence.row: evidence.table for evidence in result.facts.evidence if evidence.row}
    assert rows
    for row, table in rows.items():
        assert row in result.tables[table].row_ids
