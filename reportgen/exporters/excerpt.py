"""A trace short enough to be carried inside a report: some stretches of one host's time."""

from __future__ import annotations

import io
from collections.abc import Sequence

from reportgen.document import Finding
from reportgen.exporters.cuts import cut_to_number, cut_to_windows
from reportgen.exporters.gzip_stream import GzipStream
from reportgen.exporters.limits import TraceLimits, TraceSummary
from reportgen.exporters.perfetto import TraceWriter
from reportgen.exporters.sections import host_sections, spans_of
from reportgen.exporters.tracks import Section, all_tracks
from reportgen.profile.step_spans import StepSpan
from reportgen.profile.view import HostView

# In base64, as a page carries it, a third more: 300 kB.
MOST_BYTES = 225_000
_BEST_COMPRESSION = 9
# More events than these never fit: each takes at least some ten bytes.
_MOST_EVENTS = 20_000
# Where so few events are too large, their names are, and there is no short trace.
_FEWEST_EVENTS = 50


def trace_excerpt(
    view: HostView,
    windows: Sequence[tuple[int, int]],
    findings: Sequence[Finding] = (),
    most_bytes: int = MOST_BYTES,
) -> tuple[bytes, TraceSummary] | None:
    """Return the gzipped trace of stretches of a host's time, the shortest events cut until it is small enough.

    Args:
        view: The host.
        windows: Start and end of each stretch, in picoseconds on the host's clock.
        findings: Written as instants.
        most_bytes: The largest size.

    Returns:
        The trace and what it holds; None where not even a few events fit.

    """
    sections, spans = host_sections(view), spans_of(view)
    cut = TraceSummary()
    cut_to_windows(sections, windows, cut)
    tracks = list(all_tracks(sections))
    cut_to_number(tracks, _MOST_EVENTS, cut)
    while True:
        content, summary = _written(view, sections, spans, findings)
        if len(content) <= most_bytes:
            summary.cut = cut.cut | summary.cut
            return content, summary
        events = sum(len(track.rows) for track in tracks)
        if events <= _FEWEST_EVENTS:
            return None
        cut_to_number(tracks, int(events * 0.9 * most_bytes / len(content)), cut)
        _thin_counters(sections)


def _written(
    view: HostView, sections: Sequence[Section], spans: Sequence[StepSpan], findings: Sequence[Finding]
) -> tuple[bytes, TraceSummary]:
    stream = io.BytesIO()
    with GzipStream(stream, _BEST_COMPRESSION) as text:
        writer = TraceWriter(text, findings, TraceLimits(), None)
        writer.add_sections(view, sections, spans)
        writer.finish()
    return stream.getvalue(), writer.summary


def _thin_counters(sections: Sequence[Section]) -> None:
    """Keep every other value of the counters."""
    for section in sections:
        for counter in section.counters:
            counter.times, counter.values = counter.times[::2], counter.values[::2]
