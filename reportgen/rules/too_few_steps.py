"""The capture holds too few whole steps to say how they vary."""

from __future__ import annotations

from reportgen.document import Action, Evidence, Threshold
from reportgen.rules.base import CAPTURE_STEPS, Draft, Evidences, Fine, Found, Outcome, Rule

_ACTIONS = (
    Action(
        text="Capture for longer, or until enough steps are in.",
        code="reportgen capture HOST:PORT --until-steps 10",
    ),
)


class TooFewSteps(Rule):
    """Whole steps in the capture below a number."""

    id = "too-few-steps"
    title = "Number of steps captured"
    needs = ("steps",)
    remedy = CAPTURE_STEPS
    thresholds = (
        Threshold(
            name="steps", value=3, unit="whole steps", reason="With fewer, a mean says nothing about the next step."
        ),
    )

    def check(self, evidence: Evidences) -> Outcome:
        """Count whole steps."""
        count = len(evidence.facts("steps").steps)
        if count >= evidence.limits["steps"]:
            return Fine(f"{count} whole steps.")
        return Found(
            (
                Draft(
                    title=f"Only {count} whole step{'' if count == 1 else 's'} captured",
                    summary="Step times, waits and shares of this report may be those of an unusual step.",
                    evidence=(Evidence(text="Whole steps", value=count, unit="count"),),
                    threshold="steps",
                    saving=None,
                    confidence="high",
                    actions=_ACTIONS,
                    stake=0.05,
                ),
            )
        )
