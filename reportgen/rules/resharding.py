"""Arrays change their sharding inside the step."""

from __future__ import annotations

import re

from reportgen.document import Action, Threshold
from reportgen.rules.base import Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.parts import SHOWN, collective_ops, op_evidence, op_locations, step_text, time_saving
from reportgen.units import percent

# An all-gather that the program did not ask for is what sharded parameters need.
_KINDS = re.compile(r"all-to-all|collective-permute")
_CONSTRAINT = "sharding_constraint"
# The framework's own collectives are asked for, not inserted.
_ASKED_FOR = re.compile(r"all_to_all|ppermute|all_gather|psum|shard_map|AllToAll|CollectivePermute|AllGather")

_ACTIONS = (
    Action(
        text="Give producer and consumer the same sharding, and say it where the compiler guesses otherwise.",
        framework="jax",
        code="x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P('data', None)))",
    ),
    Action(
        text="Mark the sharding where it changes unintended.",
        framework="pytorch_xla",
        code="xs.mark_sharding(x, mesh, ('data', None))",
    ),
    Action(
        text="Shard the dimension that both operations keep: the batch rather than the dimension that is contracted."
    ),
)


class Resharding(Rule):
    """Time in all-to-all and permutations that the compiler put between two shardings."""

    id = "resharding"
    title = "Changes of sharding"
    needs = ("op-profile", "collectives")
    devices = ("TPU", "GPU")
    thresholds = (
        Threshold(name="share", value=0.05, unit="of device time", reason="Below a twentieth it rarely pays."),
    )

    def check(self, evidence: Evidences) -> Outcome:
        """Sum the time of collectives that move arrays and that the program did not ask for."""
        every = collective_ops(evidence)
        if not len(every):
            return NotApplicable("No device talked to another one.")
        moves = every["category"].str.contains(_KINDS) | every["name"].str.contains(_KINDS)
        constrained = every["framework_op"].str.contains(_CONSTRAINT)
        found = every[constrained | (moves & ~every["framework_op"].str.contains(_ASKED_FOR))]
        time = float(found["self_s"].sum())
        share, step = evidence.share(time), evidence.per_step(time)
        if share < evidence.limits["share"]:
            return Fine(f"Changes of sharding take {percent(share)} of device time.")
        return Found(
            (
                Draft(
                    title=f"Changes of sharding take {percent(share)} of device time",
                    summary=f"{step_text(evidence, time)} go into collectives that the compiler put between operations "
                    "whose arrays are split in different ways.",
                    evidence=tuple(
                        op_evidence(row, str(row["category"]), evidence) for row in found.head(SHOWN).to_dict("records")
                    ),
                    threshold="share",
                    saving=time_saving(
                        evidence,
                        0.5 * step,
                        0.8 * step,
                        step,
                        "measured",
                        "The time of these collectives, which go where shardings agree.",
                    ),
                    confidence="medium",
                    locations=op_locations(found),
                    actions=_ACTIONS,
                ),
            )
        )
