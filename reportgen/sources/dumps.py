"""XLA dump folders: which modules they hold, and the files of each by what they are.

`--xla_dump_to=DIR` writes text by default, HloProtos with `--xla_dump_hlo_as_proto`. Names begin with the module's
number and name and tell the pass: `module_0001.jit_step.cl_1.after_optimizations-buffer-assignment.txt`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import fsspec

from reportgen.errors import InputError
from reportgen.sources.content import decompressed

Part = Literal["proto", "text", "assignment", "ranges", "usage", "failed", "target"]

SIZE_LIMIT = 2**30
_LOG_LIMIT = 2**28
_FILES_LIMIT = 100_000
_MODULE = re.compile(
    r"^(module_\d+\..+?)\.(?:[\w.\-]*?)(after_optimizations|oom_intermediate_module|target_arguments)(.*)$"
)
_PARTS: dict[tuple[str, str], Part] = {
    ("after_optimizations", ".hlo.pb"): "proto",
    ("after_optimizations", ".txt"): "text",
    ("after_optimizations", "-buffer-assignment.txt"): "assignment",
    ("after_optimizations", "-live-range.txt"): "ranges",
    ("after_optimizations", "-memory-usage-report.txt"): "usage",
    ("oom_intermediate_module", ".hlo.pb"): "failed",
    ("oom_intermediate_module", ".txt"): "failed",
    ("target_arguments", ".txt"): "target",
}
_LOGS = (".log", ".err", ".out", ".txt")


@dataclass(frozen=True)
class DumpedModule:
    """One module of a dump.

    Attributes:
        name: Number and name of the module, such as `module_0001.jit_step.cl_1`.
        files: Path of each part that is there.

    """

    name: str
    files: dict[Part, str]
    system: Any

    @property
    def failed(self) -> bool:
        """Whether the compiler wrote this module because it ran out of memory."""
        return "failed" in self.files

    def read(self, part: Part) -> bytes | None:
        """Return a part's content; None where the dump does not hold it.

        Raises:
            InputError: The file cannot be read or is too large.

        """
        return read_file(self.system, self.files[part], SIZE_LIMIT) if part in self.files else None

    def read_text(self, part: Part) -> str | None:
        """Return a part's content as text; None where the dump does not hold it."""
        content = self.read(part)
        return None if content is None else content.decode("utf-8", "replace")


@dataclass(frozen=True)
class Dump:
    """A dump folder: its modules by name, and the logs that lie beside them."""

    modules: tuple[DumpedModule, ...]
    logs: tuple[str, ...]
    system: Any

    def log_texts(self) -> Iterable[tuple[str, str]]:
        """Give name and content of the logs, those of a reasonable size."""
        for path in self.logs:
            if (self.system.size(path) or 0) <= _LOG_LIMIT:
                yield posixpath.basename(path), read_file(self.system, path, _LOG_LIMIT).decode("utf-8", "replace")


def open_dump(path: str) -> Dump:
    """Find the modules of a dump folder, or of the dump that a file belongs to.

    Args:
        path: A folder, at any depth of which the dump may lie, or one file of a dump; local or an fsspec address.

    Returns:
        The dump; without modules where the folder holds none.

    Raises:
        InputError: There is no such path, or it holds too many files.

    """
    system, root = fsspec.core.url_to_fs(path)
    if not system.exists(root):
        raise InputError(
            f"{path}: there is no such file or folder.", "Give an XLA dump folder, a file of it, or a log."
        )
    if system.isfile(root):
        wanted = _module_of(posixpath.basename(root))
        siblings = system.ls(posixpath.dirname(root), detail=False) if wanted else []
        return _dump(system, [name for name in siblings if _module_of(posixpath.basename(name)) == wanted])
    found: list[str] = []
    for folder, _, names in system.walk(root):
        found += [posixpath.join(folder, name) for name in names]
        if len(found) > _FILES_LIMIT:
            raise InputError(f"{path}: more than {_FILES_LIMIT:,} files lie here.", "Give the dump's own folder.")
    return _dump(system, found)


def read_file(system: Any, path: str, limit: int) -> bytes:
    """Read a file of a file system, decompressed.

    Raises:
        InputError: It cannot be read or is larger than the limit.

    """
    name = posixpath.basename(path)
    try:
        if (size := system.size(path) or 0) > limit:
            raise InputError(f"{name}: {size:,} bytes is more than the {limit:,} that are read.")
        content: bytes = system.cat_file(path)
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error}).") from None
    return decompressed(content, name)


def _dump(system: Any, paths: list[str]) -> Dump:
    modules: dict[str, dict[Part, str]] = {}
    logs = []
    for path in sorted(paths):
        name = posixpath.basename(path).removesuffix(".gz")
        match = _MODULE.match(name)
        part = _PARTS.get((match[2], match[3])) if match else None
        if match and part:
            modules.setdefault(match[1], {}).setdefault(part, path)
        elif not name.startswith("module_") and name.endswith(_LOGS):
            logs.append(path)
    useful = {name: files for name, files in modules.items() if files.keys() & {"proto", "text", "assignment", "usage"}}
    return Dump(tuple(DumpedModule(name, files, system) for name, files in useful.items()), tuple(logs), system)


def _module_of(name: str) -> str | None:
    match = _MODULE.match(name.removesuffix(".gz"))
    return match[1] if match else None
