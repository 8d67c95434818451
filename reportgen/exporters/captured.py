"""Tracks, counters and flow ends as the capture holds them, line by line."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reportgen.exporters.args import EventArgs, Heads
from reportgen.exporters.limits import Level
from reportgen.exporters.tracks import Counter, FlowEnds, Section, Track
from reportgen.profile.intervals import union
from reportgen.profile.model import Kind, Plane
from reportgen.wire.events import DOUBLE
from reportgen.wire.varint import WireError

Rows = NDArray[np.int64]

ASYNC_LINES = ("Async XLA Ops",)
_COUNTERS = ("_counters_", "counters_")
_MEMORY_EVENTS = ("MemoryAllocation", "MemoryDeallocation")
_LEVELS = {
    "Steps": Level.STEPS,
    "XLA Modules": Level.STEPS,
    "Sparse Core Steps": Level.STEPS,
    "Sparse Core Modules": Level.STEPS,
    "XLA Ops": Level.OPS,
    "Sparse Core Ops": Level.OPS,
    "Framework Ops": Level.OPS,
    "Framework Name Scope": Level.OPS,
    "TensorFlow Ops": Level.OPS,
    "TensorFlow Name Scope": Level.OPS,
    "Async XLA Ops": Level.OPS,
}
_GOLDEN = 0x9E3779B97F4A7C15
_CORRELATION, _XFLOW, _CHANNEL = 100, 101, 102
# An XFlow value holds a direction (1 in, 2 out, 3 both), a category and, from bit 8 on, an id.
_XFLOW_ID_BIT = 8


def captured_section(plane: Plane, title: str) -> Section:
    """Return a section with what a plane holds: a track for each line, counters, and where flows begin and end."""
    section = Section(title)
    for index, line in enumerate(plane.lines):
        if not len(line.starts) or line.display_name.startswith(_COUNTERS):
            continue
        try:
            section.tracks.append(_track(plane, index))
        except WireError:
            section.damaged += 1
    try:
        section.counters += _hardware_counters(plane)
        section.flows += _flow_ends(plane, section.tracks)
    except WireError:
        section.damaged += 1
    return section


def _track(plane: Plane, index: int) -> Track:
    events = plane.events([index])
    line = plane.lines[index]
    timed = np.flatnonzero(events.occurrences == 0)
    asynchronous = line.name in ASYNC_LINES
    uses = np.bincount(events.names[timed] + 1, minlength=len(plane.event_metadata) + 1)[1:]
    track = Track(
        title=line.display_name or f"line {line.id}",
        level=_level(line.display_name),
        starts=events.starts,
        durations=events.durations,
        kinds=events.names,
        heads=Heads.of_plane(plane, uses, grouped=asynchronous),
        args=EventArgs(plane, index),
        asynchronous=asynchronous,
        line=index,
        aggregated=len(events) - len(timed),
    )
    track.rows = timed
    return track


def _level(name: str) -> Level:
    return Level.OPS if name.startswith("Stream #") else _LEVELS.get(name, Level.ALL)


def busiest_first(tracks: Sequence[Track]) -> list[Track]:
    """Return tracks of threads by the time in which something was recorded on them, the longest first."""
    busy = [union(track.starts[track.rows], (track.starts + track.durations)[track.rows]).total for track in tracks]
    return [tracks[index] for index in np.argsort(-np.array(busy, dtype=np.int64), kind="stable").tolist()]


def _hardware_counters(plane: Plane) -> list[Counter]:
    """Return what the plane's counter lines recorded, a counter for each kind of event."""
    lines = [index for index, line in enumerate(plane.lines) if line.display_name.startswith(_COUNTERS)]
    if not lines:
        return []
    events = plane.events(lines, ("counter_value",))
    column = events.stats["counter_value"]
    values = np.where(column.kinds == DOUBLE, column.bits.view(np.float64), column.integers())
    found = []
    for kind in np.unique(events.names[column.present]).tolist():
        rows = np.flatnonzero(column.present & (events.names == kind))
        rows = rows[np.argsort(events.starts[rows], kind="stable")]
        title = plane.display_names[kind] if kind >= 0 else "unnamed counter"
        found.append(Counter(title, "value", events.starts[rows], values[rows], Level.OPS))
    return found


