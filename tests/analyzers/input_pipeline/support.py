"""Profiles to results."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from reportgen.analyzers.base import Context, Result
from reportgen.analyzers.input_pipeline import InputPipelineAnalyzer
from reportgen.analyzers.input_pipeline.facts import InputFacts
from reportgen.analyzers.input_pipeline.threads import Threads, host_threads
from reportgen.analyzers.input_pipeline.waits import HostInput, host_input
from reportgen.profile.model import HostProfile
from reportgen.profile.view import HostView
from reportgen.settings import Settings
from tests.conftest import ROOT

CAPTURED = ROOT / "tests" / "input_faults" / "captured"
SAMPLES = ROOT / "sample_profiles"


def sample(name: str) -> Path:
    (path,) = (SAMPLES / name).rglob("*.xplane.pb")
    return path


@cache
def view_of(path: Path) -> HostView:
    content = path.read_bytes()
    content = gzip.decompress(content) if path.suffix == ".gz" else content
    return HostView(HostProfile.from_bytes("host0", content), Settings(strict=True))


def analyze(*views: HostView, settings: Settings | None = None) -> Result:
    analyzer = InputPipelineAnalyzer()
    return analyzer.merge([analyzer.host(view) for view in views], Context(settings or Settings(), {}))


@cache
def result_of(path: Path) -> Result:
    return analyze(view_of(path))


def facts_of(path: Path) -> InputFacts:
    facts = result_of(path).facts
    assert isinstance(facts, InputFacts)
    return facts


def threads_of(view: HostView) -> Threads:
    return host_threads(view.profile)


def input_of(view: HostView) -> HostInput:
    return host_input(view, threads_of(view))


@dataclass(frozen=True)
class Measured:
    """What a loop measured of the steps that the analysis counts, per step in milliseconds."""

    waits: Sequence[float]
    periods: Sequence[float]

    @property
    def wait(self) -> float:
        return sum(self.waits) / len(self.waits)

    @property
    def period(self) -> float:
        return sum(self.periods) / len(self.periods)

    def agrees(self, wait_s: float) -> bool:
        """Within 10 % of the measured wait, or 2 percentage points of the period."""
        return abs(1e3 * wait_s - self.wait) <= max(0.10 * self.wait, 0.02 * self.period)


def measured(record: dict[str, Any], facts: InputFacts) -> Measured:
    steps = [str(step) for step in facts.steps["step"]]
    return Measured([record["wait_ms"][step] for step in steps], [record["period_ms"][step] for step in steps])


@cache
def records() -> dict[str, Any]:
    found = json.loads((CAPTURED / "measured.json").read_text())
    assert isinstance(found, dict)
    return found
