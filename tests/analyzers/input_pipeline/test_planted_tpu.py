"""A modelled TPU timeline with an infeed wait of known length: the share comes out exactly, and its stage is named."""

from __future__ import annotations

import sys

import pytest

from reportgen.profile.model import HostProfile
from reportgen.profile.view import HostView
from reportgen.settings import Settings
from tests.analyzers.input_pipeline.support import SAMPLES, analyze, facts_of

RESNET = SAMPLES / "resnet50_tpu_v5e"


@pytest.mark.parametrize("wait_ps", [1_000_000_000, 20_000_000_000])
def test_share_is_exact_and_the_host_stage_named(wait_ps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SAMPLES))
    sys.modules.pop("modelling", None)
    modelling = __import__("modelling")
    space = modelling.remodelled(RESNET, 6, wait_ps)
    facts = analyze(HostView(HostProfile.from_bytes("host0", space.SerializeToString()), Settings(strict=True))).facts
    assert set(facts.steps["wait_ps"]) == {wait_ps}
    assert set(facts.steps["device_ps"]) == {wait_ps}
    (step_ps,) = set(facts.steps["time_ps"])
    assert set(facts.steps["period_ps"]) == {step_ps + modelling.GAP_PS}
    assert facts.means.share == pytest.approx(wait_ps / (step_ps + modelling.GAP_PS), rel=1e-12)
    assert facts.verdict.level == ("highly" if wait_ps > 10_000_000_000 else "not")
    assert (facts.blame.stage, facts.blame.where) == ("Map", "Iterator::Batch::Map")
    assert facts.blame.share == pytest.approx(0.96)


def test_without_the_wait_nothing_is_blamed() -> None:
    (path,) = RESNET.glob("*.xplane.pb.gz")
    facts = facts_of(path)
    assert facts.means is not None
    assert facts.means.wait_s == 0
    assert facts.blame is None
    assert facts.verdict.level == "not"
