"""The device idles while the host does something else: Python, garbage collection, callbacks, late launches."""

from __future__ import annotations

from collections.abc import Iterator

from reportgen.analyzers.host_events import CALLBACK, COMPILE, GARBAGE, Activity, HostEventFacts
from reportgen.document import Action, Evidence, Threshold
from reportgen.rules.base import CAPTURE_STEPS, CannotTell, Draft, Evidences, Fine, Found, Outcome, Rule
from reportgen.rules.parts import SHOWN, time_saving
from reportgen.units import count, percent, seconds

_GAP_ACTIONS = (
    Action(
        text="Compile the whole step, and several steps in one call, so that the host launches less often.",
        framework="jax",
        code="@functools.partial(jax.jit, donate_argnums=0)\n"
        "def many_steps(state, batches):\n    return jax.lax.scan(train_step, state, batches)",
    ),
    Action(
        text="Run several steps in one call.",
        framework="tensorflow",
        code="model.compile(..., jit_compile=True, steps_per_execution=50)",
    ),
    Action(
        text="Compile the whole step, and keep Python out of it.",
        framework="pytorch_xla",
        code="step = torch_xla.compile(train_step)",
    ),
    Action(
        text="Do not wait for results inside the loop: reading a loss every step makes the host launch the next "
        "step only after the device has finished."
    ),
)
_GARBAGE_ACTIONS = (
    Action(
        text="Collect garbage when it suits you: freeze what lives long, and collect every so many steps or not at "
        "all.",
        code="import gc\ngc.collect(); gc.freeze(); gc.disable()\nif step % 1000 == 0: gc.collect()",
    ),
    Action(text="Make fewer Python objects a step; objects in cycles are what the collector has to look for."),
)
_CALLBACK_ACTIONS = (
    Action(
        text="Return values from the step and print them every N steps instead of from inside it.",
        framework="jax",
        code="state, loss = train_step(state, batch)   # no jax.debug.print inside\n"
        "if step % 100 == 0: print(float(loss))",
    ),
    Action(text="Take tf.print and tf.py_function out of the step.", framework="tensorflow"),
    Action(text="Use xm.add_step_closure for what is printed.", framework="pytorch_xla"),
)


class HostBound(Rule):
    """Idle time of the devices that is neither waiting for input nor compilation."""

    id = "host-bound"
    title = "Host work between and inside steps"
    needs = ("steps",)
    remedy = CAPTURE_STEPS
    thresholds = (
        Threshold(name="idle", value=0.1, unit="of the step's period", reason="XProf's rule for idle TensorCores."),
        Threshold(
            name="cpu_idle",
            value=0.4,
            unit="of the step's period",
            reason="Where XLA runs on the host's own cores, gaps of a few hundred microseconds are normal.",
        ),
        Threshold(name="launches", value=20, unit="programs a step", reason="A compiled step is one, or a few."),
        Threshold(
            name="launched_idle",
            value=0.2,
            unit="of the step's period",
            reason="With so many launches, gaps of a fifth are theirs, also on the host's own cores.",
        ),
        Threshold(name="callback", value=0.05, unit="of the step's period", reason="XProf's rule for debug prints."),
        Threshold(name="garbage", value=0.05, unit="of the step's period", reason="A collection should not show."),
    )
    silenced_by = ("input-bound", "recompilation", "unstable-steps-drift")

    def check(self, evidence: Evidences) -> Outcome:
        """Look for callbacks and garbage collection; what idle time they do not explain is a gap."""
        profile, steps = evidence.facts("op-profile"), evidence.facts("steps").steps
        if profile is None or not len(steps):
            return CannotTell("No op or no step was captured.", self.remedy)
        drafts = list(_of_activities(evidence))
        idle = idle_share(evidence)
        waiting = _input_share(evidence)
        rest = max(0.0, idle - waiting - sum(_shares(evidence).values()))
        limit = "cpu_idle" if profile.device == "CPU" else "idle"
        if limit == "cpu_idle" and _launches(evidence) >= evidence.limits["launches"]:
            limit = "launched_idle"
        if rest >= evidence.limits[limit]:
            drafts.append(_gap(evidence, idle, waiting, rest, limit))
        if drafts:
            return Found(tuple(drafts))
        return Fine(f"{percent(rest)} of the time no op runs for other reasons than input and compilation.")


