"""The iterator tree of tf.data pipelines, and which of its stages the step waited for.

Iterators carry their place in the tree in their names: `Iterator::Root::Prefetch::BatchV2::Map` is the map that the
batch calls. The critical path goes by time: at every moment of an exposed wait the stage to blame is the deepest one
that ran, starting from the root and going only to stages that the one above calls. An asynchronous stage (prefetch,
parallel map) works on other threads, so a stage counts wherever its calls ran.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from reportgen.analyzers.input_pipeline import names
from reportgen.analyzers.input_pipeline.threads import Threads
from reportgen.analyzers.input_pipeline.waits import HostInput
from reportgen.profile.intervals import Intervals, intersect, subtract, sum_by
from reportgen.profile.model import HostProfile, Kind

ASYNC = (
    "Prefetch", "ParallelMap", "ParallelInterleave", "LegacyParallelInterleave", "MapAndBatch", "ParallelBatch",
    "ParseExample", "DataService", "ParallelFilter",
)  # fmt: skip
_SETTINGS = ("parallelism", "buffer_limit", "cycle_length", "block_length", "batch_size", "autotune", "deterministic")
_FUNCTION = "InstantiatedCapturedFunction::Run"
_NUMBERED = re.compile(r"\]::[^:\[\]]+$")
_MOST_STAGES = 200
_MOST_OPS = 5


@dataclass(frozen=True)
class Stage:
    """A stage of a tf.data pipeline.

    Attributes:
        name: Its full name without the numbers of repeated iterators.
        kind: Its last part, such as "ParallelMapV2".
        parent: Name of the stage that calls it; "" for a root.
        is_async: Whether it works ahead on threads of its own.
        count: Calls.
        time_ps, self_ps: Time of all calls, and without calls inside them on the same thread.
        wait_ps: Exposed wait for which it is to blame.
        made: Iterators created for it, such as one a file.
        settings: Parallelism, buffer and so on, as recorded.
        function: Time of the ops of its user function by type, the longest first; threads' time, not wall time.

    """

    name: str
    kind: str
    parent: str
    is_async: bool
    count: int
    time_ps: int
    self_ps: int
    wait_ps: int
    made: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)
    function: tuple[tuple[str, int], ...] = ()


def stages(profile: HostProfile, host: HostInput, exposed: Intervals) -> tuple[Stage, ...]:
    """Return the stages of all pipelines of a host, callers before those that they call.

    Args:
        profile: The host's profile, for the stages' settings.
        host: Its input work.
        exposed: When its steps waited.

    """
    threads = host.threads
    calls = np.flatnonzero(host.iterators)
    if not len(calls):
        return ()
    found, codes = _stage_codes(threads)
    of_call = codes[threads.codes[calls]]
    count = np.bincount(of_call, minlength=len(found))
    time = sum_by(of_call, threads.durations[calls], len(found))
    own = sum_by(of_call, threads.self_times(calls), len(found))
    spans = {name: threads.spans(calls[of_call == index]) for index, name in enumerate(found) if count[index]}
    blame = _blame(spans, exposed)
    functions = _functions(threads, calls, of_call, found)
    settings = _settings(profile, threads, calls)
    made = _made(threads.labels, codes, len(found))
    order = sorted(spans, key=lambda name: (name.count("::"), name))[:_MOST_STAGES]
    places = {name: index for index, name in enumerate(found)}
    return tuple(
        Stage(
            name=name,
            kind=name.rsplit("::", 1)[-1],
            parent=_caller(name, spans),
            is_async=name.rsplit("::", 1)[-1].startswith(ASYNC),
            count=int(count[places[name]]),
            time_ps=int(time[places[name]]),
            self_ps=int(own[places[name]]),
            wait_ps=blame[name].total,
            made=made[places[name]],
            settings=settings.get(name, {}),
            function=functions.get(name, ()),
        )
        for name in order
    )


def _stage_codes(threads: Threads) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names of all stages, and the stage of each label; -1 for labels that are no iterators."""
    places: dict[str, int] = {}
    codes = [
        places.setdefault(names.stage_of(label), len(places)) if names.is_iterator(label) else -1
        for label in threads.labels
    ]
    return list(places), np.array(codes, dtype=np.int64)


def _caller(name: str, known: Mapping[str, object]) -> str:
    """Return the nearest stage above that is known; "" for a root."""
    while "::" in name:
        name = name.rsplit("::", 1)[0]
        if name in known:
            return name
    return ""


def _blame(spans: Mapping[str, Intervals], exposed: Intervals) -> dict[str, Intervals]:
    """Return when each stage was the deepest that ran while the step waited."""
    active: dict[str, Intervals] = {"": exposed}
    left: dict[str, Intervals] = {}
    for name in sorted(spans, key=lambda stage: stage.count("::")):
        caller = _caller(name, spans)
        active[name] = left[name] = intersect(active[caller], spans[name])
        if caller:
            left[caller] = subtract(left[caller], spans[name])
    return left


def _made(labels: Sequence[str], codes: NDArray[np.int64], count: int) -> list[int]:
    """Return how many numbered iterators each stage had: one for each file or repetition."""
    numbered = np.array([bool(_NUMBERED.search(label)) for label in labels], dtype=bool) & (codes >= 0)
    return [int(number) for number in np.bincount(codes[numbered], minlength=count)]


