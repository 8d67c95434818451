"""From analyses and findings to the document."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from reportgen import __version__
from reportgen.analyzers.base import Analyzer
from reportgen.analyzers.inventory import HostInfo
from reportgen.analyzers.run import Analysis
from reportgen.analyzers.steps import HOW_TO_ANNOTATE
from reportgen.assembly.glossary import GLOSSARY
from reportgen.assembly.verdict import verdict_of
from reportgen.document import (
    SCHEMA_VERSION,
    Block,
    Checks,
    Column,
    Details,
    Field,
    Findings,
    Generator,
    Heading,
    KeyValues,
    Metric,
    Notice,
    ProfileInfo,
    ReportDocument,
    Section,
    Table,
    TableBlock,
    Text,
    Tiles,
    canonical,
)
from reportgen.profile.steps import StepSource
from reportgen.rules.run import Verdicts
from reportgen.units import percent

TILES = (
    "step_time_mean", "flops_utilization", "hbm_bandwidth_utilization", "input_wait_fraction", "device_idle_fraction",
    "peak_memory",
)  # fmt: skip
_SECTIONS = (
    ("overview", "Overview"), ("input", "Input pipeline"), ("ops", "Op profile"), ("memory", "Memory"),
    ("timeline", "Timeline"), ("hosts", "Hosts and cores"),
)  # fmt: skip
_NOTHING = {
    "input": Notice("The input pipeline could not be analysed: the profile holds no host events and no steps."),
    "ops": Notice(
        "No XLA op was captured. On GPU and TPU the device tracer must run while a step does; capture for longer.",
        "reportgen capture HOST:PORT -o LOGDIR --duration 5s",
    ),
    "memory": Notice(
        "No memory was captured: the profile holds neither HLO modules nor allocator events. With JAX they are on by "
        "default; a compiler dump tells the same.",
        "XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_proto --xla_dump_hlo_as_text'; reportgen oom DIR",
    ),
    "timeline": Notice("There is no step to show on a timeline.", HOW_TO_ANNOTATE),
    "hosts": Notice("No core or device was captured."),
}


def build_document(analysis: Analysis, verdicts: Verdicts, analyzers: Iterable[Analyzer]) -> ReportDocument:
    """Return the document of a run."""
    results = analysis.results.values()
    metrics = {name: metric for result in results for name, metric in result.metrics.items()}
    tables = {name: table for result in results for name, table in result.tables.items()}
    profile = _profile_info(analysis)
    document = ReportDocument(
        schema_version=SCHEMA_VERSION,
        generator=Generator(name="reportgen", version=__version__),
        title=_title(profile),
        verdict=verdict_of(analysis, verdicts.findings, verdicts.checks),
        profile=profile,
        metrics=_modelled(_complete(metrics)) if profile.timeline_basis == "modelled" else _complete(metrics),
        findings=verdicts.findings,
        checks=verdicts.checks,
        tables=tables | _appendix_tables(analysis, verdicts),
        charts={name: chart for result in results for name, chart in result.charts.items()},
        cards={name: card for result in results for name, card in result.cards.items()},
        timelines={name: timeline for result in results for name, timeline in result.timelines.items()},
        sections=_sections(analysis, list(analyzers), verdicts),
    )
    return canonical(document)


_ABSENT = {
    "input_wait_fraction": ("Waiting for input", "fraction", "Share of the step's period spent waiting for input."),
    "peak_memory": ("Peak memory", "bytes", "Largest memory in use."),
    "peak_memory_unpadded": ("Peak memory, unpadded", "bytes", "Peak memory without the padding of tiles."),
    "memory_capacity": ("Memory capacity", "bytes", "Memory of one device."),
    "total_device_time": ("Total device time", "seconds", "Of devices, idle time included."),
    "device_idle_fraction": ("Device idle", "fraction", "Share of the total device time in which no op ran."),
    "flops_utilization": ("FLOPS utilisation", "fraction", "FLOPs over total device time × peak FLOP/s."),
    "hbm_bandwidth_utilization": (
        "HBM bandwidth utilisation", "fraction", "HBM bytes over total device time × peak bandwidth.",
    ),
    "device_duty_cycle": ("Duty cycle", "fraction", "Share of a chip's time in which a core worked."),
}  # fmt: skip


def _complete(metrics: dict[str, Metric]) -> dict[str, Metric]:
    """Add the metrics that every report holds, as not captured, where no analysis gave them."""
    absent = {
        name: Metric(
            title=title, value=None, unit=unit, definition=definition, reason="The profile holds nothing for it."
        )
        for name, (title, unit, definition) in _ABSENT.items()
        if name not in metrics
    }
    return metrics | absent


def _modelled(metrics: dict[str, Metric]) -> dict[str, Metric]:
    """Call modelled what rests on the times of a modelled timeline: all that else is measured, and rates and shares."""
    return {
        name: msgspec.structs.replace(metric, basis="modelled")
        if metric.basis == "measured" or (metric.basis == "derived" and metric.unit == "fraction")
        else metric
        for name, metric in metrics.items()
    }


def _title(profile: ProfileInfo) -> str:
    device = profile.device_type or "unknown device"
    hardware = f"{profile.core_count} × {device}" if profile.core_count > 1 else device
    hosts = f", {len(profile.hosts)} hosts" if len(profile.hosts) > 1 else ""
    return f"{profile.name}: {hardware}{hosts}"


def _profile_info(analysis: Analysis) -> ProfileInfo:
    hosts = analysis.hosts
    starts = [host.start_ns for host in hosts if host.start_ns]
    stops = [host.stop_ns for host in hosts if host.stop_ns]
    frameworks = [host.framework for host in hosts if host.framework]
    return ProfileInfo(
        name=analysis.run,
        hosts=tuple(host.name for host in hosts),
        device_type=next((host.device_type for host in hosts if host.device_type), None),
        device_count=sum(host.devices for host in hosts),
        core_count=sum(host.cores for host in hosts),
        framework=max(sorted(set(frameworks)), key=frameworks.count) if frameworks else "",
        step_source=_step_source(hosts),
        captured_at=datetime.fromtimestamp(min(starts) // 10**9, UTC).isoformat() if starts else None,
        duration=(max(stops) - min(starts)) / 1e9 if starts and stops else None,
        timeline_basis="modelled" if any(host.modelled for host in hosts) else "measured",
        versions={key: value for host in reversed(hosts) for key, value in host.versions.items()},
        options={key: value for host in reversed(hosts) for key, value in host.options.items()},
        planes=tuple(plane for host in hosts for plane in host.planes),
        files=analysis.origins,
        warnings=tuple(dict.fromkeys(_warnings(analysis))),
    )


def _step_source(hosts: tuple[HostInfo, ...]) -> str:
    host = next((host for host in hosts if host.step_source is not StepSource.NONE), None)
    if host is None:
        return "none: the profile holds no step markers, module runs or step annotations"
    return f"{host.step_source.value}{f': {host.step_detail}' if host.step_detail else ''}"


def _warnings(analysis: Analysis) -> Iterable[str]:
    for host in analysis.hosts:
        if host.modelled:
            yield host.modelled
        yield from (f"{host.name}: the profiler reported an error: {text}" for text in host.errors)
        yield from (f"{host.name}: {text}" for text in host.warnings)
        if host.missing:
            yield (
                f"{host.name}: the file ends early; {percent(host.missing)} of its bytes belong to a plane that is not "
                "whole and were left out."
            )
        if not host.cores:
            yield (
                f"{host.name}: no device plane and no XLA op on the host was captured: the device tracer may have been "
                "off, or nothing ran."
            )
    yield from (f"A file was left out: {message}" for message in analysis.unread)
    for result in analysis.results.values():
        yield from result.warnings
    if analysis.failures:
        yield f"{len(analysis.failures)} parts of the analysis failed; the appendix has their messages."


def _sections(analysis: Analysis, analyzers: list[Analyzer], verdicts: Verdicts) -> tuple[Section, ...]:
    found = [Section("summary", "Summary", (Tiles(TILES),)), Section("findings", "Findings", (Findings(), Checks()))]
    for section, title in _SECTIONS:
        blocks: list[Block] = []
        for analyzer in analyzers:
            result = analysis.results.get(analyzer.id)
            if analyzer.section == section and result is not None:
                blocks += result.blocks
        if section == "overview":
            blocks.append(Heading("Run environment", "overview-environment"))
            blocks.append(_environment(analysis))
        found.append(Section(section, title, tuple(blocks) or (_NOTHING[section],)))
    return (*found, _appendix(verdicts, analysis))


def _environment(analysis: Analysis) -> KeyValues:
    info = _profile_info(analysis)
    fields = [
        Field(label="Hosts", value=len(info.hosts), unit="count"),
        Field(label="Device type", value=info.device_type or "not captured"),
        Field(label="Devices", value=info.device_count, unit="count"),
        Field(label="Cores", value=info.core_count, unit="count"),
        Field(label="Framework", value=info.framework or "not captured"),
        Field(label="Steps from", value=info.step_source),
        Field(label="Captured at", value=info.captured_at or "not captured"),
        Field(
            label="Capture took", value=info.duration if info.duration is not None else "not captured", unit="seconds"
        ),
    ]
    fields += [Field(label=key, value=value) for key, value in [*info.versions.items(), *info.options.items()][:40]]
    return KeyValues(tuple(fields))


def _appendix(verdicts: Verdicts, analysis: Analysis) -> Section:
    blocks: list[Block] = [Heading("What the profile holds", "appendix-planes"), TableBlock("planes")]
    blocks += [Heading("Files", "appendix-files"), TableBlock("files")]
    if verdicts.checks:
        blocks += [Heading("Thresholds", "appendix-thresholds"), Details("All thresholds", (TableBlock("thresholds"),))]
    for failure in (*analysis.failures, *verdicts.failures):
        blocks.append(Details(f"Failed: {failure.name}: {failure.message}", (Text(failure.trace),)))
    blocks += [Heading("Glossary", "appendix-glossary"), KeyValues(GLOSSARY)]
    return Section("appendix", "Appendix", tuple(blocks))


def _appendix_tables(analysis: Analysis, verdicts: Verdicts) -> dict[str, Table]:
    planes = [plane for host in analysis.hosts for plane in host.planes]
    shown = [plane for plane in planes if plane.events or len(planes) < 100][:300]
    return {
        "planes": Table(
            title="Planes",
            columns=(
                Column(name="host", title="Host"),
                Column(name="plane", title="Plane"),
                Column(name="lines", unit="count", title="Lines"),
                Column(name="events", unit="count", title="Events"),
            ),
            rows=tuple((plane.host, plane.name, plane.lines, plane.events) for plane in shown),
            total_rows=len(planes) if len(shown) < len(planes) else None,
        ),
        "files": Table(
            title="Files",
            columns=(
                Column(name="name", title="File"),
                Column(name="size", unit="bytes", title="Size"),
                Column(name="sha256", title="SHA-256", display="code"),
            ),
            rows=tuple((file.name, file.size, file.sha256) for file in analysis.origins),
        ),
        "thresholds": Table(
            title="Thresholds",
            columns=(
                Column(name="threshold", title="Threshold", display="code"),
                Column(name="value", title="Value", display="number"),
                Column(name="unit", title="Unit"),
                Column(name="reason", title="Reason"),
            ),
            rows=tuple(
                (f"{check.rule}.{limit.name}", limit.value, limit.unit, limit.reason)
                for check in verdicts.checks
                for limit in check.thresholds
            ),
        ),
    }
