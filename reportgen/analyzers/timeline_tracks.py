"""What a host did in a stretch of time, track by track: ops of cores, waits that nothing hides, host threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reportgen.analyzers.classes import CONTAINERS, role_of
from reportgen.analyzers.input_pipeline import names as host_names
from reportgen.document import Role
from reportgen.profile.gpu import stream_lines
from reportgen.profile.intervals import Intervals, intersect, nesting_order, parents, subtract, union
from reportgen.profile.model import Kind, Plane
from reportgen.profile.ops import OpInfo
from reportgen.profile.view import Core, HostView

Times = NDArray[np.int64]
Rows = NDArray[np.int64]

ROLES: tuple[Role, ...] = (
    "compute", "input", "output", "host_transfer", "collectives", "idle", "data_formatting", "custom_call", "other",
    "neutral", "warning",
)  # fmt: skip
_CORES = 8
_STREAMS = 4
_THREADS = 8
# Events of a track that are kept by themselves, and stretches in which the shorter ones are joined.
_EVENTS = 400
_STRETCHES = 200
_NAME_LIMIT = 200
_WORK: frozenset[Role] = frozenset({"compute", "data_formatting", "custom_call"})
# The ends of asynchronous ops: time in them is a wait for what was started.
_DONE = ("-done",)
WAITS: dict[Role, str] = {
    "input": "waiting for input",
    "output": "sending output",
    "host_transfer": "transfer with the host",
    "collectives": "exposed collective",
    "other": "waiting for an asynchronous op",
    "idle": "idle",
}


@dataclass(frozen=True)
class Track:
    """Events of one track in a window, in picoseconds from its start.

    Attributes:
        names: Index of each event's name in the window's names.
        roles: Index of each event's role in `ROLES`.

    """

    group: str
    title: str
    starts: Times
    durations: Times
    names: Rows
    roles: Rows


@dataclass
class Window:
    """A stretch of time of one host.

    Attributes:
        start, end: Picoseconds on the profile's clock.
        tracks: What happened in it.
        waits: Picoseconds of each kind of exposed wait, by core.
        names: Names of the events.
        left_out: What of the host is not among the tracks.

    """

    start: int
    end: int
    tracks: list[Track] = field(default_factory=list)
    waits: dict[str, dict[Role, int]] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    _codes: dict[str, int] = field(default_factory=dict, repr=False)

    def code(self, name: str) -> int:
        """Return the index of a name, adding it where it is new."""
        if name not in self._codes:
            self._codes[name] = len(self.names)
            self.names.append(name if len(name) <= _NAME_LIMIT else f"{name[:_NAME_LIMIT]}…")
        return self._codes[name]

    def add(self, group: str, title: str, starts: Times, ends: Times, kinds: Rows, labels: Labels) -> None:
        """Add a track of the events that overlap the window, cut to it; the shortest are joined."""
        inside = (starts < self.end) & (ends > self.start)
        begins = np.maximum(starts[inside], self.start) - self.start
        lengths = np.minimum(ends[inside], self.end) - self.start - begins
        kinds, counts = kinds[inside], np.ones(len(begins), np.int64)
        roles = labels.roles[kinds]
        if len(begins) > _EVENTS:
            begins, lengths, kinds, roles, counts = _joined(begins, lengths, kinds, roles, self.end - self.start)
        if len(begins):
            names = [
                self.code(labels.names[kind] if count == 1 else f"{count:,} short events")
                for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True)
            ]
            self.tracks.append(Track(group, title, begins, lengths, np.array(names, dtype=np.int64), roles))


@dataclass(frozen=True)
class Labels:
    """Names and roles of kinds of events."""

    names: Sequence[str]
    roles: Rows


def _joined(
    begins: Times, lengths: Times, kinds: Rows, roles: Rows, duration: int
) -> tuple[Times, Times, Rows, Rows, Rows]:
    """Keep the longest events and join the others by role and stretch of time; also return how many each one is."""
    order = np.argsort(-lengths, kind="stable")
    kept, rest = np.sort(order[:_EVENTS]), order[_EVENTS:]
    stretch = max(1, duration // _STRETCHES)
    _, first, group, counts = np.unique(
        (begins[rest] // stretch) * len(ROLES) + roles[rest], return_index=True, return_inverse=True, return_counts=True
    )
    starts = np.full(len(first), np.iinfo(np.int64).max)
    ends = np.zeros(len(first), np.int64)
    np.minimum.at(starts, group, begins[rest])
    np.maximum.at(ends, group, begins[rest] + lengths[rest])
    return (
        np.concatenate([begins[kept], starts]),
        np.concatenate([lengths[kept], ends - starts]),
        np.concatenate([kinds[kept], kinds[rest][first]]),
        np.concatenate([roles[kept], roles[rest][first]]),
        np.concatenate([np.ones(len(kept), np.int64), counts]),
    )


def add_cores(window: Window, view: HostView) -> None:
    """Add the ops of the host's cores, and below them the waits that no work hides."""
    cores = view.active_cores
    for core in cores[:_CORES]:
        _add_core(window, core)
    if len(cores) > _CORES:
        window.left_out.append(f"{len(cores) - _CORES} of {len(cores)} cores")


