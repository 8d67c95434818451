"""Matrix products that wait for memory."""

from __future__ import annotations

from reportgen.document import Action
from reportgen.rules.base import Evidences, Outcome, Rule
from reportgen.rules.memory_bound import SHARE, check_memory_bound

_ACTIONS = (
    Action(text="Give each weight more to do: a larger batch or longer sequences per device read the same weights once "
           "for more rows; when decoding, serve more requests at a time."),
    Action(
        text="Make one wide product of several narrow ones that share an operand.",
        framework="jax",
        code="q, k, v = jnp.split(x @ jnp.concatenate([wq, wk, wv], axis=1), 3, axis=-1)",
    ),
    Action(
        text="Make one wide product of several narrow ones that share an operand.",
        framework="tensorflow",
        code="q, k, v = tf.split(tf.matmul(x, w_qkv), 3, axis=-1)",
    ),
    Action(
        text="Make one wide product of several narrow ones that share an operand.",
        framework="pytorch_xla",
        code="q, k, v = torch.nn.functional.linear(x, w_qkv).chunk(3, dim=-1)",
    ),
    Action(text="Move fewer bytes: int8 weights, and fused attention that never writes the scores."),
)  # fmt: skip
_NARROWER = (Action(text="Halve the bytes: keep weights and activations in bfloat16."),)


class MemoryBoundDot(Rule):
    """Dots with an operational intensity below the ridge."""

    id = "memory-bound-dot"
    title = "Memory-bound matrix products"
    thresholds = (SHARE,)

    def check(self, evidence: Evidences) -> Outcome:
        """Sum the time of memory-bound dots."""
        return check_memory_bound(evidence, "dot", "matrix products", _ACTIONS, _NARROWER)
