"""The input-op table and the five categories, on profiles built by hand; times in nanoseconds."""

from __future__ import annotations

import time

import pandas as pd

from reportgen.analyzers.input_pipeline import names
from reportgen.analyzers.input_pipeline.loaders import kind_of
from reportgen.analyzers.input_pipeline.ops import category_times, input_ops, merge_ops
from tests.analyzers.input_pipeline.support import analyze, input_of
from tests.builders import Space


def ops_of(space: Space) -> pd.DataFrame:
    return input_ops(input_of(space.view())).set_index("op")


def test_self_time_leaves_out_what_an_op_calls() -> None:
    """The seed's own example: a filter that calls a repeated map."""
    space = Space()
    line = space.plane("/host:CPU").line("python")
    line.event("Iterator::PaddedBatch::Filter", 0, 100)
    line.event("InstantiatedCapturedFunction::Run", 5, 20)
    line.event("Iterator::PaddedBatch::Filter::ForeverRepeat::Map", 30, 60)
    ops = ops_of(space)
    assert ops.loc["Iterator::PaddedBatch::Filter", "time_ps"] == 100_000
    assert ops.loc["Iterator::PaddedBatch::Filter", "self_ps"] == 40_000
    assert ops.loc["Iterator::PaddedBatch::Filter::ForeverRepeat::Map", "self_ps"] == 60_000


def test_numbered_iterators_are_one_op() -> None:
    space = Space()
    line = space.plane("/host:CPU").line("python")
    for number in range(3):
        line.event(f"Iterator::Root::FlatMap[{number}]::TFRecord", 10 * number, 5)
    ops = ops_of(space)
    assert list(ops.index) == ["Iterator::Root::FlatMap::TFRecord"]
    assert ops.loc["Iterator::Root::FlatMap::TFRecord", "count"] == 3


def test_of_nested_transfers_the_outermost_counts() -> None:
    space = Space()
    line = space.plane("/host:CPU").line("python")
    line.event("$api.py:2035 device_put", 0, 50).event("DevicePutWithSharding", 10, 20)
    line.event("DevicePut", 60, 10)
    ops = ops_of(space)
    assert list(ops.index) == ["$api.py:2035 device_put", "DevicePut"]
    assert category_times(ops.reset_index())["enqueue"] == 60_000


def test_loader_functions_are_sorted_by_what_they_do_and_where() -> None:
    space = Space()
    plane = space.plane("/host:CPU")
    main, loader = plane.line("python"), plane.line("")
    main.event("train", 200, 10, {"_r": 1, "step_num": 0})
    main.event("$data.py:3 load_batch", 0, 100).event("$io read", 10, 30).event("$zlib decompress", 50, 20)
    main.event("$log.py:3 write", 120, 10).event("$io write", 121, 5)
    loader.event("$data.py:3 load_batch", 0, 100).event("$io read", 10, 40)
    host = input_of(space.view())
    times = category_times(input_ops(host))
    assert times == {
        "enqueue": 0,
        "preprocessing": 20_000 + 50_000 + 60_000,
        "advanced_read": 40_000,  # on a thread of its own
        "demanded_read": 30_000,
        "other": 0,
    }


def test_ops_of_hosts_add_up() -> None:
    space = Space()
    space.plane("/host:CPU").line("python").event("Iterator::Root::Map", 0, 10)
    frame = input_ops(input_of(space.view()))
    merged = merge_ops([frame, frame])
    assert merged["count"].tolist() == [2]
    assert merged["time_ps"].tolist() == [20_000]


def test_names_of_strangers_cost_little_and_break_nothing() -> None:
    hostile = [
        "$" * 200_000, "$x.py:1 " + "get_" * 50_000 + "!", "$x.py:1 " + "decode" * 50_000 + "!", "a:" * 100_000,
        "Iterator::" + "[1]::" * 40_000, "$<img src=x onerror=alert(1)>.py:1 load_batch", "Iterator::Root::\0\ud7ff|`*",
    ]  # fmt: skip
    space = Space()
    line = space.plane("/host:CPU").line("python")
    for number, name in enumerate(hostile):
        line.event("train", number * 100, 90, {"_r": 1, "step_num": number})
        line.event(name, number * 100 + 10, 50)
    begin = time.process_time()
    for name in hostile:
        names.activity(name)
        kind_of(name)
    result = analyze(space.view())
    assert time.process_time() - begin < 5
    assert len(result.tables["input_steps"].rows) == len(hostile) - 1