def _add_core(window: Window, core: Core) -> None:
    runs, group = core.runs, _short(core)
    starts, ends = runs.trace_starts, runs.trace_starts + runs.trace_durations
    labels = Labels([info.name for info in runs.infos], _roles([_op_role(info) for info in runs.infos]))
    near = np.flatnonzero((starts < window.end) & (ends > window.start))
    if core.plane.kind is Kind.GPU:
        _add_streams(window, core, labels)
    leaves = near[_leaves(starts[near], runs.trace_durations[near])] if core.plane.kind is Kind.TPU else near
    if core.plane.kind is Kind.TPU:
        window.add(group, "ops", starts[leaves], ends[leaves], runs.ops[leaves], labels)
    waits = exposed_waits(window, starts[leaves], ends[leaves], labels.roles[runs.ops[leaves]])
    window.waits[core.id.label] = {role: int(found.total) for role, found in waits.items()}
    if waits:
        kinds = np.repeat(_roles(list(waits)), [len(found.starts) for found in waits.values()])
        found = list(waits.values())
        begins, stops = (np.concatenate([part[side] for part in found]) for side in (0, 1))
        names = [WAITS.get(role, role) for role in ROLES]
        window.add(group, "waits", begins, stops, kinds, Labels(names, np.arange(len(ROLES))))


def _short(core: Core) -> str:
    """Return a core's label without its host, of which a timeline shows only one."""
    return core.id.label.removeprefix(core.id.host).strip()


def exposed_waits(window: Window, starts: Times, ends: Times, roles: Rows) -> dict[Role, Intervals]:
    """Return the time in a window in which a core waited and nothing hid it, by what it waited for.

    An instant counts as work where any op computes, formats data or runs a custom call; else for the first of the
    waits in the order of `WAITS`; idle is what no op covers.
    """
    whole = Intervals(np.array([window.start]), np.array([window.end]))
    taken = _union_of(starts, ends, np.isin(roles, _roles([role for role in ROLES if role in _WORK])))
    found: dict[Role, Intervals] = {}
    for role in WAITS:
        mine = whole if role == "idle" else _union_of(starts, ends, roles == ROLES.index(role))
        exposed = subtract(intersect(mine, whole), taken)
        if len(exposed.starts):
            found[role] = exposed
            taken = union(np.concatenate([taken.starts, exposed.starts]), np.concatenate([taken.ends, exposed.ends]))
    return found


def _union_of(starts: Times, ends: Times, rows: NDArray[np.bool_]) -> Intervals:
    return union(starts[rows], ends[rows])


