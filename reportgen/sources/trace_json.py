"""Traces that JAX and TensorFlow write as JSON (`trace.json.gz`), read as if they were the XSpace they came from.

The JSON holds less: no HLO, no properties of the devices, no program and symbol ids, statistics as text. What it lacks
stays absent; ids that only join ops with their program are made up.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from reportgen.errors import InputError
from reportgen.sources.trace_planes import COUNTERS, Event, clean, plane_message
from reportgen.wire import xplane_pb2

# The largest JSON that is read: in memory it grows several times.
_SIZE_LIMIT = 2 * 2**30
# 26 days in microseconds: longer is damage.
_LONGEST_US = float(1 << 61) / 10**6
_BEGINNING = 4096
_KINDS = frozenset({"X", "M", "C"})
_LACKS = (
    "This profile was read from a trace in JSON, which holds no HLO and no device properties; "
    "the `.xplane.pb` file beside it holds them."
)
_PLANE_OF_HOST = re.compile(r"(\S+) (/(?:device|host):.*)")


class _Document(msgspec.Struct):
    traceEvents: list[Event]  # noqa: N815


@dataclass
class _Process:
    """A process of the trace, which becomes a plane."""

    name: str = ""
    threads: dict[int | str, str] = field(default_factory=dict)
    events: dict[int | str, list[Event]] = field(default_factory=dict)
    unusable: int = 0

    def describe(self, event: Event) -> None:
        """Take a name from a metadata event."""
        name = event.args.get("name") if isinstance(event.args, dict) else None
        if isinstance(name, str) and event.name == "process_name":
            self.name = name
        elif isinstance(name, str) and event.name == "thread_name":
            self.threads[event.tid] = name


def is_trace_json(content: bytes) -> bool:
    """Whether a file's content begins like a trace in JSON."""
    start = content[:_BEGINNING].lstrip()
    return start[:1] in (b"{", b"[") and (b'"traceEvents"' in start or b'"ph"' in start)


def xspace_of_trace_json(content: bytes, name: str) -> bytes:
    """Return a trace in JSON as the bytes of an XSpace.

    Args:
        content: The JSON, decompressed: an object with `traceEvents`, or a list of events.
        name: The file's name, for messages.

    Raises:
        InputError: It is no such trace, is damaged, or is too large.

    """
    events = _decode(content, name)
    processes = _processes(events)
    if not any(process.events for process in processes):
        raise InputError(
            f"{name}: expected a trace with complete events (ph X), found none.",
            "Give the `.xplane.pb` file that lies beside it.",
        )
    space = xplane_pb2.XSpace(hostnames=_take_host(processes))
    space.planes.extend(plane_message(entry.name, entry.threads, entry.events) for entry in processes if entry.events)
    space.warnings.extend(_warnings(events, processes))
    return space.SerializeToString()


def _decode(content: bytes, name: str) -> list[Event]:
    if len(content) > _SIZE_LIMIT:
        raise InputError(
            f"{name}: {len(content):,} bytes of JSON are more than the {_SIZE_LIMIT >> 30} GiB that are read."
        )
    try:
        if content.lstrip()[:1] == b"[":
            return msgspec.json.decode(content, type=list[Event])
        return msgspec.json.decode(content, type=_Document).traceEvents
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        strict = error
    try:
        return _decode_leniently(content)
    except (ValueError, RecursionError):
        raise InputError(
            f"{name}: expected a trace of JAX or TensorFlow in JSON, found something else or damaged JSON ({strict}).",
            "Copy the file again, or give the `.xplane.pb` file that lies beside it.",
        ) from None


def _decode_leniently(content: bytes) -> list[Event]:
    """Read JSON whose names are no valid UTF-8 or hold raw control characters, as profilers write them."""
    document: Any = json.loads(content.decode("utf-8", "replace"), strict=False)
    events = document.get("traceEvents") if isinstance(document, dict) else document
    return msgspec.convert(events, list[Event])


def _processes(events: Iterable[Event]) -> list[_Process]:
    """Sort events by process and thread, in the order in which processes appear."""
    found: dict[int | str, _Process] = {}
    for event in events:
        if event.ph not in _KINDS:
            continue
        process = found.setdefault(event.pid, _Process())
        if event.ph == "M":
            process.describe(event)
        elif abs(event.ts) <= _LONGEST_US and 0 <= event.dur <= _LONGEST_US:
            process.events.setdefault(COUNTERS if event.ph == "C" else event.tid, []).append(event)
        else:
            process.unusable += 1
    return list(found.values())


def _take_host(processes: Iterable[_Process]) -> list[str]:
    """Take the host's name out of names like "HOST /device:TPU:0", as XProf writes them, and return it."""
    matches = [(entry, match) for entry in processes if (match := _PLANE_OF_HOST.fullmatch(entry.name))]
    hosts = {match[1] for _, match in matches}
    if len(hosts) != 1:
        return []
    for entry, match in matches:
        entry.name = match[2]
    return [clean(host) for host in hosts]


def _warnings(events: Iterable[Event], processes: Iterable[_Process]) -> list[str]:
    found = [_LACKS]
    left_out = Counter(event.ph for event in events if event.ph not in _KINDS and event.ph)
    if left_out:
        kinds = ", ".join(f"{count:,} of kind {clean(kind)}" for kind, count in left_out.most_common(5))
        found.append(f"Events of the trace that were not read: {kinds}.")
    if unusable := sum(process.unusable for process in processes):
        found.append(f"{unusable:,} events of the trace have times that are no times and were not read.")
    return found
