"""What a faster input pipeline would bring, and what was observed."""

from __future__ import annotations

from reportgen.analyzers.input_pipeline.diagnosis import Blame, Waited
from reportgen.analyzers.input_pipeline.means import Means
from reportgen.analyzers.tables import slug
from reportgen.document import Evidence, Saving
from reportgen.units import PS_PER_SECOND, percent, seconds

STAGE_ROW = "input-stage"


_LEAST = {
    True: "half, where it gets twice as fast.",
    False: "what fits beside the rest of the step, where it only runs ahead.",
}


def stage_row(name: str) -> str:
    """Return the id of a stage's row in the table `input_stages`."""
    return f"{STAGE_ROW}-{slug(name)}"


def saving_of(blame: Blame, means: Means) -> Saving:
    """Return the seconds per step that a fix would bring.

    At best the whole wait goes. At least goes, of the part for which the stage is to blame, what fits beside the rest
    of the step where nothing runs ahead yet, or a half where input runs ahead already and has to get faster. In
    between lies what is likely.
    """
    wait, rest = means.wait_s, means.period_s - means.wait_s
    blamed = wait * blame.share
    low = blamed / 2 if blame.overlaps else min(blamed, rest)
    how = f"At best all of the wait; at least, of the part due to {blame.stage}, {_LEAST[blame.overlaps]}"
    return Saving(low=low, likely=(low + blamed) / 2, high=wait, unit="seconds", basis="heuristic", how=how)


def evidence_of(blame: Blame, waited: Waited, means: Means) -> tuple[Evidence, ...]:
    """Return what was observed of the wait and of the stage to blame."""
    found = [
        Evidence(text="Wait per step", value=means.wait_s, unit="seconds", table="input_steps"),
        Evidence(text="Share of the step's period", value=means.share, unit="fraction", table="input_steps"),
        Evidence(text=f"Share of the wait due to {blame.stage}", value=blame.share, unit="fraction"),
    ]
    stage = next((stage for stage in waited.stages if stage.name == blame.where), None)
    if stage is not None:
        table, row = "input_stages", stage_row(stage.name)
        per_call = stage.self_ps / max(1, stage.count) / PS_PER_SECOND
        found.append(Evidence(text="Self time per call", value=per_call, unit="seconds", table=table, row=row))
        settings = ", ".join(f"{name} {value}" for name, value in sorted(stage.settings.items()))
        if settings:
            found.append(Evidence(text=f"Settings: {settings}", table=table, row=row))
        if stage.function:
            total = sum(time for _, time in stage.function)
            ops = ", ".join(f"{kind} {percent(time / total)}" for kind, time in stage.function[:3])
            found.append(Evidence(text=f"Inside its function: {ops}", table=table, row=row))
    if blame.source == "Python":
        time = waited.loader_python if blame.overlaps and waited.loader_python.total else waited.step_python
        events = ", ".join(
            f"{label.removeprefix('$')} {seconds(ps / PS_PER_SECOND)}" for label, ps in time.events.most_common(3)
        )
        table = "input_functions" if waited.step_python.functions or waited.loader_python.functions else ""
        found.append(Evidence(text=f"Longest events while waiting, over all steps: {events}", table=table))
    return tuple(found)
