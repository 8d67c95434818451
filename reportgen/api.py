"""The Python API: load, analyze, report.

import reportgen
reportgen.report("logdir", output="out")            # writes the report, returns the document
document = reportgen.analyze("logdir")              # the document alone
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from reportgen.analyzers import ANALYZERS
from reportgen.analyzers.run import Analysis, analyze_run
from reportgen.assembly.builder import build_document
from reportgen.assembly.live_memory import live_memory_document, with_live_memory
from reportgen.document import ReportDocument
from reportgen.errors import UsageError
from reportgen.output import atomic, write_files
from reportgen.redact import Redactor, clean_run, redacted, refuse_leaks
from reportgen.renderers import render
from reportgen.rules import all_rules
from reportgen.rules.run import run_rules
from reportgen.settings import Settings
from reportgen.sources.locate import Run, find_run
from reportgen.sources.memory_profiles import memory_profile_at, memory_profiles_beside

Progress = Callable[[int, int], None]


def load(path: str | Path, settings: Settings | None = None) -> Run:
    """Return the run that a path leads to: the newest, all hosts, unless the settings say otherwise.

    Raises:
        InputError: There is no profile.

    """
    settings = settings or Settings()
    return find_run(str(path), settings.run, settings.hosts)


def analyze(path: str | Path, settings: Settings | None = None, progress: Progress | None = None) -> ReportDocument:
    """Analyze a profile and return the document that every format is rendered from.

    Raises:
        InputError: There is no profile, or none that can be read.
        UsageError: The settings name an unknown rule or threshold.

    """
    settings = settings or Settings()
    if (memory := memory_profile_at(str(path))) is not None:
        return live_memory_document(memory)
    run = load(path, settings)
    return _with_what_lies_beside(run, document_of(analyze_run(run, settings, ANALYZERS, progress)))


def document_of(analysis: Analysis) -> ReportDocument:
    """Run the rules over an analysis and build the document."""
    return build_document(analysis, run_rules(analysis, all_rules()), ANALYZERS)


FORMATS = ("html", "md", "json", "trace")
_FILE_NAMES = {"html": "report.html", "md": "report.md", "json": "report.json", "trace": "trace.json.gz"}


@dataclass(frozen=True)
class Written:
    """What a report wrote: its document, the files, and what the user should know."""

    document: ReportDocument
    files: tuple[Path, ...]
    warnings: tuple[str, ...]


def report(
    path: str | Path,
    output: str | Path = "out",
    formats: Sequence[str] = FORMATS,
    settings: Settings | None = None,
    progress: Progress | None = None,
    redactor: Redactor | None = None,
    flavour: str = "github",
) -> Written:
    """Analyze a profile and write its report.

    Args:
        path: A profile: file, run folder, log folder, archive.
        output: Folder to write `report.html`, `report.md`, `report.json` and `trace.json.gz` to.
        formats: Which of them.
        settings: The run's settings.
        progress: Called with the number of hosts done and of all.
        redactor: Replaces names in the document and the trace, after the analysis.
        flavour: Of Markdown: "github", "gitlab" or "jira".

    Raises:
        InputError: There is no profile, or none that can be read.
        UsageError: A format, rule or threshold is unknown, or the folder cannot be written.
        ReportgenError: A name that was replaced is left in a file, which is not written then.

    """
    settings = settings or Settings()
    _refuse_unknown(formats)
    rendered_formats = [name for name in formats if name != "trace"]
    if (memory := memory_profile_at(str(path))) is not None:
        return write_document(live_memory_document(memory), output, rendered_formats, redactor, flavour)
    run = load(path, settings)
    document = _carrying_trace(run, analyze_run(run, settings, ANALYZERS, progress))
    written = write_document(document, output, rendered_formats, redactor, flavour)
    if "trace" not in formats:
        return written
    target = Path(output) / _FILE_NAMES["trace"]
    with atomic(target) as temporary:
        with temporary.open("wb") as stream:
            _write_trace(run, settings, written.document, stream, redactor)
        if redactor is not None:
            refuse_leaks({target.name: temporary.read_bytes()}, redactor)
    return replace(written, files=(*written.files, target))


def write_document(
    document: ReportDocument,
    output: str | Path,
    formats: Sequence[str],
    redactor: Redactor | None = None,
    flavour: str = "github",
) -> Written:
    """Render a document and write the files, with names replaced where a redactor is given.

    Raises:
        UsageError: A format or flavour is unknown, or the folder cannot be written.
        ReportgenError: A name that was replaced is left in a file; then nothing is written.

    """
    document = redacted(document, redactor)
    rendered_ = [render(document, name, **_options(name, flavour)) for name in formats]
    refuse_leaks({name: content for result in rendered_ for name, content in result.files.items()}, redactor)
    files = tuple(file for result in rendered_ for file in write_files(Path(output), result.files))
    return Written(document, files, tuple(warning for result in rendered_ for warning in result.warnings))


def rendered(document: ReportDocument, name: str, redactor: Redactor | None = None, flavour: str = "github") -> bytes:
    """Return a document in one format, as the content of its file, with names replaced where a redactor is given.

    Raises:
        UsageError: The format is unknown.
        ReportgenError: A name that was replaced is left.

    """
    files = render(redacted(document, redactor), name, **_options(name, flavour)).files
    refuse_leaks(files, redactor)
    return next(iter(files.values()))


def _options(name: str, flavour: str) -> dict[str, str]:
    return {"flavour": flavour} if name == "md" else {}


def oom(
    source: str | Path,
    dump: str | Path | None = None,
    output: str | Path = "out",
    formats: Sequence[str] = ("html", "md", "json"),
    capacity: int | None = None,
) -> Written:
    """Report on an out-of-memory error and write the report.

    Args:
        source: An XLA dump folder, an HloProto, a profile, or a log with the error.
        dump: The dump folder that belongs to a log.
        output: Folder to write to.
        formats: Which of html, md, json.
        capacity: Bytes of the device's memory, where the source does not tell.

    Raises:
        InputError: There is nothing about memory in it.
        UsageError: A format is unknown, or the folder cannot be written.

    """
    return write_document(oom_document_of(source, dump=dump, capacity=capacity), output, formats)


def oom_document_of(
    source: str | Path, *, text: str | None = None, dump: str | Path | None = None, capacity: int | None = None
) -> ReportDocument:
    """Return the document of an out-of-memory error (see `oom`); `text` is a log's text in place of a file.

    Raises:
        InputError: There is nothing about memory in it.

    """
    from reportgen.assembly.oom import oom_document  # noqa: PLC0415
    from reportgen.assembly.oom_sources import oom_report_of  # noqa: PLC0415

    return oom_document(oom_report_of(str(source), text, None if dump is None else str(dump), capacity))


def report_bytes(
    path: str | Path,
    name: str,
    settings: Settings | None = None,
    progress: Progress | None = None,
    redactor: Redactor | None = None,
    flavour: str = "github",
) -> bytes:
    """Analyze a profile and return its report in one format, with names replaced where a redactor is given.

    Raises:
        InputError: There is no profile, or none that can be read.
        UsageError: The format, a rule or a threshold is unknown.
        ReportgenError: A name that was replaced is left.

    """
    settings = settings or Settings()
    _refuse_unknown([name])
    if (memory := memory_profile_at(str(path))) is not None:
        return rendered(live_memory_document(memory), name, redactor, flavour)
    run = load(path, settings)
    document = _carrying_trace(run, analyze_run(run, settings, ANALYZERS, progress))
    if name != "trace":
        return rendered(document, name, redactor, flavour)
    stream = io.BytesIO()
    _write_trace(run, settings, redacted(document, redactor), stream, redactor)
    refuse_leaks({_FILE_NAMES["trace"]: stream.getvalue()}, redactor)
    return stream.getvalue()


def _carrying_trace(run: Run, analysis: Analysis) -> ReportDocument:
    """Return the document of an analysis with a short trace of the steps that its timeline shows."""
    from reportgen.exporters.of_run import with_excerpt  # noqa: PLC0415

    timeline = analysis.results.get("timeline")
    document = with_excerpt(document_of(analysis), run, analysis.settings, timeline.facts if timeline else None)
    return _with_what_lies_beside(run, document)


def _with_what_lies_beside(run: Run, document: ReportDocument) -> ReportDocument:
    """Return the document with the device memory profiles in the run's folder."""
    return with_live_memory(document, memory_profiles_beside(run))


def _write_trace(
    run: Run, settings: Settings, document: ReportDocument, stream: BinaryIO, redactor: Redactor | None = None
) -> None:
    """Write a run's trace for Perfetto with the findings of its document; the document names hosts that are missing."""
    from reportgen.exporters.limits import TraceLimits  # noqa: PLC0415
    from reportgen.exporters.of_run import write_run_trace  # noqa: PLC0415

    with clean_run(run, redactor) as clean:
        write_run_trace(clean, settings, stream, TraceLimits(), document.findings)


def _refuse_unknown(formats: Sequence[str]) -> None:
    if unknown := [name for name in formats if name not in _FILE_NAMES]:
        raise UsageError(f"no format is called {unknown[0]!r}.", f"Formats: {', '.join(_FILE_NAMES)}.")
