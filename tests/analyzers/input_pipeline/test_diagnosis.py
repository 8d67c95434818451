"""Which fault a stage has, from what was measured of it."""

from __future__ import annotations

import inspect
from collections import Counter

import pytest

from reportgen.analyzers.input_pipeline.advice import ADVICE
from reportgen.analyzers.input_pipeline.diagnosis import CAUSES, Blame, Waited, blame
from reportgen.analyzers.input_pipeline.loaders import PythonTime
from reportgen.analyzers.input_pipeline.means import Means
from reportgen.analyzers.input_pipeline.present import HOW_TO_SHOW
from reportgen.analyzers.input_pipeline.saving import saving_of
from reportgen.analyzers.input_pipeline.tfdata import ASYNC, Stage
from reportgen.cli.capture import capture

MS = 10**9


def stage(
    name: str,
    wait: int,
    *,
    count: int = 10,
    self_ps: int | None = None,
    made: int = 0,
    function: dict[str, int] | None = None,
) -> Stage:
    full = f"Iterator::Root::{name}"
    kind = name.rsplit("::", 1)[-1]
    parent = full.rsplit("::", 1)[0]
    spent = wait if self_ps is None else self_ps
    return Stage(
        full, kind, parent, kind.startswith(ASYNC), count, spent, spent, wait, made, {}, tuple((function or {}).items())
    )


def diagnosis(*found: Stage, wait_share: float = 0.8) -> Blame:
    total = sum(entry.wait_ps for entry in found)
    nothing = PythonTime()
    result = blame(
        Waited({"tf.data": total, "transfer": 0, "Python": 0, "device": 0}, found, nothing, nothing), wait_share
    )
    assert result is not None
    return result


PREFETCH = stage("Prefetch", 1)


@pytest.mark.parametrize(
    ("function", "cause"),
    [
        ({"Conv2D": 90 * MS}, "sequential-map"),
        ({"DecodeJpeg": 60 * MS, "Cast": 30 * MS}, "decoder"),
        ({"ParseExampleV2": 60 * MS}, "decoder"),
        ({"ReadFile": 60 * MS, "DecodeJpeg": 30 * MS}, "small-files"),
        ({"EagerPyFunc": 60 * MS}, "python-generator"),
        ({"DecodeRaw": 60 * MS}, "sequential-map"),
    ],
)
def test_map_by_what_its_function_does(function: dict[str, int], cause: str) -> None:
    found = diagnosis(PREFETCH, stage("Prefetch::Map", 100 * MS, function=function))
    assert (found.cause, found.stage, found.overlaps) == (cause, "Map", True)


def test_parallel_map_that_is_too_slow() -> None:
    found = diagnosis(PREFETCH, stage("Prefetch::ParallelMapV2", 100 * MS, function={"Conv2D": 90 * MS}))
    assert found.cause == "slow-map"


def test_cheap_map_before_a_batch() -> None:
    cheap = stage("Prefetch::BatchV2::Map", 100 * MS, count=2000, function={"Mul": 4 * MS})
    assert diagnosis(PREFETCH, stage("Prefetch::BatchV2", MS), cheap).cause == "map-before-batch"
    costly = stage("Prefetch::BatchV2::Map", 100 * MS, count=2000, function={"Mul": 60 * MS})
    assert diagnosis(PREFETCH, stage("Prefetch::BatchV2", MS), costly).cause == "sequential-map"
    shuffled = stage("Prefetch::Shuffle::Map", 100 * MS, count=2000)
    assert diagnosis(PREFETCH, stage("Prefetch::Shuffle", MS), shuffled).cause == "sequential-map"


def test_work_that_fits_beside_the_step_only_lacks_a_prefetch() -> None:
    work = stage("Map", 100 * MS, function={"Conv2D": 90 * MS})
    assert diagnosis(work, wait_share=0.4).cause == "no-prefetch"
    assert diagnosis(work, wait_share=0.6).cause == "sequential-map"
    ahead = stage("Prefetch::Map", 100 * MS, function={"Conv2D": 90 * MS})
    assert diagnosis(PREFETCH, ahead, wait_share=0.4).cause == "sequential-map"


def test_files_read_one_after_the_other() -> None:
    files, reader = (
        stage("Prefetch::Interleave", MS, count=1000),
        stage("Prefetch::Interleave::FlatMap::TFRecord", 99 * MS, made=4),
    )
    wrapper = stage("Prefetch::Interleave::FlatMap", MS)
    found = diagnosis(PREFETCH, files, wrapper, reader)
    assert (found.cause, found.stage) == ("sequential-read", "Interleave")
    assert found.share == pytest.approx(101 / 101, abs=1e-6)


