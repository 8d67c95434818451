"""A comparison as a document, which every renderer of reports can draw."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import msgspec

from reportgen import __version__
from reportgen.comparison.causes import ranked
from reportgen.comparison.compare import Comparison
from reportgen.comparison.tables import MOST_CAUSES, causes_table, findings_table, metrics_table, op_tables
from reportgen.comparison.words import leading, signed, verdict
from reportgen.document import (
    SCHEMA_VERSION,
    Axis,
    Basis,
    Block,
    Chart,
    ChartBlock,
    Field,
    Finding,
    Findings,
    Generator,
    KeyValues,
    Metric,
    ReportDocument,
    Role,
    Section,
    Series,
    TableBlock,
    Text,
    Tiles,
)
from reportgen.units import quantity, seconds

_TOGETHER = "all together"
_SHOWN = (
    "flops_utilization",
    "hbm_bandwidth_utilization",
    "input_wait_fraction",
    "device_idle_fraction",
    "peak_memory",
)


def comparison_document(found: Comparison) -> ReportDocument:
    """Return a comparison as a document: verdict, causes, findings, metrics and ops."""
    tables = {"causes": causes_table(found), "metrics": metrics_table(found), **op_tables(found)}
    if found.findings:
        tables["findings"] = findings_table(found)
    warnings = (*found.warnings, *found.new.profile.warnings)
    if found.decision is not None and found.decision.evidence == "few_bases":
        warnings = (found.decision.why, *warnings)
    return ReportDocument(
        schema_version=SCHEMA_VERSION,
        generator=Generator(name="reportgen", version=__version__),
        title=_title(found),
        verdict=verdict(found),
        profile=msgspec.structs.replace(found.new.profile, warnings=warnings),
        metrics=_metrics(found),
        findings=_findings(found),
        checks=(),
        tables=tables,
        charts={"waterfall": _waterfall(found)} if found.causes else {},
        sections=_sections(found),
        extra={"comparison": _for_machines(found)},
    )


def _title(found: Comparison) -> str:
    bases = f"{len(found.bases)} captures of " if len(found.bases) > 1 else ""
    return f"{found.new.title}, compared with {bases}{found.base.title}"


def _sections(found: Comparison) -> tuple[Section, ...]:
    changes: list[Block] = [ChartBlock("waterfall")] if found.causes else []
    changes.append(TableBlock("causes", MOST_CAUSES + 1))
    findings: list[Block] = [Findings()] if _findings(found) else []
    findings.append(TableBlock("findings") if found.findings else Text("Neither report has a finding."))
    ops = tuple(TableBlock(key) for key in op_tables(found))
    return (
        Section("summary", "Summary", (Tiles(tuple(key for key in _metrics(found) if key != "step_time_mean")),)),
        Section("changes", "Where the difference comes from", tuple(changes)),
        Section("noise", "Is it more than noise?", _noise_blocks(found)),
        Section("findings", "Findings", tuple(findings)),
        Section("metrics", "Metrics", (TableBlock("metrics", 20),)),
        Section("ops", "Ops", ops or (Text("No op differs."),)),
    )


def _noise_blocks(found: Comparison) -> tuple[Block, ...]:
    if found.decision is None:
        return (Text("Not decided: a step time is missing."),)
    decision = found.decision
    fields = (
        Field(label="Verdict", value="changed" if decision.changed else "no change beyond the noise"),
        Field(label="Change", value=decision.change, unit="fraction"),
        Field(label="Counts as none from", value=decision.low, unit="fraction"),
        Field(label="to", value=decision.high, unit="fraction"),
        Field(label="Captures of the base", value=len(found.bases), unit="count"),
        Field(label="Steps before", value=found.before.steps, unit="count"),
        Field(label="Steps now", value=found.after.steps, unit="count"),
    )
    return Text(decision.why), KeyValues(fields)


def _metrics(found: Comparison) -> dict[str, Metric]:
    whole = "From a step's start to the next one's" if found.decision else "Op time of the capture on one core"
    before = seconds(found.before.whole)
    share = found.change / found.before.whole if found.before.whole else None
    basis: Basis = "modelled" if found.new.profile.timeline_basis == "modelled" else "measured"
    metrics = {
        "step_time": Metric(
            title=f"Step time (was {before})", value=found.after.whole, unit="seconds", definition=f"{whole}, mean.",
            better="lower", basis=basis,
        ),
        "step_time_change": Metric(
            title="Change of step time", value=share, unit="fraction", better="lower", basis=basis,
            definition=f"Step time now over that of before ({before}), minus 1.",
            reason=None if share is not None else "The base took no time.",
        ),
    }  # fmt: skip
    if "step_time_mean" in found.new.metrics:  # savings refer to it
        metrics["step_time_mean"] = found.new.metrics["step_time_mean"]
    for one in found.metrics:
        if one.id in _SHOWN and one.id in found.new.metrics:
            now = found.new.metrics[one.id]
            metrics[one.id] = msgspec.structs.replace(now, title=f"{now.title} (was {quantity(one.base, one.unit)})")
    return metrics


def _findings(found: Comparison) -> tuple[Finding, ...]:
    """Return what is new or worse; rows that the evidence stands in are not in this document."""
    result = []
    for one in found.findings:
        if one.state in ("new", "worse") and one.after is not None:
            evidence = tuple(msgspec.structs.replace(part, table="", row="") for part in one.after.evidence)
            places = tuple(msgspec.structs.replace(part, table="", row="") for part in one.after.locations)
            title = f"{one.state.capitalize()}: {one.after.title}"
            result.append(msgspec.structs.replace(one.after, title=title, evidence=evidence, locations=places))
    return tuple(result)


def _waterfall(found: Comparison) -> Chart:
    shown = ranked(found.causes, MOST_CAUSES)
    bars = [*pairwise(accumulate((one.change for one in shown), initial=0.0)), (0.0, found.change)]
    names = [*(one.label for one in shown), _TOGETHER]
    lead = leading(found)
    return Chart(
        title=f"Mostly, {lead[0].text}" if lead else "No cause exceeds the noise",
        kind="spans",
        alt=f"From {seconds(found.before.whole)} to {seconds(found.after.whole)}: "
        + ", ".join(f"{one.text} {signed(one.change)}" for one in shown[:5])
        + ".",
        x=Axis(label="Change of the step time, one cause after the other", unit="seconds"),
        y=Axis(label=""),
        categories=tuple(names),
        series=tuple(_series(bars, names)),
        table="causes",
    )


def _series(bars: Sequence[tuple[float, float]], names: Sequence[str]) -> list[Series]:
    last = len(bars) - 1
    parts: tuple[tuple[str, Role, list[int]], ...] = (
        ("takes longer", "warning", [i for i in range(last) if bars[i][1] >= bars[i][0]]),
        ("takes less", "custom_call", [i for i in range(last) if bars[i][1] < bars[i][0]]),
        (_TOGETHER, "neutral", [last]),
    )
    return [
        Series(
            name=name,
            role=role,
            x=tuple(min(bars[i]) for i in rows),
            ends=tuple(max(bars[i]) for i in rows),
            y=tuple(float(i) for i in rows),
            labels=tuple(f"{names[i]}: {signed(bars[i][1] - bars[i][0])}" for i in rows),
        )
        for name, role, rows in parts
        if rows
    ]


def _for_machines(found: Comparison) -> dict[str, Any]:
    """Return what programs ask a comparison for."""
    return {
        "bases": [one.title for one in found.bases],
        "base": found.base.title,
        "new": found.new.title,
        "step_seconds": {"base": found.before.whole, "new": found.after.whole, "change": found.change},
        "decision": msgspec.to_builtins(found.decision),
        "causes": [{**msgspec.to_builtins(one), "change": one.change} for one in found.causes],
        "renamed_ops": found.renamed,
        "metrics": [msgspec.to_builtins(one) for one in found.metrics],
        "findings": [{"id": one.finding.id, "state": one.state} for one in found.findings],
        "warnings": list(found.warnings),
    }
