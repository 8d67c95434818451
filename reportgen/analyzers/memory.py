"""Memory of the compiled modules: peaks, padding, what is alive at the peak; static, from XLA's buffer assignment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reportgen.analyzers.base import Context, Result, SectionId
from reportgen.analyzers.memory_view import memory_blocks, memory_cards, memory_charts, memory_tables
from reportgen.analyzers.module_memory import memory_of
from reportgen.analyzers.op_profile import capacity_metric
from reportgen.document import Metric
from reportgen.memory.model import ALLOCATION_TYPES, Buffer, Lump, ModuleMemory, SpaceMemory, lump, split_small
from reportgen.profile.devices import Peak
from reportgen.profile.view import HostView
from reportgen.units import binary

_MOST_MODULES = 24
_MOST_BUFFERS = 400
_CURVE_POINTS = 1500


@dataclass(frozen=True)
class CurvePart:
    """The curve of live bytes, thinned to the largest value of equal stretches: position, bytes, unpadded bytes."""

    positions: tuple[int, ...]
    live: tuple[int, ...]
    unpadded: tuple[int, ...]
    events: int


@dataclass(frozen=True)
class SpaceView:
    """One memory space of a module, small enough to travel between processes.

    Attributes:
        name: Of the space, such as "HBM".
        allocated, live_peak, unpadded_peak: Bytes; the unpadded peak is true for parameters and outputs too.
        xprof_peak, xprof_unpadded_peak: XProf's figures for the same.
        fragmentation: Allocated for temporaries and not in use at the peak.
        by_type: Allocated bytes by allocation type.
        aliased: Bytes of parameters that outputs take over.
        buffers: Those alive at the peak of at least 16 KiB, in program order, the largest where there are many.
        small, others: The rest, lumped: smaller than 16 KiB, and beyond what is kept.
        peak_instruction: The instruction that reaches the peak.
        peak_position: Its place on the curve; None without a curve.
        curve: None where there is no heap simulation.

    """

    name: str
    allocated: int
    live_peak: int
    unpadded_peak: int
    xprof_peak: int
    xprof_unpadded_peak: int
    fragmentation: int
    by_type: dict[str, int]
    aliased: int
    buffers: tuple[Buffer, ...]
    small: Lump
    others: Lump
    peak_instruction: str
    peak_position: int | None
    curve: CurvePart | None


@dataclass(frozen=True)
class ModuleView:
    """One module's memory by space color."""

    label: str
    program: int
    spaces: dict[int, SpaceView]
    scoped_vmem: int | None
    scoped_vmem_instruction: str
    notes: tuple[str, ...]

    @property
    def main(self) -> SpaceView | None:
        """The device's main memory."""
        return self.spaces.get(0)


@dataclass(frozen=True)
class MemoryPart:
    """Modules of one host, the largest protos first; how many more there were; the capacity of a device."""

    modules: tuple[ModuleView, ...]
    left_out: int
    capacity: Peak


@dataclass(frozen=True)
class MemoryFacts:
    """Modules of all hosts, the largest peak first, and the one that matters.

    Attributes:
        main: The module with the largest peak among those that take at least 1 % of the op time.
        times: Self time of each module in seconds, by program; empty where not known.
        capacity: Bytes of a device's main memory and where the figure is from.

    """

    modules: tuple[ModuleView, ...]
    main: ModuleView
    times: dict[int, float]
    capacity: Peak


class MemoryAnalyzer:
    """What each module needs of each memory, and why."""

    id: ClassVar[str] = "memory"
    title: ClassVar[str] = "Memory"
    section: ClassVar[SectionId] = "memory"

    def host(self, view: HostView) -> MemoryPart | None:
        """Return the modules of one host that have a buffer assignment."""
        found = []
        programs = view.modules.largest(_MOST_MODULES)
        for program in programs:
            module = view.modules.get(program)
            if module is not None and (memory := memory_of(module)) is not None:
                found.append(module_view(view.modules.labels.get(program, memory.name), program, memory))
        if not found:
            return None
        devices = [core for core in view.cores if core.id.device != "CPU"]
        capacity = devices[0].peaks.hbm_capacity if devices else Peak(None, "the host's memory is not bounded here")
        return MemoryPart(tuple(found), len(view.modules) - len(programs), capacity)

    def merge(self, parts: Sequence[MemoryPart], context: Context) -> Result:
        """Return the modules of all hosts, each once: hosts of one program hold the same modules."""
        by_label: dict[str, ModuleView] = {}
        for part in parts:
            for module in part.modules:
                known = by_label.get(module.label)
                if known is None or _peak(module) > _peak(known):
                    by_label[module.label] = module
        ordered = tuple(sorted(by_label.values(), key=lambda module: (-_peak(module), module.label)))
        times = _times(context)
        facts = MemoryFacts(ordered, _main(ordered, times), times, parts[0].capacity)
        return Result(
            metrics=_metrics(facts),
            tables=memory_tables(facts),
            charts=memory_charts(facts),
            cards=memory_cards(facts),
            blocks=memory_blocks(facts, parts[0].left_out),
            facts=facts,
        )


