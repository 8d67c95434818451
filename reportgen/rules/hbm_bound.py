"""The program as a whole is limited by memory bandwidth."""

from __future__ import annotations

from reportgen.document import Action, Evidence, Threshold
from reportgen.rules.base import CannotTell, Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.parts import op_evidence, op_locations
from reportgen.units import percent

_ACTIONS = (
    Action(text="Move fewer bytes: bfloat16 activations and optimiser state, fused operations, donated arguments."),
    Action(text="Do more with each byte: larger batches per device, wider layers, fused attention and normalisation."),
)


class HbmBound(Rule):
    """Bandwidth of the device's memory near its peak while the matrix units have time."""

    id = "hbm-bound"
    title = "Memory bandwidth of the whole program"
    thresholds = (
        Threshold(
            name="bandwidth", value=0.7, unit="of HBM bandwidth", reason="XProf's rule for memory-bound programs."
        ),
        Threshold(name="flops", value=0.5, unit="of the peak FLOP rate", reason="Above it, compute is a limit, too."),
    )
    silenced_by = ("memory-bound-conv", "memory-bound-dot", "padding-waste", "impossible-efficiency")

    def check(self, evidence: Evidences) -> Outcome:
        """Compare both utilisations with their limits."""
        if evidence.facts("op-profile").device == "CPU":
            return NotApplicable("The program ran on the host's CPU.")
        flops, bandwidth = evidence.metric("flops_utilization"), evidence.metric("hbm_bandwidth_utilization")
        if flops is None or bandwidth is None:
            return CannotTell("The ops carry no cost, or the device's peaks are not known.", self.remedy)
        if bandwidth < evidence.limits["bandwidth"] or flops >= evidence.limits["flops"] or bandwidth > _POSSIBLE:
            return Fine(f"HBM bandwidth is used to {percent(bandwidth)}, the FLOP rate to {percent(flops)}.")
        largest = evidence.ops[evidence.ops["bound_by"] == "HBM"].head(4)
        return Found(
            (
                Draft(
                    title=f"The program is limited by memory bandwidth: it uses {percent(bandwidth)} of it",
                    summary=f"The FLOP rate is used to {percent(flops)} only. Faster arithmetic would change nothing; "
                    "fewer bytes would.",
                    evidence=(
                        Evidence(text="Share of HBM bandwidth", value=bandwidth, unit="fraction"),
                        Evidence(text="Share of the peak FLOP rate", value=flops, unit="fraction"),
                        *(op_evidence(row, "bound by HBM", evidence) for row in largest.to_dict("records")),
                    ),
                    threshold="bandwidth",
                    saving=None,
                    confidence="high",
                    locations=op_locations(largest),
                    actions=_ACTIONS,
                    stake=0.02,
                ),
            )
        )


_POSSIBLE = 1.05
