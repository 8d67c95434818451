"""Programs are traced and compiled again while training runs."""

from __future__ import annotations

from collections import Counter

from reportgen.analyzers.host_events import COMPILE, Activity
from reportgen.document import Action, Evidence, Location, Threshold
from reportgen.rules.base import CAPTURE_STEPS, Draft, Evidences, Fine, Found, Outcome, Rule
from reportgen.rules.parts import SHOWN, time_saving
from reportgen.units import percent, seconds

_ACTIONS = (
    Action(
        text="Keep shapes and static arguments the same from step to step: pad or bucket batches, and pass numbers as "
        "arrays.",
        framework="jax",
        code="jax.config.update('jax_explain_cache_misses', True)   # says why it compiles again\n"
        "batch = jax.tree.map(lambda x: pad_to(x, 128), batch)",
    ),
    Action(
        text="Give tf.function one signature, and pass tensors, not Python numbers.",
        framework="tensorflow",
        code="@tf.function(input_signature=[tf.TensorSpec([None, 256], tf.float32)], jit_compile=True)\n"
        "def train_step(batch): ...\n\n"
        "dataset = dataset.batch(128, drop_remainder=True)",
    ),
    Action(
        text="Keep shapes the same, and look for what changes the graph.",
        framework="pytorch_xla",
        code="import torch_xla.debug.metrics as met\nprint(met.metrics_report())   # CompileTime, UncachedCompile",
    ),
    Action(text="Switch the compilation cache on, so that restarts and other hosts need not compile again."),
)
_WARM_UP = (Action(text="Start the capture after the first steps: compilation happens there once and is no fault."),)


class Recompilation(Rule):
    """Time in tracing and compilation inside steps."""

    id = "recompilation"
    title = "Compilation inside steps"
    needs = ("host-events",)
    remedy = CAPTURE_STEPS
    thresholds = (
        Threshold(name="share", value=0.03, unit="of the step's period", reason="A warm program compiles nothing."),
    )

    def check(self, evidence: Evidences) -> Outcome:
        """Compare the time of compilation with the steps' periods, and tell warm-up from repetition."""
        activity = evidence.facts("host-events").activities.get(COMPILE)
        if activity is None:
            return Fine("Nothing was compiled during the steps.")
        if activity.share < evidence.limits["share"]:
            return Fine(f"Compilation takes {percent(activity.share)} of the steps.")
        return Found((_warm_up(activity) if activity.first_only else _repeated(evidence, activity),))


def _repeated(evidence: Evidences, activity: Activity) -> Draft:
    steps, every = activity.steps
    variants = _variants(evidence)
    many = f" {variants[0][0]} was compiled {variants[0][1]} times." if variants else ""
    return Draft(
        title=f"{steps} of {every} steps compile: {percent(activity.share)} of the time",
        summary=f"{activity.host} traces and compiles {seconds(activity.per_step)} a step.{many} A program is compiled "
        "anew when a shape, a type or a static argument changes.",
        evidence=(
            Evidence(text="Steps with compilation", value=steps, unit="count"),
            *(Evidence(text=name, value=time, unit="seconds") for name, time in activity.names[: SHOWN // 2]),
            *(Evidence(text=f"Programs called {name}", value=count, unit="count") for name, count in variants),
        ),
        threshold="share",
        saving=time_saving(
            evidence, 0.7 * activity.per_step, 0.95 * activity.per_step, activity.per_step, "measured",
            "Time on the host in which a step traces or compiles.",
        ),
        confidence="high",
        locations=tuple(Location(kind="module", name=name) for name, _ in variants),
        actions=_ACTIONS,
    )  # fmt: skip


def _variants(evidence: Evidences) -> list[tuple[str, int]]:
    """Return programs of one name with how many of them ran, those with several first."""
    ops = evidence.ops
    if not len(ops):
        return []
    programs = ops[["program", "module"]].drop_duplicates()
    names = Counter(str(module).split("(", 1)[0] for module in programs["module"])
    return [(name, count) for name, count in names.most_common(3) if count > 1 and name]


def _warm_up(activity: Activity) -> Draft:
    return Draft(
        title=f"The first step of the capture compiles: {percent(activity.share)} of the captured time",
        summary="That is warm-up, which a run pays once; it makes this report's means larger than later steps are.",
        evidence=(Evidence(text="Compilation a step, on average", value=activity.per_step, unit="seconds"),),
        threshold="share",
        saving=None,
        confidence="high",
        actions=_WARM_UP,
        stake=0.2 * activity.share,
        suffix="warm-up",
    )
