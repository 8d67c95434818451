"""JAX device memory profiles: files that are given alone, or lie in the folder of a run."""

from __future__ import annotations

import posixpath

import fsspec

from reportgen.sources.locate import HostFile, Run, list_runs

_ENDINGS = (".prof", ".pprof", ".prof.gz", ".pprof.gz")
_MOST = 64


def memory_profile_at(path: str) -> HostFile | None:
    """Return the memory profile that a path names; None where it names something else.

    Raises:
        InputError: There is no such file.

    """
    return list_runs(path)[-1].files[0] if path.lower().endswith(_ENDINGS) else None


def memory_profiles_beside(run: Run) -> tuple[HostFile, ...]:
    """Return the memory profiles in a run's folders, by name."""
    folders = {(posixpath.dirname(file.path), file.protocol, file.options) for file in run.files}
    found = []
    for folder, protocol, options in sorted(folders, key=str):
        system = fsspec.filesystem(protocol, **dict(options))
        names = sorted(entry for entry in system.ls(folder, detail=False) if entry.lower().endswith(_ENDINGS))
        for name in (posixpath.basename(entry) for entry in names):
            host = name.partition(".")[0]
            found.append(HostFile(host, name, posixpath.join(folder, name), protocol, options))
    return tuple(found[:_MOST])
