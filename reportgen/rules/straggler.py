"""Hosts that are slower than the others, for which everyone waits."""

from __future__ import annotations

import pandas as pd

from reportgen.analyzers.tables import unique_slugs
from reportgen.document import Action, Evidence, Location, Threshold
from reportgen.rules.base import CAPTURE_STEPS, CannotTell, Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.parts import SHOWN, of_categories, time_saving
from reportgen.units import percent, seconds, significant

_ACTIONS = (
    Action(text="Look at that host first: other jobs on it, throttling, a slow disk or network path, a different "
           "software version. Swap it out if nothing explains it."),
    Action(text="Check that it does not do more than the others: logging, checkpointing, evaluation, a larger shard of "
           "the data."),
)  # fmt: skip


class Straggler(Rule):
    """Hosts whose own work, collectives left out, takes longer than the others' by XProf's modified z score."""

    id = "straggler"
    title = "Slow hosts"
    needs = ("hosts", "steps")
    remedy = CAPTURE_STEPS
    thresholds = (
        Threshold(
            name="score", value=3.5, unit="modified z score", reason="Iglewicz and Hoaglin's limit, XProf's too."
        ),
        Threshold(name="slowness", value=0.02, unit="over the median host", reason="Less is noise between machines."),
        Threshold(name="hosts", value=3, unit="hosts", reason="Among two hosts nobody knows which one is odd."),
        Threshold(name="barrier", value=0.1, unit="of device time", reason="XProf's limit for barrier-cores."),
    )
    silenced_by = ("input-bound",)

    def check(self, evidence: Evidences) -> Outcome:
        """Score the hosts' own work; waiting at barriers is told even where no host stands out."""
        hosts, limits = evidence.facts("hosts").by_host, evidence.limits
        if not len(hosts):
            return CannotTell("No host has steps.", self.remedy)
        slow = hosts[(hosts["score"] > limits["score"]) & (hosts["slowness"] > limits["slowness"])]
        if len(hosts) >= limits["hosts"] and len(slow):
            return Found((_slow(evidence, slow.sort_values("own_s", ascending=False)),))
        waiting = float(of_categories(evidence, ["barrier-cores"])["self_s"].sum())
        if evidence.share(waiting) >= limits["barrier"]:
            return Found((_waiting(evidence, waiting),))
        if len(hosts) < limits["hosts"]:
            return NotApplicable(f"{len(hosts)} host(s): it takes {limits['hosts']:.0f} to name a slow one.")
        return Fine(f"No host of {len(hosts)} is slower than the others.")


def _slow(evidence: Evidences, slow: pd.DataFrame) -> Draft:
    hosts = evidence.facts("hosts").by_host
    ids = dict(zip(hosts.sort_values("own_s", ascending=False, kind="stable")["host"], _row_ids(hosts), strict=True))
    worst = slow.iloc[0]
    lost = float(worst["own_s"] - hosts["own_s"].median())
    names = ", ".join(slow["host"].head(3))
    return Draft(
        title=f"{len(slow)} of {len(hosts)} hosts {'holds' if len(slow) == 1 else 'hold'} the others up: {names}",
        summary=f"{worst['host']} works {seconds(float(worst['own_s']))} a step, {percent(float(worst['slowness']))} "
        "more than the median host; the others wait for it in their collectives.",
        evidence=tuple(
            Evidence(
                text=f"{row['host']}: {percent(float(row['slowness']))} over the median, score "
                f"{significant(float(row['score']))}; own work a step",
                value=float(row["own_s"]),
                unit="seconds",
                table="hosts",
                row=ids[row["host"]],
            )
            for row in slow.head(SHOWN).to_dict("records")
        ),
        threshold="score",
        saving=time_saving(
            evidence, 0.5 * lost, lost, lost, "measured", "The slowest host's own work less that of the median host."
        ),
        confidence="high",
        locations=tuple(
            Location(kind="host", name=str(name), table="hosts", row=ids[name]) for name in slow["host"].head(SHOWN)
        ),
        actions=_ACTIONS,
    )


def _row_ids(hosts: pd.DataFrame) -> list[str]:
    return unique_slugs("host", hosts.sort_values("own_s", ascending=False, kind="stable")["host"])


def _waiting(evidence: Evidences, waiting: float) -> Draft:
    share = evidence.share(waiting)
    return Draft(
        title=f"Cores wait {percent(share)} of their time at barriers for others",
        summary="No host of this profile stands out; the one that the others wait for may not have been captured.",
        evidence=(Evidence(text="barrier-cores a step", value=evidence.per_step(waiting), unit="seconds"),),
        threshold="barrier",
        saving=None,
        confidence="medium",
        actions=(Action(text="Capture all hosts at once, so that the late one can be named."),),
        stake=share,
    )
