"""Run all analyses: a map over hosts, in one process or several, and a reduce."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from typing import Any

from reportgen.analyzers.base import Analyzer, Context, Failure, Result
from reportgen.analyzers.inventory import HostInfo, host_info
from reportgen.document import SourceFile
from reportgen.errors import InputError
from reportgen.profile.view import HostView
from reportgen.settings import Settings
from reportgen.sources.load import load_host
from reportgen.sources.locate import HostFile, Run


@dataclass(frozen=True)
class HostPart:
    """What one host gives: who it is, and a part or a failure for each analysis, by id."""

    info: HostInfo
    origin: SourceFile
    parts: dict[str, Any]
    failures: tuple[Failure, ...]


@dataclass(frozen=True)
class Analysis:
    """The results of all analyses of a run.

    Attributes:
        run: Name of the run.
        hosts: Who the hosts are.
        origins: The files that were read.
        results: By analysis id.
        failures: What failed, and why.
        unread: Files that could not be read, with the reason; never all of them.

    """

    run: str
    hosts: tuple[HostInfo, ...]
    origins: tuple[SourceFile, ...]
    results: dict[str, Result]
    failures: tuple[Failure, ...]
    settings: Settings
    unread: tuple[str, ...] = field(default=())


# Starting a process costs about as long as analysing this many bytes.
_WORTH_PROCESSES = 64 * 2**20

Progress = Callable[[int, int], None]


def analyze_run(
    run: Run, settings: Settings, analyzers: Sequence[Analyzer], progress: Progress | None = None
) -> Analysis:
    """Analyze a run.

    Args:
        run: The files of the hosts.
        settings: The run's settings; `jobs` says how many processes work at the hosts.
        analyzers: The analyses, those that others build on first.
        progress: Called with the number of hosts done and of all.

    Raises:
        InputError: No host's file can be read.

    """
    parts: list[HostPart] = []
    unread: list[InputError] = []
    read: list[HostFile] = []
    for done, (file, outcome) in enumerate(zip(run.files, _outcomes(run.files, settings, analyzers), strict=True), 1):
        if isinstance(outcome, InputError):
            unread.append(outcome)
        else:
            parts.append(outcome)
            read.append(file)
        if progress:
            progress(done, len(run.files))
    if not parts:
        raise unread[0]
    parts = _told_apart(parts, read, settings, analyzers)
    return merge_parts(run.name, parts, settings, analyzers, tuple(error.message for error in unread))


def _outcomes(
    files: Sequence[HostFile], settings: Settings, analyzers: Sequence[Analyzer]
) -> Iterator[HostPart | InputError]:
    """Yield each host's part in the order of the files; the largest memory is that of the hosts in work."""
    work = partial(analyze_file, settings=settings, analyzers=analyzers)
    jobs = min(settings.jobs or _worthwhile_jobs(files), len(files))
    if jobs == 1:
        yield from map(work, files)
        return
    # Fresh processes: a fork of a process with threads may hang.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(work, files)


def _worthwhile_jobs(files: Sequence[HostFile]) -> int:
    """Return one process a core where there is enough to read to pay for starting them."""
    return (os.cpu_count() or 1) if sum(file.size() for file in files) > _WORTH_PROCESSES else 1


def _told_apart(
    parts: Sequence[HostPart], files: Sequence[HostFile], settings: Settings, analyzers: Sequence[Analyzer]
) -> list[HostPart]:
    """Analyse hosts of the same recorded name anew, under that name with their file's, so that none is merged away."""
    counts = Counter(part.info.name for part in parts)
    found = []
    for part, file in zip(parts, files, strict=True):
        again: HostPart | InputError = part
        if counts[part.info.name] > 1:
            again = analyze_file(file, settings, analyzers, f"{part.info.name} ({file.host})")
        found.append(part if isinstance(again, InputError) else again)
    return found


def analyze_file(
    file: HostFile, settings: Settings, analyzers: Sequence[Analyzer], name: str | None = None
) -> HostPart | InputError:
    """Return one host's part, or why its file cannot be read; under another name than the recorded one where given."""
    try:
        profile, origin = load_host(file)
    except InputError as error:
        return error
    profile.name = name or profile.name
    return analyze_view(HostView(profile, settings), origin, analyzers)


def analyze_view(view: HostView, origin: SourceFile, analyzers: Sequence[Analyzer]) -> HostPart:
    """Return one host's part; a failing analysis becomes a failure, or ends the run where `strict` is set."""
    parts: dict[str, Any] = {}
    failures: list[Failure] = []
    for analyzer in analyzers:
        try:
            parts[analyzer.id] = analyzer.host(view)
        except Exception as error:
            if view.settings.strict:
                raise
            failures.append(Failure.of(f"{analyzer.id} on {view.profile.name}", error))
    return HostPart(host_info(view), origin, parts, tuple(failures))


def merge_parts(
    name: str,
    hosts: Sequence[HostPart],
    settings: Settings,
    analyzers: Sequence[Analyzer],
    unread: tuple[str, ...] = (),
) -> Analysis:
    """Reduce the parts of all hosts to results."""
    results: dict[str, Result] = {}
    failures = [failure for host in hosts for failure in host.failures]
    for analyzer in analyzers:
        parts = [part for host in hosts if (part := host.parts.get(analyzer.id)) is not None]
        if not parts:
            continue
        try:
            results[analyzer.id] = analyzer.merge(parts, Context(settings, results))
        except Exception as error:
            if settings.strict:
                raise
            failures.append(Failure.of(analyzer.id, error))
    return Analysis(
        run=name,
        hosts=tuple(host.info for host in hosts),
        origins=tuple(host.origin for host in hosts),
        results=results,
        failures=tuple(failures),
        settings=settings,
        unread=unread,
    )
