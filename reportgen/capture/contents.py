"""A quick look into a captured profile: whether anything was recorded, and how many steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reportgen.wire.events import decode_events
from reportgen.wire.varint import Buffer, WireError
from reportgen.wire.xspace import RawPlane, RawSpace, read_space, text


@dataclass(frozen=True)
class Contents:
    """What a profile holds.

    Attributes:
        events: Number of events on all timelines.
        steps: Number of steps, None where the profile is damaged.
        hostname: The host's own name, "" where the profile has none.

    """

    events: int
    steps: int | None
    hostname: str


def look(profile: bytes) -> Contents:
    """Count the events and the steps of an XSpace.

    Steps are, in this order: the entries of the longest "Steps" line of a device, the distinct step_num values of
    host events, the runs of the module that ran most often on a device.
    """
    try:
        space = read_space(Buffer(profile))
        events = sum(len(line.starts) for plane in space.planes for line in plane.lines)
        return Contents(events, _steps(space), space.hostnames[0] if space.hostnames else "")
    except WireError:
        return Contents(0, None, "")


def _steps(space: RawSpace) -> int:
    devices = [plane for plane in space.planes if plane.name.startswith("/device:")]
    if marked := max(
        (len(line.starts) for plane in devices for line in plane.lines if line.name == "Steps"), default=0
    ):
        return marked
    if marked := max((_step_numbers(plane) for plane in space.planes if plane not in devices), default=0):
        return marked
    return max((_module_runs(plane) for plane in devices), default=0)


def _step_numbers(plane: RawPlane) -> int:
    """Count the distinct values of the statistic step_num, with which the frameworks mark a step on the host."""
    stat_ids = [key for key, entry in plane.metadata.stat_metadata.items() if text(entry.name) == "step_num"]
    numbers: set[int] = set()
    for line in plane.lines if stat_ids else ():
        columns = decode_events(plane.buffer, line.starts, line.ends, stat_ids)
        for column in columns.stats.values():
            numbers.update(column.integers()[column.present].tolist())
    return len(numbers)


def _module_runs(plane: RawPlane) -> int:
    runs = 0
    for line in plane.lines:
        if line.name == "XLA Modules" and len(line.starts):
            _, counts = np.unique(decode_events(plane.buffer, line.starts, line.ends).metadata_ids, return_counts=True)
            runs = max(runs, int(counts.max()))
    return runs
