"""Do the clocks of host and devices agree: no device can start what its host has not launched yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from reportgen.analyzers.base import Context, Result, SectionId
from reportgen.profile.model import Kind, Plane
from reportgen.profile.steps import MODULES_LINES
from reportgen.profile.view import Core, HostView
from reportgen.units import PS_PER_SECOND

# A host keeps 27 bits of a run's id (XProf's preprocessing).
_RUN_BITS = (1 << 27) - 1
_MOST_LAUNCHES = 200_000
Keyed = dict[tuple[int, int], int]


@dataclass(frozen=True)
class LaunchPart:
    """Launches of one host's core that both sides recorded: time from the host's call to the device's start, in ps."""

    core: str
    launches: int
    early: int
    shortest: int
    median: int


@dataclass(frozen=True)
class CoreClock:
    """A core's clock against its host's, times in seconds.

    Attributes:
        launches: Launches that both recorded.
        early: Those that the device started before the host launched them.
        shortest, median: Time from the host's call to the device's start; negative is impossible.

    """

    core: str
    launches: int
    early: int
    shortest: float
    median: float


@dataclass(frozen=True)
class ClockFacts:
    """The clocks of all cores whose launches could be matched."""

    cores: tuple[CoreClock, ...]


class ClockAnalyzer:
    """Launch latency of each core, whose sign tells whether clocks agree."""

    id: ClassVar[str] = "clocks"
    title: ClassVar[str] = "Clocks of host and devices"
    section: ClassVar[SectionId] = "hosts"

    def host(self, view: HostView) -> list[LaunchPart] | None:
        """Return the launch latencies of one host's cores."""
        hosts = view.profile.of_kind(Kind.HOST)
        launched: dict[str, Keyed] = {}
        for stat, device_stat in (("run_id", "device_ordinal"), ("correlation_id", ""), ("_p", "")):
            launched[stat] = _starts(hosts, stat, device_stat)
        parts = (_of_core(core, launched) for core in view.active_cores if core.id.device != "CPU")
        return [part for part in parts if part is not None]

    def merge(self, parts: Sequence[list[LaunchPart]], context: Context) -> Result:  # noqa: ARG002
        """Return the clocks of all cores."""
        cores = tuple(
            CoreClock(p.core, p.launches, p.early, p.shortest / PS_PER_SECOND, p.median / PS_PER_SECOND)
            for part in parts
            for p in part
        )
        return Result(facts=ClockFacts(cores) if cores else None)


def _of_core(core: Core, launched: dict[str, Keyed]) -> LaunchPart | None:
    """Match what the device ran with what the host launched, by the first kind of id that both have."""
    plane, ordinal = core.plane, core.plane.ordinal
    if plane.kind is Kind.GPU:
        return _latencies(core, _starts([plane], "correlation_id", ""), launched["correlation_id"])
    lines = plane.line_indices(*MODULES_LINES)
    runs = {(key, ordinal): start for (key, _), start in _starts([plane], "run_id", "", lines).items()}
    by_run = _latencies(core, runs, launched["run_id"])
    return by_run or _latencies(core, _starts([plane], "_c", "", lines), launched["_p"])


def _starts(planes: Sequence[Plane], stat: str, device_stat: str, lines: list[int] | None = None) -> Keyed:
    """Return the earliest start of each id in picoseconds, by id and device ordinal (0 where not asked for)."""
    found: Keyed = {}
    for plane in planes:
        if stat not in plane.stat_names.values():
            continue
        wanted = plane.line_indices() if lines is None else lines
        events = plane.events(wanted, (stat, device_stat) if device_stat else (stat,))
        present = np.flatnonzero(events.stats[stat].present)[:_MOST_LAUNCHES]
        ids = events.stats[stat].integers(-1)[present]
        ids = ids & _RUN_BITS if stat == "run_id" else ids
        devices = events.stats[device_stat].integers(0)[present] if device_stat else np.zeros(len(ids), np.int64)
        for key, device, start in zip(ids.tolist(), devices.tolist(), events.starts[present].tolist(), strict=True):
            earlier = found.get((key, device))
            if earlier is None or start < earlier:
                found[key, device] = start
    return found


def _latencies(core: Core, ran: Keyed, launched: Keyed) -> LaunchPart | None:
    both = ran.keys() & launched.keys()
    if not both:
        return None
    times: NDArray[np.int64] = np.array([ran[key] - launched[key] for key in sorted(both)], dtype=np.int64)
    return LaunchPart(core.id.label, len(times), int((times < 0).sum()), int(times.min()), int(np.median(times)))
