"""Custom calls and Pallas kernels: time that no cost model explains."""

from __future__ import annotations

from reportgen.analyzers.classes import CUSTOM
from reportgen.document import Action, Threshold
from reportgen.rules.base import Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.parts import category_evidence, op_locations, step_text
from reportgen.units import percent

_ACTIONS = (
    Action(
        text="Give the kernel a cost estimate, so that profiles can tell how well it uses the device.",
        framework="jax",
        code="pl.pallas_call(kernel, cost_estimate=pl.CostEstimate(flops=..., bytes_accessed=..., transcendentals=0))",
    ),
    Action(text="Compare its time with the FLOPs and bytes that you know it needs: FLOPs over the device's peak, bytes "
           "over its bandwidth; the longer one is what it could reach."),
)  # fmt: skip


class CustomCall(Rule):
    """Time in custom calls without a cost over a share of the device's time."""

    id = "custom-call"
    title = "Custom calls and Pallas kernels"
    thresholds = (
        Threshold(
            name="share",
            value=0.1,
            unit="of device time",
            reason="From a tenth on, the report's utilisations leave out too much.",
        ),
    )

    def check(self, evidence: Evidences) -> Outcome:
        """Sum the time of custom calls whose FLOPs nobody knows."""
        ops = evidence.ops
        if evidence.facts("op-profile").device == "CPU":
            return NotApplicable("The program ran on the host's CPU.")
        custom = ops[ops["category"].isin(list(CUSTOM))]
        if not len(custom):
            return NotApplicable("The program makes no custom call.")
        blind = custom[custom["flops"].isna()]
        time = float(blind["self_s"].sum())
        share = evidence.share(time)
        if share < evidence.limits["share"]:
            return Fine(f"Custom calls without a cost model take {percent(share)} of device time.")
        return Found(
            (
                Draft(
                    title=f"Custom calls take {percent(share)} of device time and have no cost model",
                    summary=f"{step_text(evidence, time)} run in kernels whose FLOPs and bytes are not known: their "
                    "utilisation cannot be told, and the device's is a lower bound.",
                    evidence=category_evidence(blind, evidence),
                    threshold="share",
                    saving=None,
                    confidence="high",
                    locations=op_locations(blind),
                    actions=_ACTIONS,
                    stake=0.05 * share,
                ),
            )
        )
