"""Cores of one program that have unequal work."""

from __future__ import annotations

import pandas as pd

from reportgen.analyzers.tables import unique_slugs
from reportgen.document import Action, Evidence, Location, Threshold
from reportgen.rules.base import CAPTURE_STEPS, Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.parts import SHOWN, time_saving
from reportgen.units import percent, seconds

_ACTIONS = (
    Action(text="Divide the work evenly: batches, sequence lengths and experts so that every core gets as much, and "
           "sharded dimensions that are multiples of the number of cores."),
    Action(
        text="Pack sequences of unequal length, and see to it that no shard holds padding only.",
        framework="jax",
        code="assert batch.shape[0] % mesh.shape['data'] == 0",
    ),
    Action(text="Balance pipeline stages and experts by their measured time, not by their number of layers."),
)  # fmt: skip


class CoreImbalance(Rule):
    """Spread of the cores' own work, collectives and idle time left out."""

    id = "core-imbalance"
    title = "Balance between cores"
    needs = ("steps", "hosts")
    remedy = CAPTURE_STEPS
    thresholds = (
        Threshold(
            name="spread", value=0.1, unit="slowest core over the mean", reason="Less comes from memory and clocks."
        ),
        Threshold(name="share", value=0.03, unit="of the step", reason="What the others wait must matter."),
    )
    silenced_by = ("straggler",)

    def check(self, evidence: Evidences) -> Outcome:
        """Compare the busiest core's own work with the mean."""
        cores = own_work(evidence.facts("steps").by_core)
        if len(cores) < 2:
            return NotApplicable("One core ran.")
        mean, worst = float(cores["own_s"].mean()), cores.iloc[0]
        lost = float(worst["own_s"]) - mean
        spread = lost / mean if mean else 0.0
        share = lost / evidence.step_time if evidence.step_time else 0.0
        if spread < evidence.limits["spread"] or share < evidence.limits["share"]:
            return Fine(f"The busiest core works {percent(spread)} more than the mean.")
        ids = dict(zip(evidence.facts("hosts").by_core["core"], _row_ids(evidence), strict=True))
        return Found(
            (
                Draft(
                    title=f"{worst['core']} works {percent(spread)} more than the mean core; the others wait",
                    summary=f"It has {seconds(float(worst['own_s']))} of own work a step, the mean is {seconds(mean)}. "
                    "A step takes as long as its slowest core.",
                    evidence=tuple(
                        Evidence(
                            text=f"{row['core']}: own work a step", value=float(row["own_s"]), unit="seconds",
                            table="cores", row=ids.get(row["core"], ""),
                        )
                        for row in [*cores.head(SHOWN // 2).to_dict("records"), *cores.tail(1).to_dict("records")]
                    ),
                    threshold="spread",
                    saving=time_saving(
                        evidence, 0.5 * lost, 0.8 * lost, lost, "measured",
                        "The busiest core's own work less the mean's: what perfect balance would bring.",
                    ),
                    confidence="medium",
                    locations=(
                        Location(kind="core", name=str(worst["core"]), table="cores", row=ids.get(worst["core"], "")),
                    ),
                    actions=_ACTIONS,
                ),
            )
        )  # fmt: skip


def own_work(by_core: pd.DataFrame) -> pd.DataFrame:
    """Return each core's mean work a step in seconds, the busiest first: core and own_s."""
    own = by_core["time_s"] - by_core["collectives"] - by_core["idle"] - by_core["input"]
    means = own.groupby(by_core["core"]).mean().sort_values(ascending=False, kind="stable")
    return means.rename("own_s").reset_index()


def _row_ids(evidence: Evidences) -> list[str]:
    return unique_slugs("core", evidence.facts("hosts").by_core["core"])
