"""The analysis: a part per host, and the merge over hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from reportgen.analyzers.base import Context, Result, SectionId
from reportgen.analyzers.input_pipeline import present
from reportgen.analyzers.input_pipeline.facts import InputFacts, verdict_of
from reportgen.analyzers.input_pipeline.ops import category_times, input_ops, merge_ops
from reportgen.analyzers.input_pipeline.threads import host_threads
from reportgen.analyzers.input_pipeline.waits import WAIT_COLUMNS, host_input, host_waits, worst_of_cores
from reportgen.profile.view import HostView

_MOST_OPS = 300


@dataclass(frozen=True)
class InputPart:
    """Input processing of one host.

    Attributes:
        host: Its name.
        steps: Its waits, with the columns of `waits.WAIT_COLUMNS`; the worst core of each step.
        ops: Its input ops, with the columns of `ops.OP_COLUMNS`.

    """

    host: str
    steps: pd.DataFrame
    ops: pd.DataFrame


class InputPipelineAnalyzer:
    """Whether the program is input-bound, and why."""

    id: ClassVar[str] = "input-pipeline"
    title: ClassVar[str] = "Input pipeline"
    section: ClassVar[SectionId] = "input"

    def host(self, view: HostView) -> InputPart:
        """Return what one host's input costs its steps."""
        threads = host_threads(view.profile)
        source = host_input(view, threads)
        cores = host_waits(view, source)
        steps = worst_of_cores(cores) if cores else pd.DataFrame(columns=list(WAIT_COLUMNS))
        return InputPart(view.profile.name, steps, input_ops(source).head(_MOST_OPS))

    def merge(self, parts: Sequence[InputPart], context: Context) -> Result:
        """Return the verdict, and what stands behind it."""
        steps = merge_steps([part.steps for part in parts])
        ops = merge_ops([part.ops for part in parts])
        share, wait = shares(steps)
        facts = InputFacts(
            share=share,
            wait_s=wait,
            steps=steps,
            ops=ops,
            categories=category_times(ops),
            verdict=verdict_of(share, context.settings),
        )
        return present.result(facts)


def merge_steps(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return one row a step: the host that waited longest, with the longest period of all.

    The first step is left out where there are more than two: nothing says when its period began.
    """
    frame = pd.concat(frames, ignore_index=True)
    if not len(frame):
        return frame
    order = frame.sort_values(["step", "wait_ps", "period_ps"], kind="stable")
    worst = order.groupby("step", sort=True).last()
    worst["period_ps"] = frame.groupby("step")["period_ps"].max()
    worst = worst.reset_index()
    return worst.iloc[1:].reset_index(drop=True) if len(worst) > 2 else worst


def shares(steps: pd.DataFrame) -> tuple[float | None, float | None]:
    """Return the share of all periods spent waiting, and the mean wait per step in seconds; None without steps."""
    period = int(steps["period_ps"].sum()) if len(steps) else 0
    if not period:
        return None, None
    wait = int(steps["wait_ps"].sum())
    return wait / period, wait / len(steps) / 1e12
