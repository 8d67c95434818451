"""XProf's input pipeline tool beside ours: equal where both mean the same, our own value where they differ."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reportgen.analyzers.input_pipeline.names import CATEGORY_TITLES, Category, stage_of
from reportgen.profile.intervals import sum_by
from tests.analyzers.input_pipeline.support import facts_of, input_of, result_of, sample, view_of
from tests.conftest import REFERENCE
from tests.parity import xprof

pytestmark = pytest.mark.peer
TF = ("tf_cpu", "tf_cpu_healthy")
V100 = REFERENCE / "profiles" / "gpu_v100_8x_tf2" / "worker0.xplane.pb"
_BARS: dict[Category, str] = {
    "enqueue": "enqueue_us",
    "preprocessing": "preprocessing_us",
    "advanced_read": "advanced_file_read_us",
    "demanded_read": "demanded_file_read_us",
    "other": "unclassified_nonequeue_us",
}


def peer(path: Path) -> list[dict[str, Any]]:
    answer = xprof.answers(path)["input_pipeline_analyzer"]
    assert isinstance(answer, list)
    return answer


def rows(table: dict[str, Any]) -> list[list[Any]]:
    return [[(cell or {}).get("v") for cell in row["c"]] for row in table["rows"]]


@pytest.fixture
def v100(profiles: Path) -> Path:
    return profiles / "gpu_v100_8x_tf2" / "worker0.xplane.pb"


@pytest.mark.parametrize("name", TF)
def test_step_times(name: str) -> None:
    """XProf leaves out the first and the last step of a run without a device; ours leaves out the first alone."""
    labels = [column["label"] for column in peer(sample(name))[1]["cols"]]
    theirs = {row[0].split()[-1]: row[labels.index("Step time")] for row in rows(peer(sample(name))[1])}
    steps = facts_of(sample(name)).steps
    ours = dict(zip(steps["label"], steps["time_ps"], strict=True))
    assert len(theirs) == len(ours) - 1 == 10
    for label, time_ms in theirs.items():
        assert ours[label] == round(time_ms * 1e9)


@pytest.mark.parametrize("name", TF)
def test_input_time(name: str) -> None:
    """XProf counts inside the op; ours from where Python enters TensorFlow, nearer to the loop's own measure."""
    labels = [column["label"] for column in peer(sample(name))[1]["cols"]]
    theirs = {row[0].split()[-1]: row[labels.index("Input")] for row in rows(peer(sample(name))[1])}
    threads = input_of(view_of(sample(name))).threads
    ops = np.flatnonzero(threads.labelled(lambda label: label == "IteratorGetNextOp::DoCompute"))
    at = facts_of(sample(name)).steps
    annotations = view_of(sample(name)).annotations
    assert annotations is not None
    inside = sum_by(annotations.steps.at(threads.starts[ops]), threads.durations[ops], 12)
    for label, input_ms in theirs.items():
        assert inside[int(label)] == round(input_ms * 1e9)
    ours = dict(zip(at["label"], at["wait_ps"], strict=True))
    for label, input_ms in theirs.items():
        assert round(input_ms * 1e9) < ours[label] < round(input_ms * 1e9) + 500_000_000


@pytest.mark.parametrize("name", TF)
def test_five_categories(name: str) -> None:
    bars = peer(sample(name))[2]["p"]
    categories = facts_of(sample(name)).categories
    for category, bar in _BARS.items():
        assert categories[category] / 1e6 == pytest.approx(float(bars[bar]), abs=0.0006)


@pytest.mark.parametrize("name", TF)
def test_op_table(name: str) -> None:
    """Iterators numbered by file or repetition are one row of ours: XProf's rows add up to it."""
    counts: Counter[str] = Counter()
    times: Counter[str] = Counter()
    selfs: Counter[str] = Counter()
    categories = {}
    for op, count, time_ms, _, self_ms, _, category in rows(peer(sample(name))[2]):
        stage = stage_of(op)
        counts[stage] += int(count)
        times[stage] += round(time_ms * 1e9)
        selfs[stage] += round(self_ms * 1e9)
        categories[stage] = category
    ops = facts_of(sample(name)).ops.set_index("op")
    assert set(ops.index) == set(counts)
    for stage, count in counts.items():
        row = ops.loc[stage]
        assert (row["count"], row["time_ps"], row["self_ps"]) == (count, times[stage], selfs[stage])
        assert (
            categories[stage]
            .lower()
            .replace("demanded file read", "demanded_read")
            .replace("advanced file read", "advanced_read")
            == row["category"]
        )


