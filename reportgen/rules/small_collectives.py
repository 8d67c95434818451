"""Many small collectives where one large one would do."""

from __future__ import annotations

import pandas as pd

from reportgen.analyzers.collectives import kind_of
from reportgen.document import Action, Threshold
from reportgen.rules.base import Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.parts import SHOWN, a_step, collective_ops, op_evidence, op_locations, time_saving
from reportgen.units import binary, percent, seconds

_ACTIONS = (
    Action(
        text="Combine gradients or statistics into one collective: reduce a flat vector, or a whole tree in one call.",
        framework="jax",
        code="flat, unflatten = jax.flatten_util.ravel_pytree(grads)\ngrads = unflatten(jax.lax.pmean(flat, 'data'))",
    ),
    Action(
        text="Let the strategy pack what it reduces.",
        framework="tensorflow",
        code="tf.distribute.experimental.CommunicationOptions(bytes_per_pack=32 * 1024 * 1024)",
    ),
    Action(
        text="Reduce all gradients in one call.",
        framework="pytorch_xla",
        code="xm.reduce_gradients(optimizer)   # one call, not an all_reduce a tensor",
    ),
    Action(
        text="Raise the size up to which the compiler combines collectives.",
        code="XLA_FLAGS='--xla_gpu_all_reduce_combine_threshold_bytes=134217728'   # TPU combines by itself",
    ),
    Action(text="Statistics of normalisation reduced on every layer are a usual source: use local batch statistics."),
)


class SmallCollectives(Rule):
    """Collectives of one kind that are many and small."""

    id = "small-collectives"
    title = "Small collectives"
    needs = ("op-profile", "collectives")
    devices = ("TPU", "GPU")
    thresholds = (
        Threshold(name="size", value=1 << 20, unit="bytes", reason="Below a MiB latency decides, not bandwidth."),
        Threshold(name="count", value=8, unit="a step and kind", reason="A few small ones are normal."),
        Threshold(
            name="share", value=0.01, unit="of device time", reason="Less than a hundredth is not worth the work."
        ),
    )

    def check(self, evidence: Evidences) -> Outcome:
        """Count small collectives a step by kind, and sum their time."""
        every = collective_ops(evidence)
        if not len(every):
            return NotApplicable("No device talked to another one.")
        each = every["bytes"].astype(float) / every["occurrences"]
        known = every.assign(kind=[kind_of(*pair) for pair in zip(every["category"], every["name"], strict=True)])
        small = known[(each > 0) & (each < evidence.limits["size"]) & ~known["category"].str.endswith("-done")]
        runs = max(1, self._runs(evidence))
        counts = small.groupby("kind")["occurrences"].sum() / runs
        small = small[small["kind"].map(counts).fillna(0) >= evidence.limits["count"]]
        share = evidence.share(float(small["self_s"].sum()))
        if not len(small) or share < evidence.limits["share"]:
            return Fine(f"Small collectives that could be combined take {percent(share)} of device time.")
        kind = str(counts.idxmax())
        return Found((_draft(evidence, small, kind, float(counts.max()), share),))

    @staticmethod
    def _runs(evidence: Evidences) -> int:
        """Return how often a step ran, summed over cores."""
        steps, cores = evidence.facts("steps"), len(evidence.facts("op-profile").cores)
        return (len(steps.steps) if steps is not None else 1) * cores


def _draft(evidence: Evidences, small: pd.DataFrame, kind: str, count: float, share: float) -> Draft:
    time = evidence.per_step(float(small["self_s"].sum()))
    size = float(small["bytes"].sum() / small["occurrences"].sum())
    kept = 1 - 1 / max(2.0, count)
    return Draft(
        title=f"{count:.0f} small {kind} operations {a_step(evidence)} take {percent(share)} of device time",
        summary=f"They take {seconds(time)} {a_step(evidence)} and move {binary(size)} each, where starting costs more "
        "than moving. One large collective pays that once.",
        evidence=tuple(
            op_evidence(row, binary(float(row["bytes"]) / int(row["occurrences"])), evidence)
            for row in small.head(SHOWN).to_dict("records")
        ),
        threshold="count",
        saving=time_saving(
            evidence, 0.4 * kept * time, 0.7 * kept * time, 0.95 * kept * time, "heuristic",
            "The time of all but one of them; seven tenths of it are likely latency.",
        ),
        confidence="medium",
        locations=op_locations(small),
        actions=_ACTIONS,
    )  # fmt: skip
