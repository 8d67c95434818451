"""Writing results: the one module besides sources and capture that touches the disk."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from reportgen.errors import UsageError


def write_files(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files into a folder, made if needed; each appears whole or not at all.

    Raises:
        UsageError: The folder cannot be made or written.

    """
    written = []
    for name, content in files.items():
        with atomic(folder / name) as path:
            path.write_bytes(content)
        written.append(folder / name)
    return written


class atomic:  # noqa: N801 - reads as a statement
    """A context that gives a temporary path beside the target and moves it there when nothing failed."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._temporary: Path | None = None

    def __enter__(self) -> Path:
        """Return the temporary path.

        Raises:
            UsageError: The folder cannot be made or written.

        """
        folder = self._target.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=f".{self._target.name}.", dir=folder)
        except OSError as error:
            raise UsageError(
                f"{folder}: cannot be written ({error.strerror}).", "Give another folder with -o."
            ) from None
        os.close(handle)
        self._temporary = Path(name)
        return self._temporary

    def __exit__(self, kind: object, *_: object) -> None:
        """Move the file to its place, or remove it after a failure."""
        assert self._temporary is not None  # noqa: S101 - entered
        if kind is not None:
            self._temporary.unlink(missing_ok=True)
            return
        umask = os.umask(0)
        os.umask(umask)
        self._temporary.chmod(0o666 & ~umask)
        self._temporary.replace(self._target)


def write_stdout(content: bytes) -> None:
    """Write a document to standard output as it is."""
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
