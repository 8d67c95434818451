"""Copies, transposes and reshapes: time in which data only changes its layout."""

from __future__ import annotations

import pandas as pd

from reportgen.document import Action, Threshold
from reportgen.rules.base import Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.parts import a_step, category_evidence, op_locations, step_text, time_saving
from reportgen.units import percent, seconds

# Copies between memories (copy-start, copy-done) are no formatting.
_CATEGORIES = frozenset({"data formatting", "copy", "transpose", "reshape"})
_FRAMEWORK_OPS = frozenset({"transpose", "reshape", "squeeze", "expand_dims", "copy", "rev", "Transpose", "Reshape"})

_ACTIONS = (
    Action(
        text="Keep arrays in the order in which the matrix work reads them: name the dimensions in the dot or "
        "convolution instead of transposing before it.",
        framework="jax",
        code="scores = jnp.einsum('bqhd,bkhd->bhqk', q, k)   # instead of q.transpose(0, 2, 1, 3) @ ...",
    ),
    Action(
        text="Let the layer take the layout: channels last on TPU, and tf.einsum instead of transpose and matmul.",
        framework="tensorflow",
        code="tf.einsum('bqhd,bkhd->bhqk', q, k)",
    ),
    Action(
        text="Use torch.einsum, and avoid .contiguous() and .permute() inside the step.",
        framework="pytorch_xla",
        code="torch.einsum('bqhd,bkhd->bhqk', q, k)",
    ),
    Action(text="Change the layout once outside the step (of weights and inputs) instead of in every step."),
)


class DataFormatting(Rule):
    """Time in data formatting over a share of the device's time."""

    id = "data-formatting"
    title = "Copies, transposes and reshapes"
    thresholds = (
        Threshold(
            name="share", value=0.05, unit="of device time", reason="Below a twentieth, other changes bring more."
        ),
    )
    silenced_by = ("padding-waste",)

    def check(self, evidence: Evidences) -> Outcome:
        """Sum the self time of formatting ops."""
        if evidence.facts("op-profile").device == "CPU":
            return NotApplicable("The program ran on the host's CPU.")
        ops = formatting_ops(evidence)
        time = float(ops["self_s"].sum())
        share = evidence.share(time)
        if share < evidence.limits["share"]:
            return Fine(f"Copies, transposes and reshapes take {percent(share)} of device time.")
        step = evidence.per_step(time)
        largest = ops.iloc[0]
        return Found(
            (
                Draft(
                    title=f"Copies, transposes and reshapes take {percent(share)} of device time",
                    summary=f"{step_text(evidence, time)} go into changing layouts, which computes nothing. The "
                    f"largest is {largest['name']}, {seconds(evidence.per_step(float(largest['self_s'])))} "
                    f"{a_step(evidence)}.",
                    evidence=category_evidence(ops, evidence),
                    threshold="share",
                    saving=time_saving(
                        evidence, 0.4 * step, 0.8 * step, step, "heuristic",
                        "The time of these ops; some layout changes are needed, so four fifths are likely.",
                    ),
                    confidence="medium",
                    locations=op_locations(ops),
                    actions=_ACTIONS,
                ),
            )
        )  # fmt: skip


def formatting_ops(evidence: Evidences) -> pd.DataFrame:
    """Return ops that only move data into another layout: by category, or a fusion without FLOPs around such an op."""
    ops = evidence.ops
    last = ops["framework_op"].str.rstrip(":").str.rsplit("/", n=1).str[-1].str.split("[").str[0]
    fused = ops["category"].isin(["loop fusion", "custom fusion"]) & (ops["flops"] == 0) & last.isin(_FRAMEWORK_OPS)
    return ops[ops["category"].isin(_CATEGORIES) | fused]
