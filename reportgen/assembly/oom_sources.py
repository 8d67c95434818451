"""From what a user gives for an out-of-memory error to its report: a log, a dump, both, or a profile."""

from __future__ import annotations

from dataclasses import replace

from reportgen.errors import InputError
from reportgen.memory.analysis import analyze_memory
from reportgen.memory.oom.load import load
from reportgen.memory.oom.report import OomReport, oom_report, report_of_dump, report_of_memory, report_of_text
from reportgen.profile.view import HostView
from reportgen.settings import Settings
from reportgen.sources.load import load_host
from reportgen.sources.locate import list_runs

_MODULES = 24


def oom_report_of(source: str, text: str | None, dump: str | None, capacity: int | None) -> OomReport:
    """Return the report on an out-of-memory error.

    Args:
        source: A dump folder, an HloProto, a log or a profile; the name of `text` where that is given.
        text: A log's text.
        dump: The dump folder that belongs to a log.
        capacity: Bytes of the device's memory, where nothing else tells.

    Raises:
        InputError: There is nothing about memory in it.

    """
    if dump is not None:
        log = text if text is not None else load(source).log
        loaded = load(dump)
        if loaded.modules:
            return report_of_dump(replace(loaded, log=f"{log}\n{loaded.log}"), capacity)
        return report_of_text(log, source, capacity=capacity)
    if text is not None:
        return report_of_text(text, "standard input", capacity=capacity)
    if _is_profile(source):
        return _report_of_profile(source, capacity)
    return oom_report(source, capacity=capacity)


def _is_profile(source: str) -> bool:
    try:
        return any(".xplane.pb" in file.name for run in list_runs(source)[-1:] for file in run.files)
    except InputError:
        return False


def _report_of_profile(source: str, capacity: int | None) -> OomReport:
    """Report on the module of a profile that needs most memory; hosts of one program hold the same modules."""
    file = list_runs(source)[-1].files[0]
    view = HostView(load_host(file)[0], Settings(hbm_capacity=capacity))
    found = []
    for program in view.modules.largest(_MODULES):
        module = view.modules.get(program)
        if module is not None and module.proto.buffer_assignment.buffer_allocations:
            found.append((analyze_memory(module), module))
    if not found:
        raise InputError(
            f"{file.name}: no module with a buffer assignment is in this profile, so its memory is not known.",
            "Capture with HLO protos on (the default of JAX), or give the folder of an XLA dump.",
        )
    memory, module = max(found, key=lambda pair: pair[0].main.allocated_bytes if pair[0].main else 0)
    peaks = next((core.peaks for core in view.cores if core.id.device != "CPU"), None)
    held = peaks.hbm_capacity.value if peaks else None
    told = capacity if capacity is not None else (int(held) if held else None)
    device = peaks.device_type if peaks else None
    return report_of_memory(memory, module, source=file.name, capacity=told, device_type=device)
