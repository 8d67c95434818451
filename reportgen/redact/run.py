"""A run whose files are redacted before anything reads them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

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
    redactor.add_hosts([run.name, *(file.host for file in run.files)])
    files = tuple(_redacted(file, number, redactor, folder) for number, file in enumerate(run.files))
    return Run(redactor.host(run.name), files)


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
