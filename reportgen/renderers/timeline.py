"""A timeline as lanes of blocks: what is too short to see is merged, and said so.

Positions are whole millionths of the timeline's duration, in the drawing's script too; so a zoom of a thousand
still shows tenths of a pixel.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reportgen import units
from reportgen.charts.scale import scale
from reportgen.charts.text import middle, visible
from reportgen.document import Axis, Lane, Timeline
from reportgen.renderers.cells import line

WIDTH = 1000
LEFT = 190
LANE = 18
TOP = 20
GRAIN = 1_000_000
_MAX_BLOCKS = 8000
_NEAR = 0.4  # what lies nearer in the drawing is drawn as one; the script draws it apart when it zooms
_MAX_LANES = 60
_MAX_NAME = 120
_LONGEST = 20

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class LaneView:
    """A lane: its name, whole and short, its place, and one path a role, `(CSS name, path)`."""

    name: str
    label: str
    top: int
    height: int
    paths: list[tuple[str, str]]


@dataclass(frozen=True)
class TimelineView:
    """A timeline ready for its template.

    Attributes:
        ticks: Position and label.
        longest: Track, name, start and duration in seconds of the longest events.
        data: What the script reads, ready for JSON: blocks in one flat list a lane, each as the distance of its start
            from the start before, its length, name and role.

    """

    anchor: str
    title: str
    alt: str
    notes: list[str]
    height: int
    lanes: list[LaneView]
    ticks: list[tuple[float, str]]
    roles: list[str]
    longest: list[tuple[str, str, float, float]]
    data: dict[str, object]


def timeline_view(timeline: Timeline, anchor: str) -> TimelineView:
    """Return the lanes and blocks of a timeline, at most 60 lanes and about 8000 blocks."""
    lanes = timeline.lanes[:_MAX_LANES]
    duration = timeline.duration or 1.0
    raw = [_events(lane, timeline, duration) for lane in lanes]
    blocks, grain = _merged(raw)
    axis = scale(Axis(label="", unit="seconds"), [0.0, duration])
    places = LEFT + (WIDTH - LEFT) * axis.position(axis.ticks)
    roles = [role.replace("_", "-") for role in timeline.roles]
    notes = [line(timeline.note)] if timeline.note else []
    if grain:
        notes.append(f"Events shorter than {units.seconds(grain / GRAIN * duration)} are drawn together.")
    if len(timeline.lanes) > len(lanes):
        notes.append(f"{len(lanes)} of {len(timeline.lanes)} tracks are drawn; the trace file has them all.")
    return TimelineView(
        anchor=anchor,
        title=line(timeline.title, 300),
        alt=line(timeline.alt, 1000),
        notes=notes,
        height=TOP + LANE * len(lanes) + 6,
        lanes=[
            _lane_view(lane, part, index, roles) for index, (lane, part) in enumerate(zip(lanes, blocks, strict=True))
        ],
        ticks=list(zip(places.round(1).tolist(), axis.labels, strict=True)),
        roles=sorted({roles[role] for part in blocks for role in part[3].tolist()}),
        longest=_longest(timeline, lanes),
        data={
            "duration": duration,
            "names": [middle(visible(name), _MAX_NAME) for name in timeline.names],
            "roles": roles,
            "lanes": [_flat(*part) for part in blocks],
        },
    )


def _events(lane: Lane, timeline: Timeline, duration: float) -> tuple[Ints, Ints, Ints, Ints]:
    """Return start, length, name and role of a lane's events, by start, longer ones first; unknown ones left out."""
    starts, lengths = np.asarray(lane.starts, dtype=np.float64), np.asarray(lane.durations, dtype=np.float64)
    count = _count(lane)
    ends = np.clip(np.nan_to_num((starts[:count] + lengths[:count]) / duration), 0, 1)
    begin = np.clip(np.nan_to_num(starts[:count] / duration), 0, 1)
    first, last = np.rint(begin * GRAIN).astype(np.int64), np.rint(ends * GRAIN).astype(np.int64)
    names, roles = np.asarray(lane.names, dtype=np.int64)[:count], np.asarray(lane.roles, dtype=np.int64)[:count]
    order = np.lexsort((first - last, first))
    known = (names >= 0) & (names < len(timeline.names)) & (roles >= 0) & (roles < len(timeline.roles))
    order = order[known[order]]
    return first[order], (last - first)[order], names[order], roles[order]


