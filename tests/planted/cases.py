"""All planted faults with their repaired twins, and the analysis of each."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Literal

from reportgen.analyzers import ANALYZERS
from reportgen.analyzers.run import Analysis, analyze_view, merge_parts
from reportgen.document import Finding, SourceFile
from reportgen.profile.model import HostProfile
from reportgen.profile.view import HostView
from reportgen.rules import RULES
from reportgen.rules.run import Verdicts, run_rules
from reportgen.settings import Settings
from tests.planted import handmade

HERE = Path(__file__).resolve().parent
FIXTURES = HERE / "fixtures"
SAMPLES = HERE.parents[1] / "sample_profiles"

Origin = Literal["compiled for TPU", "captured on CPU", "written by hand"]
Source = Callable[[], Sequence[bytes]]


@dataclass(frozen=True)
class Case:
    """A planted fault.

    Attributes:
        rule: The rule that has to find it first, and to be silent on the twin.
        faulty, repaired: Return the profile of each host.
        work: Work of the repaired program over that of the faulty one.

    """

    name: str
    rule: str
    origin: Origin
    faulty: Source
    repaired: Source
    work: float = 1.0


def fixture(name: str) -> list[bytes]:
    """Return the profile of a fixture."""
    return [gzip.decompress((FIXTURES / f"{name}.xplane.pb.gz").read_bytes())]


def sample(name: str) -> list[bytes]:
    """Return the profile of a sample."""
    (path,) = (SAMPLES / name).glob("plugins/profile/*/*.xplane.pb")
    return [path.read_bytes()]


def of_fixtures(name: str, rule: str, origin: Origin, work: float = 1.0) -> Case:
    """Return the case whose profiles are fixtures."""
    return Case(name, rule, origin, partial(fixture, f"{name}-faulty"), partial(fixture, f"{name}-repaired"), work)


# Work of the repaired program over the faulty one's, where it does more or less.
WORK = {
    "padding-seed": 12.8 * 8 / 5,
    "padding-seed-three": 12.8 * 4 / 3,
    "padding-features-out-over": 128 / 130,
    "padding-features-out-under": 1.28,
    "padding-features-in": 8 / 5,
    "padding-features-in-over": 256 / 257,
    "padding-batch-over": 128 / 130,
    "padding-batch-under": 1.28,
    "padding-unaligned": 1.28,
    "padding-narrow": 2.0,
}
COMPILED = {
    "padding-seed": "padding-waste",
    "padding-seed-three": "padding-waste",
    "padding-features-out-over": "padding-waste",
    "padding-features-out-under": "padding-waste",
    "padding-features-in": "padding-waste",
    "padding-features-in-over": "padding-waste",
    "padding-batch-over": "padding-waste",
    "padding-batch-under": "padding-waste",
    "padding-unaligned": "padding-waste",
    "padding-narrow": "padding-waste",
    "precision-dot-highest": "precision",
    "precision-dot-high": "precision",
    "precision-dot-wide": "precision",
    "precision-conv": "precision",
    "precision-conversions": "precision",
    "memory-bound-conv-narrow": "memory-bound-conv",
    "memory-bound-dot-batch": "memory-bound-dot",
    "memory-bound-dot-thin": "memory-bound-dot",
    "low-flops-small": "low-flops",
    "vector-bound-shifts": "vector-bound",
    "vector-bound-softmax": "vector-bound",
    "data-formatting-transpose": "data-formatting",
    "data-formatting-channels": "data-formatting",
    "data-shuffle-scatter": "data-shuffle",
    "data-shuffle-sort": "data-shuffle",
    "donation-sgd": "missing-donation",
    "donation-adam": "missing-donation",
    "donation-cache": "missing-donation",
    "remat-layers": "costly-remat",
    "remat-attention": "costly-remat",
    "collectives-gradients": "exposed-collectives",
    "collectives-tensor": "exposed-collectives",
    "collectives-small": "small-collectives",
    "resharding": "resharding",
    "custom-call-kernel": "custom-call",
    "vmem-blocks": "vmem-pressure",
    "memory-padding-rows": "memory-padding",
    "memory-full": "memory-near-capacity",
}
CAPTURED = {
    "recompile-shapes": "recompilation",
    "recompile-static": "recompilation",
    "retrace-tensorflow": "recompilation",
    "garbage": "host-bound",
    "debug-print": "host-bound",
    "python": "host-bound",
    "eager": "host-bound",
    "checkpoints": "unstable-steps",
    "growing": "unstable-steps",
}


def written(name: str, rule: str, faulty: Source, repaired: Source) -> Case:
    """Return a case written by hand."""
    return Case(name, rule, "written by hand", faulty, repaired)


def _handmade() -> list[Case]:
    step, core, sent = handmade.STEP_US, handmade.Core, handmade.transfers
    even = partial(handmade.hosts, [step] * 5)
    busy = handmade.steady(handmade.work(step))
    lost = "12,345 events were dropped: the trace buffer was full."
    return [
        written("slow-host", "straggler", partial(handmade.hosts, [step, step, 1.3 * step, step, step]), even),
        written("barrier", "straggler", partial(handmade.barrier, 200), partial(handmade.barrier, 5)),
        written(
            "uneven-cores", "core-imbalance",
            lambda: [handmade.profile(handmade.lockstep([step, step, step, 1.5 * step]))],
            lambda: [handmade.profile(handmade.lockstep([step] * 4))],
        ),
        written(
            "idle-chips", "idle-chips",
            lambda: [handmade.profile([core(busy), None, core(busy), None])],
            lambda: [handmade.profile([core(busy) for _ in range(4)])],
        ),
        written(
            "dropped", "dropped-events",
            lambda: [handmade.profile([core(busy)], [lost])],
            lambda: [handmade.profile([core(busy)])],
        ),
        written("skew", "clock-skew", partial(handmade.skewed, -60), partial(handmade.skewed, 40)),
        written(
            "over-peak", "impossible-efficiency",
            partial(handmade.efficient, 1.7), partial(handmade.efficient, 0.9),
        ),
        written("bandwidth", "hbm-bound", partial(handmade.streaming, 0.85), partial(handmade.efficient, 0.9)),
        written("one-step", "too-few-steps", partial(handmade.lengths, step), partial(handmade.lengths, *[step] * 8)),
        written(
            "slowing-down", "unstable-steps",
            partial(handmade.lengths, *[step * (1 + 0.05 * number) for number in range(12)]),
            partial(handmade.lengths, *[step] * 12),
        ),
        written(
            "warm-up", "unstable-steps",
            partial(handmade.lengths, 5 * step, 3 * step, *[step] * 10),
            partial(handmade.lengths, *[step] * 12),
        ),
        written(
            "evaluation", "unstable-steps",
            partial(handmade.lengths, *[step if number % 5 else 4 * step for number in range(1, 16)]),
            partial(handmade.lengths, *[step] * 15),
        ),
        written("infeed", "input-bound", partial(sent, "infeed", 300), partial(sent, "infeed", 2)),
        written("outfeed", "host-transfer", partial(sent, "outfeed", 200), partial(sent, "outfeed", 2)),
        written(
            "outside-compilation", "host-transfer",
            partial(sent, "host recv-done", 250), partial(sent, "host recv-done", 2),
        ),
        written("offload", "host-transfer", partial(handmade.offload, 400), partial(handmade.offload, 10)),
        written("late-launch", "host-bound", partial(handmade.launched_late, 350), partial(handmade.launched_late, 10)),
        written(
            "gaps-in-memory", "fragmentation",
            partial(handmade.fragmented, FIXTURES / "remat-layers-repaired.xplane.pb.gz", 4.0),
            partial(fixture, "remat-layers-repaired"),
        ),
    ]  # fmt: skip


CASES: dict[str, Case] = {
    case.name: case
    for case in (
        *(of_fixtures(name, rule, "compiled for TPU", WORK.get(name, 1.0)) for name, rule in COMPILED.items()),
        *(of_fixtures(name, rule, "captured on CPU") for name, rule in CAPTURED.items()),
        Case("slow-loader", "input-bound", "captured on CPU",
             partial(sample, "jax_cpu_input_bound"), partial(sample, "jax_cpu")),
        Case("slow-map", "input-bound", "captured on CPU",
             partial(sample, "tf_cpu"), partial(sample, "tf_cpu_healthy")),
        *_handmade(),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What the rules say of one profile."""

    analysis: Analysis
    verdicts: Verdicts

    @property
    def first(self) -> str:
        """The rule of the first finding; "" for none."""
        return self.verdicts.findings[0].rule if self.verdicts.findings else ""

    def of(self, rule: str) -> Finding | None:
        """Return a rule's first finding."""
        return next((finding for finding in self.verdicts.findings if finding.rule == rule), None)

    @property
    def step(self) -> float:
        """Mean step time in seconds."""
        return float(self.analysis.results["steps"].facts.mean_time)


def analyse(profiles: Sequence[bytes], settings: Settings | None = None) -> Outcome:
    """Analyse the profiles of a run's hosts and run the built-in rules."""
    settings = settings or Settings(strict=True)
    parts = []
    for number, data in enumerate(profiles):
        view = HostView(HostProfile.from_bytes(f"host{number}", data), settings)
        parts.append(analyze_view(view, SourceFile(name="", size=len(data), sha256=""), ANALYZERS))
    analysis = merge_parts("planted", parts, settings, ANALYZERS)
    return Outcome(analysis, run_rules(analysis, RULES))


@cache
def outcome(name: str, kind: Literal["faulty", "repaired"]) -> Outcome:
    """Return what the rules say of a case's profile, worked out once."""
    case = CASES[name]
    return analyse(case.faulty() if kind == "faulty" else case.repaired())
