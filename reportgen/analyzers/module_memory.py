"""A module's memory, worked out once for all analyses that ask for it."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from reportgen.errors import InputError
from reportgen.memory.analysis import analyze_memory
from reportgen.memory.model import ModuleMemory
from reportgen.profile.hlo import HloModule

_KNOWN: WeakKeyDictionary[HloModule, ModuleMemory | None] = WeakKeyDictionary()


def memory_of(module: HloModule) -> ModuleMemory | None:
    """Return a module's memory; None where it has no buffer assignment, or a damaged one."""
    if module not in _KNOWN:
        try:
            _KNOWN[module] = analyze_memory(module)
        except InputError:
            _KNOWN[module] = None
    return _KNOWN[module]
