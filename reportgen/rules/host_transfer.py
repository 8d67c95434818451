"""Transfers between host and device inside the step: offloading, outside compilation, outfeed, copies over PCIe."""

from __future__ import annotations

import pandas as pd

from reportgen.analyzers.classes import HOST_TRANSFER, OUTPUT
from reportgen.document import Action, Threshold
from reportgen.rules.base import Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.parts import category_evidence, op_locations, time_saving
from reportgen.units import percent, seconds

_MEMCPY = ("memcpy H2D", "memcpy D2H", "memcpy P2H", "memcpy H2P")
# Memory space 5 of a TPU's layouts is the host's memory.
_HOST_MEMORY = "S(5)"

_COPIES = frozenset({"copy-start", "copy-done", "copy"})

_OFFLOAD = (
    Action(
        text="Offload less: keep in the device's memory what every step uses, or start its copy earlier, so that it "
        "runs beside compute."
    ),
    Action(
        text="Name fewer values in the policy that offloads.",
        framework="jax",
        code="policy = jax.checkpoint_policies.save_and_offload_only_these_names(...)   # name fewer values",
    ),
)
_CALLS = (
    Action(
        text="Keep callbacks, prints and host look-ups out of the compiled step; fetch metrics every N steps.",
        framework="jax",
        code="if step % 100 == 0:\n    log(jax.device_get(metrics))   # instead of float(loss) in every step",
    ),
    Action(
        text="Avoid tf.py_function, summaries and outside compilation inside the step; fetch metrics every N steps.",
        framework="tensorflow",
        code="model.compile(..., steps_per_execution=50)",
    ),
    Action(
        text="Avoid .item(), .cpu() and print(tensor) inside the step.",
        framework="pytorch_xla",
        code="xm.add_step_closure(log, args=(loss,))",
    ),
)


class HostTransfer(Rule):
    """Time that the device spends on transfers to and from the host."""

    id = "host-transfer"
    title = "Transfers between host and device"
    thresholds = (
        Threshold(name="share", value=0.05, unit="of device time", reason="XProf calls 5 % of outfeed moderate."),
    )

    def check(self, evidence: Evidences) -> Outcome:
        """Sum the time of transfers on the op line; on GPU only what no kernel hides."""
        profile = evidence.facts("op-profile")
        if profile.device == "CPU":
            return NotApplicable("The program ran on the host's CPU.")
        ops = transfer_ops(evidence)
        step = _exposed(evidence, ops)
        share = step / evidence.whole if evidence.whole else 0.0
        if share < evidence.limits["share"]:
            return Fine(f"Transfers between host and device take {percent(share)} of device time.")
        return Found(
            (
                Draft(
                    title=f"The device spends {percent(share)} of its time on transfers to and from the host",
                    summary=f"It waits {seconds(step)} for data that moves over the host's link, which is far slower "
                    "than its own memory.",
                    evidence=category_evidence(ops, evidence),
                    threshold="share",
                    saving=time_saving(
                        evidence, step / 2, 0.8 * step, step, "heuristic",
                        "The time of the transfers; most can be dropped, made rarer or hidden behind compute.",
                    ),
                    confidence="medium",
                    locations=op_locations(ops),
                    actions=_actions(ops),
                ),
            )
        )  # fmt: skip


def _actions(ops: pd.DataFrame) -> tuple[Action, ...]:
    """Return the advice for what moves: values that the program offloads, or what it hands over by itself."""
    offloaded = ops["category"].isin(list(_COPIES))
    return (*(_OFFLOAD if offloaded.any() else ()), *(_CALLS if not offloaded.all() else ()))


def transfer_ops(evidence: Evidences) -> pd.DataFrame:
    """Return ops that move data between host and device; infeed is the input pipeline's."""
    ops = evidence.ops
    by_category = ops["category"].isin([*HOST_TRANSFER, *OUTPUT, *_MEMCPY])
    copies = ops["category"].isin(list(_COPIES))
    return ops[by_category | (copies & ops["expression"].str.contains(_HOST_MEMORY, regex=False))]


def _exposed(evidence: Evidences, ops: pd.DataFrame) -> float:
    """Return seconds a step: on GPU, where copies run beside kernels, what the steps show of them as exposed."""
    steps = evidence.facts("steps")
    if evidence.facts("op-profile").device == "GPU" and steps is not None and len(steps.steps):
        return float((steps.steps["host_transfer"] + steps.steps["output"]).mean())
    return evidence.per_step(float(ops["self_s"].sum()))
