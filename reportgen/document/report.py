"""The report as one plain value, which is report.json; every format is rendered from it alone."""

from __future__ import annotations

from typing import Any

import msgspec

from reportgen.document.elements import Card, Chart, Metric, Section, Table, Timeline
from reportgen.document.finding import Check, Finding
from reportgen.errors import InputError

SCHEMA_VERSION = 1


class Plane(msgspec.Struct, frozen=True, kw_only=True):
    """A plane of a profile with what it holds."""

    host: str
    name: str
    lines: int
    events: int


class SourceFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that the profile was read from: its name without folders, size in bytes and SHA-256."""

    name: str
    size: int
    sha256: str


class ProfileInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What the profile is: hardware, hosts, versions, provenance.

    Attributes:
        hosts: Names of the hosts.
        device_type: Such as "TPU v5 lite"; "CPU" where there is no device plane; None where it was not captured.
        device_count: Number of devices with a plane.
        core_count: Number of TPU cores, or of devices elsewhere.
        framework: "jax", "tensorflow", "pytorch_xla" or "" where the profile does not tell.
        step_source: Which evidence defines a step, or why there is none.
        captured_at: Start of the capture, ISO 8601 in UTC, None where not recorded.
        duration: Seconds between the capture's start and stop; None where not recorded.
        warnings: Data-quality warnings, worst first: what limits the conclusions.
        timeline_basis: "measured", or "modelled" where the timeline was computed rather than captured.

    """

    name: str
    hosts: tuple[str, ...]
    device_type: str | None
    device_count: int
    core_count: int
    framework: str
    step_source: str
    captured_at: str | None
    duration: float | None
    timeline_basis: str = "measured"
    versions: dict[str, str] = {}
    options: dict[str, str] = {}
    planes: tuple[Plane, ...] = ()
    files: tuple[SourceFile, ...] = ()
    warnings: tuple[str, ...] = ()


class Generator(msgspec.Struct, frozen=True, kw_only=True):
    """The program that wrote the document."""

    name: str
    version: str


class ReportDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a report says.

    Attributes:
        title: One line: the profile's name and hardware.
        verdict: One sentence: the main limit and what the best fix would bring.
        metrics, tables, charts, cards, timelines: By id.
        findings: Worst first.
        checks: One entry for every rule.
        sections: The order in which a reader meets all of it.
        oom: In the report of an out-of-memory error: family, memory_space, needed_bytes, capacity_bytes,
            exceeded_bytes, by_type, buffers, fixes and more; None elsewhere.
        extra: Parts of their own shape, such as the short trace that the page carries.

    """

    schema_version: int
    generator: Generator
    title: str
    verdict: str
    profile: ProfileInfo
    metrics: dict[str, Metric]
    findings: tuple[Finding, ...]
    checks: tuple[Check, ...]
    tables: dict[str, Table]
    charts: dict[str, Chart] = {}
    cards: dict[str, Card] = {}
    timelines: dict[str, Timeline] = {}
    sections: tuple[Section, ...] = ()
    oom: dict[str, Any] | None = None
    extra: dict[str, Any] = {}


def to_json(document: ReportDocument) -> bytes:
    """Return the document as UTF-8 JSON with a stable order of keys, indented, ending in a line break."""
    return msgspec.json.format(msgspec.json.encode(document, order="deterministic"), indent=1) + b"\n"


def canonical(document: ReportDocument) -> ReportDocument:
    """Return the document as it is read from its own report.json.

    So both render to the same bytes: entries are in the order of the file, and numbers of the type that it gives them.
    """
    return msgspec.json.decode(msgspec.json.encode(document, order="deterministic"), type=ReportDocument)


def from_json(data: bytes, name: str = "report.json") -> ReportDocument:
    """Read a document.

    Raises:
        InputError: The bytes are no report, or a report of a newer schema.

    """
    try:
        version = msgspec.json.decode(data, type=dict[str, Any]).get("schema_version")
        if isinstance(version, int) and version > SCHEMA_VERSION:
            raise InputError(
                f"{name}: this report has schema version {version}; versions up to {SCHEMA_VERSION} are known here.",
                "Install a newer reportgen.",
            )
        return msgspec.json.decode(data, type=ReportDocument)
    except msgspec.MsgspecError as error:
        raise InputError(
            f"{name}: expected a report written by reportgen as JSON, found something else ({error}).",
            "Give the report.json that `reportgen report` wrote.",
        ) from None


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of report.json."""
    return msgspec.json.schema(ReportDocument)
