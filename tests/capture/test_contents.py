"""The quick look into a captured profile: steps by each kind of mark, and damage of every kind."""

from __future__ import annotations

import random

import pytest

from reportgen.capture.contents import look
from reportgen.wire import xplane_pb2
from tests.capture.servers import make_profile


def with_device_line(name: str, metadata_ids: list[int]) -> bytes:
    space = xplane_pb2.XSpace.FromString(make_profile(steps=2))
    line = space.planes.add(name="/device:TPU:0").lines.add(name=name)
    for offset, metadata_id in enumerate(metadata_ids):
        line.events.add(metadata_id=metadata_id, offset_ps=offset, duration_ps=1)
    return space.SerializeToString()


def test_marks_on_the_host() -> None:
    contents = look(make_profile(steps=4))
    assert (contents.events, contents.steps, contents.hostname) == (4, 4, "stand-in")


def test_steps_of_a_device_count_before_marks_on_the_host() -> None:
    assert look(with_device_line("Steps", [1, 2, 3, 4, 5])).steps == 5


def test_module_runs_count_where_nothing_is_marked() -> None:
    unmarked = with_device_line("XLA Modules", [7, 8, 7, 7]).replace(b"step_num", b"step_nix")
    assert look(unmarked).steps == 3
    assert look(with_device_line("XLA Modules", [7, 8, 7, 7])).steps == 2


def test_nothing_recorded() -> None:
    contents = look(make_profile(steps=0))
    assert (contents.events, contents.steps) == (0, 0)


@pytest.mark.parametrize("seed", range(100))
def test_damaged_profiles_have_unknown_steps_and_raise_nothing(seed: int) -> None:
    chance = random.Random(seed)
    profile = bytearray(make_profile(steps=5))
    for _ in range(chance.choice([1, 2, 8])):
        place = chance.randrange(len(profile))
        profile[place : place + chance.randrange(3)] = chance.randbytes(chance.randrange(12))
    steps = look(bytes(profile)).steps
    assert steps is None or steps >= 0


def test_field_number_beyond_all_bounds() -> None:
    """It once overflowed."""
    space = xplane_pb2.XSpace.FromString(make_profile(steps=1))
    event = space.planes[0].lines[0].events[0].SerializeToString() + b"\xf8" + b"\xff" * 8 + b"\x01\x01"
    space.planes[0].lines[0].ClearField("events")
    line = space.planes[0].lines[0].SerializeToString() + b"\x22" + bytes([len(event)]) + event
    space.planes[0].ClearField("lines")
    plane = space.planes[0].SerializeToString() + b"\x1a" + bytes([len(line)]) + line
    assert look(b"\x0a" + bytes([len(plane)]) + plane).steps is None