def _launches(evidence: Evidences) -> float:
    facts: HostEventFacts | None = evidence.facts("host-events")
    return facts.launches if facts is not None else 0.0


def idle_share(evidence: Evidences) -> float:
    """Return the share of the steps' periods in which no op runs, means over the cores."""
    steps = evidence.facts("steps").steps
    periods = steps["period_s"].fillna(steps["time_s"])
    busy = steps["time_s"] - steps["idle"]
    total = float(periods.sum())
    return min(1.0, max(0.0, 1 - float(busy.sum()) / total)) if total else 0.0


def _input_share(evidence: Evidences) -> float:
    inputs = evidence.facts("input-pipeline")
    return float(inputs.share or 0.0) if inputs is not None else 0.0


def _shares(evidence: Evidences) -> dict[str, float]:
    facts: HostEventFacts | None = evidence.facts("host-events")
    if facts is None:
        return {}
    return {kind: facts.activities[kind].share for kind in (COMPILE, GARBAGE, CALLBACK) if kind in facts.activities}


def _of_activities(evidence: Evidences) -> Iterator[Draft]:
    facts: HostEventFacts | None = evidence.facts("host-events")
    if facts is None:
        return
    garbage, callback = facts.activities.get(GARBAGE), facts.activities.get(CALLBACK)
    if garbage is not None and garbage.share >= evidence.limits["garbage"]:
        title = f"Python's garbage collector takes {percent(garbage.share)} of the time"
        why = "While it runs, the program launches nothing."
        yield _activity(evidence, garbage, title, why, "garbage", _GARBAGE_ACTIONS)
    if callback is not None and callback.share >= evidence.limits["callback"]:
        title = f"Prints and callbacks from inside the step take {percent(callback.share)} of the time"
        why = "The device has to hand values to the host and wait for it."
        yield _activity(evidence, callback, title, why, "callback", _CALLBACK_ACTIONS)


def _activity(
    evidence: Evidences, activity: Activity, title: str, why: str, kind: str, actions: tuple[Action, ...]
) -> Draft:
    steps, every = activity.steps
    return Draft(
        title=title,
        summary=f"{activity.host} spends {seconds(activity.per_step)} a step in it, in {steps} of {every} steps. {why}",
        evidence=tuple(
            Evidence(text=name, value=time, unit="seconds") for name, time in activity.names[: SHOWN // 2]
        )
        or (Evidence(text="Time a step", value=activity.per_step, unit="seconds"),),
        threshold=kind,
        saving=time_saving(
            evidence, 0.5 * activity.per_step, 0.9 * activity.per_step, activity.per_step, "measured",
            "Time on the host's threads inside steps.",
        ),
        confidence="high" if kind == "garbage" else "medium",
        actions=actions,
        suffix=kind,
    )  # fmt: skip


def _gap(evidence: Evidences, idle: float, waiting: float, rest: float, limit: str) -> Draft:
    step = rest * (evidence.step_time or 0.0)
    facts: HostEventFacts | None = evidence.facts("host-events")
    python = facts.python if facts is not None else ()
    busiest = f" The busiest Python function is {python[0][0]}." if python else ""
    launches = _launches(evidence)
    often = f" It launches {count(round(launches))} programs a step." if launches >= evidence.limits["launches"] else ""
    return Draft(
        title=f"For {percent(rest)} of the time no op runs, and not for input",
        summary=f"That is {seconds(step)} a step. The host launches work too late, or too little at a "
        f"time.{often}{busiest}",
        evidence=(
            Evidence(text="Share of the steps' periods in which no op runs", value=idle, unit="fraction"),
            Evidence(text="Of it waiting for input", value=waiting, unit="fraction"),
            *([Evidence(text="Programs launched a step", value=launches, unit="count")] if launches else []),
            *(Evidence(text=f"Self time of {name} a step", value=time, unit="seconds") for name, time in python[:4]),
        ),
        threshold=limit,
        saving=time_saving(evidence, 0.4 * step, 0.7 * step, step, "heuristic", "Idle time that is not for input."),
        confidence="medium",
        actions=_GAP_ACTIONS,
        stake=rest,
    )
