"""What every format says in the same words: the facts of a profile, savings, groups of checks."""

from __future__ import annotations

import re

from reportgen import units
from reportgen.document import Finding, Metric, ReportDocument, Saving, Threshold

FRAMEWORKS = {"": "", "jax": "JAX", "tensorflow": "TensorFlow", "pytorch_xla": "PyTorch/XLA"}
CHECK_GROUPS = (
    ("fine", "checked and fine"),
    ("not_applicable", "not applicable here"),
    ("cannot_tell", "could not be checked"),
    ("error", "failed while checking"),
)
NO_FINDINGS = "Nothing was found that is worth changing."
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\d])")
_MODELLED_HEAD = "Modelled timeline:"
_MODELLED = "The times in this report were computed from the compiled program, not measured on a device."


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 host, 64 hosts."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def facts(document: ReportDocument) -> list[str]:
    """Return what was profiled, on what, with which versions, when and for how long."""
    profile = document.profile
    cores = counted(profile.core_count, "core") if profile.core_count != profile.device_count else ""
    found = [
        profile.device_type or "device type not captured",
        counted(profile.device_count, "device") if profile.device_count else "",
        cores,
        counted(len(profile.hosts), "host") if profile.hosts else "",
        *(f"{name} {version}" for name, version in sorted(profile.versions.items())),
        f"captured {profile.captured_at}" if profile.captured_at else "date not captured",
        f"{units.seconds(profile.duration)} long" if profile.duration is not None else "",
    ]
    return [one for one in found if one]


def first_sentence(text: str) -> tuple[str, str]:
    """Return the first sentence of a text, and the rest."""
    parts = _SENTENCE_END.split(text, maxsplit=1)
    return parts[0], parts[1] if len(parts) > 1 else ""


def modelled_and_warnings(document: ReportDocument) -> tuple[str, tuple[str, ...]]:
    """Return how the timeline was modelled, "" where it was measured, and the other data-quality warnings."""
    warnings = document.profile.warnings
    if document.profile.timeline_basis != "modelled":
        return "", warnings
    said = next((one for one in warnings if one.startswith(_MODELLED_HEAD)), "")
    rest = tuple(one for one in warnings if one != said)
    how = said.removeprefix(_MODELLED_HEAD).strip()
    return how[:1].upper() + how[1:] or _MODELLED, rest


def per(saving: Saving, document: ReportDocument) -> str:
    """Return what a saving of time refers to: a step, or the capture where there are no steps."""
    if saving.unit == "bytes":
        return ""
    steps = document.metrics.get("step_time_mean")
    return " per step" if steps and steps.value is not None else " per capture"


def saving_short(saving: Saving, document: ReportDocument) -> str:
    """Return the likely saving: 33.0 ms per step."""
    return units.quantity(saving.likely, saving.unit) + per(saving, document)


def saving_whole(saving: Saving, document: ReportDocument) -> str:
    """Return the range of a saving, what it rests on, and how it was worked out."""
    low, likely, high = (units.quantity(one, saving.unit) for one in (saving.low, saving.likely, saving.high))
    return f"{low} to {high}{per(saving, document)}, {likely} most likely ({saving.basis}). {saving.how}".strip()


def threshold_words(limit: Threshold) -> str:
    """Return a threshold with its reason."""
    reason = f". {limit.reason}" if limit.reason else ""
    return f"{limit.name.replace('_', ' ')} {units.quantity(limit.value, limit.unit)}{reason}"


def evidence_words(text: str, value: float | None, unit: str) -> str:
    """Return an observed fact: its text, or its label with the number."""
    return text if value is None else f"{text}: {units.quantity(value, unit)}"


def metric_words(metric: Metric) -> str:
    """Return a metric's number with its spread, or why there is none."""
    if metric.value is None:
        return f"{units.NOT_CAPTURED}{f' ({metric.reason})' if metric.reason else ''}"
    spread = f" ± {units.quantity(metric.spread, metric.unit)}" if metric.spread is not None else ""
    return units.quantity(metric.value, metric.unit) + spread


def standing(document: ReportDocument) -> tuple[list[Finding], list[Finding]]:
    """Return the findings that stand by themselves, and those that another one explains."""
    alone = [one for one in document.findings if one.silenced_by is None]
    return alone, [one for one in document.findings if one.silenced_by is not None]
