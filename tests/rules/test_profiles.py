"""Rules on the samples and on profiles of others: none fails, and none advises what the profile does not show."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from reportgen.analyzers import ANALYZERS
from reportgen.analyzers.run import analyze_run
from reportgen.document import Finding
from reportgen.rules import RULES
from reportgen.rules.run import Verdicts, run_rules
from reportgen.settings import Settings
from reportgen.sources.locate import find_run
from tests.conftest import ROOT


@cache
def verdicts(path: Path) -> Verdicts:
    """Run all analyses and rules, once a path; a failing one fails the test."""
    settings = Settings(strict=True, jobs=1)
    return run_rules(analyze_run(find_run(str(path), None, ()), settings, ANALYZERS), RULES)


def speaking(found: Verdicts) -> list[Finding]:
    """Findings that a reader sees first: above "info", and not explained by others."""
    return [finding for finding in found.findings if finding.silenced_by is None and finding.severity != "info"]


def sample(name: str) -> Verdicts:
    return verdicts(ROOT / "sample_profiles" / name)


@pytest.mark.parametrize("name", ["jax_cpu", "tf_cpu_healthy"])
def test_a_healthy_sample_gets_no_advice(name: str) -> None:
    assert speaking(sample(name)) == []


def test_the_residual_network_waits_for_memory() -> None:
    found = speaking(sample("resnet50_tpu_v5e"))
    assert found[0].rule == "memory-bound-conv"
    assert "fusion.39" in {place.name for place in found[0].locations}
    assert {finding.rule for finding in found} <= {"memory-bound-conv", "low-flops", "vector-bound"}


@pytest.mark.parametrize("name", ["jax_cpu_input_bound", "tf_cpu"])
def test_a_loop_that_waits_for_its_input_is_told(name: str) -> None:
    assert speaking(sample(name))[0].rule == "input-bound"


OTHERS = ["tpu_v6e_4chip", "gpu_v100_8x_tf2", "gpu_mi300x_jax", "gpu_gtx1080ti_pjrt"]


@pytest.mark.parametrize("name", OTHERS)
def test_every_rule_has_an_outcome_on_profiles_of_others(profiles: Path, name: str) -> None:
    found = verdicts(profiles / name)
    assert [check.rule for check in found.checks] == [rule.id for rule in RULES]
    assert all(check.status != "error" and check.reason for check in found.checks)


def test_offloading_explains_the_benchmark_on_v6e(profiles: Path) -> None:
    """97 % of the op time are copies from and to the host's memory (memory space 5)."""
    first = speaking(verdicts(profiles / "tpu_v6e_4chip"))[0]
    assert first.rule == "host-transfer"
    assert {place.name for place in first.locations} >= {"copy-done.4", "copy-done.2", "copy-done", "copy-done.5"}


def test_idle_gpus_are_counted(profiles: Path) -> None:
    titles = {finding.rule: finding.title for finding in speaking(verdicts(profiles / "gpu_v100_8x_tf2"))}
    assert titles["idle-chips"].startswith("5 of 8 devices")
    titles = {finding.rule: finding.title for finding in speaking(verdicts(profiles / "gpu_mi300x_jax"))}
    assert titles["idle-chips"].startswith("7 of 8 devices")


def test_one_kernel_gives_no_advice_on_performance(profiles: Path) -> None:
    assert {finding.rule for finding in speaking(verdicts(profiles / "gpu_gtx1080ti_pjrt"))} <= {"too-few-steps"}
