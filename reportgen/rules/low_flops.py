"""Dots and convolutions that are slow although neither padding, precision nor memory explains it."""

from __future__ import annotations

from reportgen.document import Action, Threshold
from reportgen.rules.base import Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.matrix import Diagnosis, diagnoses
from reportgen.rules.parts import SHOWN, op_evidence, op_location, step_text
from reportgen.units import percent, seconds

# An op this short is dominated by starting and draining the unit.
_SHORT = 20e-6
_FULL = 0.8

_ACTIONS = (
    Action(
        text="Batch many small products into one: vmap or a batched einsum instead of a loop.",
        framework="jax",
        code="y = jnp.einsum('nij,njk->nik', a, b)   # instead of [x @ y for x, y in zip(a, b)]",
    ),
    Action(text="Batch many small products into one with tf.einsum or tf.linalg.matmul.", framework="tensorflow"),
    Action(text="Batch many small products into one with torch.bmm.", framework="pytorch_xla"),
    Action(text="Prefer few wide layers over many narrow ones, and sizes that are multiples of the matrix unit (128, "
           "or 256 from v6e on)."),
)  # fmt: skip


class LowFlops(Rule):
    """Dots and convolutions below half of the peak FLOP rate for another reason."""

    id = "low-flops"
    title = "Slow dots and convolutions"
    thresholds = (
        Threshold(name="share", value=0.1, unit="of device time", reason="Below a tenth the rest of the step decides."),
    )
    silenced_by = ("padding-waste", "precision")

    def check(self, evidence: Evidences) -> Outcome:
        """Sum the time that ops of cause "low" spend below the peak."""
        profile = evidence.facts("op-profile")
        if profile.device == "CPU":
            return NotApplicable("The program ran on the host's CPU.")
        every = diagnoses(evidence)
        if not every:
            return NotApplicable("No dot or convolution ran.")
        found = [one for one in every if one.cause == "low"]
        time = sum(one.time for one in found)
        share = evidence.share(time)
        if share < evidence.limits["share"]:
            return Fine(f"Slow dots and convolutions without a known cause take {percent(share)} of device time.")
        wasted = sum(one.time * (1 - min(1.0, one.flops_utilization)) for one in found)
        return Found(
            (
                Draft(
                    title=f"Dots and convolutions that reach less than half of the FLOP rate take {percent(share)} of "
                    "device time",
                    summary=f"Padding, precision and memory do not explain {step_text(evidence, time)}. "
                    f"{_reason(found[0])}",
                    evidence=tuple(
                        op_evidence(one.row, f"{percent(one.flops_utilization)} of the FLOP rate", evidence)
                        for one in found[:SHOWN]
                    ),
                    threshold="share",
                    saving=None,
                    confidence="low",
                    locations=tuple(op_location(one.row) for one in found[:SHOWN]),
                    actions=_ACTIONS,
                    stake=evidence.share(wasted),
                ),
            )
        )


def _reason(one: Diagnosis) -> str:
    average = float(one.row["average_s"])
    if average < _SHORT:
        return f"{one.row['name']} takes {seconds(average)} at a time: too short to fill the matrix unit."
    if one.op is not None and one.op.source_types == ("f32", "f32"):
        return f"{one.row['name']} reads float32 on both sides; bfloat16 halves what it moves."
    share = one.op.layout.unit_share if one.op is not None else None
    if share is not None and share < _FULL:
        return f"{one.row['name']} can use {percent(share)} of the matrix unit with its dimensions."
    return "Odd shapes, layouts or work fused into them may hold them up."
