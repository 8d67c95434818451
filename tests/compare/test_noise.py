"""Noise: repeats are not called a change, real slow-downs are, and the stated error rate holds."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from statistics import fmean, variance
from typing import Any

import msgspec
import numpy as np
import pytest

from reportgen.comparison import compare
from reportgen.comparison.noise import decide, student_t
from reportgen.comparison.words import verdict
from reportgen.document import ReportDocument

RECORDED = Path(__file__).parent / "fixtures" / "noise.json.gz"


@cache
def recorded() -> Any:
    """Captures of one program on a busy machine: 20 bases, 20 repeats, and 20 that are slower."""
    return json.loads(gzip.decompress(RECORDED.read_bytes()))


def times(name: str) -> list[float]:
    return [one["step_s"] for one in recorded()[name]]


def document(entry: Any) -> ReportDocument:
    """Return a recorded report; of most captures only the step time was kept, and the rest is the first one's."""
    found = msgspec.convert(entry.get("document") or recorded()["bases"][0]["document"], ReportDocument)
    period = msgspec.structs.replace(found.metrics["step_period_mean"], value=entry["step_s"])
    return msgspec.structs.replace(found, metrics={**found.metrics, "step_period_mean": period})


def test_the_slow_down_was_twice_the_spread_of_the_bases() -> None:
    bases = times("bases")
    assert recorded()["slow_ms"] == pytest.approx(2e3 * (max(bases) - min(bases)))
    assert [len(recorded()[name]) for name in ("bases", "repeats", "slowed")] == [20, 20, 20]


def test_at_most_one_of_twenty_recorded_repeats_is_called_a_change() -> None:
    called = [decide(times("bases"), one).changed for one in times("repeats")]
    assert sum(called) <= 1


def test_all_of_twenty_recorded_slow_downs_are_called_a_change() -> None:
    decisions = [decide(times("bases"), one) for one in times("slowed")]
    assert all(one.changed and one.change > 0 for one in decisions)


def test_leaving_out_one_base_at_a_time_calls_at_most_one_a_change() -> None:
    bases = times("bases")
    called = [decide(bases[:index] + bases[index + 1 :], one).changed for index, one in enumerate(bases)]
    assert sum(called) <= 1


def test_a_test_over_steps_would_call_many_repeats_a_change() -> None:
    """Why the spread between captures decides: steps inside one share the machine's mood."""
    first = recorded()["bases"][0]["periods_s"]
    rejected = [abs(_welch(first, one["periods_s"])) > 2.03 for one in recorded()["repeats"]]  # 5 % at 35 degrees
    assert sum(rejected) >= 5


def _welch(left: list[float], right: list[float]) -> float:
    errors = [variance(one) / len(one) for one in (left, right)]
    return (fmean(left) - fmean(right)) / sum(errors) ** 0.5


def test_the_comparison_of_whole_reports_says_the_same() -> None:
    bases = [document(one) for one in recorded()["bases"]]
    slower = compare(bases, document(recorded()["slowed"][0]))
    assert verdict(slower).startswith("Slower: a step takes")
    assert slower.decision is not None
    assert "20 captures of the base" in slower.decision.why
    for one in recorded()["repeats"][:5]:
        found = compare(bases, document(one))
        assert found.decision == decide(times("bases"), one["step_s"])
        assert verdict(found).startswith("No change of the step time beyond the noise")


@pytest.mark.parametrize("bases", [3, 5, 10])
@pytest.mark.parametrize("error_rate", [0.01, 0.05])
def test_a_generated_null_holds_the_stated_error_rate(bases: int, error_rate: float) -> None:
    """Captures with a mood each, steps that depend on each other: 1,000 draws of bases and one more capture."""
    rng = np.random.default_rng(bases)
    called = 0
    for _ in range(1000):
        captures = [_capture(rng) for _ in range(bases + 1)]
        called += decide(captures[:-1], captures[-1], error_rate=error_rate).changed
    expected, spread = 1000 * error_rate, (1000 * error_rate * (1 - error_rate)) ** 0.5
    assert abs(called - expected) <= 3.3 * spread  # 999 of 1,000 seeds


def _capture(rng: np.random.Generator) -> float:
    """Return the mean step time of a capture: its mood times 20 steps, each half like the one before."""
    mood = rng.normal(0, 0.1)
    steps = np.empty(20)
    noise = 0.0
    for index in range(20):
        noise = 0.5 * noise + rng.normal(0, 0.02)
        steps[index] = noise
    return float(np.exp(mood + steps.mean()))


# From printed tables.
@pytest.mark.parametrize(
    ("probability", "degrees", "quantile"),
    [
        (0.5, 7, 0.0), (0.9, 1, 3.0777), (0.975, 1, 12.7062), (0.975, 2, 4.3027), (0.975, 4, 2.7764),
        (0.975, 19, 2.0930), (0.975, 100, 1.9840), (0.995, 2, 9.9248), (0.995, 4, 4.6041), (0.995, 19, 2.8609),
    ],
)  # fmt: skip
def test_quantiles_of_student_t(probability: float, degrees: int, quantile: float) -> None:
    assert student_t(probability, degrees) == pytest.approx(quantile, abs=5e-4)
    assert student_t(1 - probability, degrees) == pytest.approx(-quantile, abs=5e-4)


@pytest.mark.parametrize(("new", "changed"), [(1.049, False), (1.051, True), (0.951, False), (0.949, True)])
def test_one_base_needs_the_minimum_effect(new: float, changed: bool) -> None:
    found = decide([1.0], new, min_effect=0.05)
    assert (found.changed, found.evidence) == (changed, "few_bases")
    assert "weak evidence" in found.why


def test_two_bases_need_the_minimum_effect_beyond_the_nearer_one() -> None:
    middle = (1.0 * 1.2) ** 0.5
    assert not decide([1.0, 1.2], middle * (1.2 / middle + 0.04)).changed
    assert decide([1.0, 1.2], middle * (1.2 / middle + 0.06)).changed


@pytest.mark.parametrize(("new", "changed"), [(1.0009, False), (1.0011, True)])
def test_modelled_times_have_no_noise_but_a_resolution(new: float, changed: bool) -> None:
    assert decide([1.0], new, modelled=True).changed is changed
    assert decide([1.0, 1.0, 1.0], new).changed is changed  # nor have bases that are all alike


def test_values_that_may_be_zero() -> None:
    assert not decide([0.0, 0.0, 0.0], 0.0).changed
    assert decide([0.0, 0.0, 0.0], 0.1).changed
    assert decide([0.0, 0.01, 0.02], 0.5).changed
    assert not decide([0.0, 0.01, 0.02], 0.015).changed
