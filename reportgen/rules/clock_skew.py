"""The clocks of host and device disagree: ops start before anyone launched them."""

from __future__ import annotations

from reportgen.document import Action, Evidence, Location, Threshold
from reportgen.rules.base import Draft, Evidences, Fine, Found, Outcome, Rule
from reportgen.rules.parts import SHOWN
from reportgen.units import percent, seconds

_ACTIONS = (
    Action(text="Do not read gaps between host and device lines of this profile: waits and launch delays computed from "
           "them are off by the skew. Times on the device alone are right."),
    Action(text="Capture again; if it stays, synchronise the host's clock (chrony, NTP) and update the device's "
                "driver."),
)  # fmt: skip


class ClockSkew(Rule):
    """Launches that a device started before its host made them."""

    id = "clock-skew"
    title = "Clocks of host and devices"
    needs = ("clocks",)
    devices = ("TPU", "GPU")
    remedy = "Launches of host and device could not be matched: capture with host tracing on (--host-level 2)."
    thresholds = (
        Threshold(name="early", value=1e-6, unit="seconds", reason="Clocks are read to about a microsecond."),
        Threshold(name="share", value=0.05, unit="of the launches", reason="Single ones are mismatched ids."),
    )

    def check(self, evidence: Evidences) -> Outcome:
        """Look for cores whose work starts before its launch."""
        cores = evidence.facts("clocks").cores
        early = [
            core
            for core in cores
            if core.shortest < -evidence.limits["early"] and core.early >= evidence.limits["share"] * core.launches
        ]
        if not early:
            return Fine(f"On {len(cores)} devices no op starts before its launch.")
        early.sort(key=lambda core: core.shortest)
        worst = early[0]
        return Found(
            (
                Draft(
                    title=f"Ops start up to {seconds(-worst.shortest)} before the host launches them",
                    summary=f"On {worst.core}, {percent(worst.early / worst.launches)} of {worst.launches} launches "
                    "do, which cannot be: the clocks of host and device disagree by at least that much.",
                    evidence=tuple(
                        Evidence(text=f"{core.core}: shortest launch delay", value=core.shortest, unit="seconds")
                        for core in early[:SHOWN]
                    ),
                    threshold="early",
                    saving=None,
                    confidence="high",
                    locations=tuple(Location(kind="core", name=core.core) for core in early[:SHOWN]),
                    actions=_ACTIONS,
                    stake=0.15,
                ),
            )
        )
