"""A JAX device memory profile as a report of its own, or as a part of a run's memory section."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import msgspec

from reportgen import __version__, units
from reportgen.document import (
    SCHEMA_VERSION,
    Block,
    Cell,
    Column,
    Generator,
    Heading,
    Metric,
    ProfileInfo,
    ReportDocument,
    Section,
    Table,
    TableBlock,
    Text,
    Tiles,
    canonical,
)
from reportgen.errors import InputError
from reportgen.memory.groups import Group
from reportgen.memory.pprof import DeviceMemoryProfile, LiveMemory, parse_device_memory_profile
from reportgen.sources.locate import HostFile

_ROWS = 200
_FRAMES = 12
_FOLDERS = re.compile(r"^.*[/\\]")
_TOTAL = "live_memory"
_STACK = "The call stack outside of installed libraries, innermost first."
_WHAT = "Everything that was alive when the profile was taken: arrays and compiled programs."


def live_memory_document(file: HostFile) -> ReportDocument:
    """Return the report of a device memory profile alone.

    Raises:
        InputError: The file cannot be read, or is no device memory profile.

    """
    profile = parse_device_memory_profile(file.read(), file.name)
    tables = _tables(profile, _TOTAL)
    devices = len(profile.by_device())
    taken = profile.time_nanos
    document = ReportDocument(
        schema_version=SCHEMA_VERSION,
        generator=Generator(name="reportgen", version=__version__),
        title=f"Device memory: {file.name}",
        verdict=_verdict(profile),
        profile=ProfileInfo(
            name=file.name,
            hosts=(),
            device_type=None,
            device_count=devices,
            core_count=devices,
            framework="jax",
            step_source="",
            captured_at=datetime.fromtimestamp(taken // 10**9, UTC).isoformat() if taken else None,
            duration=None,
        ),
        metrics={_TOTAL: _metric(profile, file.name)},
        findings=(),
        checks=(),
        tables=tables,
        sections=(Section("memory", "Memory that was alive", (Tiles((_TOTAL,)), *map(TableBlock, tables))),),
    )
    return canonical(document)


def with_live_memory(document: ReportDocument, files: Iterable[HostFile]) -> ReportDocument:
    """Return a run's document with the device memory profiles that lie beside the run in its memory section.

    A file that is none is told among the warnings.
    """
    tables, metrics, warnings = dict(document.tables), dict(document.metrics), []
    blocks: list[Block] = []
    for file in files:
        try:
            profile = parse_device_memory_profile(file.read(), file.name)
        except InputError as error:
            warnings.append(f"A file was left out: {error.message}")
            continue
        number = sum(name.startswith(_TOTAL) for name in metrics)
        name = f"{_TOTAL}_{number + 1}" if number else _TOTAL
        found = _tables(profile, name)
        tables |= found
        metrics[name] = _metric(profile, file.name)
        blocks += [Heading(f"Alive in {file.name}", name.replace("_", "-")), Text(_verdict(profile))]
        blocks += map(TableBlock, found)
    if not blocks and not warnings:
        return document
    return canonical(
        msgspec.structs.replace(
            document,
            tables=tables,
            metrics=metrics,
            sections=tuple(_extended(document.sections, tuple(blocks))),
            profile=msgspec.structs.replace(document.profile, warnings=(*document.profile.warnings, *warnings)),
        )
    )


def _extended(sections: Iterable[Section], blocks: tuple[Block, ...]) -> Iterator[Section]:
    for section in sections:
        yield Section(section.id, section.title, (*section.blocks, *blocks)) if section.id == "memory" else section


def _metric(profile: DeviceMemoryProfile, source: str) -> Metric:
    return Metric(title="Alive", value=profile.total_bytes, unit="bytes", definition=_WHAT, source=source)


def _verdict(profile: DeviceMemoryProfile) -> str:
    """What is alive and which line made most of it, in a sentence."""
    parts = ", ".join(f"{units.binary(group.size)} in {_kinds(group)}" for group in profile.by_kind())
    devices = [group.name for group in profile.by_device()]
    where = f" on {devices[0] if len(devices) == 1 else f'{len(devices)} devices'}" if devices else ""
    lines = profile.by_line()
    share = lines[0].size / profile.total_bytes if profile.total_bytes else 0.0
    most = f"; {units.percent(share)} of it made at {_short(lines[0].name)}" if share else ""
    return f"{units.binary(profile.total_bytes)} are alive{where}: {parts or 'nothing'}{most}."


def _short(place: str) -> str:
    """The file without its folders, as profiles of all systems name it."""
    return _FOLDERS.sub("", place)


def _kinds(group: Group) -> str:
    return f"{group.number:,} {group.name}{'s' if group.number != 1 else ''}"


def _tables(profile: DeviceMemoryProfile, prefix: str) -> dict[str, Table]:
    total = profile.total_bytes
    found = {
        f"{prefix}_kinds": _grouped("By kind", "kind", "Kind", profile.by_kind(), total),
        f"{prefix}_devices": _grouped("By device", "device", "Device", profile.by_device(), total),
        f"{prefix}_lines": _grouped("By Python line", "line", "Line", profile.by_line(), total),
        f"{prefix}_stacks": _stacks(profile.live, total),
    }
    return {name: table for name, table in found.items() if table.rows}


def _grouped(title: str, name: str, heading: str, groups: list[Group], total: int) -> Table:
    columns = (
        Column(name=name, title=heading, display="code"),
        Column(name="size", unit="bytes", title="Alive"),
        Column(name="share", unit="fraction", title="Share", display="bar"),
        Column(name="count", unit="count", title="Number"),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (group.name, group.size, group.size / max(1, total), group.number) for group in groups[:_ROWS]
    )
    return Table(title=title, columns=columns, rows=rows, total_rows=len(groups) if len(groups) > _ROWS else None)


def _stacks(live: tuple[LiveMemory, ...], total: int) -> Table:
    columns = (
        Column(name="function", title="Function", display="code"),
        Column(name="size", unit="bytes", title="Alive"),
        Column(name="share", unit="fraction", title="Share", display="bar"),
        Column(name="count", unit="count", title="Number"),
        Column(name="kind", title="Kind"),
        Column(name="device", title="Device"),
        Column(name="stack", title="Called from", display="code", definition=_STACK),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            one.user_frame.function if one.user_frame else None,
            one.size,
            one.size / max(1, total),
            one.count,
            one.kind,
            one.device or "none",
            " < ".join(_short(str(frame)) for frame in one.user_stack[:_FRAMES]) or None,
        )
        for one in live[:_ROWS]
    )
    cut = len(live) if len(live) > _ROWS else None
    return Table(title="By Python call stack", columns=columns, rows=rows, total_rows=cut)
