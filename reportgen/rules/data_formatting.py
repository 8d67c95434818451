"""Copies, transposes and reshapes: time in which data only changes its layout."""

from __future__ import annotations

import pandas as pd

from reportgen.document import Action, Threshold
from reportgen.rules.base import Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.movement import moving_ops
from reportgen.rules.parts import category_evidence, op_locations, step_text, time_saving
from reportgen.units import percent

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

_EDGE_ACTIONS = (
    Action(
        text="Make larger programs: where the next operation is compiled together with this one, the copy vanishes."
    ),
    Action(
        text="Let the compiler choose the layout of what stays on the device between steps.",
        framework="jax",
        code="from jax.experimental.layout import Format, Layout\n"
        "step = jax.jit(train_step, in_shardings=Format(Layout.AUTO), out_shardings=Format(Layout.AUTO))",
    ),
)


class DataFormatting(Rule):
    """Time in data formatting over a share of the device's time."""

    id = "data-formatting"
    title = "Copies, transposes and reshapes"
    thresholds = (
        Threshold(
            name="share", value=0.05, unit="of device time", reason="Below a twentieth, other changes bring more."
        ),
        Threshold(
            name="edge",
            value=0.15,
            unit="of device time",
            reason="Copies at the edges belong to the caller, and vanish where several steps are one program.",
        ),
    )
    silenced_by = ("padding-waste",)

    def check(self, evidence: Evidences) -> Outcome:
        """Sum the self time of formatting ops, those at the program's edges apart."""
        if evidence.facts("op-profile").device == "CPU":
            return NotApplicable("The program ran on the host's CPU.")
        ops = moving_ops(evidence, "formatting")
        inside, edge = ops[~ops["at_edge"]], ops[ops["at_edge"]]
        share = evidence.share(float(inside["self_s"].sum()))
        edge_share = evidence.share(float(edge["self_s"].sum()))
        if share >= evidence.limits["share"]:
            return Found((_inside(evidence, inside, share),))
        if edge_share >= evidence.limits["edge"]:
            return Found((_at_edge(evidence, edge, edge_share),))
        return Fine(
            f"Copies, transposes and reshapes take {percent(share)} of device time, and {percent(edge_share)} for the "
            "layouts of arguments and results."
        )


def _inside(evidence: Evidences, ops: pd.DataFrame, share: float) -> Draft:
    time = float(ops["self_s"].sum())
    step, largest = evidence.per_step(time), ops.iloc[0]
    beside = ops[ops["beside"] != ""]
    near = evidence.share(float(beside["self_s"].sum()))
    around = f" {percent(near)} of device time is next to dots and convolutions." if near else ""
    return Draft(
        title=f"Copies, transposes and reshapes take {percent(share)} of device time",
        summary=f"{step_text(evidence, time)} go into changing layouts, which computes nothing. The largest is "
        f"{largest['name']}, {step_text(evidence, float(largest['self_s']))}.{around}",
        evidence=category_evidence(ops, evidence),
        threshold="share",
        saving=time_saving(
            evidence, 0.4 * step, 0.8 * step, step, "heuristic",
            "The time of these ops; some layout changes are needed, so four fifths are likely.",
        ),
        confidence="medium",
        locations=op_locations(ops),
        actions=_ACTIONS,
    )  # fmt: skip


def _at_edge(evidence: Evidences, ops: pd.DataFrame, share: float) -> Draft:
    time = float(ops["self_s"].sum())
    return Draft(
        title=f"Layouts of arguments and results cost {percent(share)} of device time",
        summary=f"{step_text(evidence, time)} go into copies at the program's edges: it computes in other layouts than "
        "its caller sees.",
        evidence=category_evidence(ops, evidence),
        threshold="edge",
        saving=None,
        confidence="low",
        locations=op_locations(ops),
        actions=_EDGE_ACTIONS,
        suffix="edge",
        stake=0.01 * share,
    )
