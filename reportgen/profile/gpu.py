"""Kernels and copies of a GPU joined to the HLO ops that launched them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from reportgen.profile.hlo import HloModule, category, expression
from reportgen.profile.hlo_cost import bytes_accessed, flops
from reportgen.profile.intervals import self_times
from reportgen.profile.model import Events, Plane
from reportgen.profile.ops import NO_OWNER, OpInfo, OpRuns

_STATS = ("hlo_op", "hlo_module", "program_id", "tf_op", "group_id")
# Lines that a profiler derives from the streams: their events would count twice.
_DERIVED = ("Steps", "TensorFlow Ops", "TensorFlow Name Scope", "XLA Ops", "XLA Modules", "Source code", "Launch Stats")


def stream_lines(plane: Plane) -> list[int]:
    """Return the indices of a GPU's lines that hold what ran, one a stream, without the derived ones."""
    return [
        index
        for index, line in enumerate(plane.lines)
        if not line.display_name.startswith((*_DERIVED, "Framework", "_counters_", "counters_"))
    ]


def gpu_op_runs(plane: Plane, modules: Mapping[int, HloModule]) -> OpRuns:
    """Return the kernels and copies of a GPU, each as a run of the HLO op that launched it.

    What no HLO op owns (libraries, command buffers, copies) is an op of its own, named by kernel,
    so that no time is lost.

    Raises:
        WireError: An event is damaged.

    """
    return attributed_runs(plane.events(stream_lines(plane), _STATS), modules)


def attributed_runs(events: Events, modules: Mapping[int, HloModule]) -> OpRuns:
    """Return events as runs of the HLO ops named in their statistics."""
    order = np.lexsort((-events.durations, events.starts, events.lines))
    events = events.where(order)
    owners, owner_names = events.text_codes("hlo_op")
    module_codes, module_names = events.text_codes("hlo_module")
    tf_codes, tf_names = events.text_codes("tf_op")
    programs = events.stats["program_id"].integers(0)
    keys = np.stack([np.where(owners < 0, events.names, -1), owners, module_codes, programs, tf_codes], axis=1)
    distinct, ops = np.unique(keys, axis=0, return_inverse=True) if len(keys) else (keys, np.empty(0, np.int64))
    infos = []
    for name, owner, module, program, tf_op in distinct.tolist():
        framework = tf_names[tf_op] if tf_op >= 0 else ""
        label = module_names[module] if module >= 0 else ""
        if owner >= 0:
            leaf = owner_names[owner].rsplit("::", 1)[-1]
            infos.append(_info(leaf, label, program & 0xFFFFFFFFFFFFFFFF, framework, modules))
        else:
            kernel = events.plane.event_names[name] if name >= 0 else "unnamed"
            infos.append(OpInfo(program & 0xFFFFFFFFFFFFFFFF, label, kernel, NO_OWNER, framework_op=framework))
    selfs = np.empty(len(events), np.int64)
    for line in np.unique(events.lines):
        rows = np.flatnonzero(events.lines == line)
        selfs[rows] = self_times(events.starts[rows], events.durations[rows])
    return OpRuns(
        infos=infos,
        ops=ops.reshape(-1),
        starts=events.starts,
        durations=events.durations,
        self_times=selfs,
        trace_starts=events.starts,
        trace_durations=events.durations,
        occurrences=np.maximum(1, events.occurrences),
        costs={},
        groups=events.stats["group_id"].integers(-1),
    )


def _info(op: str, module: str, program: int, framework: str, modules: Mapping[int, HloModule]) -> OpInfo:
    hlo = modules.get(program)
    instruction = hlo.by_name.get(op) if hlo is not None else None
    if hlo is None or instruction is None:
        return OpInfo(program, module, op, "unknown", framework_op=framework)
    flop_count, byte_count = flops(hlo, instruction), bytes_accessed(hlo, instruction)
    source = instruction.source
    return OpInfo(
        program=program,
        module=module,
        name=op,
        category=category(instruction),
        expression=expression(instruction),
        framework_op=instruction.op_name or framework,
        source=str(source) if source else "",
        stack="\n".join(str(frame) for frame in instruction.stack),
        shape=str(instruction.shape),
        flops=flop_count,
        model_flops=flop_count,
        bytes=byte_count,
        hbm_read=byte_count or 0.0,
    )
