"""From a path or address to the profile files of one run."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import fsspec

from reportgen.errors import InputError
from reportgen.sources.content import SIZE_LIMIT, ZIP, decompressed, riegeli_refused

_XPLANE = (".xplane.pb", ".xplane.pb.gz")
_TRACE = (".trace.json.gz", ".trace.json")
_RIEGELI = ".riegeli"
_DATED = re.compile(r"\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d")
_MEMORY = re.compile(r"\.hlo\.pb(\.gz)?$|buffer-assignment\.txt(\.gz)?$|\.prof$")
_LAYOUT = "LOGDIR/plugins/profile/RUN/HOST.xplane.pb"
_FILES_LIMIT = 200_000


@dataclass(frozen=True)
class HostFile:
    """A file with one host's profile.

    Attributes:
        host: The host's name as the file's name tells it.
        name: The file's name without folders.
        path: Where it lies, for its file system.
        protocol: The file system: an fsspec protocol with its options, so that another process can open it too.
        options: Options of the file system.

    """

    host: str
    name: str
    path: str
    protocol: str = "file"
    options: tuple[tuple[str, Any], ...] = ()

    def size(self) -> int:
        """Return the file's size in bytes as it lies there; 0 where the file system does not tell."""
        try:
            return int(fsspec.filesystem(self.protocol, **dict(self.options)).size(self.path) or 0)
        except OSError:
            return 0

    def read(self) -> bytes:
        """Return the file's content, decompressed.

        Raises:
            InputError: The file cannot be read, is too large, or its gzip data is damaged.

        """
        system = fsspec.filesystem(self.protocol, **dict(self.options))
        try:
            if (size := system.size(self.path) or 0) > SIZE_LIMIT:
                raise InputError(f"{self.name}: {size:,} bytes is more than the {SIZE_LIMIT >> 30} GiB that are read.")
            content: bytes = system.cat_file(self.path)
        except OSError as error:
            raise InputError(f"{self.name}: cannot be read ({error.strerror or error}).") from None
        return decompressed(content, self.name)


@dataclass(frozen=True)
class Run:
    """One capture: a folder with a file for each host.

    Attributes:
        name: The run's name, which is its folder's, or the file's where a file was given.
        files: Its files, by host in natural order.

    """

    name: str
    files: tuple[HostFile, ...]


def find_run(path: str, run: str | None = None, hosts: Sequence[str] = ()) -> Run:
    """Return the run that a path leads to: the newest, or the named one; all hosts, or those named.

    Args:
        path: An xplane file (also gzip, zip or JSON trace), or a folder that holds some at any depth; a local path or
            any address that fsspec knows.
        run: Name of the run.
        hosts: Names of hosts.

    Raises:
        InputError: There is no profile, or none of that run or host.

    """
    runs = list_runs(path)
    chosen = runs[-1]
    if run is not None:
        by_name = {entry.name: entry for entry in runs}
        if run not in by_name:
            raise InputError(f"{path}: no run is called {run!r}.", f"Runs here: {', '.join(by_name)}.")
        chosen = by_name[run]
    if not hosts:
        return chosen
    known = {file.host: file for file in chosen.files}
    if missing := [host for host in hosts if host not in known]:
        raise InputError(f"{path}: no host is called {missing[0]!r}.", f"Hosts here: {', '.join(known)}.")
    return Run(chosen.name, tuple(known[host] for host in hosts))


def list_runs(path: str) -> list[Run]:
    """Return the runs that a path leads to, the newest last.

    Raises:
        InputError: There is none; the message tells what was searched and what lay there.

    """
    system, root, protocol = _file_system(path)
    if not system.exists(root):
        raise InputError(f"{path}: there is no such file or folder.", f"Expected a profile, such as {_LAYOUT}.")
    if system.isfile(root):
        return _runs_of_file(path, system, root, protocol)
    found = _walk(system, root)
    for endings in (_XPLANE, _TRACE):
        if chosen := [entry for entry in found if entry.endswith(endings)]:
            return _grouped(system, chosen, protocol, ())
    raise _nothing_found(path, root, found)


def _file_system(path: str) -> tuple[Any, str, str]:
    try:
        system, root = fsspec.core.url_to_fs(path)
    except (ImportError, ValueError) as error:
        raise InputError(f"{path}: this kind of address cannot be opened ({error}).") from None
    protocol = system.protocol if isinstance(system.protocol, str) else system.protocol[0]
    return system, root, protocol


