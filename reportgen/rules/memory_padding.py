"""Padding in the largest buffers."""

from __future__ import annotations

from reportgen.document import Action, Evidence, Location, Threshold
from reportgen.rules.base import Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.memory_parts import REMEDY, actions_of, largest_program
from reportgen.rules.parts import SHOWN, byte_saving
from reportgen.units import binary, percent

_ACTIONS = (
    Action(text="Let the last dimension of large arrays be a multiple of 128 and the one before a multiple of 8, or "
           "merge a narrow last dimension with the one before it."),
    Action(
        text="Store narrow arrays flat, and reshape where they are used.",
        framework="jax",
        code="cache = jnp.zeros((rows * 6,), jnp.bfloat16)   # instead of (rows, 6), which is padded to (rows, 128)",
    ),
)  # fmt: skip


class MemoryPadding(Rule):
    """Bytes of padding at the peak."""

    id = "memory-padding"
    title = "Padding in memory"
    needs = ("program-memory",)
    remedy = REMEDY
    thresholds = (
        Threshold(name="share", value=0.1, unit="of the peak", reason="Tiles always cost some percent."),
        Threshold(name="bytes", value=1 << 20, unit="bytes", reason="Small programs pad a lot of little."),
    )

    def check(self, evidence: Evidences) -> Outcome:
        """Compare the peak with the same without padding."""
        program = largest_program(evidence)
        if isinstance(program, NotApplicable):
            return program
        lost = program.live - program.unpadded
        share = lost / program.live if program.live else 0.0
        if share < evidence.limits["share"] or lost < evidence.limits["bytes"]:
            return Fine(f"Padding takes {binary(lost)}, {percent(share)} of the peak.")
        fix = max(program.reshapes, key=lambda one: one.likely, default=None)
        reshapes = actions_of(fix) if fix is not None else ()
        saving = None
        if fix is not None:
            saving = byte_saving(fix.low, fix.likely, fix.high, "modelled", fix.how)
        return Found(
            (
                Draft(
                    title=f"Padding takes {percent(share)} of the memory at the peak, {binary(lost)}",
                    summary=f"{program.padded[0].name}, {program.padded[0].shape}, takes "
                    f"{binary(program.padded[0].size)} for {binary(program.padded[0].unpadded_size)} of elements.",
                    evidence=tuple(
                        Evidence(
                            text=f"{buffer.name} {buffer.shape}: padding",
                            value=float(buffer.size - buffer.unpadded_size),
                            unit="bytes",
                        )
                        for buffer in program.padded[:SHOWN]
                    ),
                    threshold="share",
                    saving=saving,
                    confidence="high",
                    locations=tuple(
                        Location(kind="buffer", name=buffer.name, source=buffer.source)
                        for buffer in program.padded[:SHOWN]
                    ),
                    actions=(*reshapes, *_ACTIONS),
                    stake=share,
                ),
            )
        )  # fmt: skip
