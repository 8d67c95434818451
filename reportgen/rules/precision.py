"""Dots and convolutions in more precision than they need, and conversions there and back."""

from __future__ import annotations

from collections import Counter

import pandas as pd

from reportgen.document import Action, Evidence, Threshold
from reportgen.rules.base import Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.matrix import Diagnosis, diagnoses
from reportgen.rules.movement import moving_ops
from reportgen.rules.parts import SHOWN, a_step, op_evidence, op_location, op_locations, step_text, time_saving
from reportgen.units import percent, seconds

_MATRIX_ACTIONS = (
    Action(
        text="Use the default precision, one pass in bfloat16 with float32 sums, except where the loss needs more.",
        framework="jax",
        code="jax.config.update('jax_default_matmul_precision', 'default')\ny = jnp.dot(x, w)   # no "
        "precision='highest'",
    ),
    Action(
        text="Compute in bfloat16, keep variables in float32.",
        framework="tensorflow",
        code="tf.keras.mixed_precision.set_global_policy('mixed_bfloat16')",
    ),
    Action(
        text="Compute in bfloat16, keep variables in float32.",
        framework="pytorch_xla",
        code="torch_xla.backends.set_mat_mul_precision('default')\n"
        "with torch.autocast('xla', dtype=torch.bfloat16): loss = model(x)",
    ),
)
_CONVERT_ACTIONS = (
    Action(text="Choose one type for activations and keep it from layer to layer; convert once at the edges, and let "
           "sums and normalisation widen inside the fused op only."),
    Action(
        text="Look for astype(float32) between layers, and for float32 constants that widen their operands.",
        framework="jax",
        code="scale = jnp.asarray(0.5, x.dtype)   # not 0.5 as a float32 array",
    ),
)  # fmt: skip


class Precision(Rule):
    """Passes of the matrix unit beyond one, and time in conversions of type."""

    id = "precision"
    title = "Precision of dots and convolutions"
    thresholds = (
        Threshold(
            name="share", value=0.02, unit="of device time", reason="Less than a fiftieth is not worth a change."
        ),
        Threshold(
            name="conversions",
            value=0.05,
            unit="of device time",
            reason="Conversions that no other op takes in cost a read and a write each.",
        ),
    )

    def check(self, evidence: Evidences) -> Outcome:
        """Sum the extra passes of dots and convolutions, and the time of conversions."""
        if evidence.facts("op-profile").device != "TPU":
            return NotApplicable("The passes of other devices' matrix units are not known.")
        found = [one for one in diagnoses(evidence) if one.cause == "precision"]
        extra = evidence.share(sum(one.time * one.saved[1] for one in found if one.saved))
        conversions = moving_ops(evidence, "conversion")
        converting = evidence.share(float(conversions["self_s"].sum()))
        drafts = []
        if found and extra >= evidence.limits["share"]:
            drafts.append(_passes(evidence, found, extra))
        if converting >= evidence.limits["conversions"]:
            drafts.append(_conversions(evidence, conversions, converting))
        if drafts:
            return Found(tuple(drafts))
        return Fine(f"Extra passes cost {percent(extra)} of device time, conversions of type {percent(converting)}.")


def _passes(evidence: Evidences, found: list[Diagnosis], extra: float) -> Draft:
    low, likely, high = (
        evidence.per_step(sum(one.time * one.saved[part] for one in found if one.saved)) for part in range(3)
    )
    levels = Counter(one.op.precision for one in found if one.op is not None)
    names = " and ".join(f"{count} at {level} precision" for level, count in sorted(levels.items()))
    time = evidence.per_step(sum(one.time for one in found))
    return Draft(
        title=f"Extra passes for precision take {percent(extra)} of device time: {names}",
        summary=f"These dots and convolutions take {seconds(time)} {a_step(evidence)}. The matrix unit multiplies "
        "bfloat16; float32 at high precision takes three passes, at highest six.",
        evidence=tuple(
            op_evidence(one.row, f"{one.op.precision} precision" if one.op else "", evidence) for one in found[:SHOWN]
        ),
        threshold="share",
        saving=time_saving(
            evidence,
            low,
            likely,
            high,
            "modelled",
            "One pass of the matrix unit instead of three (high) or six (highest); moving data stays.",
        ),
        confidence="high",
        locations=tuple(op_location(one.row) for one in found[:SHOWN]),
        actions=_MATRIX_ACTIONS,
    )


def _conversions(evidence: Evidences, ops: pd.DataFrame, share: float) -> Draft:
    time = float(ops["self_s"].sum())
    step = evidence.per_step(time)
    return Draft(
        title=f"Conversions between types take {percent(share)} of device time",
        summary=f"{step_text(evidence, time)} go into ops that change the type of their values and nothing else.",
        evidence=tuple(
            Evidence(
                text=f"{row['name']}: {row['shape']}", value=evidence.per_step(float(row["self_s"])), unit="seconds",
                table="hlo_ops", row=str(row["row_id"]),
            )
            for row in ops.head(SHOWN).to_dict("records")
        ),
        threshold="conversions",
        saving=time_saving(
            evidence, 0.5 * step, 0.8 * step, step, "heuristic", "The time of these ops; some conversions are needed."
        ),
        confidence="medium",
        locations=op_locations(ops),
        actions=_CONVERT_ACTIONS,
        suffix="conversions",
    )  # fmt: skip
