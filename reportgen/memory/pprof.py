"""A JAX device memory profile (pprof): what was alive on each device, of which kind, and which Python line made it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable

from google.protobuf.message import DecodeError

from reportgen.errors import InputError
from reportgen.memory.groups import Group
from reportgen.sources.content import decompressed
from reportgen.wire import pprof_pb2

_BYTES, _ALLOCATIONS = "space", "allocations"
_LIBRARY = re.compile(r"(?:site-packages|dist-packages|lib/python[\d.]+)[/\\]|^<")
_DEEPEST = 200
_UNKNOWN = "not recorded"


@dataclasses.dataclass(frozen=True, slots=True)
class Frame:
    """A Python frame."""

    function: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclasses.dataclass(frozen=True, slots=True)
class LiveMemory:
    """What one call stack made and was still alive.

    Attributes:
        kind: "buffer" (an array) or "executable" (a compiled program), as the profile says.
        device: The device; empty where the profile names none, as for executables.
        count: How many allocations.
        size: Their bytes.
        stack: The Python call stack, innermost frame first.

    """

    kind: str
    device: str
    count: int
    size: int
    stack: tuple[Frame, ...]

    @property
    def user_frame(self) -> Frame | None:
        """The innermost frame outside of installed libraries; else the innermost one."""
        return next(iter(self.user_stack), None)

    @property
    def user_stack(self) -> tuple[Frame, ...]:
        """The call stack outside of installed libraries; all of it where nothing is outside."""
        return tuple(frame for frame in self.stack if not _LIBRARY.search(frame.file)) or self.stack


@dataclasses.dataclass(frozen=True, eq=False)
class DeviceMemoryProfile:
    """A device memory profile.

    Attributes:
        live: What was alive, the largest first.
        time_nanos: When it was taken, Unix nanoseconds; None where not recorded.

    """

    live: tuple[LiveMemory, ...]
    time_nanos: int | None

    @property
    def total_bytes(self) -> int:
        """Bytes of everything that was alive."""
        return sum(one.size for one in self.live)

    def by_kind(self) -> list[Group]:
        """Bytes by kind."""
        return _grouped(self.live, lambda one: one.kind)

    def by_device(self) -> list[Group]:
        """Bytes of what belongs to a device, by device."""
        return _grouped((one for one in self.live if one.device), lambda one: one.device)

    def by_line(self) -> list[Group]:
        """Bytes by the user's line that made them."""
        return _grouped(self.live, lambda one: str(one.user_frame) if one.user_frame else _UNKNOWN)


def parse_device_memory_profile(content: bytes, name: str = "the memory profile") -> DeviceMemoryProfile:
    """Read a device memory profile as `jax.profiler.save_device_memory_profile` writes it.

    Args:
        content: The file's bytes, gzipped or not.
        name: What to call it in errors.

    Raises:
        InputError: It is no pprof profile, or one without live bytes, or grows too large when decompressed.

    """
    proto = pprof_pb2.Profile()
    try:
        proto.ParseFromString(decompressed(content, name))
    except DecodeError as error:
        raise InputError(f"{name}: expected a device memory profile (pprof), found other data ({error}).") from error
    reader = _Reader(proto)
    columns = [reader.text(value_type.type) for value_type in proto.sample_type]
    if _BYTES not in columns:
        raise InputError(
            f"{name}: expected a device memory profile, found a profile of {', '.join(columns) or 'nothing'}.",
            "Write one with jax.profiler.save_device_memory_profile('memory.prof').",
        )
    place = columns.index(_BYTES)
    counts = columns.index(_ALLOCATIONS) if _ALLOCATIONS in columns else None
    live = [reader.live(sample, place, counts) for sample in proto.sample if len(sample.value) > place]
    live.sort(key=lambda one: -one.size)
    return DeviceMemoryProfile(tuple(live), proto.time_nanos or None)


class _Reader:
    """Looks texts, locations and functions up."""

    def __init__(self, proto: pprof_pb2.Profile) -> None:
        self.strings = proto.string_table
        self.functions = {function.id: function for function in proto.function}
        self.locations = {location.id: location for location in proto.location}

    def text(self, place: int) -> str:
        return self.strings[place] if 0 <= place < len(self.strings) else ""

    def live(self, sample: pprof_pb2.Sample, place: int, counts: int | None) -> LiveMemory:
        labels = {self.text(label.key): self.text(label.str) for label in sample.label}
        count = sample.value[counts] if counts is not None and counts < len(sample.value) else 1
        frames = [frame for number in sample.location_id[:_DEEPEST] for frame in self._frames(number)]
        kind = labels.get("kind", _UNKNOWN)
        return LiveMemory(kind, labels.get("device", ""), count, sample.value[place], tuple(frames))

    def _frames(self, location_id: int) -> Iterable[Frame]:
        location = self.locations.get(location_id)
        for line in location.line if location else ():
            function = self.functions.get(line.function_id)
            if function is not None:
                yield Frame(self.text(function.name), self.text(function.filename), line.line)


def _grouped(live: Iterable[LiveMemory], key: Callable[[LiveMemory], str]) -> list[Group]:
    found: dict[str, list[LiveMemory]] = {}
    for one in live:
        found.setdefault(key(one), []).append(one)
    groups = []
    for name, members in found.items():
        size = sum(one.size for one in members)
        groups.append(Group(name, sum(one.count for one in members), size, size))
    return sorted(groups, key=lambda group: (-group.size, group.name))
