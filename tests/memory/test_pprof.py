"""JAX's device memory profile."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from reportgen.errors import InputError
from reportgen.memory.pprof import parse_device_memory_profile
from reportgen.wire import pprof_pb2

TABLE = ["", "allocations", "count", "space", "bytes", "kind", "buffer", "executable", "device", "TPU_0", "TPU_1"]
TABLE += ["init", "/home/me/train.py", "put", "/venv/lib/python3.11/site-packages/jax/_src/api.py", "cpu"]


def profile() -> pprof_pb2.Profile:
    proto = pprof_pb2.Profile(string_table=TABLE, time_nanos=7)
    proto.sample_type.add(type=1, unit=2)
    proto.sample_type.add(type=3, unit=4)
    proto.function.add(id=1, name=11, filename=12)
    proto.function.add(id=2, name=13, filename=14)
    proto.location.add(id=1).line.add(function_id=1, line=30)
    proto.location.add(id=2).line.add(function_id=2, line=99)
    for device, count, size in ((9, 2, 4096), (10, 1, 1024)):
        sample = proto.sample.add(location_id=[2, 1], value=[count, size])
        sample.label.add(key=5, str=6)
        sample.label.add(key=8, str=device)
    proto.sample.add(location_id=[77], value=[1, 300]).label.add(key=5, str=7)
    return proto


@pytest.mark.parametrize("compress", [gzip.compress, bytes])
def test_live_bytes(compress: object) -> None:
    found = parse_device_memory_profile(compress(profile().SerializeToString()))  # type: ignore[operator]
    assert (found.total_bytes, found.time_nanos) == (5420, 7)
    assert [(g.name, g.number, g.size) for g in found.by_kind()] == [("buffer", 3, 5120), ("executable", 1, 300)]
    assert [(g.name, g.size) for g in found.by_device()] == [("TPU_0", 4096), ("TPU_1", 1024)]
    assert [(g.name, g.size) for g in found.by_line()] == [("/home/me/train.py:30", 5120), ("not recorded", 300)]
    assert [str(frame) for frame in found.live[0].stack][1] == "/home/me/train.py:30"


def test_a_profile_of_something_else_is_refused() -> None:
    proto = profile()
    proto.sample_type[1].type = 15
    with pytest.raises(InputError, match="found a profile of allocations, cpu"):
        parse_device_memory_profile(proto.SerializeToString(), "a.prof")
    for data in (b"\xff\xff\xff", gzip.compress(b"\x0a\xff"), b""):
        with pytest.raises(InputError, match="memory profile"):
            parse_device_memory_profile(data, "a.prof")


def test_a_real_profile(reference: Path) -> None:
    content = (reference / "profiles/pprof/jax_device_memory.prof").read_bytes()
    found = parse_device_memory_profile(content)
    assert found.total_bytes == 1719
    assert {group.name: group.size for group in found.by_kind()} == {"executable": 1687, "buffer": 32}
    assert [group.name for group in found.by_device()] == ["TFRT_CPU_0"]
    assert "site-packages" not in found.by_line()[0].name
    assert sum(group.size for group in found.by_line()) == found.total_bytes
