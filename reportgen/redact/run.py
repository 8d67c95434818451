"""A run whose files are redacted before anything reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from reportgen.errors import InputError
from reportgen.redact.redactor import Redactor
from reportgen.redact.space import redact_space
from reportgen.sources.locate import HostFile, Run

_PLAIN = (".xplane.pb", ".pb")


def redacted_run(run: Run, redactor: Redactor, folder: Path) -> Run:
    """Return a run whose files lie redacted in a folder, which has to outlive it.

    Raises:
        InputError: A file cannot be read, or is no XSpace.

    """
    redactor.add_hosts(file.host for file in run.files)
    files = tuple(_redacted(file, number, redactor, folder) for number, file in enumerate(run.files))
    return Run(redactor.whole(run.name, "run"), files)


@contextmanager
def clean_run(run: Run, redactor: Redactor | None) -> Iterator[Run]:
    """Give a run whose files are redacted, as long as the context lasts; the run itself where nothing redacts it.

    Raises:
        InputError: A file cannot be read, or is no XSpace.

    """
    if redactor is None:
        yield run
        return
    with TemporaryDirectory(prefix="reportgen-") as folder:
        yield redacted_run(run, redactor, Path(folder))


def _redacted(file: HostFile, number: int, redactor: Redactor, folder: Path) -> HostFile:
    if not file.name.removesuffix(".gz").endswith(_PLAIN):
        raise InputError(
            f"{file.name}: only XSpace profiles (*.xplane.pb) can be redacted before they are analysed.",
            "Make the report without --redact, then `reportgen render report.json --redact`.",
        )
    host = redactor.host(file.host)
    path = folder / f"{number}.xplane.pb"
    path.write_bytes(redact_space(file.read(), redactor, file.name))
    return replace(file, host=host, name=f"{host}.xplane.pb", path=str(path), protocol="file", options=())
