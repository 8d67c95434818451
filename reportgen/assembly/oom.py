"""The report of an out-of-memory error as a document, which every renderer of reports can draw."""

from __future__ import annotations

from collections.abc import Iterator

from reportgen import __version__
from reportgen.analyzers.memory import MemoryFacts, module_view
from reportgen.analyzers.memory_view import memory_cards, memory_charts, memory_tables
from reportgen.assembly.oom_tables import allocator_tables, buffers_table, fixes_table, types_table
from reportgen.document import (
    SCHEMA_VERSION,
    Action,
    Basis,
    Block,
    ChartBlock,
    Confidence,
    Details,
    Field,
    Finding,
    Findings,
    Generator,
    KeyValues,
    Location,
    Metric,
    Notice,
    ProfileInfo,
    ReportDocument,
    Saving,
    Section,
    Severity,
    TableBlock,
    Text,
    Tiles,
)
from reportgen.document.report import canonical
from reportgen.memory.fixes.model import Fix
from reportgen.memory.model import MAIN_SPACE
from reportgen.memory.oom.message import FAMILIES
from reportgen.memory.oom.report import OomReport
from reportgen.profile.devices import Peak

_TILES = ("oom_needed", "oom_capacity", "oom_exceeded")
_SHOWN_BUFFERS = 5
_FOLDED = ("memory_padding", "memory_types", "memory_scopes", "memory_sources", "memory_vmem")
# A saving that makes the program fit is what the reader looks for; the rest by its share of what is needed.
_CONFIDENCES: dict[str, Confidence] = {"derived": "high", "modelled": "medium", "heuristic": "low"}
_SEVERITIES: tuple[tuple[float, Severity], ...] = ((0.25, "high"), (0.05, "medium"), (0.0, "low"))


def oom_document(report: OomReport) -> ReportDocument:
    """Return the report of an out-of-memory error as a document: what did not fit, why, and what to do."""
    facts = _memory_facts(report)
    tables = {"oom_types": types_table(report), "oom_buffers": buffers_table(report), "oom_fixes": fixes_table(report)}
    tables |= allocator_tables(report)
    if facts is not None:
        tables |= {name: table for name, table in memory_tables(facts).items() if name != "memory_modules"}
    document = ReportDocument(
        schema_version=SCHEMA_VERSION,
        generator=Generator(name="reportgen", version=__version__),
        title=f"Out of memory: {report.module or FAMILIES[report.family].rstrip('.')}",
        verdict=report.verdict,
        profile=_profile(report),
        metrics=_metrics(report),
        findings=tuple(_finding(report, fix, number) for number, fix in enumerate(report.fixes)),
        checks=(),
        tables={name: table for name, table in tables.items() if table.rows},
        charts=memory_charts(facts) if facts is not None else {},
        cards=memory_cards(facts) if facts is not None else {},
        sections=_sections(report, facts),
        oom=report.as_json(),
    )
    return canonical(document)


def _memory_facts(report: OomReport) -> MemoryFacts | None:
    """The module's memory as the memory section shows it; None where only a message is there."""
    memory = report.memory
    if memory is None or memory.main is None:
        return None
    view = module_view(memory.name, memory.id, memory)
    in_main = report.memory_space == memory.main.name
    capacity = Peak(
        float(report.capacity_bytes) if report.capacity_bytes and in_main else None, "what a program may take"
    )
    return MemoryFacts((view,), view, {}, capacity)


def _profile(report: OomReport) -> ProfileInfo:
    return ProfileInfo(
        name=report.source,
        hosts=(),
        device_type=report.device_type,
        device_count=report.device_count or 0,
        core_count=report.device_count or 0,
        framework=_framework(report),
        step_source="",
        captured_at=None,
        duration=None,
        warnings=report.notes,
    )


def _framework(report: OomReport) -> str:
    """JAX, by the names that it gives to operations; "" where they do not tell."""
    jax = any(buffer.op_name.startswith(("jit(", "pjit(", "pmap(")) for buffer in report.buffers)
    return "jax" if jax else ""


def _metrics(report: OomReport) -> dict[str, Metric]:
    space = report.memory_space
    told = "buffer assignment" if report.memory is not None else "the error's message"
    unknown = "Neither the message nor the dump tells."

    def metric(title: str, value: int | None, definition: str, basis: Basis = "measured") -> Metric:
        reason = unknown if value is None else None
        return Metric(
            title=title, value=value, unit="bytes", definition=definition, basis=basis, source=told, reason=reason
        )

    metrics = {
        "oom_needed": metric(f"{space} needed", report.needed_bytes, f"What is needed of {space} on one device."),
        "oom_capacity": metric(f"{space} there", report.capacity_bytes, f"What {space} holds for the program."),
        "oom_exceeded": metric("Does not fit by", report.exceeded_bytes, "Needed less what there is.", "derived"),
    }
    main = report.memory.spaces.get(MAIN_SPACE) if report.memory else None
    if main is not None:
        metrics["oom_live_peak"] = metric("Live peak", main.live_peak_bytes, "Most bytes in use at once.", "derived")
        metrics["oom_padding"] = metric("Padding", main.padding_bytes, "Lost to tiles at the peak.", "derived")
        lost = main.fragmentation_bytes
        metrics["oom_fragmentation"] = metric("Fragmentation", lost, "Allocated and not in use at the peak.", "derived")
    return metrics


