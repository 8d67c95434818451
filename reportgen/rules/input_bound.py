"""The program waits for its input."""

from __future__ import annotations

from reportgen.analyzers.classes import HOST_TRANSFER, INPUT
from reportgen.analyzers.input_pipeline.advice import ADVICE
from reportgen.analyzers.input_pipeline.facts import InputFacts
from reportgen.document import Location, Threshold
from reportgen.rules.base import CAPTURE_STEPS, CannotTell, Draft, Evidences, Fine, Found, Outcome, Rule
from reportgen.rules.parts import WIDEST, time_saving
from reportgen.units import percent, seconds


class InputBound(Rule):
    """Exposed wait for input over a share of the steps' periods."""

    id = "input-bound"
    title = "Waiting for input"
    needs = ("input-pipeline",)
    remedy = CAPTURE_STEPS
    thresholds = (
        Threshold(name="moderate", value=0.05, unit="of the step's period", reason="XProf's limit for input-bound."),
        Threshold(name="high", value=0.2, unit="of the step's period", reason="XProf's limit for highly input-bound."),
    )

    def check(self, evidence: Evidences) -> Outcome:
        """Compare the mean wait with the mean period; blame the stage that causes most of it."""
        facts: InputFacts = evidence.facts("input-pipeline")
        share, wait = facts.share, facts.wait_s
        if share is None or wait is None or facts.verdict.level == "cannot tell":
            return CannotTell(facts.verdict.reason or "The profile shows no steps.", self.remedy)
        if share < evidence.limits["moderate"]:
            return Fine(f"{percent(share)} of the time is spent waiting for input.")
        if _receives_only(evidence, facts):
            return Fine("The device waits to receive from its host, and the host shows no input: see host transfers.")
        return Found((_draft(evidence, facts, share, wait),))


def _receives_only(evidence: Evidences, facts: InputFacts) -> bool:
    """Whether all of the wait is in ops that receive from the host, as code outside the compiled program makes them."""
    if facts.blame is not None and facts.blame.source != "device":
        return False
    categories = set(evidence.ops["category"])
    return not categories & INPUT and bool(categories & HOST_TRANSFER)


def _draft(evidence: Evidences, facts: InputFacts, share: float, wait: float) -> Draft:
    degree = "highly " if share >= evidence.limits["high"] else ""
    advice = ADVICE[facts.blame.cause] if facts.blame is not None else None
    stage = f"{facts.blame.stage}, which {advice.fault}" if facts.blame is not None and advice else "input"
    why = f" {facts.blame.stage}: {advice.fault}. {advice.why}" if facts.blame is not None and advice else ""
    saving = facts.saving
    if saving is not None:
        low = max(saving.low, saving.high / WIDEST)
        saving = time_saving(evidence, low, max(low, saving.likely), saving.high, saving.basis, saving.how)
    return Draft(
        title=f"The program is {degree}input-bound: {percent(share)} of its time it waits for {stage}",
        summary=f"Each step waits {seconds(wait)} for its input; a faster device would not help.{why}",
        evidence=facts.evidence,
        threshold="high" if degree else "moderate",
        saving=saving,
        confidence="high" if facts.blame is not None else "medium",
        locations=() if facts.blame is None else (Location(kind="stage", name=facts.blame.where or facts.blame.stage),),
        actions=advice.actions if advice is not None else (),
        stake=share,
    )
