"""The Python API: load, analyze, report.

import reportgen
reportgen.report("logdir", output="out")            # writes the report, returns the document
document = reportgen.analyze("logdir")              # the document alone
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from reportgen.analyzers import ANALYZERS
from reportgen.analyzers.run import Analysis, analyze_run
from reportgen.document import ReportDocument
from reportgen.report.builder import build_document
from reportgen.rules import all_rules
from reportgen.rules.run import run_rules
from reportgen.settings import Settings
from reportgen.sources.locate import Run, find_run

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
    return document_of(analyze_run(load(path, settings), settings, ANALYZERS, progress))


def document_of(analysis: Analysis) -> ReportDocument:
    """Run the rules over an analysis and build the document."""
    return build_document(analysis, run_rules(analysis, all_rules()), ANALYZERS)
