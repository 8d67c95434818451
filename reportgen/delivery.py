"""What becomes of a finished report: opened again, compared, held against budgets, turned into frames."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

from reportgen.comparison import Options, comparison_document
from reportgen.comparison import compare as compared
from reportgen.comparison.noise import ERROR_RATE, MIN_EFFECT
from reportgen.document import ReportDocument, from_json
from reportgen.errors import InputError, UsageError
from reportgen.gate import Budgets, GateResult, read_budgets
from reportgen.gate import check as hold
from reportgen.redact import Redactor, redacted
from reportgen.settings import Settings

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["check", "compare", "frame", "open_document", "redacted"]

_MOST_BYTES = 1 << 28


def open_document(source: str | Path | ReportDocument, settings: Settings | None = None) -> ReportDocument:
    """Return a report: the document itself, a `report.json` (also gzip), or a profile, which is analysed.

    Raises:
        InputError: There is no such file, or it is neither a report nor a profile.

    """
    if isinstance(source, ReportDocument):
        return source
    path = Path(source)
    if path.is_file() and path.name.endswith((".json", ".json.gz")) and ".trace." not in path.name:
        return from_json(_content(path), path.name)
    from reportgen.api import analyze  # noqa: PLC0415 - analyses need pandas, reports do not

    return analyze(source, settings)


def _content(path: Path) -> bytes:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
    except (OSError, EOFError) as error:
        raise InputError(f"{path.name}: cannot be read ({error}).") from None
    if len(content) > _MOST_BYTES:
        raise InputError(f"{path.name}: grows beyond the {_MOST_BYTES >> 20} MiB that a report may have.")
    return content


def check(
    report: str | Path | ReportDocument,
    budgets: str | Path | Budgets,
    baseline: str | Path | ReportDocument | None = None,
) -> GateResult:
    """Hold a report against budgets.

    Args:
        report: A document, a `report.json` or a profile.
        budgets: Budgets, or the TOML file that states them.
        baseline: What limits relative to a baseline refer to.

    Raises:
        InputError: A report cannot be read.
        UsageError: The budgets cannot be read, or need a baseline where there is none.

    """
    limits = budgets if isinstance(budgets, Budgets) else read_budgets(Path(budgets))
    return hold(open_document(report), limits, None if baseline is None else open_document(baseline))


def compare(
    *reports: str | Path | ReportDocument,
    error_rate: float = ERROR_RATE,
    min_effect: float = MIN_EFFECT,
    redactor: Redactor | None = None,
) -> ReportDocument:
    """Compare reports; the last one is the new one, those before it are captures of the base.

    Args:
        reports: Documents, `report.json` files or profiles; two at least.
        error_rate: With three bases or more, the share of repeats that may be called a change.
        min_effect: With fewer, the smallest relative change that is called one.
        redactor: Replaces the names in all of them first.

    Returns:
        A document of its own, with verdict, causes, findings and ops; `extra["comparison"]` is for programs.

    Raises:
        InputError: A report cannot be read.
        UsageError: There are fewer than two reports, or an option is out of range.

    """
    if len(reports) < 2:
        raise UsageError(f"expected a base and a new report, found {len(reports)} in all.")
    *bases, new = (redacted(open_document(one), redactor) for one in reports)
    return comparison_document(compared(bases, new, Options(error_rate=error_rate, min_effect=min_effect)))


def frame(report: ReportDocument, table: str) -> pd.DataFrame:
    """Return a table of a report as a pandas frame (see `reportgen.exporters.tables.frame`).

    Raises:
        UsageError: The report has no such table.

    """
    from reportgen.exporters import tables  # noqa: PLC0415 - imports pandas

    if table not in report.tables:
        raise UsageError(f"the report has no table {table!r}.", f"Tables: {', '.join(report.tables)}.")
    return tables.frame(report.tables[table])
