"""Arguments that the step replaces and that are not donated."""

from __future__ import annotations

from reportgen.document import Evidence, Location, Threshold
from reportgen.rules.base import Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.memory_parts import REMEDY, actions_of, main_program
from reportgen.rules.parts import SHOWN, byte_saving
from reportgen.units import binary, percent


class MissingDonation(Rule):
    """Outputs with the type and shape of an argument whose buffer they do not take over."""

    id = "missing-donation"
    title = "Donated arguments"
    needs = ("program-memory",)
    remedy = REMEDY
    thresholds = (
        Threshold(name="share", value=0.05, unit="of the program's memory", reason="Less will not make a batch fit."),
        Threshold(name="bytes", value=1 << 20, unit="bytes", reason="Counters and keys are not worth it."),
    )

    def check(self, evidence: Evidences) -> Outcome:
        """Look at the program with the most device time: the training step."""
        program = main_program(evidence)
        if isinstance(program, NotApplicable):
            return program
        fix = program.donation
        share = fix.likely / program.allocated if fix is not None and program.allocated else 0.0
        if fix is None or share < evidence.limits["share"] or fix.likely < evidence.limits["bytes"]:
            return Fine(
                f"{binary(program.aliased)} of arguments are donated; {percent(share)} of memory could be besides."
            )
        return Found(
            (
                Draft(
                    title=f"{binary(fix.likely)} of arguments could be donated, {percent(share)} of what "
                    f"{program.name} needs",
                    summary="Outputs of the same type and shape stand beside the arguments that they replace, so both "
                    "exist at once. Donated, an output takes its argument's place.",
                    evidence=(
                        Evidence(text=f"Memory of {program.name}", value=float(program.allocated), unit="bytes"),
                        Evidence(text="Arguments donated already", value=float(program.aliased), unit="bytes"),
                    ),
                    threshold="share",
                    saving=byte_saving(
                        min(fix.low, 0.75 * fix.likely),
                        fix.likely,
                        fix.high,
                        "modelled",
                        f"{fix.how} The compiler may use part of it elsewhere.",
                    ),
                    confidence="high",
                    locations=tuple(Location(kind="buffer", name=name) for name in fix.buffers[:SHOWN]),
                    actions=actions_of(fix),
                    stake=share,
                ),
            )
        )