def test_shares_of_the_op_table() -> None:
    theirs = {stage_of(row[0]): row for row in rows(peer(sample("tf_cpu"))[2])}
    table = result_of(sample("tf_cpu")).tables["input_ops"]
    names = [column.name for column in table.columns]
    for cells in table.rows:
        row = dict(zip(names, cells, strict=True))
        if row["op"] in ("Iterator::Root", "Iterator::Root::PaddedBatchV2::Map"):
            assert row["time_share"] == pytest.approx(theirs[str(row["op"])][3])
            assert row["self_share"] == pytest.approx(theirs[str(row["op"])][5])


def test_gpu_step_and_ops(v100: Path) -> None:
    """Step time and iterators are equal; XProf takes no host categories into a GPU's steps and sees no input there."""
    answer = peer(v100)
    labels = [column["label"] for column in answer[1]["cols"]]
    (row,) = rows(answer[1])
    facts = facts_of(v100)
    assert list(facts.steps["time_ps"]) == [round(row[labels.index("Step time")] * 1e9)]
    ops = facts.ops[facts.ops["source"] == "tf.data"].set_index("op")
    for op, count, time_ms, _, self_ms, _, _ in rows(answer[2]):
        found = (ops.loc[op, "count"], ops.loc[op, "time_ps"], ops.loc[op, "self_ps"])
        assert found == (count, round(time_ms * 1e9), round(self_ms * 1e9))
    assert facts.categories["preprocessing"] / 1e6 == pytest.approx(
        float(answer[2]["p"]["preprocessing_us"]), abs=0.0006
    )


def test_gpu_waits_that_xprof_misses(v100: Path) -> None:
    """XProf: no input, 30 % "all others". Ours: the part of it in which the program waited for its generator."""
    (row,) = rows(peer(v100)[1])
    labels = [column["label"] for column in peer(v100)[1]["cols"]]
    facts = facts_of(v100)
    assert row[labels.index("Input")] == 0.0
    others_s = row[labels.index("All others")] / 1e3
    assert facts.means is not None
    assert facts.means.wait_s == pytest.approx(2.405958e-3)
    assert facts.means.wait_s + facts.means.other_s == pytest.approx(others_s, rel=1e-3)
    assert facts.verdict.level == "moderately"
    assert facts.blame is not None
    assert (facts.blame.cause, facts.blame.where) == ("python-generator", "Iterator::Prefetch::Generator")
    # The host's copies to the devices are input, too: XProf leaves them out of the five bars.
    assert facts.categories["enqueue"] == 3_025_879_000
    assert list(CATEGORY_TITLES) == list(facts.categories)


def test_jax_waits_that_xprof_misses() -> None:
    """80 % of the time goes into the loader between the steps; XProf: "NOT input-bound because only 0.0%"."""
    path = sample("jax_cpu_input_bound")
    assert "NOT input-bound because only 0.0%" in peer(path)[1]["p"]["input_conclusion"]
    assert not rows(peer(path)[2])
    facts = facts_of(path)
    assert facts.means is not None
    assert facts.means.share == pytest.approx(0.798, abs=0.001)


def test_healthy_pipeline_that_xprof_suspects() -> None:
    """XProf: "POTENTIALLY input-bound" by unexplained time; ours explains that time and calls the pipeline healthy."""
    path = sample("tf_cpu_healthy")
    assert "POTENTIALLY input-bound" in peer(path)[1]["p"]["input_conclusion"]
    facts = facts_of(path)
    assert facts.verdict.level == "not"
    groups = facts.activity.groupby("group")["time_ps"].sum()
    assert groups["launch"] + groups["waiting for the device"] > 0.5 * groups.sum()
    assert groups["nothing recorded"] < 0.01 * groups.sum()
