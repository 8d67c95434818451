"""The trace: Chrome's JSON trace format, gzipped, which Perfetto loads without losing a slice.

Start and end of every event are each rounded down to whole nanoseconds, so that nesting and adjacency survive; events
of one track that overlap go to lanes of their own. Memory is bounded by one host's columns: text is streamed out.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterable, Sequence
from typing import BinaryIO

import numpy as np

from reportgen.document import Finding
from reportgen.exporters.args import arguments
from reportgen.exporters.cuts import apply_limits
from reportgen.exporters.events import Placement, async_texts, place, slice_texts
from reportgen.exporters.flows import flow_edges
from reportgen.exporters.gzip_stream import GzipStream
from reportgen.exporters.json_text import PS_PER_NS, quoted
from reportgen.exporters.limits import TraceLimits, TraceSummary
from reportgen.exporters.marks import FINDINGS, SLOW_STEPS, Mark, finding_mark, finding_time, step_marks
from reportgen.exporters.sections import host_sections, spans_of
from reportgen.exporters.tracks import Counter, FlowEnds, Section, Track
from reportgen.profile.step_spans import StepSpan
from reportgen.profile.view import HostView

_CHUNK = 1 << 15
_NAME_LIMIT = 1000
# Numbers of processes and threads never meet: Perfetto takes a thread of its process's number for its main thread.
_FIRST_THREAD = 10_001
_MARKS_PROCESS = 1
_MARKS_THREADS = {FINDINGS: 10_000, SLOW_STEPS: 9_999}
_MARKS_TITLE = "findings and slowest steps"


def write_trace(
    hosts: Iterable[HostView],
    stream: BinaryIO,
    findings: Sequence[Finding] = (),
    limits: TraceLimits | None = None,
    start_ns: int | None = None,
) -> TraceSummary:
    """Write the trace of hosts, one after the other.

    Args:
        hosts: The hosts; each is let go before the next one is asked for.
        stream: Where the gzipped JSON goes.
        findings: Written as instants, at the first time that they point at.
        limits: What to write; all of it by default.
        start_ns: Unix time in nanoseconds that the trace's time counts from: the earliest start of the hosts'
            captures; that of the first host by default.

    Raises:
        UsageError: Steps are asked for that a host does not have.
        OSError: The stream cannot be written to.

    """
    with GzipStream(stream) as text:
        writer = TraceWriter(text, findings, limits or TraceLimits(), start_ns)
        remaining = iter(hosts)
        while (view := next(remaining, None)) is not None:
            writer.add_host(view)
            del view
            gc.collect()  # a view and its cores refer to each other, and hold the host's columns
        writer.finish()
    return writer.summary


class TraceWriter:
    """Writes host after host and keeps what stands over all of them: numbers, marks, the summary."""

    def __init__(
        self, text: GzipStream, findings: Sequence[Finding], limits: TraceLimits, start_ns: int | None
    ) -> None:
        self.summary = TraceSummary()
        self._text = text
        self._limits = limits
        self._start_ns = start_ns
        self._unplaced = list(findings)
        self._processes = _MARKS_PROCESS
        self._threads = _FIRST_THREAD
        self._asyncs = 0
        self._text.write('{"displayTimeUnit":"ns","traceEvents":[\n')
        self._text.write(_named("process_name", _MARKS_PROCESS, 0, _MARKS_TITLE).removeprefix(",\n"))

    def add_host(self, view: HostView) -> None:
        """Write a host's sections, flows and marks."""
        name = view.profile.name
        if self._limits.hosts and name not in self._limits.hosts:
            return
        sections, spans = host_sections(view), spans_of(view)
        apply_limits(name, sections, spans, self._limits, self.summary)
        self.add_sections(view, sections, spans)

    def add_sections(self, view: HostView, sections: Sequence[Section], spans: Sequence[StepSpan]) -> None:
        """Write a host's sections as they are, and marks for its steps and for findings that point at it."""
        name = view.profile.name
        self.summary.hosts.append(name)
        offset = self._offset(view)
        placements: dict[int, Placement] = {}
        for section in sections:
            self._add_section(section, offset, placements)
        self._add_flows([ends for section in sections for ends in section.flows], placements)
        marks = step_marks(name, spans)
        for finding in list(self._unplaced):
            if (time := finding_time(finding, view, spans)) is not None:
                marks.append(finding_mark(finding, time))
                self._unplaced.remove(finding)
        self._add_marks(marks, offset)

    def _offset(self, view: HostView) -> int:
        """Return what puts the host's clock, which counts from its own capture's start, on the trace's time."""
        own = view.profile.start_ns
        if self._start_ns is None:
            self._start_ns = own
        return (own - self._start_ns) * PS_PER_NS if own is not None and self._start_ns is not None else 0

    def _add_section(self, section: Section, offset: int, placements: dict[int, Placement]) -> None:
        tracks = [track for track in section.tracks if len(track.rows)]
        if not tracks and not any(len(counter.times) for counter in section.counters):
            return
        self._processes += 1
        self._text.write(_named("process_name", self._processes, 0, section.title))
        self._text.write(_sort_index("process_sort_index", self._processes, 0, self._processes))
        for track in tracks:
            placement = place(track, offset, self._processes, self._threads)
            placements[id(track)] = placement
            self._threads += placement.lane_count
            self._add_track(track, placement)
        for counter in section.counters:
            self._add_counter(counter, offset)

    def _add_track(self, track: Track, placement: Placement) -> None:
        self.summary.events += len(track.rows)
        self.summary.tracks += placement.lane_count
        self.summary.count_cut("events began before the capture and are drawn from its start", placement.early)
        for lane, thread in enumerate(placement.threads):
            title = track.title if lane == 0 else f"{track.title} (lane {lane + 1})"
            self._text.write(_named("thread_name", placement.process, thread, title))
            self._text.write(_sort_index("thread_sort_index", placement.process, thread, thread))
        for first in range(0, len(track.rows), _CHUNK):
            part = slice(first, min(first + _CHUNK, len(track.rows)))
            if track.asynchronous:
                self._text.write(async_texts(track, placement, part, self._asyncs))
                self._asyncs += part.stop - part.start
            else:
                self._text.write(slice_texts(track, placement, part))
        self.summary.count_cut("tracks hold arguments that are damaged and were left out", int(track.damaged))

    def _add_counter(self, counter: Counter, offset: int) -> None:
        name, unit, process = quoted(counter.title, _NAME_LIMIT), quoted(counter.unit), self._processes
        times = np.maximum(counter.times + offset, 0) // PS_PER_NS
        self.summary.counters += len(times)
        self._text.write(
            "".join(
                f',\n{{"ph":"C","name":{name},"pid":{process},"ts":{time / 1000:.3f},"args":{{{unit}:{value:.6g}}}}}'
                for time, value in zip(times.tolist(), counter.values.tolist(), strict=True)
            )
        )

    def _add_flows(self, ends: Sequence[FlowEnds], placements: dict[int, Placement]) -> None:
        shown = [end for end in ends if id(end.track) in placements]
        begins, arrives = flow_edges(shown)
        if not len(begins):
            return
        where = [placements[id(end.track)].of_rows(end.rows) for end in shown]
        process, thread, time = (np.concatenate(column) for column in zip(*where, strict=True))
        drawn = (thread[begins] >= 0) & (thread[arrives] >= 0)
        pieces = []
        for begin, arrive in zip(begins[drawn].tolist(), arrives[drawn].tolist(), strict=True):
            self.summary.flows += 1
            for phase, at in (("s", begin), ("f", arrive)):
                pieces.append(
                    f',\n{{"ph":"{phase}","bp":"e","id":{self.summary.flows},"cat":"flow","name":"flow",'
                    f'"pid":{process[at]},"tid":{thread[at]},"ts":{time[at] / 1000:.3f}}}'
                )
        self._text.write("".join(pieces))

    def _add_marks(self, marks: Sequence[Mark], offset: int) -> None:
        self.summary.marks += len(marks)
        for mark in marks:
            time, thread = max(0, mark.time + offset) // PS_PER_NS, _MARKS_THREADS[mark.track]
            self._text.write(
                f',\n{{"ph":"i","s":"t","pid":{_MARKS_PROCESS},"tid":{thread},"ts":{time / 1000:.3f},'
                f'"name":{quoted(mark.title)},"args":{{{arguments(mark.args)[1:]}}}}}'
            )

    def finish(self) -> None:
        """Write the findings that point at no time, names, and what stands over the whole trace."""
        self._add_marks([finding_mark(finding, 0) for finding in self._unplaced], 0)
        for title, thread in _MARKS_THREADS.items():
            self._text.write(_named("thread_name", _MARKS_PROCESS, thread, title))
        metadata = {
            "start_unix_ns": None if self._start_ns is None else str(self._start_ns),
            "hosts": self.summary.hosts,
            "cut": [f"{count:,} {reason}" for reason, count in self.summary.cut.items()],
        }
        self._text.write(f'\n],"metadata":{json.dumps(metadata)}}}\n')


def _named(kind: str, process: int, thread: int, name: str) -> str:
    return (
        f',\n{{"ph":"M","name":"{kind}","pid":{process},"tid":{thread},"args":{{"name":{quoted(name, _NAME_LIMIT)}}}}}'
    )


def _sort_index(kind: str, process: int, thread: int, index: int) -> str:
    return f',\n{{"ph":"M","name":"{kind}","pid":{process},"tid":{thread},"args":{{"sort_index":{index}}}}}'
