"""The sentence at the top, where there is little to say."""

from __future__ import annotations

from pathlib import Path

from reportgen import analyze
from tests.builders import Space


def verdict(space: Space, folder: Path) -> str:
    path = folder / "host0.xplane.pb"
    path.write_bytes(space.proto.SerializeToString())
    return analyze(path).verdict


def test_a_profile_without_ops_is_not_praised(tmp_path: Path) -> None:
    space = Space()
    space.plane("/device:TPU:0", {"device_type_string": "TPU v4"}).line("Steps").event("0", 0, 1000)
    found = verdict(space, tmp_path)
    assert found.startswith("No op of a program was captured: ")
    assert "Nothing found" not in found


def test_a_calm_profile_counts_what_could_not_be_checked(tmp_path: Path) -> None:
    space = Space()
    ops = space.plane("/host:CPU").line("tf_XLAEigen/1")
    for step in range(4):
        ops.event("fusion.1", 10_000 * step, 9_900, {"hlo_op": "fusion.1", "hlo_module": "jit_f", "program_id": 3})
    assert verdict(space, tmp_path).startswith("Nothing found that costs much: ")
