"""Steps where the device recorded none: from what a step annotation launched, or from runs of the main program.

A GPU runs a kernel some time after the host launched it, often when the annotation has ended. So its step is the time
from the first to the last kernel that was launched inside the annotation; correlation ids join kernels to launches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from reportgen.errors import InputError
from reportgen.profile.gpu import GpuRuns
from reportgen.profile.hlo import HloModule
from reportgen.profile.intervals import sum_by
from reportgen.profile.model import Kind, Plane
from reportgen.profile.ops import NO_OWNER, OpRuns
from reportgen.profile.steps import Steps, StepSource

Times = NDArray[np.int64]
_MAIN_SHARE = 0.5


def launches(planes: Sequence[Plane]) -> tuple[Times, Times]:
    """Return correlation ids, ascending and each once, and when the host began that launch, in picoseconds.

    Raises:
        WireError: An event is damaged.

    """
    ids, starts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for plane in planes:
        if plane.kind is Kind.HOST and "correlation_id" in plane.stat_names.values():
            events = plane.events(plane.line_indices(), ("correlation_id",))
            joined = events.stats["correlation_id"].present
            ids.append(events.stats["correlation_id"].integers()[joined])
            starts.append(events.starts[joined])
    known, begins = np.concatenate(ids), np.concatenate(starts)
    order = np.lexsort((begins, known))
    known, first = np.unique(known[order], return_index=True)
    return known, begins[order][first]


def launched_steps(annotations: Steps, launched: tuple[Times, Times], runs: GpuRuns) -> Steps | None:
    """Return a GPU's steps: for each annotation the time from the first to the last kernel launched inside it.

    Args:
        annotations: Step annotations on the host.
        launched: See `launches`.
        runs: What ran on the GPU.

    Returns:
        The steps, each ending where the next begins at the latest; None where no kernel can be joined to an annotation.

    """
    ids, times = launched
    at = np.searchsorted(ids, runs.correlations)
    found = np.zeros(len(runs), dtype=bool)
    inside = at < len(ids)
    found[inside] = ids[at[inside]] == runs.correlations[inside]
    rows = np.flatnonzero(found)
    step = annotations.at(times[at[rows]])
    rows, step = rows[step >= 0], step[step >= 0]
    if not len(rows):
        return None
    count = len(annotations)
    starts, ends = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(starts, step, runs.trace_starts[rows])
    np.maximum.at(ends, step, (runs.trace_starts + runs.trace_durations)[rows])
    kept = np.unique(step)
    kept = kept[np.argsort(starts[kept], kind="stable")]
    return Steps(
        source=StepSource.LAUNCHES,
        detail=annotations.detail,
        ids=annotations.ids[kept],
        labels=tuple(annotations.labels[row] for row in kept.tolist()),
        starts=starts[kept],
        ends=np.minimum(ends[kept], np.append(starts[kept][1:], np.iinfo(np.int64).max)),
    )


def program_steps(cores: Sequence[OpRuns], modules: Mapping[int, HloModule]) -> list[Steps] | None:
    """Return for each core of a host the runs of the program with the most time over all cores.

    None without programs, or where none of them takes half of the time: then nothing tells which one is the step.

    A run begins where the program's first op runs again, and ends with the program's last op before that.

    Args:
        cores: What ran on each core.
        modules: HLO modules by program id.

    """
    totals: dict[tuple[int, str], int] = {}
    for runs in cores:
        sums = sum_by(runs.ops, runs.durations, len(runs.infos))
        for info, time in zip(runs.infos, sums.tolist(), strict=True):
            if (info.program or info.module) and info.category != NO_OWNER:
                key = (info.program, info.module)
                totals[key] = totals.get(key, 0) + time
    if not totals:
        return None
    main = max(sorted(totals), key=lambda key: totals[key])
    if totals[main] < _MAIN_SHARE * sum(totals.values()):
        return None
    return [_runs_of_program(runs, main, modules.get(main[0])) for runs in cores]


def _runs_of_program(runs: OpRuns, program: tuple[int, str], module: HloModule | None) -> Steps:
    own = np.array([(info.program, info.module) == program for info in runs.infos] + [False], dtype=bool)
    rows = np.flatnonzero(own[runs.ops])
    rows = rows[np.argsort(runs.trace_starts[rows], kind="stable")]
    first = _first_op(runs, rows, module)
    starts = runs.trace_starts[rows]
    begins = np.flatnonzero((runs.ops[rows] == first) & (runs.cost_counts[rows] > 0))
    reach = starts + runs.trace_durations[rows]
    ends = np.maximum.reduceat(reach, begins) if len(begins) else np.empty(0, np.int64)
    number, label = program
    return Steps(
        source=StepSource.MODULE_RUNS,
        detail=f"{label}({number})",
        ids=np.arange(len(begins)),
        labels=tuple(str(index) for index in range(len(begins))),
        starts=starts[begins],
        ends=np.minimum(ends, np.append(starts[begins][1:], np.iinfo(np.int64).max)[: len(ends)]),
    )


def _first_op(runs: OpRuns, rows: Times, module: HloModule | None) -> int:
    """The op that ran and stands first in the module's entry; without a module the one that ran first; -1 for none."""
    ran: list[int] = list(dict.fromkeys(runs.ops[rows].tolist()))
    place = _places(module) if module is not None else {}
    listed = [op for op in ran if runs.infos[op].name in place]
    return min(listed or ran[:1], key=lambda op: place.get(runs.infos[op].name, 0), default=-1)


def _places(module: HloModule) -> dict[str, int]:
    """The order of the entry's instructions; nothing for a damaged module without an entry."""
    try:
        return {instruction.name: index for index, instruction in enumerate(module.entry.instructions)}
    except InputError:
        return {}
