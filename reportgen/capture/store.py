"""The folder of a capture, in TensorBoard's layout: LOGDIR/plugins/profile/RUN/HOST.xplane.pb."""

from __future__ import annotations

import contextlib
import shutil
import time
from datetime import datetime, timedelta
from pathlib import Path

import fsspec

from reportgen.errors import UsageError

_SUBFOLDER = Path("plugins") / "profile"
_ENDING = ".xplane.pb"
_SHARED_DISK_PATIENCE_S = 3.0


class RunFolder:
    """A run's folder, reserved under a name that no other capture has.

    Attributes:
        path: The folder.

    """

    def __init__(self, logdir: Path) -> None:
        """Make the folder, named after the local time as TensorBoard does.

        Raises:
            UsageError: The folder cannot be made.

        """
        moment = datetime.now()
        parent = logdir.absolute() / _SUBFOLDER
        try:
            parent.mkdir(parents=True, exist_ok=True)
            while True:
                self.path = parent / moment.strftime("%Y_%m_%d_%H_%M_%S")
                with contextlib.suppress(FileExistsError):
                    self.path.mkdir()
                    return
                moment += timedelta(seconds=1)
        except OSError as error:
            raise UsageError(f"{logdir}: cannot write there ({error.strerror or error}).") from None

    def file(self, stem: str) -> Path:
        """Return where a host's profile belongs."""
        return self.path / f"{stem}{_ENDING}"

    def write(self, stem: str, profile: bytes) -> Path:
        """Write a host's profile, whole or not at all.

        Raises:
            OSError: It cannot be written.

        """
        target = self.file(stem)
        partial = target.with_name(f".{stem}.partial")
        partial.write_bytes(profile)
        return partial.replace(target)

    def close(self) -> None:
        """Remove the folders that stayed empty."""
        _remove_empty(self.path)


def remove_run(folder: Path) -> None:
    """Remove a run's profiles, and its folder unless others put something there."""
    for profile in folder.glob(f"*{_ENDING}"):
        profile.unlink()
    _remove_empty(folder)


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for level in (folder, folder.parent, folder.parent.parent):
            level.rmdir()


def adopt_trace(traces: Path, logdir: Path) -> Path | None:
    """Move the newest run that a framework wrote under the folder `traces` into a run folder of its own.

    Frameworks name runs by the second, so that two of one second in one log folder would overwrite each other.

    Returns:
        The run's folder; None where nothing was written.

    """
    profiles = sorted((traces / _SUBFOLDER).glob(f"*/*{_ENDING}"))
    if not profiles:
        return None
    run = RunFolder(logdir)
    for file in profiles[-1].parent.iterdir():
        shutil.move(file, run.path / file.name)
    return run.path


def server_root(logdir: str) -> str:
    """Return the folder or address below which an older server makes the run's folder itself."""
    return f"{logdir.rstrip('/')}/{_SUBFOLDER.as_posix()}"


def read_server_file(address: str) -> bytes | None:
    """Return the content of a file that an older server wrote, None where it cannot be reached from here.

    A shared disk may show the file late, so it is looked for during three seconds.
    """
    deadline = time.monotonic() + _SHARED_DISK_PATIENCE_S
    while True:
        with contextlib.suppress(OSError, ValueError, ImportError):
            with fsspec.open(address, "rb") as stream:
                content: bytes = stream.read()
            return content
        if time.monotonic() >= deadline:
            return None
        time.sleep(0.2)
