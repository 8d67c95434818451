"""The device idles while the host prepares the next work."""

from __future__ import annotations

from reportgen.document import Action, Evidence, Threshold
from reportgen.rules.base import Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.parts import a_step, time_saving
from reportgen.units import percent, seconds

_ACTIONS = (
    Action(
        text="Compile the whole step, and several steps in one call, so that the host launches less often.",
        framework="jax",
        code="@functools.partial(jax.jit, donate_argnums=0)\n"
        "def many_steps(state, batches):\n    return jax.lax.scan(train_step, state, batches)",
    ),
    Action(
        text="Run several steps in one call.",
        framework="tensorflow",
        code="model.compile(..., jit_compile=True, steps_per_execution=50)",
    ),
    Action(
        text="Cut the graph once a step, and keep Python out of it.",
        framework="pytorch_xla",
        code="step = torch_xla.compile(train_step)",
    ),
    Action(text="Do not wait for results inside the loop: reading a loss every step makes the host start the next step "
           "only after the device has finished."),
)  # fmt: skip


class HostBound(Rule):
    """Idle time of the devices that is not waiting for input."""

    id = "host-bound"
    title = "Idle devices between ops"
    thresholds = (
        Threshold(name="idle", value=0.1, unit="of device time", reason="XProf's rule for idle TensorCores."),
    )
    silenced_by = ("input-bound", "recompilation")

    def check(self, evidence: Evidences) -> Outcome:
        """Take the wait for input away from the devices' idle time."""
        profile = evidence.facts("op-profile")
        if profile.device == "CPU":
            return NotApplicable("The program ran on the host's CPU.")
        inputs = evidence.facts("input-pipeline")
        waiting = float(inputs.share or 0.0) if inputs is not None else 0.0
        idle = profile.idle / profile.total if profile.total else 0.0
        share = max(0.0, idle - waiting)
        if share < evidence.limits["idle"]:
            return Fine(f"The devices idle {percent(share)} of the time for other reasons than input.")
        step = share * (evidence.whole or 0.0)
        return Found(
            (
                Draft(
                    title=f"The devices idle {percent(share)} of the time, and not for input",
                    summary=f"For {seconds(step)} {a_step(evidence)} no op runs: the host launches work too late, or "
                    "too little at a time.",
                    evidence=(
                        Evidence(text="Idle share of device time", value=idle, unit="fraction"),
                        Evidence(text="Of it waiting for input", value=waiting, unit="fraction"),
                    ),
                    threshold="idle",
                    saving=time_saving(
                        evidence, 0.4 * step, 0.7 * step, step, "heuristic", "The idle time that is not for input."
                    ),
                    confidence="medium",
                    actions=_ACTIONS,
                    stake=share,
                ),
            )
        )
