"""The matrix units are the limit: a healthy state, told as such."""

from __future__ import annotations

from reportgen.document import Threshold
from reportgen.rules.base import CannotTell, Evidences, Fine, NotApplicable, Outcome, Rule
from reportgen.units import percent


class ComputeBound(Rule):
    """FLOP rate near the peak; never a finding, since nothing is wrong then."""

    id = "compute-bound"
    title = "FLOP rate of the whole program"
    thresholds = (
        Threshold(
            name="flops", value=0.7, unit="of the peak FLOP rate", reason="XProf's rule for compute-bound programs."
        ),
    )

    def check(self, evidence: Evidences) -> Outcome:
        """Say whether compute is the limit, and what would help then."""
        if evidence.facts("op-profile").device == "CPU":
            return NotApplicable("The program ran on the host's CPU.")
        flops = evidence.metric("flops_utilization")
        if flops is None:
            return CannotTell("The ops carry no cost, or the device's peaks are not known.", self.remedy)
        if flops >= evidence.limits["flops"]:
            return Fine(
                f"Compute is the limit: {percent(flops)} of the peak FLOP rate. Only less or cheaper arithmetic makes "
                "it faster: int8 or fp8 products, sparsity, a smaller model, more devices."
            )
        return Fine(f"The FLOP rate is used to {percent(flops)}; compute is not what limits the program as a whole.")
