"""The iterator tree, its critical path, and the user functions of its stages, on profiles built by hand."""

from __future__ import annotations

import numpy as np

from reportgen.analyzers.input_pipeline.tfdata import Stage, chain, critical, merge_stages, stages
from reportgen.profile.intervals import Intervals
from tests.analyzers.input_pipeline.support import input_of
from tests.builders import LineBuilder, Space

ROOT = "Iterator::Root"


def always(end_ns: int) -> Intervals:
    return Intervals(np.array([0]), np.array([end_ns * 1000]))


class Pipeline:
    """Host threads of a tf.data pipeline; times in nanoseconds."""

    def __init__(self) -> None:
        self.space = Space()
        self.plane = self.space.plane("/host:CPU")
        self.consumer = self.plane.line("python")

    def thread(self, name: str = "tf_data_iterator_resource/1") -> LineBuilder:
        return self.plane.line(name)

    def stages(self, exposed: Intervals) -> dict[str, Stage]:
        view = self.space.view()
        return {stage.name.removeprefix(f"{ROOT}::"): stage for stage in stages(view.profile, input_of(view), exposed)}


def test_synchronous_pipeline_blames_self_time() -> None:
    pipeline = Pipeline()
    (
        pipeline.consumer.event(ROOT, 0, 100)
        .event(f"{ROOT}::BatchV2", 5, 90)
        .event(f"{ROOT}::BatchV2::Map", 10, 60)
        .event(f"{ROOT}::BatchV2::Map::TFRecord", 20, 10)
    )
    found = pipeline.stages(always(100))
    assert {name: stage.wait_ps // 1000 for name, stage in found.items()} == {
        ROOT: 10, "BatchV2": 30, "BatchV2::Map": 50, "BatchV2::Map::TFRecord": 10
    }  # fmt: skip
    assert {name: stage.self_ps // 1000 for name, stage in found.items()} == {
        ROOT: 10, "BatchV2": 30, "BatchV2::Map": 50, "BatchV2::Map::TFRecord": 10
    }  # fmt: skip


def test_prefetch_passes_the_blame_to_what_runs_on_its_thread() -> None:
    """While the consumer waits in a prefetch, the stage below works elsewhere; work beside running ops is no wait."""
    pipeline = Pipeline()
    pipeline.consumer.event(ROOT, 50, 50).event(f"{ROOT}::Prefetch", 50, 50)
    ahead = pipeline.thread()
    ahead.event("PrefetchProduce", 0, 95).event(f"{ROOT}::Prefetch::Map", 0, 90)
    exposed = Intervals(np.array([50_000]), np.array([100_000]))
    found = pipeline.stages(exposed)
    assert found["Prefetch::Map"].wait_ps == 40_000
    assert found["Prefetch"].wait_ps == 10_000
    best = critical(tuple(found.values()))
    assert best is not None
    assert best.kind == "Map"
    assert [stage.kind for stage in chain(tuple(found.values()), best)] == ["Map", "Prefetch", "Root"]
    assert [stage.is_async for stage in chain(tuple(found.values()), best)] == [False, True, False]


def test_numbered_iterators_are_one_stage() -> None:
    pipeline = Pipeline()
    for number in range(4):
        pipeline.consumer.event(f"{ROOT}::FlatMap[{number}]::TFRecord", 20 * number, 10)
    pipeline.consumer.event(f"{ROOT}::FlatMap", 0, 80)
    found = pipeline.stages(always(80))
    assert found["FlatMap::TFRecord"].count == 4
    assert found["FlatMap::TFRecord"].made == 4
    assert found["FlatMap::TFRecord"].parent == f"{ROOT}::FlatMap"
    assert found["FlatMap"].wait_ps == 40_000


def test_function_of_a_synchronous_map_is_found_by_its_id() -> None:
    pipeline = Pipeline()
    pipeline.consumer.event(f"{ROOT}::Map", 0, 100).event("InstantiatedCapturedFunction::Run", 5, 90, {"id": 11})
    pool = pipeline.thread("tf_data_private_threadpool/1")
    pool.event("ExecutorState::Process", 10, 70, {"id": 11}).event("decode/DecodePng:DecodePng", 12, 50)
    pool.event("ExecutorState::Process", 90, 5, {"id": 99}).event("other:Cast", 91, 3)
    found = pipeline.stages(always(100))
    assert found["Map"].function == (("DecodePng", 50_000),)


def test_function_of_a_parallel_map_belongs_to_the_stage_above_the_one_it_calls() -> None:
    pipeline = Pipeline()
    pipeline.consumer.event(ROOT, 0, 100).event(f"{ROOT}::ParallelMapV2", 0, 100)
    ahead = pipeline.thread()
    (
        ahead.event("ParallelMapProduce", 0, 90)
        .event(f"{ROOT}::ParallelMapV2::Range", 1, 2)
        .event("InstantiatedCapturedFunction::RunAsync", 5, 80, {"id": 12})
        .event("ExecutorState::Process", 6, 70, {"id": 12})
        .event("Cast:Cast", 7, 60)
    )
    found = pipeline.stages(always(100))
    assert found["ParallelMapV2"].function == (("Cast", 60_000),)
    assert found["ParallelMapV2::Range"].function == ()
    assert found["ParallelMapV2"].is_async


def test_settings_are_the_last_that_were_known() -> None:
    pipeline = Pipeline()
    name = f"{ROOT}::ParallelMapV2"
    pipeline.consumer.event(name, 0, 10, {"parallelism": "unavailable", "autotune": "true"})
    pipeline.consumer.event(name, 20, 10, {"parallelism": 4})
    pipeline.consumer.event(name, 40, 10, {"parallelism": "unavailable"})
    assert pipeline.stages(always(50))["ParallelMapV2"].settings == {"parallelism": "4", "autotune": "true"}


def test_pipeline_without_root_begins_with_its_topmost_stage() -> None:
    """Older TensorFlow names no root."""
    pipeline = Pipeline()
    pipeline.consumer.event("Iterator::Prefetch", 0, 50)
    pipeline.thread().event("Iterator::Prefetch::Generator", 10, 30)
    found = pipeline.stages(always(50))
    assert found["Iterator::Prefetch"].parent == ""
    assert found["Iterator::Prefetch"].wait_ps == 20_000
    assert found["Iterator::Prefetch::Generator"].wait_ps == 30_000


def test_stages_of_hosts_add_up() -> None:
    one = Stage("Iterator::Map", "Map", "", False, 3, 30, 20, 10, 1, {"autotune": "true"}, (("Cast", 5), ("Mul", 1)))
    other = Stage("Iterator::Map", "Map", "", False, 1, 10, 10, 5, 0, {}, (("Mul", 9),))
    alone = Stage("Iterator::Other", "Other", "", False, 1, 1, 1, 0)
    merged = merge_stages([(one,), (other, alone)])
    assert [stage.name for stage in merged] == ["Iterator::Map", "Iterator::Other"]
    assert (merged[0].count, merged[0].time_ps, merged[0].self_ps, merged[0].wait_ps, merged[0].made) == (
        4,
        40,
        30,
        15,
        1,
    )
    assert merged[0].function == (("Mul", 10), ("Cast", 5))
    assert merged[0].settings == {"autotune": "true"}


def test_no_iterators_no_stages() -> None:
    pipeline = Pipeline()
    pipeline.consumer.event("$builtins next", 0, 10)
    assert pipeline.stages(always(10)) == {}
    assert critical(()) is None
