"""Redaction of a report: every text of the document by what it holds, a name, a label or a sentence."""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Any, TypeVar

import msgspec

from reportgen import document as parts
from reportgen.document import Cell, Field, ProfileInfo, ReportDocument, Table
from reportgen.redact.excerpt import EXCERPT, redact_excerpt
from reportgen.redact.redactor import Redactor
from reportgen.redact.words import allowed, ordinary, vocabulary

Struct = TypeVar("Struct", bound=msgspec.Struct)


class Mode(Enum):
    """What a text of the document is.

    KEEP: a word of the schema or of our own. PROSE: a sentence, which may name things. LABEL: a few words, or a name.
    NAME: names from the profile. HOST: one host. RUN: the run. IDENT: an id that may be made of a name. HASH: a digest.
    CELL: as the column or `display` beside it says.
    """

    KEEP = auto()
    PROSE = auto()
    LABEL = auto()
    NAME = auto()
    HOST = auto()
    RUN = auto()
    IDENT = auto()
    HASH = auto()
    CELL = auto()


_K, _P, _L, _N, _H, _I = Mode.KEEP, Mode.PROSE, Mode.LABEL, Mode.NAME, Mode.HOST, Mode.IDENT
# The mode of each field that holds text, also inside tuples and dicts; the keys of dicts are ids.
MODES: dict[type, dict[str, Mode]] = {
    parts.Action: {"text": _P, "framework": _K, "code": _P},
    parts.Axis: {"label": _P, "unit": _K},
    parts.Card: {"title": _N, "expression": _N},
    parts.Chart: {"title": _P, "kind": _K, "alt": _P, "categories": _L, "table": _I},
    parts.ChartBlock: {"chart": _I},
    parts.Check: {"rule": _K, "title": _P, "status": _K, "reason": _P, "remedy": _P},
    parts.Column: {"name": _I, "unit": _K, "title": _P, "display": _K, "definition": _P},
    parts.Details: {"summary": _P},
    parts.Evidence: {"text": _P, "unit": _K, "table": _I, "row": _I},
    parts.Field: {"label": _P, "value": Mode.CELL, "unit": _K, "display": _K},
    parts.Finding: {
        "id": _I, "rule": _K, "status": _K, "severity": _K, "title": _P, "summary": _P, "confidence": _K,
        "silenced_by": _I,
    },
    parts.Generator: {"name": _K, "version": _K},
    parts.Guide: {"label": _P, "axis": _K},
    parts.Heading: {"text": _P, "id": _I},
    parts.Lane: {"title": _L, "group": _L},
    parts.Location: {"kind": _K, "name": _N, "table": _I, "row": _I, "source": _N},
    parts.Metric: {
        "title": _P, "unit": _K, "definition": _P, "basis": _K, "source": _P, "better": _K, "reason": _P,
    },
    parts.Notice: {"text": _P, "code": _P},
    parts.Plane: {"host": _H, "name": _N},
    parts.ProfileInfo: {
        "name": Mode.RUN, "hosts": _H, "device_type": _N, "framework": _K, "step_source": _P, "captured_at": _K,
        "timeline_basis": _K, "versions": _N, "options": _N, "warnings": _P,
    },
    parts.ReportDocument: {"title": _P, "verdict": _P, "oom": _L, "extra": _L},
    parts.Saving: {"unit": _K, "basis": _K, "how": _P},
    parts.Section: {"id": _I, "title": _P},
    parts.Series: {"name": _L, "role": _K, "labels": _L, "row_ids": _I},
    parts.SourceFile: {"name": _N, "sha256": Mode.HASH},
    parts.Table: {"title": _P, "rows": Mode.CELL, "row_ids": _I, "note": _P},
    parts.TableBlock: {"table": _I},
    parts.Text: {"text": _P},
    parts.Threshold: {"name": _K, "unit": _K, "reason": _P},
    parts.Tiles: {"metrics": _K},
    parts.Timeline: {"title": _P, "alt": _P, "names": _N, "roles": _K, "note": _P},
    parts.TimelineBlock: {"timeline": _I},
}  # fmt: skip
_OURS = ("thresholds",)  # tables that hold nothing of a profile
_SAID = ("title", "summary")  # of a finding, also in the trace
_SLUG = re.compile(r"[^a-z0-9]+")
# Columns of tables of layouts that tell a shape.
_SHAPES = frozenset(("size", "padded_size", "padding"))


def redacted(document: ReportDocument, redactor: Redactor | None) -> ReportDocument:
    """Return a report with its names replaced; as it is where nothing replaces them."""
    return document if redactor is None else redact_document(document, redactor)


