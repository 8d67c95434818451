"""The trace of a whole run: all of its hosts on one clock, one in memory at a time."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO

import msgspec

from reportgen.analyzers.timeline import TimelineFacts
from reportgen.document import Finding, ReportDocument
from reportgen.errors import InputError
from reportgen.exporters.excerpt import trace_excerpt
from reportgen.exporters.limits import TraceLimits, TraceSummary
from reportgen.exporters.perfetto import write_trace
from reportgen.profile.model import HostProfile
from reportgen.profile.view import HostView
from reportgen.settings import Settings
from reportgen.sources.load import load_host
from reportgen.sources.locate import HostFile, Run

# A step of a larger profile holds far more events than a page can carry.
EXCERPT_FILE_BYTES = 16 * 2**20


def write_run_trace(
    run: Run, settings: Settings, stream: BinaryIO, limits: TraceLimits, findings: Sequence[Finding] = ()
) -> tuple[TraceSummary, list[str]]:
    """Write the trace of a run.

    Args:
        run: The files of the hosts.
        settings: The run's settings.
        stream: Where the gzipped JSON goes.
        limits: What to write; `max_events` counts over all hosts, which share it evenly.
        findings: Written as instants.

    Returns:
        What was written, and why files of hosts were left out.

    Raises:
        InputError: No host's file can be read.
        UsageError: Steps are asked for that a host does not have.

    """
    unread: list[InputError] = []
    starts: list[int | None] = []
    readable = run
    if len(run.files) > 1:  # the first pass finds the earliest start; one host needs none
        good = [(file, profile.start_ns) for file, profile in _profiles(run, unread)]
        readable = Run(run.name, tuple(file for file, _ in good))
        starts = [start for _, start in good]
        if limits.max_events is not None:
            limits = replace(limits, max_events=max(1, limits.max_events // max(1, len(good))))
    views = (HostView(profile, settings) for _, profile in _profiles(readable, unread))
    known = [start for start in starts if start is not None]
    summary = write_trace(views, stream, findings, limits, min(known, default=None))
    if unread and not summary.hosts:
        raise unread[0]
    return summary, [error.message for error in unread]


def with_excerpt(document: ReportDocument, run: Run, settings: Settings, shown: TimelineFacts | None) -> ReportDocument:
    """Return a document that carries a short trace of the steps that its timeline shows.

    The trace stands in `extra["trace_excerpt"]`: host, steps, events, what was cut, and the gzipped JSON in base64.

    Args:
        document: The document, which is returned as it is where there is no such trace, and for a large profile:
            its steps would be cut to little, and reading it again would cost a third of the whole report's time.
        run: The files of the hosts.
        settings: The run's settings.
        shown: What the timeline shows.

    """
    if shown is None:
        return document
    likely = sorted(run.files, key=lambda file: file.host != shown.host)
    if likely[0].size() > EXCERPT_FILE_BYTES:
        return document
    profile = next(
        (found for _, found in _profiles(replace(run, files=tuple(likely)), []) if found.name == shown.host), None
    )
    found = trace_excerpt(HostView(profile, settings), shown.windows, document.findings) if profile else None
    if found is None:
        return document
    content, summary = found
    carried = {
        "host": shown.host,
        "steps": list(shown.steps),
        "events": summary.events,
        "cut": [f"{count:,} {reason}" for reason, count in summary.cut.items()],
        "gzip_base64": base64.b64encode(content).decode(),
    }
    return msgspec.structs.replace(document, extra=document.extra | {"trace_excerpt": carried})


def _profiles(run: Run, unread: list[InputError]) -> Iterator[tuple[HostFile, HostProfile]]:
    """Yield the hosts that can be read and keep the errors of the others."""
    for file in run.files:
        try:
            yield file, load_host(file)[0]
        except InputError as error:
            unread.append(error)
