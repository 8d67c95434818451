"""Names and arguments of slices as JSON text: one piece for each kind of event, and what each event adds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from reportgen.exporters.json_text import number, quoted
from reportgen.profile.model import Events, Plane, Value
from reportgen.wire.events import DOUBLE, INT64, REFERENCE, STRING, UINT64, StatColumn

Rows = NDArray[np.int64]
# From rows of a track to the arguments that each event adds: columns of texts, every argument with its leading comma.
ArgsOf = Callable[[Rows], list[Iterable[str]]]

# Bookkeeping of the profiler, and what slices, flows and steps show already.
HIDDEN = frozenset(
    {"_pt", "_p", "_ct", "_c", "_pid", "_r", "_a", "_src", "flow", "symbol_id", "source_stack"}
    | {"device_offset_ps", "device_duration_ps"}
)
_RENAMED = {
    "hlo_category": "category",
    "shape_with_layout": "shape",
    "tf_op": "framework_op",
    "bytes_accessed": "bytes",
    "program_id": "program",
    "group_id": "step_group",
}
_INSTANCE = re.compile(r"(?<=.)(\.\d+)+$")
_IDS = frozenset({"program_id"})
_TEXT_LIMIT = 2000
_STATS_LIMIT = 64
# A kind of event whose text would take more than this over all of its events is written with its texts cut.
_KIND_BUDGET = 1 << 20


class Heads:
    """Text for each kind of event: from its name up to the inside of its arguments, which stay open.

    Attributes:
        names: By kind, quoted; the last one is for events of no known kind.
        texts: By kind, likewise.
        bare: Which kinds have no argument of their own, so that the next one needs no comma.

    """

    def __init__(self, names: list[str], texts: list[str], bare: NDArray[np.bool_]) -> None:
        self.names = names
        self.texts = texts
        self.bare = bare

    @classmethod
    def of_names(cls, names: Sequence[str], args: Sequence[Mapping[str, Value]] | None = None) -> Heads:
        """Return heads for kinds with these names and arguments."""
        pieces = [arguments(entry) for entry in args] if args else [""] * len(names)
        return cls._of([*names, "unnamed"], [*pieces, ""])

    @classmethod
    def of_plane(cls, plane: Plane, uses: Rows, grouped: bool = False) -> Heads:
        """Return heads for a plane's event metadata.

        Args:
            plane: The plane.
            uses: How often each kind occurs; kinds that do not occur get no text.
            grouped: Whether names lose the number of their instance, "copy-start" for "copy-start.3", which then is
                an argument: asynchronous tracks are made by name.

        """
        names = [""] * len(uses)
        pieces = [""] * len(uses)
        for row in np.flatnonzero(uses).tolist():
            names[row], pieces[row] = _kind(plane, row, None)
            size = len(names[row]) + len(pieces[row])
            if size > _TEXT_LIMIT and size * int(uses[row]) > _KIND_BUDGET:
                names[row], pieces[row] = _kind(plane, row, _TEXT_LIMIT)
            if grouped and (group := _INSTANCE.sub("", names[row])) != names[row]:
                pieces[row] = f',"op":{quoted(names[row])}{pieces[row]}'
                names[row] = group
        return cls._of([*names, "unnamed"], [*pieces, ""])

    @classmethod
    def _of(cls, names: Sequence[str], pieces: Sequence[str]) -> Heads:
        shown = [quoted(name) for name in names]
        texts = [f',"name":{name},"args":{{{piece[1:]}' for name, piece in zip(shown, pieces, strict=True)]
        return cls(shown, texts, np.array([not piece for piece in pieces]))


def _kind(plane: Plane, row: int, limit: int | None) -> tuple[str, str]:
    """Return the name of a kind of event and its arguments, texts cut to a limit."""
    name, shown = plane.event_names[row], plane.display_names[row]
    stats = plane.stat_values(plane.event_metadata[row].stats[:_STATS_LIMIT])
    found: dict[str, Value] = {}
    if shown != name:
        found["expression" if any(key == "hlo_category" for key, _ in stats) else "long_name"] = name
    found |= {_RENAMED.get(key, key): _shown(key, value) for key, value in stats if key not in HIDDEN}
    if found.get("model_flops") == found.get("flops"):
        found.pop("model_flops", None)  # the normalised count stands there already
    return (f"{shown[:limit]}…" if limit and len(shown) > limit else shown), arguments(found, limit)


def _shown(key: str, value: Value) -> Value:
    return str(value & 0xFFFFFFFFFFFFFFFF) if key in _IDS and isinstance(value, int) else value


def arguments(values: Mapping[str, Value], limit: int | None = None) -> str:
    """Return arguments as JSON, each with its leading comma; bytes are left out."""
    return "".join(
        f",{quoted(key)}:{quoted(value, limit) if isinstance(value, str) else number(value)}"
        for key, value in values.items()
        if not isinstance(value, bytes)
    )


class EventArgs:
    """The statistics that events of one line hold themselves."""

    def __init__(self, plane: Plane, line: int) -> None:
        self._plane = plane
        self._line = line
        self._names = [name for name in plane.stats_of_line(line) if name not in HIDDEN]

    def __call__(self, rows: Rows) -> list[Iterable[str]]:
        """Return the arguments of some of the line's events, in one column; none where they have none."""
        if not self._names:
            return []
        texts = [""] * len(rows)
        events = self._plane.events([self._line], self._names, rows)
        for name in self._names:
            present = np.flatnonzero(events.stats[name].present)
            if len(present):
                key = f",{quoted(_RENAMED.get(name, name))}:"
                for row, value in zip(present.tolist(), _values(events, name, present), strict=True):
                    if value:
                        texts[row] += key + value
        return [texts]


def _values(events: Events, name: str, present: Rows) -> list[str]:
    """Return a statistic's values as JSON; "" for bytes."""
    column = events.stats[name]
    kinds = column.kinds[present]
    values = np.full(len(present), "", dtype=object)
    for kind, bits in ((INT64, np.int64), (UINT64, np.uint64), (DOUBLE, np.float64)):
        if (hits := kinds == kind).any():
            found = column.bits[present[hits]].view(np.uint64 if name in _IDS else bits).tolist()
            values[hits] = [f'"{value}"' for value in found] if name in _IDS else [number(value) for value in found]
    if (hits := (kinds == STRING) | (kinds == REFERENCE)).any():
        rows = present[hits]
        texts = StatColumn(column.kinds[rows], column.bits[rows], column.payloads[rows])
        codes, distinct = replace(events, names=events.names[rows], stats={name: texts}).text_codes(name)
        shown = [quoted(text, _TEXT_LIMIT) for text in distinct]
        values[hits] = [shown[code] for code in codes.tolist()]
    return list(values)
