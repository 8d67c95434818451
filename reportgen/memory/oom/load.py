"""From a path to the modules of a dump, their memory, and the log beside them."""

from __future__ import annotations

import dataclasses
import posixpath
import re

from reportgen.errors import InputError
from reportgen.memory.analysis import analyze_memory
from reportgen.memory.assignment_text import parse_buffer_assignment
from reportgen.memory.model import ModuleMemory
from reportgen.memory.usage_text import memory_from_usage_report, parse_usage_report
from reportgen.profile.devices import find_device
from reportgen.profile.hlo import HloModule
from reportgen.profile.hlo_text import parse_hlo_text
from reportgen.sources.dumps import SIZE_LIMIT, Dump, DumpedModule, open_dump, read_file

_VERSION = re.compile(r"\bversion: TPU_VERSION_(\w+)")
_VARIANT = re.compile(r'\bvariant: "(\w*)"')
# The names that libtpu gives to its chips, and the types that profiles and the catalogue give them.
_CHIPS = {
    ("JELLYFISH", ""): "TPU v2",
    ("DRAGONFISH", ""): "TPU v3",
    ("PUFFERFISH", ""): "TPU v4",
    ("VIPERFISH", ""): "TPU v5",
    ("VIPERFISH", "lite"): "TPU v5 lite",
    ("GHOSTLITE", ""): "TPU v6 lite",
    ("GHOSTLITE", "lite"): "TPU v6 lite",
}
_MOST_MODULES = 5000


@dataclasses.dataclass(frozen=True, eq=False)
class LoadedModule:
    """A module with its memory; `module` is None where only XLA's usage report is there."""

    memory: ModuleMemory
    module: HloModule | None


@dataclasses.dataclass(frozen=True, eq=False)
class Loaded:
    """What a path leads to.

    Attributes:
        name: The path's last part.
        modules: The modules that were read: the one that failed, or the one that needs most.
        log: Text of the logs, or of the file where it is one.
        device_type: The device that the dump was made for, by the catalogue's name; None where the dump does not tell.

    """

    name: str
    modules: tuple[LoadedModule, ...]
    log: str
    device_type: str | None = None

    @property
    def capacity(self) -> int | None:
        """Bytes of the device's main memory by the catalogue; None where the device is not known."""
        device = find_device(self.device_type) if self.device_type else None
        return device.hbm_capacity if device else None

    @property
    def chosen(self) -> LoadedModule:
        """The module to report on."""
        return max(self.modules, key=lambda one: one.memory.main.allocated_bytes if one.memory.main else 0)


def load(path: str) -> Loaded:
    """Read a dump folder, a file of a dump, an HloProto, or a log.

    Raises:
        InputError: There is no such path, or it holds neither a module nor text.

    """
    dump = open_dump(path)
    name = posixpath.basename(path.rstrip("/")) or path
    if dump.modules:
        chosen = _to_read(dump)
        return Loaded(name, (_loaded(chosen),), _logs(dump), _device_type(chosen))
    if dump.system.isdir(dump.system._strip_protocol(path)):
        if dump.logs:
            return Loaded(name, (), _logs(dump))
        raise InputError(
            f"{path}: expected an XLA dump or logs, found neither.",
            "Run with XLA_FLAGS=--xla_dump_to=DIR and give that folder.",
        )
    content = read_file(dump.system, dump.system._strip_protocol(path), SIZE_LIMIT)
    return loaded_from_content(content, name)


def loaded_from_content(content: bytes, name: str) -> Loaded:
    """Tell by its content what one file is: an HloProto, a text of a dump, or a log."""
    if not content:
        raise InputError(f"{name}: expected a dump or a log, found an empty file.")
    if _is_text(content):
        text = content.decode("utf-8", "replace")
        module = _from_text(text, name)
        return Loaded(name, (module,) if module else (), "" if module else text)
    parsed = HloModule.from_bytes(content, name)
    return Loaded(name, (LoadedModule(analyze_memory(parsed), parsed),), "")


def _is_text(content: bytes) -> bool:
    start = content[:4096]
    return b"\x00" not in start and sum(byte < 9 for byte in start) == 0


def _from_text(text: str, name: str) -> LoadedModule | None:
    """One text of a dump alone; None where it is another text."""
    start = text.lstrip()[:200]
    if start.startswith("BufferAssignment:"):
        module = parse_buffer_assignment(text, None)
        return LoadedModule(analyze_memory(module), module)
    if start.startswith("Memory Space:"):
        return LoadedModule(memory_from_usage_report(text, name), None)
    if start.startswith("HloModule "):
        raise InputError(
            f"{name}: HLO text alone does not tell what is allocated.",
            "Give the folder of the dump, with *-buffer-assignment.txt beside it.",
        )
    return None


def _to_read(dump: Dump) -> DumpedModule:
    """The module that failed, or else the one that needs most: by the totals of the usage reports, or by size."""
    failed = [module for module in dump.modules if module.failed]
    candidates = failed or list(dump.modules[:_MOST_MODULES])
    return candidates[0] if len(candidates) == 1 else max(candidates, key=_weight)


def _weight(module: DumpedModule) -> int:
    text = module.read_text("usage")
    if text is not None:
        try:
            return max((space.total for space in parse_usage_report(text) if space.color == 0), default=0)
        except InputError:
            return 0
    part = "proto" if "proto" in module.files else "assignment"
    return int(module.system.size(module.files[part]) or 0) if part in module.files else 0


def _loaded(dumped: DumpedModule) -> LoadedModule:
    """The module's memory from the best of its files."""
    proto = dumped.read("proto")
    if proto is not None:
        module = HloModule.from_bytes(proto, f"{dumped.name}.hlo.pb")
        if module.proto.buffer_assignment.buffer_allocations:
            return LoadedModule(analyze_memory(module), module)
    assignment, text = dumped.read_text("assignment"), dumped.read_text("text")
    if assignment is not None:
        parsed = parse_hlo_text(text, f"{dumped.name}.txt") if text is not None else None
        module = parse_buffer_assignment(assignment, parsed, dumped.read_text("ranges"))
        return LoadedModule(analyze_memory(module), module)
    usage = dumped.read_text("usage")
    if usage is None:
        raise InputError(
            f"{dumped.name}: the dump holds the program but not what it allocates.",
            "Keep *-buffer-assignment.txt, or dump with --xla_dump_hlo_as_proto.",
        )
    return LoadedModule(memory_from_usage_report(usage, dumped.name.partition(".")[2] or dumped.name), None)


def _logs(dump: Dump) -> str:
    return "\n".join(text for _, text in dump.log_texts())


def _device_type(dumped: DumpedModule) -> str | None:
    """The device that the dump was made for."""
    text = dumped.read_text("target") or ""
    version, variant = _VERSION.search(text), _VARIANT.search(text)
    if version is None:
        return None
    return _CHIPS.get((version[1], variant[1] if variant else ""))
