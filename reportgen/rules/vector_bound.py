"""Vector and scalar operations take the time that the matrix units could use."""

from __future__ import annotations

from reportgen.analyzers.classes import CONTAINERS, CUSTOM, MATRIX, is_collective, role_of
from reportgen.document import Action, Threshold
from reportgen.rules.base import Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.movement import moving_ops
from reportgen.rules.parts import category_evidence, op_locations, step_text
from reportgen.units import percent

_ACTIONS = (
    Action(text="Turn vector work into matrix work where the mathematics allows: a sum over an axis is a product with "
           "ones, a sliding sum a convolution, a small table look-up a product with a one-hot operand."),
    Action(text="Let the compiler fuse: avoid values that are used far apart, host callbacks and barriers between "
           "elementwise operations; combine optimiser updates of many small weights."),
)  # fmt: skip
_NARROWER = (
    Action(
        text="Keep activations in bfloat16: vector units and memory then move half the bytes.",
        framework="jax",
        code="x = x.astype(jnp.bfloat16)",
    ),
    Action(
        text="Switch mixed precision on: tf.keras.mixed_precision.set_global_policy('mixed_bfloat16').",
        framework="tensorflow",
    ),
    Action(text="Wrap the forward pass in torch.autocast('xla', dtype=torch.bfloat16).", framework="pytorch_xla"),
)


class VectorBound(Rule):
    """Time of elementwise, reduction and scalar ops over a share of the device's time."""

    id = "vector-bound"
    title = "Time in vector and scalar operations"
    thresholds = (
        Threshold(
            name="share",
            value=0.35,
            unit="of device time",
            reason="In well-tuned dense models vector work stays below a third; above it the matrix units starve.",
        ),
        Threshold(
            name="bandwidth",
            value=0.6,
            unit="of HBM bandwidth",
            reason="An op above it waits for memory, not for the vector unit.",
        ),
    )
    silenced_by = ("precision",)

    def check(self, evidence: Evidences) -> Outcome:
        """Sum the self time of ops that are neither matrix work nor data movement."""
        ops = evidence.ops
        if evidence.facts("op-profile").device != "TPU":
            return NotApplicable("Vector and matrix units are told apart on TPU only.")
        moving = {*moving_ops(evidence, "formatting")["row_id"], *moving_ops(evidence, "conversion")["row_id"]}
        waits = ops["hbm_utilization"] >= evidence.limits["bandwidth"]
        found = ops[ops["category"].map(_is_vector).astype(bool) & ~ops["row_id"].isin(moving) & ~waits]
        time = float(found["self_s"].sum())
        share = evidence.share(time)
        if share < evidence.limits["share"]:
            return Fine(f"Vector and scalar operations take {percent(share)} of device time.")
        wide = bool(found["expression"].str.contains("f32[", regex=False).any())
        return Found(
            (
                Draft(
                    title=f"Vector and scalar operations take {percent(share)} of device time",
                    summary=f"For {step_text(evidence, time)} the matrix units, which hold almost all of the device's "
                    "FLOP rate, have nothing to do.",
                    evidence=category_evidence(found, evidence),
                    threshold="share",
                    saving=None,
                    confidence="medium",
                    locations=op_locations(found),
                    actions=(*_ACTIONS, *(_NARROWER if wide else ())),
                    stake=share - evidence.limits["share"] / 2,
                ),
            )
        )


def _is_vector(category: str) -> bool:
    return (
        role_of(category) == "compute"
        and category not in MATRIX | CUSTOM | CONTAINERS
        and not category.startswith(("gather", "scatter", "sort", "dynamic"))
        and not is_collective(category)
    )
