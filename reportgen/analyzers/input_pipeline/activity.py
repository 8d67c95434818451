"""All others, explained: what the host did while nothing ran on the device and no input was waited for."""

from __future__ import annotations

import numpy as np
import pandas as pd

from reportgen.analyzers.input_pipeline import names
from reportgen.analyzers.input_pipeline.waits import CoreWaits, HostInput
from reportgen.profile.intervals import sum_by

ACTIVITY_COLUMNS = ("group", "event", "function", "time_ps")
NOTHING_RECORDED = "nothing recorded"
_MOST = 200


def host_activity(host: HostInput, core: CoreWaits, step_name: str) -> pd.DataFrame:
    """Return what the stepping thread did in the free time of a core's steps, the longest first.

    Args:
        host: The host's input work.
        core: The core.
        step_name: Name of the step annotations: time in one that no event inside explains is the step's own Python.

    Returns:
        A frame with the columns of `ACTIVITY_COLUMNS`: the group, the innermost event, the Python function around it
        ("" where it was not traced), and the time. The group `NOTHING_RECORDED` holds the time without any event.

    """
    threads = host.threads
    found = [threads.time_by_row(thread, core.free) for thread in host.step_threads]
    rows = np.concatenate([rows for rows, _ in found] or [np.empty(0, np.int64)])
    times = np.concatenate([times for _, times in found] or [np.empty(0, np.int64)])
    around = threads.nearest(threads.labelled(names.is_frame))[rows]
    labels = ("", *threads.labels)
    functions = np.where(around >= 0, np.append(threads.codes, -1)[around], -1) + 1
    distinct, groups = np.unique(threads.codes[rows] * len(labels) + functions, return_inverse=True)
    events = [threads.labels[key // len(labels)] for key in distinct.tolist()]
    # Where neither Python nor the loading of batches was recorded, time in a step may be anything.
    known = host.shows_loading(len(core.frame)) or bool(threads.labelled(names.is_frame).any())
    own = "Python" if known else NOTHING_RECORDED
    frame = pd.DataFrame(
        {
            "group": [own if label == step_name else names.activity(label) for label in events],
            "event": events,
            "function": [labels[key % len(labels)] for key in distinct.tolist()],
            "time_ps": sum_by(groups, times, len(events)),
        },
        columns=list(ACTIVITY_COLUMNS),
    )
    silent = core.free.total - int(times.sum())
    if silent > 0:
        rest = pd.DataFrame([(NOTHING_RECORDED, "", "", silent)], columns=list(ACTIVITY_COLUMNS))
        frame = pd.concat([frame, rest]) if len(frame) else rest
    return merge_activity([frame]).head(_MOST)


def merge_activity(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """Return the activities of several hosts as one frame."""
    frame = pd.concat(frames, ignore_index=True)
    frame = frame.groupby(["group", "event", "function"], sort=False, as_index=False).sum()
    return frame.sort_values(["time_ps", "event"], ascending=[False, True], kind="stable", ignore_index=True)
