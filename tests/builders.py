"""Hand-built profiles: `Space`, `PlaneBuilder` and `LineBuilder` write XSpace messages, a line of code an event.

space = Space()
stream = space.plane("/device:GPU:0").line("Stream #1(Compute)")
stream.event("kernel", start_ns=0, dur_ns=10, stats={"correlation_id": 7})
view = space.view()
"""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

from reportgen.profile.model import HostProfile
from reportgen.profile.view import HostView
from reportgen.settings import Settings
from reportgen.wire import xplane_pb2

StatValue = int | float | str | bytes
Stats = Mapping[str, StatValue]


class Space:
    """An XSpace in the making; `proto` is the message, `planes` are its planes in order."""

    def __init__(self) -> None:
        self.proto = xplane_pb2.XSpace()
        self.planes: list[PlaneBuilder] = []

    def plane(self, name: str, stats: Stats | None = None) -> PlaneBuilder:
        """Add a plane."""
        proto = self.proto.planes.add(id=len(self.proto.planes) + 1, name=name)
        plane = PlaneBuilder(proto)
        plane.add_stats(proto.stats, stats)
        self.planes.append(plane)
        return plane

    def hlo(self, label: str, program: int, proto: bytes) -> None:
        """Add a serialised HloProto to the metadata plane, as program number `program`."""
        found = [plane for plane in self.planes if plane.proto.name == "/host:metadata"]
        plane = found[0] if found else self.plane("/host:metadata")
        plane.metadata(label, {"Hlo Proto": proto, "program_id": program})

    def profile(self, host: str = "host0") -> HostProfile:
        """Return it as read from a file."""
        return HostProfile.from_bytes(host, self.proto.SerializeToString())

    def view(self, settings: Settings | None = None, host: str = "host0") -> HostView:
        """Return what analyses see of it."""
        return HostView(self.profile(host), settings or Settings())


class PlaneBuilder:
    """A plane in the making."""

    def __init__(self, proto: xplane_pb2.XPlane) -> None:
        self.proto = proto
        self._stat_ids: dict[str, int] = {}
        self._events: dict[str, int] = {}

    def line(self, name: str, timestamp_ns: int = 0) -> LineBuilder:
        """Add a line."""
        return LineBuilder(
            self, self.proto.lines.add(id=len(self.proto.lines) + 1, name=name, timestamp_ns=timestamp_ns)
        )

    def metadata(self, name: str, stats: Stats | None = None, display_name: str = "") -> int:
        """Add a kind of event with statistics of its own, and return its id; events of that name use it."""
        key = len(self.proto.event_metadata) + 1
        entry = self.proto.event_metadata[key]
        entry.id, entry.name, entry.display_name = key, name.encode(), display_name.encode()
        self.add_stats(entry.stats, stats)
        self._events[name] = key
        return key

    def event_id(self, name: str) -> int:
        """Return the id of a kind of event, adding it where it is new."""
        return self._events.get(name) or self.metadata(name)

    def add_stats(self, target: RepeatedCompositeFieldContainer[xplane_pb2.XStat], stats: Stats | None) -> None:
        """Add statistics to a plane, an event or its metadata; whole numbers from 2**63 up are unsigned."""
        for name, value in (stats or {}).items():
            stat = target.add(metadata_id=self._stat_id(name))
            if isinstance(value, bytes):
                stat.bytes_value = value
            elif isinstance(value, str):
                stat.str_value = value.encode()
            elif isinstance(value, float):
                stat.double_value = value
            elif value >= 1 << 63:
                stat.uint64_value = value
            else:
                stat.int64_value = value

    def _stat_id(self, name: str) -> int:
        if name not in self._stat_ids:
            key = self._stat_ids[name] = len(self._stat_ids) + 1
            entry = self.proto.stat_metadata[key]
            entry.id, entry.name = key, name.encode()
        return self._stat_ids[name]


class LineBuilder:
    """A line in the making; its methods return it, so that calls chain."""

    def __init__(self, plane: PlaneBuilder, proto: xplane_pb2.XLine) -> None:
        self.plane = plane
        self.proto = proto

    def event(self, name: str, start_ns: float = 0, dur_ns: float = 0, stats: Stats | None = None) -> LineBuilder:
        """Add an event; times count in nanoseconds from the line's start."""
        proto = self.proto.events.add(
            metadata_id=self.plane.event_id(name), offset_ps=round(start_ns * 1000), duration_ps=round(dur_ns * 1000)
        )
        self.plane.add_stats(proto.stats, stats)
        return self

    def aggregate(self, name: str, occurrences: int, dur_ns: float, stats: Stats | None = None) -> LineBuilder:
        """Add an event without a time that stands for several."""
        proto = self.proto.events.add(
            metadata_id=self.plane.event_id(name), num_occurrences=occurrences, duration_ps=round(dur_ns * 1000)
        )
        self.plane.add_stats(proto.stats, stats)
        return self
