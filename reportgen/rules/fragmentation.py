"""Memory that is allocated and not in use even at the peak."""

from __future__ import annotations

from reportgen.document import Action, Evidence, Location, Threshold
from reportgen.rules.base import Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.memory_parts import REMEDY, largest_program
from reportgen.rules.parts import byte_saving
from reportgen.units import binary, percent

_ACTIONS = (
    Action(text="Make the large temporaries alike in size and lifetime: equal micro-batches and layers pack best; one "
           "odd, long-lived buffer in the middle splits the space."),
    Action(text="Free large values early: return less from the forward pass, and compute the loss in chunks."),
    Action(text="Try another scheduler or memory limit, which packs anew.",
           code="LIBTPU_INIT_ARGS='--xla_latency_hiding_scheduler_rerun=2'"),
)  # fmt: skip


class Fragmentation(Rule):
    """Bytes allocated for temporaries beyond those in use at the peak."""

    id = "fragmentation"
    title = "Fragmented memory"
    needs = ("program-memory",)
    remedy = REMEDY
    thresholds = (
        Threshold(name="share", value=0.1, unit="of the program's memory", reason="XLA packs to within some percent."),
        Threshold(name="bytes", value=16 << 20, unit="bytes", reason="Alignment alone costs small programs some."),
    )

    def check(self, evidence: Evidences) -> Outcome:
        """Compare what is allocated with what is in use at the peak."""
        program = largest_program(evidence)
        if isinstance(program, NotApplicable):
            return program
        lost = program.fragmentation
        share = lost / program.allocated if program.allocated else 0.0
        if share < evidence.limits["share"] or lost < evidence.limits["bytes"]:
            return Fine(f"{binary(max(0, lost))} are allocated beyond the peak, {percent(max(0.0, share))}.")
        return Found(
            (
                Draft(
                    title=f"{binary(lost)} of {program.name}'s memory are fragmentation, {percent(share)}",
                    summary=f"It allocates {binary(program.allocated)} while at most {binary(program.live)} are in use "
                    "at once: buffers leave gaps that no other buffer fits into.",
                    evidence=(
                        Evidence(text="Allocated", value=float(program.allocated), unit="bytes"),
                        Evidence(text="In use at the peak", value=float(program.live), unit="bytes"),
                    ),
                    threshold="share",
                    saving=byte_saving(
                        0.4 * lost, 0.7 * lost, lost, "heuristic", "The gaps; seldom can all of them be closed."
                    ),
                    confidence="medium",
                    locations=(Location(kind="module", name=program.name),),
                    actions=_ACTIONS,
                    stake=share,
                ),
            )
        )
