"""Convolutions that wait for memory."""

from __future__ import annotations

from reportgen.document import Action
from reportgen.rules.base import Evidences, Outcome, Rule
from reportgen.rules.memory_bound import SHARE, check_memory_bound

_ACTIONS = (
    Action(text="Give each byte more to do: larger batches or more channels per convolution, and fewer narrow layers "
           "(1×1 and depthwise convolutions reuse little)."),
    Action(text="Help fusion: let bias, normalisation and activation follow the convolution directly, so that its "
           "result is not written and read again; avoid branches that need the value in between."),
)  # fmt: skip
_NARROWER = (
    Action(
        text="Halve the bytes: keep activations in bfloat16, also between layers and in normalisation's output.",
        framework="jax",
        code="x = nn.Conv(features, (3, 3), dtype=jnp.bfloat16)(x)",
    ),
    Action(
        text="Halve the bytes: keep activations in bfloat16.",
        framework="tensorflow",
        code="tf.keras.mixed_precision.set_global_policy('mixed_bfloat16')",
    ),
    Action(
        text="Halve the bytes: run the model under autocast.",
        framework="pytorch_xla",
        code="with torch.autocast('xla', dtype=torch.bfloat16): loss = model(x)",
    ),
)


class MemoryBoundConv(Rule):
    """Convolutions with an operational intensity below the ridge."""

    id = "memory-bound-conv"
    title = "Memory-bound convolutions"
    thresholds = (SHARE,)

    def check(self, evidence: Evidences) -> Outcome:
        """Sum the time of memory-bound convolutions."""
        return check_memory_bound(evidence, "convolution", "convolutions", _ACTIONS, _NARROWER)