def module_view(label: str, program: int, memory: ModuleMemory) -> ModuleView:
    """Return a module's memory without what would be too large to show."""
    return ModuleView(
        label=label,
        program=program,
        spaces={color: _space_view(space) for color, space in memory.spaces.items()},
        scoped_vmem=memory.scoped_vmem_bytes,
        scoped_vmem_instruction=memory.scoped_vmem_instruction,
        notes=memory.notes,
    )


def _space_view(space: SpaceMemory) -> SpaceView:
    large, small = split_small(space.peak_buffers)
    kept = set(sorted(range(len(large)), key=lambda row: -large[row].size)[:_MOST_BUFFERS])
    peak = space.peak_event
    instructions = space.curve.instructions if space.curve is not None else ()
    return SpaceView(
        name=space.name,
        allocated=space.allocated_bytes,
        live_peak=space.live_peak_bytes,
        unpadded_peak=space.unpadded_peak_bytes,
        xprof_peak=space.xprof_peak_bytes,
        xprof_unpadded_peak=space.xprof_unpadded_peak_bytes,
        fragmentation=space.fragmentation_bytes,
        by_type={name: space.by_type.get(name, 0) for name in ALLOCATION_TYPES},
        aliased=space.aliased_bytes,
        buffers=tuple(large[row] for row in sorted(kept)),
        small=small,
        others=lump(buffer for row, buffer in enumerate(large) if row not in kept),
        peak_instruction=instructions[peak] if peak is not None and peak < len(instructions) else "",
        peak_position=None if peak is None else peak + 1,
        curve=_curve_part(space),
    )


def _curve_part(space: SpaceMemory) -> CurvePart | None:
    if space.curve is None or not len(space.curve.live):
        return None
    live, unpadded = space.curve.live, space.curve.unpadded
    stretch = -(-len(live) // _CURVE_POINTS)
    starts = np.arange(0, len(live), stretch)
    tops = [int(start + np.argmax(live[start : start + stretch])) for start in starts.tolist()]
    return CurvePart(
        tuple(tops), tuple(live[tops].tolist()), tuple(unpadded[tops].tolist()), len(space.curve.instructions)
    )


def _peak(module: ModuleView) -> int:
    return module.main.live_peak if module.main else 0


def _times(context: Context) -> dict[int, float]:
    ops = context.facts("op-profile")
    if ops is None:
        return {}
    sums = ops.ops.groupby("program")["self_s"].sum()
    return {int(program): float(seconds) for program, seconds in sums.items()}


def _main(modules: Sequence[ModuleView], times: dict[int, float]) -> ModuleView:
    whole = sum(times.values())
    busy = [module for module in modules if whole and times.get(module.program, 0.0) >= 0.01 * whole]
    return (busy or list(modules))[0]


def _metrics(facts: MemoryFacts) -> dict[str, Metric]:
    main = facts.main.main
    source = f"buffer assignment of {facts.main.label}"
    absent = None if main else "The module takes no memory of the device's main space."
    capacity = facts.capacity.value

    def metric(title: str, value: float | None, definition: str, reason: str | None = absent) -> Metric:
        return Metric(
            title=title,
            value=value,
            unit="bytes",
            definition=definition,
            basis="derived",
            source=source,
            better="lower",
            reason=reason if value is None else None,
        )

    of = f" of {binary(capacity)}" if capacity else ""
    return {
        "peak_memory": metric(
            "Peak memory" + of,
            main.live_peak if main else None,
            "Most bytes of main memory in use at once by the module that matters: arguments, outputs, constants and "
            "temporaries, on one device.",
        ),
        "peak_memory_unpadded": metric(
            "Peak memory, unpadded", main.unpadded_peak if main else None, "The same without the padding of tiles."
        ),
        "memory_allocated": metric(
            "Allocated memory",
            main.allocated if main else None,
            "Sum of the module's allocations in main memory: its peak and the fragmentation of its temporaries.",
        ),
        "memory_capacity": capacity_metric(facts.capacity),
    }
