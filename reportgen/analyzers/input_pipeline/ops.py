"""The host side: input ops with their times, and the five categories of input processing."""

from __future__ import annotations

import numpy as np
import pandas as pd

from reportgen.analyzers.input_pipeline import names
from reportgen.analyzers.input_pipeline.threads import Mask, Threads
from reportgen.analyzers.input_pipeline.waits import HostInput
from reportgen.profile.intervals import sum_by

OP_COLUMNS = ("op", "category", "source", "count", "time_ps", "self_ps")


def input_ops(host: HostInput) -> pd.DataFrame:
    """Return the input ops of a host, the longest self time first.

    TensorFlow's are iterators and enqueue ops; their self time leaves out all ops directly inside, as in XProf.
    Iterators that are numbered, one for each file or repetition, count as one.
    Of Python loaders it is the functions inside the calls that get a batch; theirs leaves out iterators too.

    Returns:
        A frame with the columns of `OP_COLUMNS`; `source` is "tf.data", "transfer" or "Python".

    """
    threads = host.threads
    transfers = _outermost(threads, host.transfers)
    python = _python_events(host) & ~transfers & ~host.iterators
    chosen = np.flatnonzero(host.iterators | transfers | python | threads.labelled(names.is_tf_op))
    selfs = threads.self_times(chosen)
    kept = (host.iterators | transfers | python)[chosen]
    rows, selfs = chosen[kept], selfs[kept]
    ahead = ~np.isin(threads.threads[rows], host.step_threads)
    distinct, groups = np.unique(threads.codes[rows] * 2 + (ahead & python[rows]), return_inverse=True)
    labels = [names.stage_of(threads.labels[key // 2]) for key in distinct.tolist()]
    sources = [_source(label) for label in labels]
    frame = pd.DataFrame(
        {
            "op": labels,
            "category": [
                names.python_category(label, bool(key % 2)) if source == "Python" else names.category(label)
                for label, source, key in zip(labels, sources, distinct.tolist(), strict=True)
            ],
            "source": sources,
            "count": np.bincount(groups, minlength=len(labels)),
            "time_ps": sum_by(groups, threads.durations[rows], len(labels)),
            "self_ps": sum_by(groups, selfs, len(labels)),
        },
        columns=list(OP_COLUMNS),
    )
    return merge_ops([frame])


def _source(label: str) -> str:
    if names.is_iterator(label):
        return "tf.data"
    return "transfer" if names.is_transfer(label) else "Python"


def _outermost(threads: Threads, chosen: Mask) -> Mask:
    """Of nested transfers only the outermost: they are parts of one."""
    return chosen & (np.append(threads.nearest(chosen), -1)[threads.parents] < 0)


def _python_events(host: HostInput) -> Mask:
    """Events inside the Python calls that get a batch, and these calls themselves."""
    threads = host.threads
    traced = threads.labelled(lambda label: label.startswith("$"))
    return traced & (threads.nearest(host.python_calls) >= 0)


def merge_ops(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """Return the input ops of several hosts as one frame."""
    frame = pd.concat(frames, ignore_index=True)
    frame = frame.groupby(["op", "category", "source"], sort=False, as_index=False).sum()
    return frame.sort_values(["self_ps", "op"], ascending=[False, True], kind="stable", ignore_index=True)


def category_times(ops: pd.DataFrame) -> dict[names.Category, int]:
    """Return the self time of each of the five categories in picoseconds, summed over all host threads."""
    sums = ops.groupby("category")["self_ps"].sum()
    return {category: int(sums.get(category, 0)) for category in names.CATEGORY_TITLES}
