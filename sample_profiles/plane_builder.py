"""Build one plane of an XSpace: names of events and stats are interned, as profilers do."""

from __future__ import annotations

from collections.abc import Mapping

from reportgen.wire import xplane_pb2

Value = str | bytes | int | float
UNSIGNED = frozenset(
    {"program_id", "symbol_id", "run_id", "device_offset_ps", "device_duration_ps", "queue_id"}
    | {"profile_start_time", "profile_stop_time", "core_type"}
)


class PlaneBuilder:
    """A plane and its tables of event and stat metadata."""

    def __init__(self, space: xplane_pb2.XSpace, number: int, name: str) -> None:
        self.plane = space.planes.add(id=number, name=name)
        self._stats: dict[str, int] = {}
        self._events: dict[str, int] = {}

    def set_stats(
        self, owner: xplane_pb2.XPlane | xplane_pb2.XEvent | xplane_pb2.XEventMetadata, stats: Mapping[str, Value]
    ) -> None:
        """Add stats to a plane, an event or an event's metadata."""
        for name, value in stats.items():
            stat = owner.stats.add(metadata_id=self._stat(name))
            if isinstance(value, str):
                stat.str_value = value.encode()
            elif isinstance(value, bytes):
                stat.bytes_value = value
            elif isinstance(value, float):
                stat.double_value = value
            elif name in UNSIGNED:
                stat.uint64_value = value
            else:
                stat.int64_value = value

    def known(self, name: str, display_name: str = "") -> int | None:
        """Return the id of an event's metadata that is made already, else None."""
        return self._events.get(f"{display_name}\n{name}")

    def event_type(
        self, name: str, display_name: str = "", stats: Mapping[str, Value] | None = None, number: int | None = None
    ) -> int:
        """Return the id of an event's metadata, made at the first call with this name and display name."""
        key = f"{display_name}\n{name}"
        if key not in self._events:
            number = len(self._events) + 1 if number is None else number
            metadata = self.plane.event_metadata[number]
            metadata.id, metadata.name, metadata.display_name = number, name.encode(), display_name.encode()
            self.set_stats(metadata, stats or {})
            self._events[key] = number
        return self._events[key]

    def line(self, number: int, name: str) -> xplane_pb2.XLine:
        """Add a line whose times count from the start of the profile."""
        return self.plane.lines.add(id=number, name=name)

    def event(
        self,
        line: xplane_pb2.XLine,
        type_id: int,
        start_ps: int,
        duration_ps: int,
        stats: Mapping[str, Value] | None = None,
    ) -> None:
        """Add an event to a line."""
        event = line.events.add(metadata_id=type_id, offset_ps=start_ps, duration_ps=duration_ps)
        self.set_stats(event, stats or {})

    def _stat(self, name: str) -> int:
        if name not in self._stats:
            number = self._stats[name] = len(self._stats) + 1
            self.plane.stat_metadata[number].id = number
            self.plane.stat_metadata[number].name = name.encode()
        return self._stats[name]
