"""The program waits for its input."""

from __future__ import annotations

from reportgen.analyzers.input_pipeline.advice import ADVICE
from reportgen.analyzers.input_pipeline.facts import InputFacts
from reportgen.analyzers.input_pipeline.present import HOW_TO_SHOW
from reportgen.analyzers.input_pipeline.saving import stage_row
from reportgen.document import Location, Threshold
from reportgen.rules.base import CannotTell, Draft, Evidences, Fine, Found, Outcome, Rule
from reportgen.units import percent, seconds


class InputBound(Rule):
    """Exposed wait for input over a share of the steps' periods."""

    id = "input-bound"
    title = "Waiting for input"
    needs = ("input-pipeline",)
    remedy = HOW_TO_SHOW
    thresholds = (
        Threshold(name="moderate", value=0.05, unit="of the step's period", reason="XProf's limit for input-bound."),
        Threshold(name="high", value=0.2, unit="of the step's period", reason="XProf's limit for highly input-bound."),
    )

    def check(self, evidence: Evidences) -> Outcome:
        """Take the analysis's verdict, and its stage to blame."""
        facts: InputFacts | None = evidence.facts("input-pipeline")
        if facts is None or facts.means is None or facts.verdict.level == "cannot tell":
            return CannotTell(facts.verdict.reason if facts else "The input was not looked at.", self.remedy)
        share, wait = facts.means.share, facts.means.wait_s
        if share < evidence.limits["moderate"] or facts.blame is None:
            return Fine(f"{percent(share)} of the time is spent waiting for input.")
        high = share >= evidence.limits["high"]
        blame, advice = facts.blame, ADVICE[facts.blame.cause]
        row = stage_row(blame.where) if blame.source == "tf.data" else ""
        return Found(
            (
                Draft(
                    title=f"The program is {'highly ' if high else ''}input-bound: {percent(share)} of its time it "
                    f"waits for {blame.stage}, which {advice.fault}",
                    summary=f"Each step waits {seconds(wait)} for its input. {advice.why}",
                    evidence=facts.evidence,
                    threshold="high" if high else "moderate",
                    saving=facts.saving,
                    confidence="high" if blame.share > 0.5 else "medium",
                    locations=(
                        Location(
                            kind="stage", name=blame.where or blame.stage, table="input_stages" if row else "", row=row
                        ),
                    ),
                    actions=advice.actions,
                    stake=share,
                ),
            )
        )
