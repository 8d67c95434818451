"""What host events are, by their names: calls that wait for input, transfers, iterators, Python frames, activities.

Names come from TensorFlow's runtime and tf.data, from PjRt (JAX, PyTorch/XLA), from the Python tracer, which writes
"$file.py:12 function" and "$module function", and from PyTorch/XLA.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Category = Literal["enqueue", "preprocessing", "advanced_read", "demanded_read", "other"]
Activity = Literal[
    "compilation",
    "garbage collection",
    "waiting for the device",
    "launch",
    "output",
    "runtime",
    "Python",
    "annotated code",
]

READERS = ("TFRecord", "TextLine", "FixedLengthRecord", "SSTable", "RecordIO", "ArrayRecord")
_AHEAD = ("::MemoryReader", "::MemoryWriter", "::Interleave", "::Prefetch", "::ParallelMap")
_ENQUEUE = re.compile(r"InfeedEnqueue|infeed_enqueue|TransferToInfeed|TransferLiteralToInfeed")
_TF_OP = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*:[A-Za-z_]\w*$")
_TF_CALL = re.compile(r"(EagerLocalExecute: |.*:)?(MultiDevice)?IteratorGetNext\w*(Op::DoCompute)?$")
_TF_ENTRY = re.compile(r"TFE_Py_FastPathExecute|EagerExecute$|EagerLocalExecute: Iterator")
_TRANSFER = re.compile(
    r"(\w+::)*(H2D Dispatch|MemcpyH2D|DevicePut|TransferToDevice|BufferFromHostBuffer|TransferToServer)|"
    r"\$\w+\.py:\d+ (batched_)?device_put"
)
_INDEX = re.compile(r"\[\d+\]")
_FRAME = re.compile(r"\$(?P<file>[^\s:]+)(?::(?P<line>\d+))? (?P<function>\S.*)")


class Frame(NamedTuple):
    """A Python function as the tracer names it: file or module, line (0 where unknown), function."""

    file: str
    line: int
    function: str


def frame(label: str) -> Frame | None:
    """Return the Python function that a label names; None for other events."""
    match = _FRAME.match(label)
    return Frame(match["file"], int(match["line"] or 0), match["function"]) if match else None


def is_frame(label: str) -> bool:
    """Whether a label is a Python function with a file and a line."""
    found = frame(label)
    return bool(found and found.line)


def is_iterator(label: str) -> bool:
    """Whether a label is a call of a tf.data iterator."""
    return label.startswith("Iterator::")


def is_enqueue(label: str) -> bool:
    """Whether a label is the putting of data into a device's infeed queue."""
    return bool(_ENQUEUE.search(label))


def is_transfer(label: str) -> bool:
    """Whether a label is a transfer from host to device, or the start of one."""
    return bool(_TRANSFER.match(label)) or is_enqueue(label)


def is_tf_op(label: str) -> bool:
    """Whether a label is a TensorFlow op, "name:Type"."""
    return bool(_TF_OP.match(label))


def is_tf_call(label: str) -> bool:
    """Whether a label is TensorFlow's own wait for the next element."""
    return bool(_TF_CALL.match(label))


def is_tf_entry(label: str) -> bool:
    """Whether a label is how Python enters TensorFlow's runtime."""
    return bool(_TF_ENTRY.match(label))


# Functions that get a batch, and those that only sound like it.
_GETS = re.compile(
    r"__next__$|(^|_|\.)(next|get|load|read|fetch|make|sample|draw|generate|produce)_?\w*(batch|sample|example|data|record"
    r"|image|input|element|shard)|^(load|loader|batches|dataloader|data_loader|data_iter\w*|input_fn|collate\w*|decode\w*"
    r"|augment\w*|preprocess\w*|host_batch\w*|generator|get_next|producer|fetch)$|_(loader|batches|batch|dataset)$"
)
# Patterns that try again at every position look at so much of a name, for names come from strangers.
LONGEST_NAME = 200
_NOT_INPUT = re.compile(
    r"checkpoint|ckpt|restore|save|config|param|weight|module|norm|import|log|metric|eval"
    r"|train_(step|loop|epoch|state)|^train$|^steps?(_|$)|_steps?$",
    re.IGNORECASE,
)
_LOADER_FILES = re.compile(
    r"(data_?loaders?|datasets?|data_?iterators?|input_pipeline|grain\w*|fetch|collate|webdataset|array_record\w*)\.py$"
)


