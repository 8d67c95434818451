"""Rematerialisation that costs time although the memory it saves is not needed."""

from __future__ import annotations

from reportgen.analyzers.program_memory import ProgramMemory
from reportgen.document import Action, Evidence, Threshold
from reportgen.rules.base import CannotTell, Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.memory_parts import REMEDY, main_program
from reportgen.rules.parts import SHOWN, op_evidence, op_location, step_text, time_saving
from reportgen.units import binary, percent

_MOSTLY = 0.5

_ACTIONS = (
    Action(
        text="Take the checkpoint off layers until memory is used; or keep what is dear to compute.",
        framework="jax",
        code="layer = jax.checkpoint(layer, policy=jax.checkpoint_policies.dots_saveable)",
    ),
    Action(text="Use tf.recompute_grad on fewer layers.", framework="tensorflow"),
    Action(text="Use torch_xla.utils.checkpoint on fewer layers.", framework="pytorch_xla"),
    Action(
        text="Where the compiler recomputes by itself (.remat in names), give it less to fit: shard, or a smaller "
        "batch."
    ),
)


class CostlyRemat(Rule):
    """Time in recomputed ops where their values would fit into memory."""

    id = "costly-remat"
    title = "Cost of rematerialisation"
    needs = ("op-profile", "program-memory")
    remedy = REMEDY
    thresholds = (
        Threshold(name="share", value=0.03, unit="of device time", reason="A thirtieth pays for the effort."),
        Threshold(name="room", value=0.9, unit="of the capacity", reason="Above it the values might not fit."),
    )

    def check(self, evidence: Evidences) -> Outcome:
        """Sum the time of recomputed ops, and add their results to the program's memory."""
        program, capacity = main_program(evidence), evidence.facts("program-memory").capacity
        if isinstance(program, NotApplicable):
            return program
        shares = {entry.name: entry.share for entry in program.recomputed}
        ops = evidence.ops[(evidence.ops["program"] == program.program) & evidence.ops["name"].isin(list(shares))]
        time = sum(float(row["self_s"]) * shares[str(row["name"])] for row in ops.to_dict("records"))
        share = evidence.share(time)
        if not len(ops) or share < evidence.limits["share"]:
            return Fine(f"Recomputation takes {percent(share)} of device time.")
        if not capacity:
            return CannotTell("The device's memory size is not known.", "Give it with --hbm-capacity.")
        kept = _kept(evidence, program)
        if program.allocated + kept > evidence.limits["room"] * capacity:
            return Fine(
                f"Recomputation takes {percent(share)} of device time, and saves up to {binary(kept)} that would not "
                "fit."
            )
        step = evidence.per_step(time)
        return Found(
            (
                Draft(
                    title=f"Computing activations again takes {percent(share)} of device time, and memory is free",
                    summary=f"{step_text(evidence, time)} go into rematerialisation. Keeping the values takes at most "
                    f"{binary(kept)} more; {program.name} needs {binary(program.allocated)} of {binary(capacity)}.",
                    evidence=(
                        Evidence(
                            text="Bytes that recomputed ops write, at most kept instead",
                            value=float(kept),
                            unit="bytes",
                        ),
                        *(
                            op_evidence(row, f"{percent(shares[row['name']])} recomputed", evidence)
                            for row in ops.head(SHOWN).to_dict("records")
                        ),
                    ),
                    threshold="share",
                    saving=time_saving(
                        evidence,
                        0.65 * step,
                        0.85 * step,
                        1.05 * step,
                        "measured",
                        "The recomputed share of these ops' time, less a part: kept values have to be read again.",
                    ),
                    confidence="high",
                    locations=tuple(op_location(row) for row in ops.head(SHOWN).to_dict("records")),
                    actions=_ACTIONS,
                    stake=share,
                ),
            )
        )


def _kept(evidence: Evidences, program: ProgramMemory) -> float:
    """Return the bytes that recomputed ops write in a step of one core: at most what would be kept instead."""
    steps, cores = evidence.facts("steps"), evidence.facts("op-profile").cores
    runs = max(1, len(steps.steps) if steps is not None else 1) * len(cores)
    ops = evidence.ops[evidence.ops["program"] == program.program]
    often = dict(zip(ops["name"], ops["occurrences"] / runs, strict=True))
    mostly = [entry for entry in program.recomputed if entry.share > _MOSTLY]
    return float(sum(entry.size * max(1.0, often.get(entry.name, 1.0)) for entry in mostly))