def _finding(report: OomReport, fix: Fix, number: int) -> Finding:
    needed, over, known = report.needed_bytes or 0, report.exceeded_bytes, _framework(report)
    share = fix.likely / needed if needed else 0.0
    severity: Severity = next(severity for least, severity in _SEVERITIES if share >= least)
    enough = bool(over) and fix.low >= (over or 0)
    return Finding(
        id=f"oom-{fix.kind}-{number}",
        rule=f"oom-{fix.kind}",
        severity="critical" if enough else severity,
        title=fix.title,
        summary=f"{fix.how} Alone it makes it fit." if enough else fix.how,
        evidence=(),
        threshold=None,
        saving=Saving(low=fix.low, likely=fix.likely, high=fix.high, unit="bytes", basis=fix.basis, how=fix.how),
        confidence=_CONFIDENCES[fix.basis],
        locations=tuple(Location(kind="buffer", name=name) for name in fix.buffers[:_SHOWN_BUFFERS]),
        actions=tuple(
            Action(text=step.text, framework=step.framework, code=step.code)
            for step in fix.steps
            if not known or step.framework in {"", known}
        ),
    )


def _sections(report: OomReport, facts: MemoryFacts | None) -> tuple[Section, ...]:
    sections = [
        Section("oom", "What did not fit", tuple(_summary(report))),
        Section("fit", "Ways to fit", tuple(_ways(report))),
        Section("buffers", "What holds the memory", tuple(_buffers(report, facts))),
    ]
    if facts is not None:
        sections.append(Section("memory", "Memory of the program", tuple(_memory(facts))))
    if report.more:
        more = tuple(Notice(step.text, step.code) for step in report.more)
        sections.append(Section("more", "How to get the rest", more))
    if report.message is not None:
        sections.append(Section("message", "The message", tuple(_message(report))))
    return tuple(sections)


def _summary(report: OomReport) -> Iterator[Block]:
    yield Tiles(_TILES)
    yield Text(FAMILIES[report.family])
    if report.by_type:
        yield TableBlock("oom_types")
    yield from (TableBlock(name) for name, table in allocator_tables(report).items() if table.rows)


def _ways(report: OomReport) -> Iterator[Block]:
    if not report.fixes:
        yield Text("Nothing that is known here tells a way to fit; see below how to get the rest.")
        return
    yield Text("Each alone; savings overlap and must not be added up.")
    yield TableBlock("oom_fixes", 20)
    yield Findings()


def _buffers(report: OomReport, facts: MemoryFacts | None) -> Iterator[Block]:
    if facts is not None and facts.main.main is not None and report.memory_space == facts.main.main.name:
        charts = memory_charts(facts)
        yield from (ChartBlock(name) for name in ("memory_curve", "memory_lifetimes") if name in charts)
        yield TableBlock("memory_buffers")
    elif report.buffers:
        yield TableBlock("oom_buffers")
    else:
        yield Text("The message lists no buffers.")


def _memory(facts: MemoryFacts) -> Iterator[Block]:
    yield TableBlock("memory_spaces")
    tables = memory_tables(facts)
    folded: list[Block] = [ChartBlock("memory_map")] if "memory_map" in memory_charts(facts) else []
    folded += [TableBlock(name) for name in _FOLDED if name in tables]
    if folded:
        yield Details("By padding, type, scope, source line; map of addresses; VMEM", tuple(folded))


def _message(report: OomReport) -> Iterator[Block]:
    message = report.message
    if message is None:
        return
    fields = [
        Field(label="Message", value=message.headline, display="code"),
        Field(label="Line of the log", value=message.line),
        Field(label="Times", value=message.occurrences),
        Field(label="Error code", value=message.code or None),
        Field(label="Device", value=message.device or None),
        Field(label="Asked by", value=message.subject or None, display="code"),
        Field(label="Free", value=message.free_bytes, unit="bytes"),
        Field(label="Reserved", value=message.reserved_bytes, unit="bytes"),
        Field(label="Free in one piece", value=message.reservable_bytes, unit="bytes"),
        Field(label="In use", value=message.in_use_bytes, unit="bytes"),
    ]
    yield KeyValues(tuple(field for field in fields if field.value is not None))
    if report.others:
        yield Text("Further errors in the same log:")
        others = (f"line {other.line}: {other.headline}" for other in report.others)
        yield KeyValues(tuple(Field(label=str(n + 1), value=text) for n, text in enumerate(others)))
