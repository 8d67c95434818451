"""XLA ops that ran on the host: events with the statistic `hlo_op` on host threads."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from reportgen.profile.attribution import ATTRIBUTION_STATS, attribute
from reportgen.profile.hlo import HloModule
from reportgen.profile.intervals import self_times
from reportgen.profile.model import Plane
from reportgen.profile.ops import OpRuns


def cpu_op_runs(plane: Plane, modules: Mapping[int, HloModule]) -> OpRuns:
    """Return the XLA ops of a host's threads; self time by nesting on each thread.

    Raises:
        WireError: An event is damaged.

    """
    events = plane.events(plane.line_indices(), (*ATTRIBUTION_STATS, "group_id"))
    events = events.where(events.stats["hlo_op"].present)
    events = events.where(np.lexsort((-events.durations, events.starts, events.lines)))
    found = attribute(events, modules)
    selfs = np.empty(len(events), np.int64)
    for line in np.unique(events.lines):
        rows = np.flatnonzero(events.lines == line)
        selfs[rows] = self_times(events.starts[rows], events.durations[rows])
    return OpRuns(
        infos=found.infos,
        ops=found.ops,
        starts=events.starts,
        durations=events.durations,
        self_times=selfs,
        trace_starts=events.starts,
        trace_durations=events.durations,
        occurrences=np.maximum(1, events.occurrences),
        costs={},
        groups=events.stats["group_id"].integers(-1),
    )
