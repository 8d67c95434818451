"""Rules speak of what the profile has: elsewhere they are not applicable, and their advice fits what was found."""

from __future__ import annotations

from pathlib import Path

import pytest

from reportgen import analyze
from reportgen.document import Check
from tests.builders import Space

XLA: dict[str, int | float | str | bytes] = {"program_id": 1, "symbol_id": 1, "hlo_category": "loop fusion"}


def checks(space: Space, folder: Path) -> dict[str, Check]:
    path = folder / "host0.xplane.pb"
    path.write_bytes(space.proto.SerializeToString())
    return {check.rule: check for check in analyze(path).checks}


def test_on_a_cpu_rules_of_devices_are_not_applicable(tmp_path: Path) -> None:
    space = Space()
    ops = space.plane("/host:CPU").line("tf_XLAEigen/1")
    ops.event("fusion.1", 0, 9_900, {"hlo_op": "fusion.1", "hlo_module": "jit_f", "program_id": 3})
    found = checks(space, tmp_path)
    for rule in ("padding-waste", "exposed-collectives", "small-collectives", "clock-skew", "vmem-pressure"):
        assert found[rule].status == "not_applicable", rule
        assert "the program ran on the host's CPU" in found[rule].reason


def test_on_a_gpu_nothing_is_asked_about_tiles_and_vmem(tmp_path: Path) -> None:
    space = Space()
    space.plane("/device:GPU:0").line("Stream #1(Compute)").event("kernel", 0, 100)
    found = checks(space, tmp_path)
    assert found["padding-waste"].status == found["vmem-pressure"].status == "not_applicable"
    assert "ran on a GPU" in found["vmem-pressure"].reason


def test_without_dots_there_is_no_padding_to_ask_for(tmp_path: Path) -> None:
    space = Space()
    plane = space.plane("/device:TPU:0", {"device_type_string": "TPU v5 lite"})
    plane.metadata("a", XLA, "a")
    plane.line("XLA Ops").event("a", 0, 100)
    assert checks(space, tmp_path)["padding-waste"].status == "not_applicable"


def test_of_dots_without_hlo_the_padding_cannot_be_told(tmp_path: Path) -> None:
    space = Space()
    plane = space.plane("/device:TPU:0", {"device_type_string": "TPU v5 lite"})
    plane.metadata("a", XLA | {"hlo_category": "convolution fusion"}, "a")
    plane.line("XLA Ops").event("a", 0, 100)
    found = checks(space, tmp_path)["padding-waste"]
    assert found.status == "cannot_tell"
    assert "HLO" in found.remedy


@pytest.mark.parametrize(
    ("category", "expression", "fits", "foreign"),
    [
        ("copy-done", "%c = f32[8]{0} copy-done((f32[8]{0}, f32[8]{0:S(5)}, u32[]) %s)", "Offload less", "callbacks"),
        ("host send-done", "%c = token[] send-done(%s)", "callbacks", "Offload less"),
    ],
)
def test_advice_on_transfers_fits_what_moves(
    tmp_path: Path, category: str, expression: str, fits: str, foreign: str
) -> None:
    space = Space()
    plane = space.plane("/device:TPU:0", {"device_type_string": "TPU v5 lite"})
    plane.metadata(expression, XLA | {"hlo_category": category}, "c")
    plane.line("XLA Ops").event(expression, 0, 100)
    plane.metadata("jit_f(1)")
    plane.line("XLA Modules").event("jit_f(1)", 0, 100, {"run_id": 1})
    path = tmp_path / "host0.xplane.pb"
    path.write_bytes(space.proto.SerializeToString())
    (finding,) = [one for one in analyze(path).findings if one.rule == "host-transfer"]
    texts = " ".join(action.text for action in finding.actions)
    assert fits in texts
    assert foreign not in texts
