"""Planes of an XSpace made from the processes and threads of a trace in JSON."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from reportgen.wire import xplane_pb2

_PS_PER_US = 10**6
COUNTERS = "_counters_"
_OP_LINES = frozenset({"XLA Ops", "Async XLA Ops", "Sparse Core Ops"})
# Statistics of an op rather than of one run of it; the profiler keeps them with the op's metadata.
_OF_THE_OP = frozenset(
    {"hlo_category", "shape_with_layout", "source", "source_stack", "tf_op", "deduplicated_name"}
    | {"bytes_accessed", "raw_bytes_accessed", "flops", "model_flops"}
)
_WRITTEN_APART = frozenset({"long_name", "program_id", "symbol_id"})
# What XProf writes for a statistic of bytes.
_OPAQUE = "<opaque bytes>"
_PROGRAM = re.compile(r"\((\d{1,20})\)$")
_INTEGER = re.compile(r"-?\d{1,20}")
_DECIMAL = re.compile(r"-?\d{1,20}(\.\d{1,20})?(e[-+]?\d{1,3})?")
_LEAST, _MOST, _UNSIGNED_MOST = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1
# Ops of no known program need some program's id to be ops at all.
_SOME_PROGRAM = 1

Stats = Mapping[str, Any]


class Event(msgspec.Struct, gc=False):
    """An event of Chrome's trace format, as far as it is read; times in microseconds."""

    ph: str = ""
    name: str = ""
    pid: int | str = 0
    tid: int | str = 0
    ts: float = 0.0
    dur: float = 0.0
    args: Any = None


def plane_message(
    name: str, threads: Mapping[int | str, str], events: Mapping[int | str, list[Event]]
) -> xplane_pb2.XPlane:
    """Return a plane.

    Args:
        name: The process's name, such as "/device:TPU:0".
        threads: Names of its threads.
        events: Events by thread; those of counters under `COUNTERS`.

    """
    builder = _Builder(name)
    tpu = name.startswith("/device:TPU")
    modules = [event for thread, found in events.items() if threads.get(thread) == "XLA Modules" for event in found]
    programs = _Programs(modules) if tpu else None
    for thread, found in events.items():
        title = COUNTERS if thread == COUNTERS else threads.get(thread, "")
        number = thread if isinstance(thread, int) and _LEAST <= thread <= _MOST else 0
        line = builder.plane.lines.add(id=number, name=clean(title))
        for event in found:
            builder.add(line, event, programs if title in _OP_LINES else None)
    return builder.plane


def clean(text: str) -> str:
    """Return text that UTF-8 can hold: JSON may spell halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode("utf-8")


class _Programs:
    """Which program ran on a core at a time."""

    def __init__(self, modules: Iterable[Event]) -> None:
        found = sorted((event.ts, event.ts + event.dur, _program_of(event.name)) for event in modules)
        self._starts = [start for start, _, _ in found]
        self._runs = found

    def at(self, time: float) -> int:
        """Return the id of the program that ran at a time."""
        index = bisect_right(self._starts, time) - 1
        if index < 0 or time > self._runs[index][1]:
            return _SOME_PROGRAM
        return self._runs[index][2]


def _program_of(module: str) -> int:
    match = _PROGRAM.search(module)
    return (int(match[1]) & _UNSIGNED_MOST) or _SOME_PROGRAM if match else _SOME_PROGRAM


class _Builder:
    """A plane whose statistics, texts and kinds of events are interned, as profilers do."""

    def __init__(self, name: str) -> None:
        self.plane = xplane_pb2.XPlane(name=clean(name))
        self._stats: dict[str, int] = {}
        self._kinds: dict[tuple[Any, ...], int] = {}

    def add(self, line: xplane_pb2.XLine, event: Event, programs: _Programs | None) -> None:
        """Add an event; `programs` makes it a run of an op of one of them."""
        given = event.args if isinstance(event.args, dict) else {}
        stats = {str(key): value for key, value in given.items() if value != _OPAQUE}
        long_name = str(stats.get("long_name", event.name))
        if event.ph == "C":
            stats = {"counter_value": next((value for value in stats.values() if isinstance(value, int | float)), None)}
        of_op: dict[str, Any] = {}
        if programs is not None:
            of_op = {key: stats.pop(key) for key in sorted(_OF_THE_OP & stats.keys())}
            of_op["program_id"] = programs.at(event.ts)
        message = line.events.add(
            metadata_id=self._kind(long_name, event.name, of_op),
            offset_ps=round(event.ts * _PS_PER_US),
            duration_ps=round(event.dur * _PS_PER_US),
        )
        self._add_stats(message, {key: value for key, value in stats.items() if key not in _WRITTEN_APART})

    def _kind(self, name: str, shown: str, of_op: Stats) -> int:
        """Return the id of an event's metadata, which is also the symbol id of an op."""
        key = (name, shown, *((key, str(value)) for key, value in of_op.items()))
        if key not in self._kinds:
            number = self._kinds[key] = len(self._kinds) + 1
            entry = self.plane.event_metadata[number]
            entry.id, entry.name = number, clean(name).encode()
            entry.display_name = b"" if shown == name else clean(shown).encode()
            self._add_stats(entry, {**of_op, "symbol_id": number} if of_op else {})
        return self._kinds[key]

    def _add_stats(self, owner: xplane_pb2.XEvent | xplane_pb2.XEventMetadata, stats: Stats) -> None:
        """Add statistics; numbers stand as text in the JSON."""
        for name, value in stats.items():
            number = _number(value)
            if number is None and not isinstance(value, str):
                continue
            stat = owner.stats.add(metadata_id=self._stat(name))
            if number is None:
                stat.ref_value = self._stat(value)
            elif isinstance(number, float):
                stat.double_value = number
            elif number > _MOST:
                stat.uint64_value = number
            else:
                stat.int64_value = number

    def _stat(self, name: str) -> int:
        """Return the id of a statistic's name, or of a text."""
        if name not in self._stats:
            number = self._stats[name] = len(self._stats) + 1
            self.plane.stat_metadata[number].id = number
            self.plane.stat_metadata[number].name = clean(name).encode()
        return self._stats[name]


def _number(value: object) -> int | float | None:
    """Return the number that a value is, or that its text spells; None for others and those beyond 64 bits."""
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = int(value) if _INTEGER.fullmatch(value) else float(value)
    if isinstance(value, bool | float):
        return int(value) if isinstance(value, bool) else value
    return value if isinstance(value, int) and _LEAST <= value <= _UNSIGNED_MOST else None
