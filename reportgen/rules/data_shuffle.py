"""Gather, scatter, sort and slices: time in which data is rearranged element by element."""

from __future__ import annotations

from reportgen.document import Action, Threshold
from reportgen.rules.base import Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.movement import last_of
from reportgen.rules.parts import category_evidence, op_locations, step_text
from reportgen.units import percent

_WORDS = ("gather", "scatter", "sort", "dynamic-slice", "dynamic-update-slice", "top-k", "select-and-scatter")
_FRAMEWORK_OPS = frozenset(
    {"gather", "scatter", "scatter-add", "scatter_add", "sort", "argsort", "top_k", "dynamic_slice",
     "dynamic_update_slice", "GatherV2", "Gather", "ScatterNd", "ResourceGather", "TopKV2"}
)  # fmt: skip

_ACTIONS = (
    Action(
        text="Write small look-ups as a matrix product with a one-hot operand, which the matrix unit does.",
        framework="jax",
        code="rows = jax.nn.one_hot(ids, size, dtype=table.dtype) @ table   # instead of table[ids]",
    ),
    Action(
        text="Use tf.one_hot and tf.matmul for small tables instead of tf.gather.",
        framework="tensorflow",
        code="rows = tf.matmul(tf.one_hot(ids, size, dtype=table.dtype), table)",
    ),
    Action(
        text="Use torch.nn.functional.one_hot and a product for small tables instead of indexing.",
        framework="pytorch_xla",
        code="rows = torch.nn.functional.one_hot(ids, size).to(table.dtype) @ table",
    ),
    Action(text="Gather whole rows in sorted order rather than single elements, and do sorting outside the step."),
)


class DataShuffle(Rule):
    """Time in gather, scatter, sort and slices over a share of the device's time."""

    id = "data-shuffle"
    title = "Gather, scatter, sort and slices"
    thresholds = (
        Threshold(
            name="share",
            value=0.1,
            unit="of device time",
            reason="XProf's rule fires at 30 % of a step; a tenth is worth a look.",
        ),
    )

    def check(self, evidence: Evidences) -> Outcome:
        """Sum the self time of shuffling ops."""
        ops = evidence.ops
        if evidence.facts("op-profile").device == "CPU":
            return NotApplicable("The program ran on the host's CPU.")
        last = last_of(ops["framework_op"])
        fused = ops["category"].isin(["loop fusion", "input fusion", "custom fusion"]) & last.isin(_FRAMEWORK_OPS)
        found = ops[ops["category"].str.startswith(_WORDS) | fused]
        time = float(found["self_s"].sum())
        share = evidence.share(time)
        if share < evidence.limits["share"]:
            return Fine(f"Gather, scatter, sort and slices take {percent(share)} of device time.")
        return Found(
            (
                Draft(
                    title=f"Gather, scatter, sort and slices take {percent(share)} of device time",
                    summary=f"{step_text(evidence, time)} go into moving single elements or rows, for which the device "
                    "has no wide unit.",
                    evidence=category_evidence(found, evidence),
                    threshold="share",
                    saving=None,
                    confidence="medium",
                    locations=op_locations(found),
                    actions=_ACTIONS,
                    stake=share,
                ),
            )
        )
