"""The program waits for its input."""

from __future__ import annotations

from typing import Any

from reportgen.document import Action, Evidence, Location, Threshold
from reportgen.rules.base import CAPTURE_STEPS, CannotTell, Draft, Evidences, Fine, Found, Outcome, Rule
from reportgen.rules.parts import SHOWN, time_saving
from reportgen.units import percent, seconds

_PS = 1e12
_STAGES = {
    "enqueue": "sending data to the device",
    "preprocessing": "preprocessing",
    "advanced_file_read": "reading from files in advance",
    "demand_file_read": "reading from files on demand",
    "other": "other reading or processing",
}
_ANY = (
    Action(
        text="Prepare the next batch while the device works on this one.",
        framework="jax",
        code="from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(1)\n"
        "ahead = pool.submit(lambda: jax.device_put(next(batches)))   # one batch ahead",
    ),
    Action(
        text="End the pipeline with prefetch.",
        framework="tensorflow",
        code="dataset = dataset.prefetch(tf.data.AUTOTUNE)",
    ),
    Action(
        text="Load in worker processes and wrap the loader, so that batches are sent ahead.",
        framework="pytorch_xla",
        code="loader = DataLoader(data, num_workers=8, prefetch_factor=4)\nloader = pl.MpDeviceLoader(loader, device)",
    ),
)
_BY_STAGE = {
    "preprocessing": (
        Action(
            text="Run the preprocessing on several threads, and after batching.",
            framework="tensorflow",
            code="dataset = dataset.batch(256).map(parse, num_parallel_calls=tf.data.AUTOTUNE)",
        ),
        Action(text="Do costly preprocessing once, offline, and cache its result."),
    ),
    "demand_file_read": (
        Action(
            text="Read several files at once, and cache what fits into memory.",
            framework="tensorflow",
            code="files.interleave(tf.data.TFRecordDataset, num_parallel_calls=tf.data.AUTOTUNE).cache()",
        ),
        Action(text="Store the data in few large files near the hosts rather than in many small ones."),
    ),
    "advanced_file_read": (
        Action(text="Raise the parallelism and the depth of reading ahead: the readers are at work but too slow."),
    ),
    "enqueue": (
        Action(text="Send fewer bytes: uint8 images and int32 ids that the device casts, and larger, fewer arrays."),
    ),
    "other": (),
}  # fmt: skip


class InputBound(Rule):
    """Exposed wait for input over a share of the steps' periods."""

    id = "input-bound"
    title = "Waiting for input"
    needs = ("input-pipeline",)
    remedy = CAPTURE_STEPS
    thresholds = (
        Threshold(name="moderate", value=0.05, unit="of the step's period", reason="XProf's limit for input-bound."),
        Threshold(name="high", value=0.2, unit="of the step's period", reason="XProf's limit for highly input-bound."),
    )

    def check(self, evidence: Evidences) -> Outcome:
        """Compare the mean wait with the mean period."""
        facts = evidence.facts("input-pipeline")
        if facts.share is None or facts.wait_s is None or facts.verdict.level == "cannot tell":
            return CannotTell(facts.verdict.reason or "The profile shows no steps.", self.remedy)
        share, wait = float(facts.share), float(facts.wait_s)
        if share < evidence.limits["moderate"]:
            return Fine(f"{percent(share)} of the time is spent waiting for input.")
        stage = blamed_stage(facts)
        degree = "highly " if share >= evidence.limits["high"] else ""
        where = f", most of it {_STAGES[stage]}" if stage in _STAGES else ""
        return Found(
            (
                Draft(
                    title=f"The program is {degree}input-bound: {percent(share)} of its time it waits for input",
                    summary=f"Each step waits {seconds(wait)} for its input{where}. A faster device or model would "
                    "change nothing; feeding it would.",
                    evidence=_evidence(facts, share, wait),
                    threshold="high" if degree else "moderate",
                    saving=time_saving(
                        evidence, wait / 2, 0.9 * wait, wait, "measured",
                        "The wait that nothing hides; prefetching alone saves at least half of it where the input "
                        "takes no longer than the computation, more threads the rest.",
                    ),
                    confidence="high",
                    locations=_locations(facts),
                    actions=(*_BY_STAGE.get(stage, ()), *_ANY),
                    stake=share,
                ),
            )
        )  # fmt: skip


def blamed_stage(facts: Any) -> str:
    """Return the category with most of the host's input time; "" where none was seen."""
    times = {str(category): int(time) for category, time in facts.categories.items()}
    return max(times, key=lambda category: times[category]) if any(times.values()) else ""


def _evidence(facts: Any, share: float, wait: float) -> tuple[Evidence, ...]:
    found = [
        Evidence(text="Share of the steps' periods spent waiting for input", value=share, unit="fraction"),
        Evidence(text="Wait a step", value=wait, unit="seconds"),
    ]
    for category, time in sorted(facts.categories.items(), key=lambda item: -item[1]):
        if time:
            row = f"input-category-{str(category).replace('_', '-')}"
            text = f"Host time {_STAGES.get(str(category), str(category))}"
            found.append(Evidence(text=text, value=time / _PS, unit="seconds", table="input_categories", row=row))
    return tuple(found[:SHOWN])


def _locations(facts: Any) -> tuple[Location, ...]:
    ops = facts.ops.head(3) if len(facts.ops) else facts.ops
    return tuple(Location(kind="stage", name=str(name)) for name in (ops["op"] if len(ops) else ()))
