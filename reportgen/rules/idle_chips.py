"""Devices that did nothing during the capture."""

from __future__ import annotations

from reportgen.document import Action, Evidence, Location, Threshold
from reportgen.rules.base import Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.parts import SHOWN
from reportgen.units import percent

_ACTIONS = (
    Action(
        text="Spread the work over all devices.",
        framework="jax",
        code="mesh = jax.make_mesh((jax.device_count(),), ('data',))\n"
        "batch = jax.device_put(batch, NamedSharding(mesh, P('data')))",
    ),
    Action(
        text="Build the model under a strategy that spans all devices.",
        framework="tensorflow",
        code="strategy = tf.distribute.MirroredStrategy()   # TPUStrategy on TPU",
    ),
    Action(
        text="Start a process a device.",
        framework="pytorch_xla",
        code="torch_xla.launch(train)",
    ),
    Action(text="Or ask for a smaller machine: idle devices cost as much as busy ones."),
)


class IdleChips(Rule):
    """Devices with a plane on which no op ran."""

    id = "idle-chips"
    title = "Devices without work"
    needs = ("hosts",)
    thresholds = (
        Threshold(name="devices", value=1, unit="devices", reason="Every device that does nothing is paid for."),
    )

    def check(self, evidence: Evidences) -> Outcome:
        """Count cores that ran nothing while others worked."""
        facts = evidence.facts("hosts")
        idle, busy = facts.idle_cores, len(facts.by_core)
        total = len(idle) + busy
        if not busy:
            return NotApplicable("No op ran on any device.")
        if len(idle) < max(1.0, evidence.limits["devices"]):
            return Fine(f"All {total} devices worked.")
        share = len(idle) / total
        return Found(
            (
                Draft(
                    title=f"{len(idle)} of {total} devices did nothing during the capture",
                    summary=f"{percent(share)} of the machine ran no op. Either the program does not use these "
                    "devices, or the capture fell into a phase that leaves them out.",
                    evidence=(Evidence(text="Devices without an op", value=len(idle), unit="count"),),
                    threshold="devices",
                    saving=None,
                    confidence="medium",
                    locations=tuple(Location(kind="core", name=core) for core in idle[:SHOWN]),
                    actions=_ACTIONS,
                    stake=share,
                ),
            )
        )
