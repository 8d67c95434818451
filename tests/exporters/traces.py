"""A trace read back from its bytes."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

from reportgen.document import Finding
from reportgen.exporters.limits import TraceLimits, TraceSummary
from reportgen.exporters.perfetto import write_trace
from reportgen.profile.view import HostView


class Trace:
    """What `write_trace` wrote: its summary, bytes, and events by kind."""

    def __init__(
        self,
        views: Iterable[HostView],
        findings: Sequence[Finding] = (),
        limits: TraceLimits | None = None,
        start_ns: int | None = None,
    ) -> None:
        stream = io.BytesIO()
        self.summary: TraceSummary = write_trace(views, stream, findings, limits, start_ns)
        self.content = stream.getvalue()
        document = json.loads(gzip.decompress(self.content))
        self.metadata: dict[str, Any] = document["metadata"]
        self.events: list[dict[str, Any]] = document["traceEvents"]
        self._processes = self._names("process_name", "pid")
        self._threads = self._names("thread_name", "tid")

    def _names(self, kind: str, key: str) -> dict[int, str]:
        return {event[key]: event["args"]["name"] for event in self.events if event["name"] == kind}

    @property
    def tracks(self) -> list[tuple[str, str]]:
        """Section and title of every track that holds slices, in the order of their numbers."""
        used = {(event["pid"], event["tid"]) for event in self.events if event["ph"] == "X"}
        return [(self._processes[pid], self._threads[tid]) for pid, tid in sorted(used)]

    def slices(self, section: str, track: str) -> list[dict[str, Any]]:
        """The slices of a track, in the order in which they were written."""
        return [
            event
            for event in self.events
            if event["ph"] == "X" and (self._processes[event["pid"]], self._threads[event["tid"]]) == (section, track)
        ]

    def of_kind(self, *kinds: str) -> list[dict[str, Any]]:
        """Events of these phases."""
        return [event for event in self.events if event["ph"] in kinds]

    def thread(self, event: dict[str, Any]) -> str:
        """Title of an event's thread."""
        return self._threads[event["tid"]]


def nanoseconds(event: dict[str, Any]) -> tuple[int, int]:
    """Start and duration of a slice."""
    return round(event["ts"] * 1000), round(event["dur"] * 1000)
