"""A program needs almost all of the device's memory, or more."""

from __future__ import annotations

from reportgen.document import Action, Evidence, Location, Threshold
from reportgen.rules.base import CannotTell, Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.memory_parts import REMEDY, largest_program
from reportgen.units import binary, percent

_ACTIONS = (
    Action(
        text="Donate what the step replaces, and compute activations again instead of keeping them.",
        framework="jax",
        code="layer = jax.checkpoint(layer)\nstep = jax.jit(train_step, donate_argnums=(0,))",
    ),
    Action(text="Split the batch into micro-batches and accumulate gradients; their activations exist one at a time."),
    Action(
        text="Shard parameters and optimiser state over the devices instead of copying them to each.",
        framework="jax",
        code="state = jax.device_put(state, NamedSharding(mesh, P('fsdp')))",
    ),
    Action(text="`reportgen oom` tells for each way to fit how many bytes it saves."),
)


class MemoryNearCapacity(Rule):
    """Bytes that a program allocates against the device's capacity."""

    id = "memory-near-capacity"
    title = "Memory against capacity"
    needs = ("program-memory",)
    remedy = REMEDY
    thresholds = (
        Threshold(
            name="share",
            value=0.9,
            unit="of the capacity",
            reason="The runtime, fragmentation and the next program need some room; PyTorch's profiler warns here, "
            "too.",
        ),
    )

    def check(self, evidence: Evidences) -> Outcome:
        """Compare the largest program with the capacity."""
        program, capacity = largest_program(evidence), evidence.facts("program-memory").capacity
        if isinstance(program, NotApplicable):
            return program
        if not capacity:
            return CannotTell("The device's memory size is not known.", "Give it with --hbm-capacity.")
        share = program.allocated / capacity
        if share < evidence.limits["share"]:
            return Fine(f"{program.name} needs {binary(program.allocated)}, {percent(share)} of {binary(capacity)}.")
        kinds = (("arguments", program.argument), ("temporaries", program.temporary), ("padding at the peak",
                 program.live - program.unpadded), ("fragmentation", program.fragmentation))  # fmt: skip
        return Found(
            (
                Draft(
                    title=f"{program.name} needs {percent(share)} of the device's memory",
                    summary=f"It allocates {binary(program.allocated)} of {binary(capacity)}. A larger batch, another "
                    "compiler version or a second program may not fit.",
                    evidence=tuple(
                        Evidence(text=f"Bytes of {kind}", value=float(size), unit="bytes") for kind, size in kinds
                    ),
                    threshold="share",
                    saving=None,
                    confidence="high",
                    locations=(Location(kind="module", name=program.name),),
                    actions=_ACTIONS,
                    stake=share,
                ),
            )
        )
