"""What of a profile goes into a trace, and what was cut."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum


class Level(IntEnum):
    """How much detail a trace holds; each level holds those before it."""

    STEPS = 1  # steps, modules, counters, findings
    OPS = 2  # also ops, asynchronous ops, framework ops and scopes
    ALL = 3  # also source lines, trace marks of the device, host threads


@dataclass(frozen=True)
class TraceLimits:
    """What to write; by default all of it.

    Attributes:
        max_events: Most events per host; beyond it the longest are kept, steps and modules before all others.
        steps: First and last step to write, by their numbers; everything that overlaps their time is written.
        hosts: Names of hosts; empty for all.
        level: How much detail.

    """

    max_events: int | None = None
    steps: tuple[int, int] | None = None
    hosts: tuple[str, ...] = ()
    level: Level = Level.ALL


@dataclass
class TraceSummary:
    """What was written.

    Attributes:
        events: Slices on tracks, asynchronous ones included.
        flows, counters, marks: Arrows, counter values, and instants for findings and slow steps.
        tracks: Tracks, lanes counted apart.
        hosts: Names of the hosts.
        cut: How many events were left out or shortened, by reason.

    """

    events: int = 0
    flows: int = 0
    counters: int = 0
    marks: int = 0
    tracks: int = 0
    hosts: list[str] = field(default_factory=list)
    cut: dict[str, int] = field(default_factory=dict)

    def count_cut(self, reason: str, events: int) -> None:
        """Remember that events were cut."""
        if events:
            self.cut[reason] = self.cut.get(reason, 0) + events

    def __str__(self) -> str:
        """Return a line for people."""
        text = (
            f"{self.events:,} events on {self.tracks:,} tracks, {self.flows:,} flows, {self.counters:,} counter values"
        )
        return "; ".join([text, *(f"{count:,} {reason}" for reason, count in self.cut.items())])