def memory_counters(plane: Plane) -> list[Counter]:
    """Return the memory in use by allocator and device, as the host's allocators recorded it (stack and heap)."""
    kinds = [row for row, name in enumerate(plane.event_names) if name in _MEMORY_EVENTS]
    if not kinds or "bytes_allocated" not in plane.stat_names.values():
        return []
    events = plane.events(plane.line_indices(), ("bytes_allocated", "bytes_reserved", "allocator_name", *_ORDINALS))
    rows = np.flatnonzero(np.isin(events.names, kinds) & events.stats["bytes_allocated"].present)
    events = events.where(rows[np.argsort(events.starts[rows], kind="stable")])
    used = events.stats["bytes_allocated"].integers() + events.stats["bytes_reserved"].integers()
    codes, allocators = events.text_codes("allocator_name")
    ordinals = np.maximum(*(events.stats[name].integers(-1) for name in _ORDINALS))
    found = []
    for code, ordinal in sorted(set(zip(codes.tolist(), ordinals.tolist(), strict=True))):
        chosen = (codes == code) & (ordinals == ordinal)
        labels = ([f"device {ordinal}"] if ordinal >= 0 else []) + ([allocators[code]] if code >= 0 else [])
        title = f"memory in use, {' '.join(labels)}" if labels else "memory in use"
        found.append(Counter(title, "bytes", events.starts[chosen], used[chosen].astype(float)))
    return found


_ORDINALS = ("device_ordinal", "index_on_host")


def _flow_ends(plane: Plane, tracks: Sequence[Track]) -> list[FlowEnds]:
    """Return where flows begin and end on captured tracks.

    Producers and consumers are joined by their type and id, GPU launches and what they launch by their correlation id,
    transfers by the id of their XFlow.
    """
    names = ("_pt", "_p", "_ct", "_c", "correlation_id", "flow")
    if not set(names) & set(plane.stat_names.values()):
        return []
    found: list[FlowEnds] = []
    for track in tracks:
        if track.asynchronous:
            continue  # arrows bind to slices on threads only
        stats = plane.events([track.line], names).stats
        for id_name, type_name, out in (("_p", "_pt", True), ("_c", "_ct", False)):
            keys = _keys(stats[id_name].integers(), stats[type_name].integers())
            found.append(_ends(track, stats[id_name].present, keys, out))
        correlation = stats["correlation_id"]
        keys = _keys(correlation.integers(), _CORRELATION)
        found.append(_ends(track, correlation.present, keys, out=plane.kind in (Kind.HOST, Kind.OTHER)))
        flow = stats["flow"].integers()
        keys = _keys(flow >> _XFLOW_ID_BIT, _XFLOW)
        found += [_ends(track, flow & bit != 0, keys, out) for bit, out in ((2, True), (1, False))]
    return [ends for ends in found if len(ends.rows)]


def channel_ends(plane: Plane, track: Track) -> list[FlowEnds]:
    """Return the ends of transfers between cores: sends and receives of one HLO channel, in their order.

    The k-th send on a channel meets its k-th receive; so keys are made of the channel and of the number of the run.
    """
    found = []
    for category, out in (("send", True), ("recv", False)):
        channels = np.array([*(_channel(plane, row, category) for row in range(len(plane.event_metadata))), -1])
        of_row = channels[track.kinds]
        rows = track.rows[of_row[track.rows] >= 0]
        rows = rows[np.lexsort((track.starts[rows], of_row[rows]))]
        if len(rows):
            firsts = np.searchsorted(of_row[rows], of_row[rows])
            keys = _keys(of_row[rows] * (1 << 32) + np.arange(len(rows)) - firsts, _CHANNEL)
            found.append(FlowEnds(track, rows, keys, out))
    return found


def _channel(plane: Plane, row: int, category: str) -> int:
    """Return the channel of a send or receive from the text of its instruction; -1 for other ops."""
    name = plane.event_names[row]
    marker = f" {category}("
    if marker not in name or "channel_id=" not in name:
        return -1
    digits = name.rsplit("channel_id=", 1)[1].split(",")[0].strip()
    return int(digits) if digits.isdecimal() and len(digits) < 9 else -1


def _keys(ids: Rows, kinds: Rows | int) -> Rows:
    """Return one number for an id of a kind; ids of different kinds meet by chance only once in 2**64."""
    spread = (np.broadcast_to(kinds, ids.shape).astype(np.uint64) + np.uint64(1)) * np.uint64(_GOLDEN)
    return (ids.view(np.uint64) ^ spread).view(np.int64)


def _ends(track: Track, present: NDArray[np.bool_], keys: Rows, out: bool) -> FlowEnds:
    rows = np.flatnonzero(present)
    return FlowEnds(track, rows, keys[rows], out)
