"""Dots and convolutions that wait for memory: what the two rules about them share."""

from __future__ import annotations

from reportgen.document import Action, Evidence, Threshold
from reportgen.rules.base import Draft, Evidences, Fine, Found, NotApplicable, Outcome
from reportgen.rules.matrix import Diagnosis, diagnoses
from reportgen.rules.parts import SHOWN, a_step, op_evidence, op_location
from reportgen.units import percent, seconds, significant

SHARE = Threshold(name="share", value=0.1, unit="of device time", reason="Below a tenth the rest of the step decides.")


def check_memory_bound(
    evidence: Evidences, kind: str, plural: str, actions: tuple[Action, ...], narrower: tuple[Action, ...]
) -> Outcome:
    """Sum the time of dots or convolutions whose operational intensity lies below the ridge.

    Args:
        evidence: What the analyses found.
        kind: "dot" or "convolution".
        plural: What several of them are called.
        actions: What helps any of them.
        narrower: What helps those that read float32.

    """
    profile = evidence.facts("op-profile")
    if profile.device == "CPU":
        return NotApplicable("The program ran on the host's CPU.")
    of_kind = [one for one in diagnoses(evidence) if one.kind == kind]
    if not of_kind:
        return NotApplicable(f"No {kind} ran.")
    found = [one for one in of_kind if one.cause == "memory"]
    share = evidence.share(sum(one.time for one in found))
    if share < evidence.limits["share"]:
        return Fine(f"Memory-bound {plural} take {percent(share)} of device time.")
    advice = (*actions, *(narrower if any(map(_is_wide, found)) else ()))
    return Found((_draft(evidence, found, plural, share, profile.peaks.ridge, advice),))


def _is_wide(one: Diagnosis) -> bool:
    """Whether an op reads float32, or may: without HLO nothing tells."""
    return one.op is None or "f32" in one.op.layout.element_types[:2]


def _draft(
    evidence: Evidences, found: list[Diagnosis], plural: str, share: float, ridge: float, actions: tuple[Action, ...]
) -> Draft:
    time = evidence.per_step(sum(one.time for one in found))
    worst = found[0]
    return Draft(
        title=f"{len(found)} memory-bound {plural} take {percent(share)} of device time",
        summary=f"They run {seconds(time)} {a_step(evidence)} at less than {significant(ridge)} FLOP per byte of HBM, "
        f"where memory is the limit: {worst.row['name']} does {significant(float(worst.row['hbm_intensity']))} FLOP "
        f"per byte and reaches {percent(worst.flops_utilization)} of the FLOP rate.",
        evidence=(
            Evidence(text="Ridge: FLOP per byte from which compute is the limit", value=ridge, unit="flops/byte"),
            *(op_evidence(one.row, _rates(one), evidence) for one in found[:SHOWN]),
        ),
        threshold="share",
        saving=None,
        confidence="high" if worst.op is not None else "medium",
        locations=tuple(op_location(one.row) for one in found[:SHOWN]),
        actions=actions,
        stake=share,
    )


def _rates(one: Diagnosis) -> str:
    return (
        f"{significant(float(one.row['hbm_intensity']))} FLOP/B, {percent(one.flops_utilization)} of the FLOP rate, "
        f"{percent(float(one.row['hbm_utilization']))} of HBM bandwidth"
    )
