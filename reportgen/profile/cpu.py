"""XLA ops that ran on the host: events with the statistic `hlo_op` on host threads."""

from __future__ import annotations

from collections.abc import Mapping

from reportgen.profile.gpu import attributed_runs
from reportgen.profile.hlo import HloModule
from reportgen.profile.model import Plane
from reportgen.profile.ops import OpRuns

_STATS = ("hlo_op", "hlo_module", "program_id", "tf_op", "group_id")


def cpu_op_runs(plane: Plane, modules: Mapping[int, HloModule]) -> OpRuns:
    """Return the XLA ops of a host's threads; self time by nesting on each thread.

    Raises:
        WireError: An event is damaged.

    """
    events = plane.events(plane.line_indices(), _STATS)
    return attributed_runs(events.where(events.stats["hlo_op"].present), modules)
