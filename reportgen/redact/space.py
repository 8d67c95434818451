"""Redaction of a profile: an XSpace message is written anew, with the HLO modules inside it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from reportgen.errors import InputError
from reportgen.redact.redactor import Redactor
from reportgen.wire import hlo_pb2, xplane_pb2

_TEXTS = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)
_HLO = frozenset(("Hlo Proto", "hlo_proto"))
# Statistics that are messages: those of numbers stay, those with names in them are redacted, all others are emptied.
_PLAIN_MESSAGES = frozenset(("memory_access_breakdown",))


def redact_space(content: bytes, redactor: Redactor, name: str = "profile") -> bytes:
    """Return a profile with its names replaced; what this program does not know of the format is left out.

    Args:
        content: Bytes of an XSpace.
        redactor: Replaces the names.
        name: The file's name, for messages.

    Raises:
        InputError: It is no whole XSpace.

    """
    try:
        space = xplane_pb2.XSpace.FromString(content)
    except DecodeError as error:
        raise InputError(
            f"{name}: expected a whole XSpace profile to redact, found data that cannot be decoded ({error}).",
            "A damaged profile cannot be redacted: nobody knows what its damaged parts hold.",
        ) from None
    space.DiscardUnknownFields()
    redactor.add_hosts(space.hostnames)
    space.hostnames[:] = [redactor.host(host) for host in space.hostnames]
    space.errors[:] = [redactor.prose(text) for text in space.errors]
    space.warnings[:] = [redactor.prose(text) for text in space.warnings]
    for plane in space.planes:
        _Plane(plane, redactor).redact()
    return space.SerializeToString(deterministic=True)


class _Plane:
    def __init__(self, plane: xplane_pb2.XPlane, redactor: Redactor) -> None:
        self._plane, self._redactor = plane, redactor
        self._stat_names = {key: _text(entry.name) for key, entry in plane.stat_metadata.items()}

    def redact(self) -> None:
        plane, redactor = self._plane, self._redactor
        plane.name = redactor.name(plane.name)
        self._stats(plane.stats)
        for event in plane.event_metadata.values():
            event.name = self._bytes(event.name)
            event.display_name = self._bytes(event.display_name)
            event.ClearField("metadata")
            self._stats(event.stats)
        for line in plane.lines:
            line.name, line.display_name = redactor.name(line.name), redactor.name(line.display_name)
            for one in line.events:
                self._stats(one.stats)
        for stat in plane.stat_metadata.values():
            stat.name = self._bytes(stat.name)
            stat.ClearField("description")

    def _bytes(self, text: bytes) -> bytes:
        return self._redactor.name(_text(text)).encode()

    def _stats(self, stats: Iterable[xplane_pb2.XStat]) -> None:
        for stat in stats:
            kind = stat.WhichOneof("value")
            if kind == "str_value":
                stat.str_value = self._bytes(stat.str_value)
            elif kind == "bytes_value":
                stat.bytes_value = self._message(self._stat_names.get(stat.metadata_id, ""), stat.bytes_value)

    def _message(self, name: str, content: bytes) -> bytes:
        try:
            if name in _HLO:
                return redact_hlo(content, self._redactor)
            if name == "core_details":
                return _rewritten(xplane_pb2.CoreDetails.FromString(content), self._redactor)
            if name in _PLAIN_MESSAGES:
                return _rewritten(xplane_pb2.MemoryAccessBreakdown.FromString(content), self._redactor)
        except DecodeError:
            return b""
        return b""


def redact_hlo(content: bytes, redactor: Redactor) -> bytes:
    """Return a serialised HloProto with its names replaced; values of constants are not among what is kept.

    Raises:
        DecodeError: It is no HloProto.

    """
    proto = hlo_pb2.HloProto.FromString(content)
    for computation in proto.hlo_module.computations:
        for instruction in computation.instructions:
            _redact_source(instruction.metadata, redactor)
    _redact_stack(proto.hlo_module.stack_frame_index, redactor)
    return _rewritten(proto, redactor)


def _redact_source(metadata: hlo_pb2.OpMetadata, redactor: Redactor) -> None:
    if metadata.source_file:
        metadata.source_file = redactor.source(f"{metadata.source_file}:{metadata.source_line}")
        metadata.source_line = 1


def _redact_stack(index: hlo_pb2.StackFrameIndex, redactor: Redactor) -> None:
    """Give each line a file of its own, so that neither its number nor its file remains."""
    files = list(index.file_names)
    del index.file_names[:]
    for place in index.file_locations:
        file = files[place.file_name_id - 1] if 0 < place.file_name_id <= len(files) else ""
        index.file_names.append(redactor.source(f"{file}:{place.line}"))
        place.file_name_id, place.line, place.column = len(index.file_names), 1, 1


def _rewritten(message: Message, redactor: Redactor) -> bytes:
    message.DiscardUnknownFields()
    _redact_message(message, redactor)
    content: bytes = message.SerializeToString(deterministic=True)
    return content


def _redact_message(message: Any, redactor: Redactor) -> None:
    """Redact every text of a message, and of those inside it."""
    for field, value in message.ListFields():
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            _redact_map(value, field.message_type.fields_by_name["value"], redactor)
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in (value,) if isinstance(value, Message) else value:
                _redact_message(inner, redactor)
        elif field.type in _TEXTS and field.name not in _KEPT:
            if isinstance(value, str | bytes):
                setattr(message, field.name, _redacted(value, redactor))
            else:
                value[:] = [_redacted(one, redactor) for one in value]


# Replaced before, as whole source lines.
_KEPT = frozenset(("source_file", "file_names"))


def _redact_map(content: Any, values: FieldDescriptor, redactor: Redactor) -> None:
    if values.type == FieldDescriptor.TYPE_MESSAGE:
        for inner in content.values():
            _redact_message(inner, redactor)
    elif values.type in _TEXTS:
        pairs = {redactor.name(key): _redacted(value, redactor) for key, value in content.items()}
        content.clear()
        content.update(pairs)


def _redacted(value: str | bytes, redactor: Redactor) -> str | bytes:
    return redactor.name(value) if isinstance(value, str) else redactor.name(_text(value)).encode()


def _text(content: bytes) -> str:
    return content.decode("utf-8", errors="replace")
