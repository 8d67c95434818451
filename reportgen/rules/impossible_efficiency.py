"""Ops that seem to exceed what the device can do: a cost or a peak is wrong."""

from __future__ import annotations

from reportgen.document import Action, Threshold
from reportgen.rules.base import Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.parts import SHOWN, op_evidence, op_locations
from reportgen.units import percent

_ACTIONS = (
    Action(
        text="Give the device's true peaks.",
        code="reportgen report LOGDIR --peak-flops 197e12 --hbm-bandwidth 819e9",
    ),
    Action(text="If only some ops exceed the peak, their cost is wrong: sparse or packed kernels do less than the "
           "count says, a custom call's estimate may be too high, and data from a cache never touches HBM."),
)  # fmt: skip


class ImpossibleEfficiency(Rule):
    """Ops with a FLOP rate or an HBM rate above the peak."""

    id = "impossible-efficiency"
    title = "Efficiency above 100 %"
    thresholds = (
        Threshold(name="flops", value=1.1, unit="of the peak FLOP rate", reason="Clocks vary by some percent."),
        Threshold(name="hbm", value=1.3, unit="of the peak HBM bandwidth",
                  reason="Caches serve part of the bytes that an op asks for, on GPU in particular."),
        Threshold(name="share", value=0.02, unit="of device time", reason="Very short ops are timed too coarsely."),
    )  # fmt: skip

    def check(self, evidence: Evidences) -> Outcome:
        """Sum the time of ops above the peaks."""
        profile = evidence.facts("op-profile")
        if profile.device == "CPU":
            return NotApplicable("No peaks are known for the host's CPU.")
        if evidence.basis == "modelled":
            return NotApplicable("The times are modelled, not measured.")
        ops, limits = evidence.ops, evidence.limits
        over = ops[(ops["flops_utilization"] > limits["flops"]) | (ops["hbm_utilization"] > limits["hbm"])]
        share = float(over["self_s"].sum()) / profile.self_time if profile.self_time else 0.0
        if share < limits["share"]:
            return Fine("No op that matters exceeds the device's peaks.")
        worst = over.iloc[0]
        compute = bool(worst["flops_utilization"] > limits["flops"])
        rate = percent(float(worst["flops_utilization" if compute else "hbm_utilization"]))
        what = "FLOP rate" if compute else "HBM bandwidth"
        return Found(
            (
                Draft(
                    title=f"{worst['name']} seems to reach {rate} of the device's {what}",
                    summary=f"{len(over)} ops with {percent(share)} of the op time exceed a peak. Their cost or the "
                    "peak is wrong, and so are this report's utilisations.",
                    evidence=tuple(
                        op_evidence(
                            row,
                            f"{percent(float(row['flops_utilization']))} of the FLOP rate, "
                            f"{percent(float(row['hbm_utilization']))} of HBM bandwidth",
                            evidence,
                        )
                        for row in over.head(SHOWN).to_dict("records")
                    ),
                    threshold="flops" if compute else "hbm",
                    saving=None,
                    confidence="high",
                    locations=op_locations(over),
                    actions=_ACTIONS,
                    stake=0.15 * share,
                ),
            )
        )