def _merged(lanes: list[tuple[Ints, Ints, Ints, Ints]]) -> tuple[list[tuple[Ints, Ints, Ints, Ints]], int]:
    """Merge short events until few blocks are left; return the lanes, and the length below which events are short."""
    grain = 0
    merged = lanes
    while sum(part[0].size for part in merged) > _MAX_BLOCKS and grain < GRAIN:
        grain = max(GRAIN // 16_000, grain * 2)
        merged = [_merge(part, grain) for part in lanes]
    return merged, grain


def _merge(part: tuple[Ints, Ints, Ints, Ints], grain: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Put the events shorter than `grain` that begin in the same stretch of it, with the same role, into one block.

    A block of several has no name, but minus their number in its place.
    """
    start, length, name, role = part
    short = length < grain
    if not short.any():
        return part
    key = (start[short] // grain) * 64 + role[short] % 64
    _, first, group, counts = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    begin = np.full(counts.size, GRAIN, dtype=np.int64)
    end = np.zeros(counts.size, dtype=np.int64)
    np.minimum.at(begin, group, start[short])
    np.maximum.at(end, group, start[short] + length[short])
    names = np.where(counts > 1, -counts, name[short][first])
    starts = np.concatenate([start[~short], begin])
    lengths = np.concatenate([length[~short], end - begin])
    order = np.lexsort((-lengths, starts))
    both = (starts, lengths, np.concatenate([name[~short], names]), np.concatenate([role[~short], role[short][first]]))
    return both[0][order], both[1][order], both[2][order], both[3][order]


def _lane_view(lane: Lane, part: tuple[Ints, Ints, Ints, Ints], index: int, roles: list[str]) -> LaneView:
    start, length, _, role = part
    top, height = TOP + LANE * index + 2, LANE - 4
    across = (WIDTH - LEFT) / GRAIN
    longest = sorted(set(role.tolist()), key=lambda one: -int(length[role == one].max()))
    paths = []
    for one in longest:  # long events first, so that those inside them lie on top
        mine = role == one
        lefts, rights = _runs(LEFT + start[mine] * across, np.maximum(length[mine] * across, _NEAR))
        path = "".join(f"M{x:.1f} {top}H{end:.1f}v{height}H{x:.1f}z" for x, end in zip(lefts, rights, strict=True))
        paths.append((roles[one], path))
    group, title = visible(lane.group), visible(lane.title)
    label = f"{middle(group, 15)} {middle(title, 15)}"
    return LaneView(middle(f"{group} {title}", 80), label, top, height, paths)


def _runs(lefts: NDArray[np.float64], widths: NDArray[np.float64]) -> tuple[list[float], list[float]]:
    """Return the ends of what is drawn as one: stretches, by their left ends, with hardly a gap between."""
    rights = np.maximum.accumulate(lefts + widths)
    first = np.flatnonzero(np.r_[True, lefts[1:] > rights[:-1] + _NEAR])
    last = np.r_[first[1:] - 1, lefts.size - 1]
    return lefts[first].tolist(), rights[last].tolist()


def _flat(start: Ints, length: Ints, name: Ints, role: Ints) -> list[int]:
    flat: list[int] = np.stack([np.diff(start, prepend=0), length, name, role], axis=1).reshape(-1).tolist()
    return flat


def _longest(timeline: Timeline, lanes: tuple[Lane, ...]) -> list[tuple[str, str, float, float]]:
    events = [
        (track, index)
        for track, lane in enumerate(lanes)
        for index in heapq.nlargest(_LONGEST, range(_count(lane)), key=lane.durations.__getitem__)
    ]
    events = heapq.nlargest(_LONGEST, events, key=lambda event: lanes[event[0]].durations[event[1]])
    found = []
    for track, index in events:
        lane, name = lanes[track], lanes[track].names[index]
        words = timeline.names[name] if 0 <= name < len(timeline.names) else ""
        found.append((line(f"{lane.group} {lane.title}"), words, lane.starts[index], lane.durations[index]))
    return found


def _count(lane: Lane) -> int:
    return min(len(lane.starts), len(lane.durations), len(lane.names), len(lane.roles))