def _walk(system: Any, root: str) -> list[str]:
    """Return all files below a folder, hidden folders included."""
    found: list[str] = []
    for folder, _, names in system.walk(root):
        found += [posixpath.join(folder, name) for name in names]
        if len(found) > _FILES_LIMIT:
            raise InputError(f"{root}: more than {_FILES_LIMIT:,} files lie here.", "Give the run's own folder.")
    return sorted(found)


def _runs_of_file(path: str, system: Any, root: str, protocol: str) -> list[Run]:
    if system.cat_file(root, start=0, end=4) != ZIP:
        name = posixpath.basename(root)
        return [Run(_without_ending(name), (HostFile(_without_ending(name), name, root, protocol),))]
    options = (("fo", root), ("target_protocol", protocol))
    archive = fsspec.filesystem("zip", **dict(options))
    found = _walk(archive, "")
    for endings in (_XPLANE, _TRACE):
        if chosen := [entry for entry in found if entry.endswith(endings)]:
            return _grouped(archive, chosen, "zip", options)
    raise _nothing_found(path, "", found)


def _grouped(system: Any, paths: list[str], protocol: str, options: tuple[tuple[str, Any], ...]) -> list[Run]:
    """Group files by folder; each folder is a run. A dated name orders runs, else the time of the newest file."""
    folders: dict[str, list[str]] = {}
    for path in paths:
        folders.setdefault(posixpath.dirname(path), []).append(path)

    def age(folder: str) -> tuple[bool, str, float, str]:
        name = posixpath.basename(folder)
        if _DATED.search(name):
            return True, name, 0.0, folder
        times = (system.info(path).get("mtime", 0.0) for path in folders[folder])
        return False, "", max((float(time) for time in times if isinstance(time, int | float)), default=0.0), folder

    runs = []
    for folder in sorted(folders, key=age):
        files = [
            HostFile(_without_ending(posixpath.basename(path)), posixpath.basename(path), path, protocol, options)
            for path in folders[folder]
        ]
        runs.append(Run(posixpath.basename(folder) or "profile", tuple(sorted(files, key=_natural))))
    return runs


def _natural(file: HostFile) -> list[tuple[bool, int, str]]:
    """Return a key that puts host2 before host10."""
    return [
        (part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", file.host) if part
    ]


def _without_ending(name: str) -> str:
    for ending in (*_XPLANE, *_TRACE, ".pb.gz", ".pb", ".json.gz", ".json", ".gz", ".zip"):
        if name.endswith(ending) and len(name) > len(ending):
            return name.removesuffix(ending)
    return name


def _nothing_found(path: str, root: str, found: list[str]) -> InputError:
    if chunks := [entry for entry in found if entry.endswith(_RIEGELI)]:
        return riegeli_refused(posixpath.basename(chunks[0]))
    folders = sorted({posixpath.relpath(posixpath.dirname(entry) or ".", root or ".") for entry in found})
    endings = Counter(posixpath.splitext(entry)[1] or "no ending" for entry in found)
    lay = ", ".join(f"{number} × {ending}" for ending, number in endings.most_common(6)) or "nothing"
    names = ", ".join(posixpath.basename(entry) for entry in found[:5])
    many = "" if len(folders) <= 1 else "s"
    return InputError(
        f"{path}: expected a profile (*.xplane.pb), found none. Searched {max(1, len(folders))} folder{many} "
        f"({', '.join(folders[:6]) or '.'}{', …' if len(folders) > 6 else ''}), all depths, hidden folders too; "
        f"there lay: {lay}{f' ({names}' + (', …)' if len(found) > 5 else ')') if names else ''}.",
        f"`reportgen oom {path}` reads compiler dumps and memory profiles."
        if any(_MEMORY.search(entry) for entry in found)
        else f"The layout that profilers write is {_LAYOUT}. To capture one: `reportgen capture HOST:PORT -o LOGDIR`.",
    )


def describe_runs(runs: Sequence[Run]) -> Iterator[str]:
    """Yield a line a run: its name and hosts, for `--list`."""
    for run in runs:
        hosts = ", ".join(file.host for file in run.files)
        yield f"{run.name}: {len(run.files)} host{'s' if len(run.files) != 1 else ''} ({hosts})"