def redact_document(document: ReportDocument, redactor: Redactor) -> ReportDocument:
    """Return a report with its names replaced.

    A name that is also a word which reportgen's own texts use all the time stays in sentences, and nowhere else.
    """
    profile = document.profile
    redactor.add_hosts([*profile.hosts, *(plane.host for plane in profile.planes)])
    if profile.name and profile.name.lower() not in vocabulary():
        redactor.add_hosts([profile.name])
    extra = {key: value for key, value in document.extra.items() if key != EXCERPT}
    document_ = msgspec.structs.replace(document, title=_title(document, redactor), extra=extra)
    names = redactor.fresh()
    _Walk(names, frozenset()).struct(document_)  # only to learn which names there are
    found = _Walk(redactor, frozenset(names.replaced)).struct(document_)
    pairs = zip(document.findings, found.findings, strict=True)
    sentences = {text: getattr(new, field) for old, new in pairs for field in _SAID if (text := getattr(old, field))}
    return msgspec.structs.replace(found, extra=found.extra | redact_excerpt(document.extra, redactor, sentences))


def _title(document: ReportDocument, redactor: Redactor) -> str:
    name = document.profile.name
    return document.title.replace(name, redactor.whole(name, "run")) if name else document.title


class _Walk:
    """Goes through a document; `deny` are names that may not stay in labels and ids, even as ordinary words."""

    def __init__(self, redactor: Redactor, deny: frozenset[str]) -> None:
        self._redactor = redactor
        self._deny = deny
        self._deny_in_prose = frozenset(name for name in deny if not ordinary(name))
        self._slugs = {f"-{slug}-" for name in deny if (slug := _SLUG.sub("-", name.lower()).strip("-"))}

    def struct(self, value: Struct) -> Struct:
        """Return a part of the document redacted."""
        modes = MODES.get(type(value), {})
        changes: dict[str, Any] = {}
        for name in value.__struct_fields__:
            mode = modes.get(name, Mode.NAME)
            changes[name] = self._field(value, name, mode)
        if isinstance(value, ReportDocument):
            changes["metrics"] = {key: self.struct(one) for key, one in value.metrics.items()}
            changes["tables"] |= {key: value.tables[key] for key in _OURS if key in value.tables}
        return msgspec.structs.replace(value, **changes)

    def _field(self, owner: msgspec.Struct, name: str, mode: Mode) -> Any:
        content = getattr(owner, name)
        if isinstance(owner, Table) and name == "rows":
            return self._rows(owner)
        if isinstance(owner, Field) and name == "value":
            return self._any(content, _N if owner.display == "code" else _L)
        if isinstance(owner, ProfileInfo) and name == "versions":
            return {key: self._any(one, mode) for key, one in content.items()}
        return self._any(content, mode)

    def _rows(self, table: Table) -> tuple[tuple[Cell, ...], ...]:
        modes = [_N if column.display == "code" else _L for column in table.columns]
        columns = [column.name for column in table.columns]
        hidden = _SHAPES if self._redactor.hide_shapes and "dimension" in columns else frozenset()
        return tuple(
            tuple(
                None if name in hidden else self._any(cell, mode)
                for cell, mode, name in zip(row, modes, columns, strict=False)
            )
            for row in table.rows
        )

    def _any(self, content: Any, mode: Mode) -> Any:
        if isinstance(content, str):
            return self._text(content, mode)
        if isinstance(content, msgspec.Struct):
            return self.struct(content)
        if isinstance(content, tuple | list):
            return type(content)(self._any(one, mode) for one in content)
        if isinstance(content, dict):
            return {self._ident(key): self._any(one, mode) for key, one in content.items()}
        return content

    def _text(self, text: str, mode: Mode) -> str:
        redactor = self._redactor
        match mode:
            case Mode.KEEP:
                return text
            case Mode.PROSE:
                return redactor.prose(text, self._deny_in_prose)
            case Mode.LABEL:
                return redactor.prose(text, self._deny)
            case Mode.HOST:
                return redactor.host(text)
            case Mode.RUN:
                return redactor.whole(text, "run")
            case Mode.IDENT:
                return self._ident(text)
            case Mode.HASH:
                return redactor.digest(text) if text else text
        return redactor.name(text)

    def _ident(self, text: str) -> str:
        if not text or text.lower() in vocabulary():
            return text
        slug = f"-{_SLUG.sub('-', text.lower()).strip('-')}-"
        known = all(part in allowed() or part in vocabulary() for part in slug.strip("-").split("-"))
        if known and not any(denied in slug for denied in self._slugs):
            return text
        return self._redactor.whole(text)
