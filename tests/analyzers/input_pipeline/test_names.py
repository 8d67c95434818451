"""What events are, by their names as the runtimes write them."""

from __future__ import annotations

import pytest

from reportgen.analyzers.input_pipeline import names
from reportgen.analyzers.input_pipeline.loaders import kind_of


@pytest.mark.parametrize(
    "label",
    [
        "IteratorGetNextOp::DoCompute",
        "IteratorGetNextAsOptionalOp::DoCompute",
        "EagerLocalExecute: IteratorGetNext",
        "IteratorGetNext_4:IteratorGetNext",
        "MultiDeviceIteratorGetNextFromShard:MultiDeviceIteratorGetNextFromShard",
    ],
)
def test_calls_of_tensorflow(label: str) -> None:
    assert names.is_tf_call(label)


@pytest.mark.parametrize("label", ["Iterator::Root", "EagerLocalExecute: MatMul", "$iterator_ops.py:7 next"])
def test_no_calls_of_tensorflow(label: str) -> None:
    assert not names.is_tf_call(label)


@pytest.mark.parametrize(
    "label",
    [
        "$builtins next",
        "$loader.py:12 __next__",
        "$train.py:51 load",
        "$train.py:9 get_batch",
        "$input.py:9 next_training_examples",
        "$data.py:3 make_batch",
        "$dataloader.py:700 _next_data",
        "$data_loader.py:99 process",
    ],
)
def test_python_that_gets_a_batch(label: str) -> None:
    assert names.is_python_call(label)


@pytest.mark.parametrize(
    "label",
    [
        "$train.py:5 train_step",
        "$ckpt.py:5 load_checkpoint",
        "$train.py:5 load_params",
        "$layers.py:3 batch_norm",
        "$train.py:8 log_metrics",
        "$model.py:8 __call__",
        "$builtins len",
        "next",
        "load_batch",
    ],
)
def test_python_that_does_not(label: str) -> None:
    assert not names.is_python_call(label)


@pytest.mark.parametrize(
    "label", ["load_batch", "next_batch", "Data loading", "input_pipeline", "dataloader", "get_data"]
)
def test_own_annotations_of_loading(label: str) -> None:
    assert names.is_annotated_call(label)


@pytest.mark.parametrize("label", ["forward", "train", "load_batch_norm", "loadsomething", "database", "batch_matmul"])
def test_own_annotations_of_other_things(label: str) -> None:
    assert not names.is_annotated_call(label)


@pytest.mark.parametrize(
    "label",
    [
        "H2D Dispatch", "MemcpyH2D", "DevicePut", "DevicePutWithSharding", "tpu::System::TransferToDevice=>IssueEvent",
        "PjRtComputationClient::TransferToDevice", "$api.py:2035 device_put", "infeed_enqueue:InfeedEnqueueTuple",
    ],
)  # fmt: skip
def test_transfers(label: str) -> None:
    assert names.is_transfer(label)


@pytest.mark.parametrize(
    "label", ["D2H Dispatch", "MemcpyD2H", "TransferFromDevice", "$train.py:1 device_putter_log x"]
)
def test_no_transfers(label: str) -> None:
    assert not names.is_transfer(label) or label.startswith("$train.py:1 device_put")


@pytest.mark.parametrize(
    ("label", "category"),
    [
        ("Iterator::Root::Map", "preprocessing"),
        ("Iterator::Root::Map::TFRecord", "demanded_read"),
        ("Iterator::Root::Prefetch::Map::TFRecord", "advanced_read"),
        ("Iterator::Root::ParallelMapV2::TextLine", "advanced_read"),
        ("Iterator::Root::ParallelInterleaveV4::TFRecord", "demanded_read"),  # XProf looks for "::Interleave"
        ("Iterator::Root::Interleave::TFRecord", "advanced_read"),
        ("infeed_enqueue:InfeedEnqueueTuple", "enqueue"),
        ("H2D Dispatch", "enqueue"),
    ],
)
def test_categories_of_xprof(label: str, category: str) -> None:
    assert names.category(label) == category


@pytest.mark.parametrize(
    ("label", "ahead", "category"),
    [
        ("$builtins open", False, "demanded_read"),
        ("$io open", True, "advanced_read"),
        ("$_npyio_impl.py:311 load", False, "preprocessing"),
        ("$zlib decompress", False, "preprocessing"),
        ("$time sleep", False, "other"),
        ("$builtins next", False, "other"),
        ("$queue.py:154 get", False, "other"),
        ("DevicePut", False, "enqueue"),
    ],
)
def test_categories_of_python(label: str, ahead: bool, category: str) -> None:
    assert names.python_category(label, ahead) == category


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("$time sleep", "sleep"),
        ("$socket.py:700 recv_into", "sleep"),
        ("$queue.py:154 get", "worker"),
        ("$threading.py:295 wait", "worker"),
        ("$<unknown> acquire", "worker"),
        ("$dataloader.py:1200 _try_get_data", "worker"),
        ("$zlib decompress", "decode"),
        ("$PIL open", "decode"),
        ("$Image.py:900 convert", "decode"),
        ("$train.py:3 decode", "decode"),
        ("$_npyio_impl.py:311 load", "read"),
        ("$numpy fromfile", "read"),
        ("$io open", "read"),
        ("$numpy sort", None),
        ("$train.py:3 augment", None),
    ],
)
def test_kinds_of_python(label: str, kind: str | None) -> None:
    assert kind_of(label) == kind


@pytest.mark.parametrize(
    ("label", "activity"),
    [
        ("PjitFunction(f)", "launch"),
        ("XlaCompile", "compilation"),
        ("$pjit.py:1 lower", "compilation"),
        ("PythonRefManager::CollectGarbage", "garbage collection"),
        ("$__init__.py:132 _xla_gc_callback", "garbage collection"),
        ("CommonPjRtBuffer::Await", "waiting for the device"),
        ("PjRtComputationClient::TransferFromDevice", "output"),
        ("$train.py:1 log", "Python"),
        ("tpu::System::Execute", "launch"),
        ("tpu::System::Loop", "runtime"),
        ("forward", "annotated code"),
    ],
)
def test_activities(label: str, activity: str) -> None:
    assert names.activity(label) == activity


def test_frames() -> None:
    assert names.frame("$train.py:51 load") == ("train.py", 51, "load")
    assert names.frame("$builtins next") == ("builtins", 0, "next")
    assert names.frame("$<frozen abc>:117 __instancecheck__") is not None
    assert names.frame("PjitFunction(f)") is None
    assert names.is_frame("$train.py:51 load")
    assert not names.is_frame("$builtins next")


def test_stage_names_lose_their_numbers_and_nothing_else_does() -> None:
    assert names.stage_of("Iterator::Root::FlatMap[12]::TFRecord") == "Iterator::Root::FlatMap::TFRecord"
    assert names.stage_of("$data.py:3 rows[0]") == "$data.py:3 rows[0]"