def _functions(
    threads: Threads, calls: NDArray[np.int64], of_call: NDArray[np.int64], found: Sequence[str]
) -> dict[str, tuple[tuple[str, int], ...]]:
    """Return the time of the TensorFlow ops inside each stage's user function, by type.

    A function's run carries an id; the executor that runs its ops, often on other threads, carries the same.
    """
    stage_of_row = np.full(len(threads), -1)
    stage_of_row[calls] = of_call
    runs = np.flatnonzero(threads.labelled(lambda label: label.startswith(_FUNCTION)))
    stage_of_run = _stage_of_runs(threads, runs, stage_of_row, found)
    known = dict(zip(threads.ids[runs].tolist(), stage_of_run.tolist(), strict=True))
    executors = threads.labelled(lambda label: label.startswith("ExecutorState::Process"))
    ops = np.flatnonzero(threads.labelled(names.is_tf_op))
    above = threads.nearest(executors)[ops]
    selfs = threads.self_times(ops)
    sums: dict[tuple[int, str], int] = {}
    for row, executor, time in zip(ops.tolist(), above.tolist(), selfs.tolist(), strict=True):
        stage = known.get(int(threads.ids[executor]), -1) if executor >= 0 else -1
        if stage >= 0:
            key = (stage, threads.labels[threads.codes[row]].rsplit(":", 1)[-1])
            sums[key] = sums.get(key, 0) + time
    result: dict[str, list[tuple[str, int]]] = {}
    for (stage, kind), time in sums.items():
        result.setdefault(found[stage], []).append((kind, time))
    return {name: tuple(sorted(ops, key=lambda op: (-op[1], op[0]))[:_MOST_OPS]) for name, ops in result.items()}


def _stage_of_runs(
    threads: Threads, runs: NDArray[np.int64], stage_of_row: NDArray[np.int64], found: Sequence[str]
) -> NDArray[np.int64]:
    """Return the stage whose user function each run is; -1 where unknown.

    A synchronous stage holds its function's run. A parallel one runs it in a `...Produce` event, which also holds the
    call of the stage below.
    """
    nearest = threads.nearest(stage_of_row >= 0)[runs]
    direct = np.where(nearest >= 0, stage_of_row[nearest], -1)
    produces = threads.labelled(lambda label: label.endswith("Produce"))
    places = {name: index for index, name in enumerate(found)}
    caller = np.array([places.get(_caller(name, places), -1) for name in found] or [-1])
    below = np.flatnonzero(stage_of_row >= 0)
    below = below[np.append(produces, False)[threads.parents[below]]]
    stage_of_produce = np.full(len(threads) + 1, -1)
    stage_of_produce[threads.parents[below]] = caller[stage_of_row[below]]
    holder = threads.nearest(produces)[runs]
    # The nearer of the two is right: a produce event may lie inside no iterator, an iterator inside a produce event.
    return np.where((holder > nearest) & (holder >= 0), stage_of_produce[holder], direct)


def _settings(profile: HostProfile, threads: Threads, calls: NDArray[np.int64]) -> dict[str, dict[str, str]]:
    """Return what each stage's iterators recorded of themselves, the last value that was known."""
    planes = profile.of_kind(Kind.HOST)
    result: dict[str, dict[str, str]] = {}
    for thread in np.unique(threads.threads[calls]).tolist():
        number, line = threads.origins[thread]
        wanted = [name for name in _SETTINGS if name in planes[number].stat_names.values()]
        events = planes[number].events([line], wanted)
        labels = planes[number].event_names
        iterator = np.array([names.is_iterator(label) for label in labels] + [False])[events.names]
        events = events.where(iterator)
        for name in wanted:
            texts, numbers = events.texts(name), events.stats[name].integers(-1).tolist()
            for code, value, number_value in zip(events.names.tolist(), texts, numbers, strict=True):
                shown = value if value is not None else str(number_value) if number_value >= 0 else "unavailable"
                if shown != "unavailable":
                    result.setdefault(names.stage_of(labels[code]), {})[name] = shown
    return result


def chain(found: Sequence[Stage], stage: Stage) -> list[Stage]:
    """Return a stage and all that stand between it and the root, itself first."""
    by_name = {entry.name: entry for entry in found}
    path = [stage]
    while path[-1].parent in by_name:
        path.append(by_name[path[-1].parent])
    return path


def critical(found: Sequence[Stage]) -> Stage | None:
    """Return the stage with the most exposed wait; None where no wait is explained by tf.data.

    A prefetch only hands over, so it is to blame where nothing below it was recorded, as at the capture's edges.
    """
    waiting = [stage for stage in found if stage.wait_ps]
    work = [stage for stage in waiting if stage.kind not in ("Root", "Prefetch")]
    return max(work or waiting, key=lambda stage: stage.wait_ps, default=None)


def merge_stages(parts: Sequence[Sequence[Stage]]) -> tuple[Stage, ...]:
    """Return the stages of several hosts, those of one name summed."""
    found: dict[str, Stage] = {}
    for stage in (stage for part in parts for stage in part):
        known = found.get(stage.name)
        found[stage.name] = stage if known is None else _sum(known, stage)
    return tuple(sorted(found.values(), key=lambda stage: (stage.name.count("::"), stage.name)))


def _sum(first: Stage, second: Stage) -> Stage:
    function = Counter(dict(first.function)) + Counter(dict(second.function))
    return replace(
        first,
        count=first.count + second.count,
        time_ps=first.time_ps + second.time_ps,
        self_ps=first.self_ps + second.self_ps,
        wait_ps=first.wait_ps + second.wait_ps,
        made=first.made + second.made,
        function=tuple(function.most_common(_MOST_OPS)),
    )
