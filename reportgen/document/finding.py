"""Findings: what is wrong, how much it costs, where, and what to do; and the outcome of every check."""

from __future__ import annotations

from typing import Literal

import msgspec

from reportgen.document.elements import Basis

Status = Literal["found", "fine", "not_applicable", "cannot_tell", "error"]
Severity = Literal["critical", "high", "medium", "low", "info"]
Confidence = Literal["high", "medium", "low"]


class Threshold(msgspec.Struct, frozen=True, kw_only=True):
    """The limit that a check compares with: its name, value, unit and the reason for it."""

    name: str
    value: float
    unit: str
    reason: str = ""


class Saving(msgspec.Struct, frozen=True, kw_only=True):
    """What a fix would bring; never added up over findings that overlap.

    Attributes:
        unit: "seconds" per step (per capture where there are no steps) or "bytes".
        basis: measured, modelled or heuristic.
        how: How it was worked out, in a sentence.

    """

    low: float
    likely: float
    high: float
    unit: Literal["seconds", "bytes"]
    basis: Basis
    how: str = ""


class Evidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One observed fact: a text, or a label with a raw value; with the table row that shows it."""

    text: str
    value: float | None = None
    unit: str = ""
    table: str = ""
    row: str = ""


class Location(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where: an op, buffer, source line, step, host or core; `row` is its row id in `table`."""

    kind: Literal["op", "buffer", "source", "step", "host", "core", "module", "stage"]
    name: str
    table: str = ""
    row: str = ""
    source: str = ""


class Action(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What to do; `framework` names the one that it is for ("jax", "tensorflow", "pytorch_xla", "" for all)."""

    text: str
    framework: Literal["", "jax", "tensorflow", "pytorch_xla"] = ""
    code: str = ""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something worth changing.

    Attributes:
        id: Stable: the rule's id, with a suffix where one rule finds several things.
        rule: Id of the rule.
        status: Always "found" here; the outcome of every rule stands in the document's checks.
        title: What is wrong, with the number.
        summary: Why it matters, in a sentence or two.
        threshold: The limit that was crossed.
        saving: None where no honest number can be given.
        silenced_by: Id of the finding that explains this one; silenced findings are folded.

    """

    id: str
    rule: str
    status: Status = "found"
    severity: Severity
    title: str
    summary: str
    evidence: tuple[Evidence, ...]
    threshold: Threshold | None
    saving: Saving | None
    confidence: Confidence
    locations: tuple[Location, ...] = ()
    actions: tuple[Action, ...] = ()
    silenced_by: str | None = None


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one rule.

    Attributes:
        reason: Why it is fine, does not apply or cannot tell; the error's text for "error".
        remedy: What to capture, and how, so that it can tell; "" where not needed.

    """

    rule: str
    title: str
    status: Status
    reason: str = ""
    remedy: str = ""
    thresholds: tuple[Threshold, ...] = ()
