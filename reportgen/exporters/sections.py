"""The sections of one host's trace: its cores, SparseCores, threads and the rest, each with tracks and counters."""

from __future__ import annotations

import re

import numpy as np

from reportgen.errors import InputError
from reportgen.exporters.captured import busiest_first, captured_section, channel_ends, memory_counters
from reportgen.exporters.derived import OpEvents, derived_tracks, step_track, xla_module_track, xla_op_track
from reportgen.exporters.op_args import OpArgs, flops_of, hbm_bytes_of, rate_counter
from reportgen.exporters.tracks import Counter, Section, Track
from reportgen.profile.attribution import ATTRIBUTION_STATS, attribute
from reportgen.profile.gpu import stream_lines
from reportgen.profile.model import HostProfile, Kind, Plane
from reportgen.profile.ops import OP_LINES
from reportgen.profile.step_spans import StepSpan, step_spans, trace_steps
from reportgen.profile.steps import Steps
from reportgen.profile.view import Core, HostView
from reportgen.wire.varint import WireError

_ORDER = (
    "Steps", "Framework Name Scope", "TensorFlow Name Scope", "Framework Ops", "TensorFlow Ops", "XLA Modules",
    "XLA Ops", "Async XLA Ops", "Source code", "XLA TraceMe",
)  # fmt: skip


def host_sections(view: HostView) -> list[Section]:
    """Return a host's sections: cores, then SparseCores, then threads, then whatever else holds events."""
    profile = view.profile
    sections = [_core_section(core) for core in view.cores if core.plane.kind is not Kind.HOST]
    sections += [
        captured_section(plane, _sparse_core_title(profile, plane)) for plane in profile.of_kind(Kind.SPARSE_CORE)
    ]
    sections += [_threads_section(profile, plane) for plane in profile.of_kind(Kind.HOST)]
    sections += [
        captured_section(plane, f"{profile.name} {plane.name}") for plane in profile.of_kind(Kind.DEVICE, Kind.OTHER)
    ]
    return [section for section in sections if section.tracks or section.counters]


def spans_of(view: HostView) -> list[StepSpan]:
    """Return the steps of a host; none where they are damaged."""
    try:
        return step_spans(view)
    except (WireError, InputError):
        return []


def _core_section(core: Core) -> Section:
    section = captured_section(core.plane, core.id.label)
    try:
        _add_derived(section, core)
    except (WireError, InputError):  # damaged events, or damaged HLO
        section.damaged += 1
    section.tracks.sort(key=_place)
    return section


def _add_derived(section: Section, core: Core) -> None:
    titles = frozenset(track.title for track in section.tracks)
    steps = trace_steps(core)
    if "Steps" not in titles and len(steps):
        section.tracks.append(step_track(steps))
    if core.plane.kind is Kind.GPU:
        _add_streams(section, core, steps, titles)
    else:
        _add_ops(section, core, steps, titles)


def _place(track: Track) -> int:
    """Return a track's place among those of a core; those that are not listed come last, in the order of the file."""
    name = track.title.partition(" (derived)")[0]
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


def _add_ops(section: Section, core: Core, steps: Steps, titles: frozenset[str]) -> None:
    """Give a TensorCore's ops their step and utilisation, and add what they tell: derived tracks and rates."""
    runs, numbers = core.runs, _numbers(steps)
    for track in section.tracks:
        if track.title in OP_LINES:
            track.args = OpArgs(
                track.args, runs.infos, track.kinds, track.durations, numbers, steps.at(track.starts), core.peaks
            )
            section.flows += channel_ends(core.plane, track)
    events = OpEvents.of(runs.infos, runs.ops, runs.trace_starts, runs.trace_durations, steps.at(runs.trace_starts))
    section.tracks += derived_tracks(events, titles)
    section.counters += _rates(events.leaves(), "") + _power(core.plane)


def _add_streams(section: Section, core: Core, steps: Steps, titles: frozenset[str]) -> None:
    """Add what a GPU's kernels tell of the ops that launched them, stream by stream."""
    plane, modules = core.plane, core.view.modules
    streams = [index for index in stream_lines(plane) if len(plane.lines[index].starts)]
    for index in streams:
        kernels = plane.events([index], ATTRIBUTION_STATS)
        found = attribute(kernels, modules)
        suffix = f", {plane.lines[index].display_name}" if len(streams) > 1 else ""
        events = OpEvents.of(found.infos, found.ops, kernels.starts, kernels.durations, steps.at(kernels.starts))
        section.tracks += derived_tracks(events, titles, suffix)
        if "XLA Modules" not in titles:
            section.tracks.append(xla_module_track(events, suffix))
        if "XLA Ops" not in titles:
            owned = np.zeros(len(found.infos), dtype=bool)
            owned[found.ops[kernels.stats["hlo_op"].present]] = True
            ops = xla_op_track(events, owned, suffix)
            step_of = steps.at(ops.starts)
            ops.args = OpArgs(None, found.infos, ops.kinds, ops.durations, _numbers(steps), step_of, core.peaks)
            section.tracks.append(ops)
            runs = OpEvents.of(found.infos, ops.kinds, ops.starts, ops.durations, step_of)
            section.counters += _rates(runs, suffix)
    section.tracks = [track for track in section.tracks if len(track.starts)]


def _numbers(steps: Steps) -> list[str]:
    return [str(number) for number in steps.ids.tolist()]


def _rates(events: OpEvents, suffix: str) -> list[Counter]:
    found = [
        rate_counter(f"{title}{suffix}", unit, events.starts, events.durations, amounts[events.ops])
        for title, unit, amounts in (
            ("FLOP rate", "FLOP/s", flops_of(events.infos)),
            ("HBM bandwidth", "B/s", hbm_bytes_of(events.infos)),
        )
    ]
    return [counter for counter in found if counter]


def _power(plane: Plane) -> list[Counter]:
    """Return the power that the ops drew, where their energy was captured (joules an execution)."""
    if _ENERGY not in plane.stat_names.values():
        return []
    events = plane.events(plane.line_indices(*OP_LINES), (_ENERGY,))
    column = events.stats[_ENERGY]
    events = events.where(column.present)
    energy = column.bits[column.present].view(float)
    counter = rate_counter("power", "W", events.starts, events.durations, energy)
    return [counter] if counter else []


_ENERGY = "vdd_energy_j"


def _threads_section(profile: HostProfile, plane: Plane) -> Section:
    """Return a host plane's threads, the busiest first, and the memory that its allocators recorded."""
    title = f"{profile.name} threads" if plane.name == _HOST_THREADS else f"{profile.name} {plane.name}"
    section = captured_section(plane, title)
    section.tracks = busiest_first(section.tracks)
    try:
        section.counters += memory_counters(plane)
    except WireError:
        section.damaged += 1
    return section


_HOST_THREADS = "/host:CPU"


def _sparse_core_title(profile: HostProfile, plane: Plane) -> str:
    number = re.search(r"(\d+)$", plane.name)
    return f"{profile.name} chip {max(0, plane.ordinal)} SparseCore{f' {number[1]}' if number else ''}"
