"""Communication between devices that no computation hides."""

from __future__ import annotations

import pandas as pd

from reportgen.analyzers.tables import unique_slugs
from reportgen.document import Action, Evidence, Threshold
from reportgen.rules.base import Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.parts import SHOWN, collective_ops, op_locations, step_text, time_saving
from reportgen.units import percent

_ACTIONS = (
    Action(
        text="Let the compiler run collectives beside computation.",
        code="LIBTPU_INIT_ARGS='--xla_tpu_enable_async_collective_fusion=true "
        "--xla_tpu_enable_async_collective_fusion_fuse_all_gather=true'",
    ),
    Action(text="Send gradients in bfloat16, and accumulate several micro-batches before one all-reduce."),
    Action(
        text="Shard parameters and optimiser state, so that an all-gather under way replaces a blocking all-reduce.",
        framework="jax",
        code="params = jax.device_put(params, NamedSharding(mesh, P('fsdp')))",
    ),
    Action(text="Larger batches per device: the communication stays the same and the computation hides more of it."),
)


class ExposedCollectives(Rule):
    """Time in collectives in which the core does nothing else."""

    id = "exposed-collectives"
    title = "Exposed communication"
    needs = ("collectives", "op-profile")
    devices = ("TPU", "GPU")
    thresholds = (
        Threshold(
            name="share",
            value=0.05,
            unit="of device time",
            reason="XProf calls 3 % moderate and 15 % high; below a twentieth hiding it rarely pays.",
        ),
    )
    silenced_by = ("straggler", "small-collectives", "resharding")

    def check(self, evidence: Evidences) -> Outcome:
        """Compare exposed time with the device's time; name types and reach."""
        facts = evidence.facts("collectives")
        # Waiting at a barrier is no communication: `straggler` speaks of it.
        frame = facts.frame[facts.frame["kind"] != "barrier-cores"] if len(facts.frame) else facts.frame
        if not len(frame):
            return NotApplicable("No device talked to another one.")
        exposed = float(frame["exposed_s"].sum())
        share = evidence.share(exposed)
        if share < evidence.limits["share"]:
            return Fine(f"{percent(share)} of device time is exposed communication.")
        flight = float(frame["async_s"].sum())
        hidden = min(1.0, float(frame["hidden_s"].sum()) / flight) if flight else 0.0
        largest = frame.iloc[0]
        step = evidence.per_step(exposed)
        idle_room = evidence.per_step(evidence.facts("op-profile").busy - exposed)
        most = min(step, idle_room)
        return Found(
            (
                Draft(
                    title=f"{percent(share)} of device time is communication that nothing hides",
                    summary=f"The devices wait {step_text(evidence, exposed)} in collectives, most of it in "
                    f"{largest['kind']}. {percent(hidden)} of the time in flight is hidden behind computation.",
                    evidence=_evidence(frame, evidence),
                    threshold="share",
                    saving=time_saving(
                        evidence, 0.4 * most, 0.7 * most, most, "heuristic",
                        "What the computation of a step is long enough to hide; seven tenths are likely.",
                    ),
                    confidence="medium",
                    locations=op_locations(collective_ops(evidence)),
                    actions=_ACTIONS,
                    stake=share,
                ),
            )
        )  # fmt: skip


def _evidence(frame: pd.DataFrame, evidence: Evidences) -> tuple[Evidence, ...]:
    ids = unique_slugs("collective", frame["kind"] + " " + frame["reach"])
    return tuple(
        Evidence(
            text=f"{row['kind']} {row['reach']}, {int(row['ops'])} times: exposed",
            value=evidence.per_step(float(row["exposed_s"])),
            unit="seconds",
            table="collectives",
            row=row_id,
        )
        for row_id, row in list(zip(ids, frame.to_dict("records"), strict=True))[:SHOWN]
    )