def test_files_read_in_parallel_but_too_slowly() -> None:
    files = stage("Prefetch::ParallelInterleaveV4", MS, count=1000)
    wrapper = stage("Prefetch::ParallelInterleaveV4::FlatMap", MS)
    reader = stage("Prefetch::ParallelInterleaveV4::FlatMap::TFRecord", 99 * MS, made=4)
    assert diagnosis(PREFETCH, files, wrapper, reader).cause == "slow-read"


def test_one_file_a_sample() -> None:
    files = stage("Prefetch::FlatMap", 60 * MS, count=1000)
    reader = stage("Prefetch::FlatMap::FlatMap::FixedLengthRecordV2", 40 * MS, count=2000, made=1000)
    assert diagnosis(PREFETCH, files, reader).cause == "small-files"


@pytest.mark.parametrize(
    ("name", "cause"),
    [("FlatMap::Generator", "python-generator"), ("DataServiceV2", "data-service"), ("Shuffle", "pipeline-stage")],
)
def test_other_stages(name: str, cause: str) -> None:
    assert diagnosis(PREFETCH, stage(f"Prefetch::{name}", 100 * MS)).cause == cause


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        ("sleep", "loader-sleep"), ("read", "loader-read"), ("decode", "loader-decode"), ("compute", "loader-compute"),
        ("worker", "loader-threads"),
    ],
)  # fmt: skip
def test_python_by_the_kind_of_its_work(kind: str, cause: str) -> None:
    path = Counter({"$train.py:5 load": 90, "$lib.py:9 inner": 80, "$train.py:7 rare": 10})
    own = PythonTime(Counter({kind: 80}) + Counter({"compute": 10}), path, Counter({"$zlib decompress": 70}))
    found = blame(Waited({"tf.data": 0, "transfer": 5, "Python": 95, "device": 0}, (), own, PythonTime()), 0.5)
    assert found is not None
    assert found.cause == cause
    assert found.where == "train.py:5 load → lib.py:9 inner"
    assert found.stage == "train.py:5 load"  # the innermost of the file that the path begins in
    assert found.share == pytest.approx(0.95)


@pytest.mark.parametrize(("source", "cause"), [("transfer", "transfer"), ("device", "infeed")])
def test_waits_of_the_device(source: str, cause: str) -> None:
    sources = {"tf.data": 0, "transfer": 0, "Python": 0, "device": 0} | {source: 10}
    found = blame(Waited(sources, (), PythonTime(), PythonTime()), 0.5)  # type: ignore[arg-type]
    assert found is not None
    assert found.cause == cause


def test_nothing_waited_for_nothing_blamed() -> None:
    sources = {"tf.data": 0, "transfer": 0, "Python": 0, "device": 0}
    assert blame(Waited(sources, (), PythonTime(), PythonTime()), 0.0) is None  # type: ignore[arg-type]


def test_saving_never_exceeds_the_wait() -> None:
    means = Means(period_s=10.0, wait_s=6.0, hidden_s=0.0, other_s=1.0, unrecorded_s=0.0)
    alone = saving_of(Blame("sequential-map", "tf.data", "Map", "", 0.9, overlaps=False), means)
    assert (alone.low, alone.likely, alone.high) == pytest.approx((4.0, 4.7, 6.0))  # 4 s fit beside the rest
    ahead = saving_of(Blame("slow-map", "tf.data", "Map", "", 0.9, overlaps=True), means)
    assert (ahead.low, ahead.likely, ahead.high) == pytest.approx((2.7, 4.05, 6.0))


def test_every_fault_has_advice_for_every_framework() -> None:
    assert set(ADVICE) == set(CAUSES)
    for cause, advice in ADVICE.items():
        assert advice.fault[0].islower(), cause
        assert not advice.fault.endswith(".")
        assert advice.why.endswith(".")
        for framework in ("jax", "tensorflow", "pytorch_xla"):
            assert any(action.framework in ("", framework) for action in advice.actions), (cause, framework)
        for action in advice.actions:
            assert action.text.endswith((".", "once:", "offline.")), action.text


def test_commands_in_advice_have_these_options() -> None:
    code = [action.code for advice in ADVICE.values() for action in advice.actions] + HOW_TO_SHOW.splitlines()
    options = {word for text in code if "reportgen capture" in text for word in text.split() if word.startswith("--")}
    known = {f"--{name.replace('_', '-')}" for name in inspect.signature(capture).parameters}
    assert options
    assert options <= known


def test_code_in_advice_is_python() -> None:
    for advice in ADVICE.values():
        for action in advice.actions:
            if action.code and not action.code.startswith("reportgen "):
                compile(action.code.replace("@jax.jit\n", ""), "advice", "exec")
