"""The device side: how long each step waited for its input, with nothing else to do.

A step's period reaches from the end of the step before it to its own end, so waits between two step annotations count
and belong to the step that follows. The first step has no such beginning: its period is its own length.

The overlap rule: a wait counts where no op computes (exposed). Input work beside running ops is hidden.
Exposed are the infeed and host-receive ops of a TPU and the host-to-device copies of a GPU, where nothing else runs
beside them, and every moment in which the device is idle while the host waits for its next batch or transfers it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from reportgen.analyzers.classes import CONTAINERS, INPUT
from reportgen.analyzers.input_pipeline import names
from reportgen.analyzers.input_pipeline.threads import Mask, Threads
from reportgen.profile.intervals import Intervals, covered_within, intersect, subtract, union
from reportgen.profile.ops import OpRuns
from reportgen.profile.steps import Steps, StepSource
from reportgen.profile.view import Core, HostView

_HOST_RECEIVE = frozenset({"host recv", "host recv-done"})
WAIT_COLUMNS = ("step", "label", "start_ps", "time_ps", "period_ps", "wait_ps", "device_ps", "hidden_ps", "busy_ps")
NOTHING = Intervals(np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True)
class HostInput:
    """When a host worked for the input, and when it kept the step waiting.

    Attributes:
        threads: All host threads.
        calls: Events that wait for the next batch: TensorFlow's own, and Python's on the thread that steps.
        transfers: Events that bring data to the device.
        step_threads: Threads that run the steps.

    """

    threads: Threads
    calls: Mask
    transfers: Mask
    step_threads: tuple[int, ...]

    def shows_loading(self, steps: int) -> bool:
        """Whether getting batches was recorded: at least one call in every other step."""
        return 2 * len(self.threads.spans(self.calls).starts) >= steps > 0

    @cached_property
    def work(self) -> Intervals:
        """When any thread worked for the input."""
        return self.threads.spans(self.calls | self.transfers | self.iterators | self.python_calls)

    def transferring(self, busy: Intervals) -> Intervals:
        """Return when data went to the device, with the waits for it.

        A thread that awaits a buffer waits for the transfer inside: up to the transfer's end where ops follow, to the
        end of the wait where none does.
        """
        transfers = self.threads.spans(self.transfers)
        awaits = np.flatnonzero(self.threads.labelled(lambda label: label.endswith("::Await")))
        starts, ends = self.threads.starts[awaits], self.threads.ends[awaits]
        last = np.searchsorted(transfers.ends, ends, side="right") - 1
        until = np.append(transfers.ends, -1)[last]
        waited = until > starts
        until = np.where(covered_within(busy, starts, ends) == 0, ends, until)
        return both(transfers, union(starts[waited], until[waited]))

    @cached_property
    def iterators(self) -> Mask:
        """Calls of tf.data iterators."""
        return self.threads.labelled(names.is_iterator)

    @cached_property
    def consumed(self) -> Mask:
        """Calls of iterators by their consumer: the topmost of each pipeline, whose wait the step sees."""
        labels = self.threads.labels
        iterators = {names.stage_of(label) for label in labels if names.is_iterator(label)}
        roots = {name for name in iterators if not any(name.startswith(f"{other}::") for other in iterators)}
        return self.threads.labelled(lambda label: names.stage_of(label) in roots)

    @cached_property
    def python_calls(self) -> Mask:
        """Python functions that get a batch, on any thread."""
        return _python_calls(self.threads)


def host_input(view: HostView, threads: Threads) -> HostInput:
    """Return when a host worked for the input."""
    stepping = _step_threads(view, threads)
    calls = threads.labelled(names.is_tf_call)
    calls |= threads.labelled(names.is_tf_entry) & _holds(threads, calls)
    calls |= (_python_calls(threads) | threads.labelled(names.is_annotated_call)) & np.isin(threads.threads, stepping)
    return HostInput(threads, calls, threads.labelled(names.is_transfer), stepping)


def _holds(threads: Threads, inner: Mask) -> Mask:
    """Return which events hold one of the inner events directly or deeper."""
    held = np.zeros(len(threads), dtype=bool)
    rows = threads.parents[inner]
    while len(rows := np.unique(rows[rows >= 0])) and not held[rows].all():
        held[rows] = True
        rows = threads.parents[rows]
    return held


def _python_calls(threads: Threads) -> Mask:
    """Outside of context managers: `contextlib` calls next() for its own ends."""
    calls = threads.labelled(names.is_python_call)
    contexts = np.append(threads.labelled(lambda label: label.startswith("$contextlib.py")), False)
    calls &= ~contexts[threads.parents]
    return calls


def _step_threads(view: HostView, threads: Threads) -> tuple[int, ...]:
    """Return the thread that carries the step annotations; else the one that launches most programs."""
    if view.annotations is not None:
        marked = threads.labelled(lambda label: label == view.annotations.steps.detail)  # type: ignore[union-attr]
    else:
        marked = threads.labelled(lambda label: names.activity(label) == "launch")
    counts = np.bincount(threads.threads[marked], minlength=len(threads.names))
    return (int(np.argmax(counts)),) if counts.any() else ()


@dataclass(frozen=True)
class CoreWaits:
    """Waits of one core.

    Attributes:
        frame: One row a step, with the columns of `WAIT_COLUMNS`: its number and label, its start, its own time, its
            period, the exposed wait, the part of it that the device itself recorded (infeed, copies), the hidden input
            time, and the time in which ops ran; picoseconds.
        exposed: When it waited, inside the periods.
        transferring: When data went to the device, and the waits for it.
        free: When nothing ran and nothing was waited for, inside the periods.

    """

    frame: pd.DataFrame
    exposed: Intervals
    transferring: Intervals
    free: Intervals


def core_waits(
    steps: Steps,
    waiting: Intervals,
    busy: Intervals,
    host: HostInput,
    whole: Mask | None = None,
    shift: int = 0,
) -> CoreWaits:
    """Return the waits of a core.

    Args:
        steps: Its steps.
        waiting: When its ops waited for data from the host.
        busy: When other ops ran.
        host: The host's input work.
        whole: Which steps were captured whole; all where None.
        shift: What to add to the steps' clock to get the profile's, in picoseconds.

    """
    starts, ends = steps.starts + shift, steps.ends + shift
    lefts = np.concatenate([starts[:1], np.minimum(ends[:-1], ends[1:])])
    kept = np.arange(len(steps)) if whole is None else np.flatnonzero(whole)
    lefts, rights = lefts[kept], ends[kept]
    transferring = host.transferring(busy)
    recorded = subtract(waiting, busy)
    exposed = both(recorded, subtract(both(host.threads.spans(host.calls), transferring), busy))
    windows = union(lefts, rights)
    frame = pd.DataFrame(
        {
            "step": steps.ids[kept],
            "label": [steps.labels[row] for row in kept.tolist()],
            "start_ps": starts[kept],
            "time_ps": steps.durations[kept],
            "period_ps": rights - lefts,
            "wait_ps": covered_within(exposed, lefts, rights),
            "device_ps": covered_within(recorded, lefts, rights),
            "hidden_ps": covered_within(subtract(both(host.work, waiting), exposed), lefts, rights),
            "busy_ps": covered_within(busy, lefts, rights),
        },
        columns=list(WAIT_COLUMNS),
    )
    free = subtract(subtract(windows, busy), exposed)
    return CoreWaits(frame, intersect(exposed, windows), transferring, free)


def both(first: Intervals, second: Intervals) -> Intervals:
    """Return what either covers."""
    return union(np.concatenate([first.starts, second.starts]), np.concatenate([first.ends, second.ends]))


def _clock_shift(runs: OpRuns) -> int:
    """Return what to add to the device's clock to get the profile's."""
    return int(np.median(runs.trace_starts - runs.starts)) if len(runs) else 0


def _device_times(runs: OpRuns) -> tuple[Intervals, Intervals]:
    """Return when ops waited for data from the host, and when others ran; loops and calls count by what is in them."""
    waits = np.array([_waits(info.category, info.name) for info in runs.infos] + [False], dtype=bool)
    holders = np.array([info.category in CONTAINERS for info in runs.infos] + [False], dtype=bool)
    ends = runs.trace_starts + runs.trace_durations
    waiting, computing = waits[runs.ops], ~(waits | holders)[runs.ops]
    return union(runs.trace_starts[waiting], ends[waiting]), union(runs.trace_starts[computing], ends[computing])


def _waits(category: str, name: str) -> bool:
    return category in INPUT or category in _HOST_RECEIVE or name.startswith("MemcpyH2D")


def host_waits(view: HostView, host: HostInput) -> list[CoreWaits]:
    """Return the waits of every core of a host that ran steps; of the host itself where it shows no core.

    Where nothing marks the steps, a step reaches from one call for a batch to the next.
    """
    called = _steps_of_calls(host)
    if not view.cores:
        steps = view.annotations.steps if view.annotations is not None else called
        found = [core_waits(steps, NOTHING, _tensorflow_ops(host), host)]
    else:
        known = any(len(core.steps) for core in view.active_cores)
        found = [_waits_of(core, core.steps if known else called, host) for core in view.active_cores]
    return [core for core in found if len(core.frame)]


def _waits_of(core: Core, steps: Steps, host: HostInput) -> CoreWaits:
    if steps.source in (StepSource.STEPS_LINE, StepSource.MODULE_RUNS):
        whole = ~steps.partial(core.runs)
    else:
        whole = steps.durations > 0
    waiting, busy = _device_times(core.runs)
    shift = _clock_shift(core.runs) if steps.on_device_clock else 0
    return core_waits(steps, waiting, busy, host, whole, shift)


def _steps_of_calls(host: HostInput) -> Steps:
    """Return one step a call for a batch: TensorFlow's own calls, or else Python's on the thread that steps."""
    threads = host.threads
    rows = host.calls & threads.labelled(names.is_tf_call)
    starts = threads.spans(rows if rows.any() else host.calls).starts
    count = max(0, len(starts) - 1)
    labels = tuple(str(number) for number in range(count))
    return Steps(StepSource.NONE, "", np.arange(count), labels, starts[:count], starts[1:])


def _tensorflow_ops(host: HostInput) -> Intervals:
    """Return when ops of the program itself ran, outside of its input pipeline, where there is no XLA."""
    threads = host.threads
    feeding = np.array([name.startswith("tf_data") for name in threads.names], dtype=bool)[threads.threads]
    inside = threads.nearest(host.iterators | host.calls) >= 0
    return threads.spans(threads.labelled(names.is_tf_op) & ~feeding & ~inside)


def worst_of_cores(cores: list[CoreWaits]) -> pd.DataFrame:
    """Return one row a step: the longest period, and the numbers of the core that waited longest in it."""
    frame = pd.concat([core.frame for core in cores], ignore_index=True)
    longest = frame.groupby("step")[["time_ps", "period_ps"]].max()
    order = frame.sort_values(["step", "wait_ps", "period_ps"], kind="stable")
    worst = order.groupby("step", sort=True).last()
    worst[["time_ps", "period_ps"]] = longest
    return worst.reset_index()[list(WAIT_COLUMNS)]