def _add_streams(window: Window, core: Core, labels: Labels) -> None:
    """Add a track for each of a GPU's busiest streams; its runs stand stream by stream, in the order of the lines."""
    plane, runs = core.plane, core.runs
    lines = stream_lines(plane)
    bounds = np.cumsum([0, *(len(plane.lines[line].starts) for line in lines)]).tolist()
    starts, ends = runs.trace_starts, runs.trace_starts + runs.trace_durations
    parts = [slice(first, after) for first, after in pairwise(bounds)]
    busy = [_busy(window, starts[part], ends[part]) for part in parts]
    chosen = sorted(np.argsort(-np.array(busy), kind="stable")[:_STREAMS].tolist())
    for index in chosen:
        part = parts[index]
        window.add(
            core.id.label, plane.lines[lines[index]].display_name, starts[part], ends[part], runs.ops[part], labels
        )
    if (rest := sum(time > 0 for time in busy) - len(chosen)) > 0:
        window.left_out.append(f"{rest} streams of {core.id.label}")


def _leaves(starts: Times, durations: Times) -> NDArray[np.bool_]:
    """Return which events hold no other."""
    order = nesting_order(starts, durations)
    above = parents(starts[order], durations[order])
    result = np.ones(len(starts), dtype=bool)
    result[order[above[above >= 0]]] = False
    return result


def _op_role(info: OpInfo) -> Role:
    if info.category.endswith(_DONE) and role_of(info.category) == "data_formatting":
        return "other"
    return "neutral" if info.category in CONTAINERS else role_of(info.category)


def _roles(roles: Sequence[Role]) -> Rows:
    return np.array([ROLES.index(role) for role in roles], dtype=np.int64)


@dataclass(frozen=True)
class Thread:
    """A host thread: its plane, its line's index there, and when it did something, in picoseconds."""

    plane: Plane
    line: int
    starts: Times
    ends: Times


def threads_of(view: HostView) -> list[Thread]:
    """Return the host's threads that recorded something."""
    found = []
    for plane in view.profile.of_kind(Kind.HOST):
        for index, line in enumerate(plane.lines):
            if len(line.starts):
                events = plane.events([index])
                found.append(Thread(plane, index, events.starts, events.ends))
    return found


def add_threads(window: Window, threads: Sequence[Thread]) -> None:
    """Add the host's threads that were busiest in the window."""
    busy = [_busy(window, thread.starts, thread.ends) for thread in threads]
    order = np.argsort(-np.array(busy, dtype=np.int64), kind="stable").tolist()
    seen = [threads[index] for index in order if busy[index]]
    for thread in seen[:_THREADS]:
        plane = thread.plane
        events = plane.events([thread.line], ("hlo_op",))
        kinds, labels = _thread_labels(plane, events.names, events.stats["hlo_op"].present)
        title = plane.lines[thread.line].display_name or "unnamed thread"
        window.add("threads", title, thread.starts, thread.ends, kinds, labels)
    if len(seen) > _THREADS:
        window.left_out.append(f"{len(seen) - _THREADS} of {len(seen)} threads")


def _busy(window: Window, starts: Times, ends: Times) -> int:
    """Return the time in the window in which something was recorded."""
    inside = (starts < window.end) & (ends > window.start)
    return union(np.maximum(starts[inside], window.start), np.minimum(ends[inside], window.end)).total


def _thread_labels(plane: Plane, names: Rows, is_op: NDArray[np.bool_]) -> tuple[Rows, Labels]:
    """Return kinds of events, by name and whether they are XLA ops, with their labels."""
    used, kinds = np.unique(names * 2 + is_op, return_inverse=True)
    labels = [plane.display_names[row] if row >= 0 else "unnamed" for row in (used // 2).tolist()]
    roles = ["compute" if op else host_role(label) for label, op in zip(labels, (used % 2).tolist(), strict=True)]
    return kinds.reshape(-1), Labels(labels, _roles(roles))


def host_role(label: str) -> Role:
    """Return what an event of a host thread is, by its name."""
    if host_names.is_transfer(label):
        return "host_transfer"
    asks = (host_names.is_iterator, host_names.is_tf_call, host_names.is_annotated_call, host_names.is_python_call)
    if any(ask(label) for ask in asks) or host_names.is_read(label):
        return "input"
    by_activity: dict[str, Role] = {
        "compilation": "warning",
        "garbage collection": "warning",
        "waiting for the device": "idle",
        "output": "output",
    }
    return by_activity.get(host_names.activity(label), "neutral")