_ANNOTATED = re.compile(
    r"(load|next|get|fetch|read|prepare|wait_for)[ _]?(batch|data|input|example|sample)(es|s)?$"
    r"|(data|input|batch)[ _]?(load(ing|er)?|fetch(ing)?|wait(ing)?|pipeline)?$",
    re.IGNORECASE,
)


def is_annotated_call(label: str) -> bool:
    """Whether a label is a user's own annotation around getting the next batch, such as "load_batch"."""
    return bool(_ANNOTATED.match(label))


def is_python_call(label: str) -> bool:
    """Whether a label is a Python function that gets the next batch, judged by its name or its file's."""
    found = frame(label)
    if found is None:
        return False
    if found.file == "builtins":
        return found.function == "next"
    if not found.line or _NOT_INPUT.search(found.function[:LONGEST_NAME]):
        return False
    return bool(_GETS.search(found.function[:LONGEST_NAME]) or _LOADER_FILES.search(found.file[-LONGEST_NAME:]))


_READ = re.compile(
    r"\$(io|builtins|posix|_io|mmap|socket|_socket|ssl|_ssl|gfile|os)\S* (open|read|readinto|readline|recv|preadv?|mmap"
    r"|listdir|scandir|stat)|\$(pathlib|gfile|file_io|fsspec|gcsfs|s3fs|local)\.py:\d+ |.*:ReadFile$"
    r"|.*\b(readinto|read_bytes)$"
)


def is_read(label: str) -> bool:
    """Whether a Python event reads from files or sockets."""
    return bool(_READ.match(label[:LONGEST_NAME]))


def python_category(label: str, ahead: bool) -> Category:
    """Return the category of an event of a Python loader; `ahead` says that it ran on a thread of its own."""
    if is_transfer(label):
        return "enqueue"
    if is_read(label):
        return "advanced_read" if ahead else "demanded_read"
    found = frame(label)
    waits = found is not None and found.function in ("sleep", "wait", "acquire", "get", "select", "poll")
    glue = found is not None and found.file == "builtins" and found.function == "next"
    return "other" if waits or glue else "preprocessing"


def category(label: str) -> Category:
    """Return the category of an input op of TensorFlow, as XProf sorts them."""
    if is_transfer(label):
        return "enqueue"
    if label.rsplit("::", 1)[-1] in READERS:
        return "advanced_read" if any(part in label for part in _AHEAD) else "demanded_read"
    return "preprocessing"


CATEGORY_TITLES: dict[Category, str] = {
    "enqueue": "Enqueueing data to be transferred to the device",
    "preprocessing": "Data preprocessing",
    "advanced_read": "Reading data from files in advance",
    "demanded_read": "Reading data from files on demand",
    "other": "Other data reading or processing",
}


def stage_of(label: str) -> str:
    """Return the stage of an iterator's name: without the numbers of parallel or repeated iterators."""
    return _INDEX.sub("", label) if is_iterator(label) else label


_ACTIVITIES: tuple[tuple[Activity, re.Pattern[str]], ...] = (
    (
        "compilation",
        re.compile(r"[Cc]ompil|backend_compile|trace_to_jaxpr|Lower(To|ing)|Autotun|\$(pjit|pxla|mlir|partial_eval)\.py"),
    ),
    ("garbage collection", re.compile(r"\$gc |CollectGarbage|GarbageCollect|gc_callback")),
    (
        "waiting for the device",
        re.compile(
            r"block_until_ready|BlockUntilReady|::Await|BlockHostUntilReady|TensorCollectionBarrier"
            r"|^\$\S+ (_value|__array__)$"
        ),
    ),
    ("output", re.compile(r"D2H|TransferFromDevice|np\.asarray\(jax|Outfeed|ToLiteral")),
    (
        "launch",
        re.compile(
            r"PjitFunction|ParseArguments|Execute|FunctionRun|TFE_|RunGraph|SyncTensors|SyncLiveTensors|RunPostOrder"
            r"|KernelAndDevice|cuLaunch|cuda\w*Launch|EagerCopy|ValidateInput|Handle input|AllocateOutput|CreateOutputs"
            r"|Wait for|__inference_|^[^:]+:[A-Z]\w+$"
        ),
    ),
    ("Python", re.compile(r"\$")),
    ("runtime", re.compile(r"[Pp]j[Rr]t|tpu::|Tfrt|ThreadpoolListener|Memory(De)?[Aa]llocation|::")),
)  # fmt: skip


def activity(label: str) -> Activity:
    """Return what kind of host work an event is; names that tell none are the program's own annotations."""
    return next((name for name, pattern in _ACTIVITIES if pattern.search(label[:LONGEST_NAME])), "annotated code")
