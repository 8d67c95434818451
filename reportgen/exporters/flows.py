"""Flows: arrows from what launches or sends to what runs or receives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reportgen.exporters.tracks import FlowEnds

Rows = NDArray[np.int64]


def flow_edges(ends: Sequence[FlowEnds]) -> tuple[Rows, Rows]:
    """Join beginnings and ends of flows: each end meets the last beginning of its key that is not after it.

    Returns:
        For each edge, where it begins and where it ends, as positions among all rows of `ends`, one after the other.

    """
    if not ends:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    keys = np.concatenate([end.keys for end in ends])
    times = np.concatenate([end.track.starts[end.rows] for end in ends])
    out = np.concatenate([np.full(len(end.rows), end.out) for end in ends])
    order = np.lexsort((out, times, keys))  # at the same time an end comes first: nothing flows into itself
    positions = np.arange(len(order))
    last_out = np.maximum.accumulate(np.where(out[order], positions, -1))
    joined = ~out[order] & (last_out >= 0) & (keys[order] == keys[order][np.maximum(last_out, 0)])
    return order[last_out[joined]], order[positions[joined]]
