"""The columnar decoder against the protobuf library, on random XSpaces."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reportgen.profile.model import HostProfile
from reportgen.wire import xplane_pb2
from reportgen.wire.events import BYTES, DOUBLE, REFERENCE, STRING, decode_events
from reportgen.wire.varint import Buffer, WireError, decode, run_of_messages
from reportgen.wire.xspace import read_space

INT64 = st.integers(-(2**63), 2**63 - 1)
UINT64 = st.integers(0, 2**64 - 1)
IDS = st.integers(1, 5) | INT64
UNKNOWN = st.sampled_from([b"", b"\x98\x06\x07", b"\xa2\x06\x03abc", b"\xa9\x06" + bytes(8), b"\xad\x06" + bytes(4)])


@st.composite
def stats(draw: st.DrawFn) -> xplane_pb2.XStat:
    stat = xplane_pb2.XStat(metadata_id=draw(st.integers(1, 4)))
    field = draw(
        st.sampled_from(["double_value", "uint64_value", "int64_value", "str_value", "bytes_value", "ref_value", ""])
    )
    values = {
        "double_value": st.floats(allow_nan=False), "uint64_value": UINT64, "int64_value": INT64,
        "str_value": st.binary(max_size=200), "bytes_value": st.binary(max_size=9), "ref_value": st.integers(1, 6),
    }  # fmt: skip
    if field:
        setattr(stat, field, draw(values[field]))
    stat.MergeFromString(draw(UNKNOWN))
    return stat


@st.composite
def events(draw: st.DrawFn) -> xplane_pb2.XEvent:
    event = xplane_pb2.XEvent(metadata_id=draw(IDS), duration_ps=draw(st.integers(0, 2**62) | INT64))
    if draw(st.booleans()):
        event.offset_ps = draw(INT64)
    else:
        event.num_occurrences = draw(INT64)
    event.stats.extend(draw(st.lists(stats(), max_size=4)))
    event.MergeFromString(draw(UNKNOWN))
    return event


@st.composite
def spaces(draw: st.DrawFn) -> xplane_pb2.XSpace:
    space = xplane_pb2.XSpace(hostnames=draw(st.lists(st.text(max_size=5), max_size=2)))
    for number in range(draw(st.integers(0, 2))):
        plane = space.planes.add(id=draw(INT64), name=f"/device:TPU:{number}")
        for key in range(1, 5):
            plane.stat_metadata[key].name = draw(st.sampled_from([b"a", b"b", b"\xff\xfe", b"same"]))
            plane.event_metadata[draw(IDS)].name = draw(st.binary(max_size=8))
        for _ in range(draw(st.integers(0, 3))):
            line = plane.lines.add(
                id=draw(INT64), name=draw(st.text(max_size=4)), timestamp_ns=draw(st.integers(0, 2**50))
            )
            line.events.extend(draw(st.lists(events(), max_size=6)))
            line.MergeFromString(draw(UNKNOWN))
    space.MergeFromString(draw(UNKNOWN))
    return space


def test_varints_of_every_length_up_to_eight_bytes() -> None:
    values = [0, 1, 127, 128, 16383, 16384, 2**28 - 1, 2**35, 2**42 + 5, 2**56 - 1]
    encoded = [xplane_pb2.XStat(uint64_value=value).SerializeToString()[1:] for value in values]
    words = np.array([int.from_bytes(data.ljust(8, b"\xff")[:8], "little") for data in encoded[1:]], dtype=np.uint64)
    found, lengths = decode(words)
    assert found.tolist() == values[1:]
    assert lengths.tolist() == [len(data) for data in encoded[1:]]


def test_a_word_without_an_end_has_length_zero() -> None:
    assert decode(np.array([2**64 - 1], dtype=np.uint64))[1].tolist() == [0]


@settings(max_examples=150, deadline=None)
@given(spaces())
def test_columns_equal_the_protobuf_library(space: xplane_pb2.XSpace) -> None:
    found = read_space(Buffer(space.SerializeToString()))
    assert found.missing == 0
    assert list(found.hostnames) == list(space.hostnames)
    assert len(found.planes) == len(space.planes)
    for plane, expected in zip(found.planes, space.planes, strict=True):
        assert plane.name == expected.name
        assert dict(plane.metadata.event_metadata) == dict(expected.event_metadata)
        assert [line.name for line in plane.lines] == [line.name for line in expected.lines]
        for line, wanted in zip(plane.lines, expected.lines, strict=True):
            assert (line.id, line.timestamp_ns) == (wanted.id, wanted.timestamp_ns)
            columns = decode_events(plane.buffer, line.starts, line.ends, [1, 2, 3, 4])
            assert columns.metadata_ids.tolist() == [event.metadata_id for event in wanted.events]
            assert columns.offsets.tolist() == [event.offset_ps for event in wanted.events]
            assert columns.durations.tolist() == [event.duration_ps for event in wanted.events]
            assert columns.occurrences.tolist() == [event.num_occurrences for event in wanted.events]
            for key, column in columns.stats.items():
                for row, event in enumerate(wanted.events):
                    _assert_stat(plane.buffer, column, row, [s for s in event.stats if s.metadata_id == key])


def _assert_stat(buffer: Buffer, column: object, row: int, expected: list[xplane_pb2.XStat]) -> None:
    """The last statistic of an id that has a value counts."""
    valued = [stat for stat in expected if stat.WhichOneof("value")]
    kind, bits, payload = int(column.kinds[row]), int(column.bits[row]), int(column.payloads[row])  # type: ignore[attr-defined]
    if not valued:
        assert kind == 0
        return
    field = valued[-1].WhichOneof("value")
    value = getattr(valued[-1], field)
    if kind == DOUBLE:
        assert field == "double_value"
        assert struct.pack("<d", value) == bits.to_bytes(8, "little")
    elif kind in (STRING, BYTES):
        assert buffer.bytes(payload, payload + bits) == value
    elif kind == REFERENCE:
        assert (field, bits) == ("ref_value", value)
    else:
        assert bits == value % 2**64


@settings(max_examples=80, deadline=None)
@given(spaces(), st.data())
def test_a_truncated_file_gives_its_whole_planes(space: xplane_pb2.XSpace, data: st.DataObject) -> None:
    content = space.SerializeToString()
    cut = data.draw(st.integers(0, len(content)))
    try:
        found = read_space(Buffer(content[:cut]))
    except WireError:
        return
    assert [plane.name for plane in found.planes] == [plane.name for plane in space.planes[: len(found.planes)]]
    assert 0 <= found.missing <= 1


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_give_a_profile_or_a_wire_error(content: bytes) -> None:
    try:
        for plane in read_space(Buffer(content)).planes:
            for line in plane.lines:
                decode_events(plane.buffer, line.starts, line.ends, [1, 2])
    except WireError:
        pass


def test_a_long_chain_crosses_slices() -> None:
    line = xplane_pb2.XLine()
    for number in range(60_000):
        line.events.add(metadata_id=34 + number % 3, offset_ps=number * 0x2222, duration_ps=0x22)
    content = line.SerializeToString()
    starts, ends, position = run_of_messages(Buffer(content), 0, len(content))
    assert len(starts) == 60_000
    assert position == len(content)
    assert (starts[1:] > ends[:-1]).all()


def test_a_message_that_runs_past_its_end_is_refused() -> None:
    with pytest.raises(WireError, match="runs past the end"):
        run_of_messages(Buffer(b"\x22\x05ab"), 0, 4)


def test_seven_byte_varints_do_not_swallow_the_byte_shifted_in() -> None:
    """Regression: the zero shifted in above a tag was read as the last byte of a longer varint."""
    event = xplane_pb2.XEvent(metadata_id=1)
    event.stats.add(metadata_id=39, int64_value=-2002751013228737526)
    data = event.SerializeToString()
    columns = decode_events(Buffer(data), np.array([0]), np.array([len(data)]), [39])
    assert columns.stats[39].integers().tolist() == [-2002751013228737526]


def test_times_are_absolute_picoseconds_and_stay_in_range() -> None:
    space = xplane_pb2.XSpace()
    plane = space.planes.add(name="/host:CPU")
    line = plane.lines.add(timestamp_ns=7)
    line.events.add(metadata_id=1, offset_ps=5, duration_ps=3)
    line.events.add(metadata_id=1, offset_ps=2**63 - 1, duration_ps=-4)
    found = HostProfile.from_bytes("h", space.SerializeToString()).planes[0].events([0])
    assert found.starts[0] == 7005
    assert found.names.tolist() == [-1, -1]
    assert found.durations.tolist() == [3, 0]
    assert abs(int(found.starts[1])) < 2**62


def test_unix_times_count_from_the_earliest_line() -> None:
    space = xplane_pb2.XSpace()
    plane = space.planes.add(name="/host:CPU")
    for number in range(2):
        plane.lines.add(timestamp_ns=1_700_000_000_000_000_000 + number).events.add(metadata_id=1)
    found = HostProfile.from_bytes("h", space.SerializeToString()).planes[0].events([0, 1])
    assert found.starts.tolist() == [0, 1000]
