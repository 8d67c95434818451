"""Planted faults, captured for real on CPU: each is diagnosed at its stage, with the wait that its loop measured."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reportgen.analyzers.input_pipeline.facts import InputFacts
from reportgen.analyzers.input_pipeline.present import verdict_text
from tests.analyzers.input_pipeline.support import CAPTURED, facts_of, measured, records
from tests.input_faults import make

# Fault, stage to blame, where it is, framework, and whether input already ran ahead.
FAULTS = {
    "slow_map": ("sequential-map", "Map", "Iterator::Root::Prefetch::BatchV2::Map", "tensorflow", True),
    "no_prefetch": ("no-prefetch", "Map", "Iterator::Root::BatchV2::Map", "tensorflow", False),
    "small_files": ("small-files", "FlatMap", "Iterator::Root::Prefetch::BatchV2::Map::FlatMap", "tensorflow", True),
    "slow_decoder": ("decoder", "Map", "Iterator::Root::Prefetch::BatchV2::Map", "tensorflow", True),
    "interleave_one": (
        "sequential-read", "Interleave", "Iterator::Root::Prefetch::BatchV2::Map::Interleave", "tensorflow", True,
    ),
    "map_before_batch": ("map-before-batch", "Map", "Iterator::Root::Prefetch::BatchV2::Map", "tensorflow", True),
    "python_generator": (
        "python-generator", "Generator", "Iterator::Root::Prefetch::BatchV2::FlatMap::Generator", "tensorflow", True,
    ),
    "sleeping_loader": ("loader-sleep", "sleeping_loader", "sleeping_loader", "jax", False),
    "loader_in_step": ("loader-sleep", "sleeping_loader", "sleeping_loader", "jax", False),
    "decoding_loader": ("loader-decode", "decode", "decoding_loader", "jax", False),
    "file_loader": ("loader-read", "<listcomp>", "__next__", "jax", False),
    "threaded_loader": ("loader-threads", "load_batch", "load_batch", "jax", True),
    "device_put": ("transfer", "transfer to the device", "", "jax", False),
    "slow_dataset": ("loader-compute", "load_batch", "", "pytorch_xla", False),
}  # fmt: skip
HEALTHY = ("jax_healthy", "tf_healthy", "torch_healthy")


def captured(case: str) -> InputFacts:
    return facts_of(CAPTURED / f"{case}.xplane.pb.gz")


def assert_diagnosed(case: str, facts: InputFacts) -> None:
    cause, stage, where, framework, overlaps = FAULTS[case]
    assert facts.blame is not None
    assert facts.blame.cause == cause
    # Python functions are named with their file and line; the line moves with the script.
    assert facts.blame.stage.rsplit(" ", 1)[-1] == stage.rsplit(" ", 1)[-1]
    assert where in facts.blame.where
    assert facts.blame.overlaps is overlaps
    assert facts.framework == framework


@pytest.mark.parametrize("case", sorted(FAULTS))
def test_fault_is_diagnosed_at_its_stage(case: str) -> None:
    facts = captured(case)
    assert_diagnosed(case, facts)
    assert facts.blame is not None
    assert facts.blame.share > 0.5
    assert facts.verdict.level == "highly"
    assert facts.blame.stage in verdict_text(facts)


@pytest.mark.parametrize("case", sorted({*FAULTS, *HEALTHY}))
def test_wait_is_what_the_loop_measured(case: str) -> None:
    facts = captured(case)
    truth = measured(records()[case], facts)
    assert facts.means is not None
    assert truth.agrees(facts.means.wait_s), (truth.wait, facts.means)


@pytest.mark.parametrize("case", sorted({*FAULTS, *HEALTHY} - {"slow_dataset", "torch_healthy"}))
def test_period_is_what_the_loop_measured(case: str) -> None:
    """Wherever the capture holds the steps whole: a profiler's server cuts the first and the last."""
    facts = captured(case)
    assert facts.means is not None
    assert 1e3 * facts.means.period_s == pytest.approx(measured(records()[case], facts).period, rel=0.01)


@pytest.mark.parametrize("case", HEALTHY)
def test_healthy_pipeline_is_called_healthy(case: str) -> None:
    facts = captured(case)
    assert facts.verdict.level == "not"
    assert facts.means is not None
    assert facts.means.share < 0.05


def test_wait_between_annotations_that_nothing_recorded_is_not_guessed() -> None:
    facts = captured("untraced_loader")
    truth = measured(records()["untraced_loader"], facts)
    assert facts.verdict.level == "cannot tell"
    assert "Python tracing" in facts.verdict.reason
    assert facts.means is not None
    assert truth.agrees(facts.means.unrecorded_s), (truth.wait, facts.means)


def test_decoder_names_its_ops() -> None:
    stage = next(stage for stage in captured("slow_decoder").waited.stages if stage.kind == "Map")
    assert stage.function[0][0] == "DecodePng"


def test_interleave_shows_its_cycle_length() -> None:
    stages = {stage.kind: stage for stage in captured("interleave_one").waited.stages}
    assert stages["Interleave"].settings["cycle_length"] == "1"
    assert stages["BatchV2"].settings["batch_size"] == "24"


def test_small_files_are_counted() -> None:
    stages = {stage.kind: stage for stage in captured("small_files").waited.stages}
    reader = stages["FixedLengthRecordV2"]
    assert reader.made == pytest.approx(stages["Map"].count, rel=0.02)  # one file a sample


def test_slow_thread_is_named_behind_its_queue() -> None:
    waited = captured("threaded_loader").waited
    assert max(waited.step_python.kinds, key=lambda kind: waited.step_python.kinds[kind]) == "worker"
    assert any(label.endswith(" load_batch") for label in waited.loader_python.path())


@pytest.mark.peer
@pytest.mark.parametrize(("framework", "cases"), [("jax", ("sleeping_loader", "device_put")), ("tf", ("slow_map",))])
def test_fault_captured_anew(framework: str, cases: tuple[str, ...], tmp_path: Path) -> None:
    """The committed captures are not the only ones that are understood; a loaded machine gets a second try."""
    pytest.importorskip({"jax": "jax", "tf": "tensorflow"}[framework], reason="needs the `peers` extra")
    for attempt in (1, 2):
        record = make.capture(framework, cases, tmp_path / str(attempt), sys.executable)
        found = {case: facts_of(tmp_path / str(attempt) / f"{case}.xplane.pb.gz") for case in cases}
        if attempt == 2 or all(agrees(record, case, facts) for case, facts in found.items()):
            break
    for case, facts in found.items():
        assert_diagnosed(case, facts)
        assert agrees(record, case, facts), (measured(record[case], facts).wait, facts.means)


def agrees(record: make.Measured, case: str, facts: InputFacts) -> bool:
    assert facts.means is not None
    return measured(record[case], facts).agrees(facts.means.wait_s)
