"""The analysis: a part per host, and the merge over hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import ClassVar

import pandas as pd

from reportgen.analyzers.base import Context, Result, SectionId
from reportgen.analyzers.input_pipeline import names, present
from reportgen.analyzers.input_pipeline.activity import host_activity, merge_activity
from reportgen.analyzers.input_pipeline.diagnosis import Waited, blame, by_source
from reportgen.analyzers.input_pipeline.facts import InputFacts, verdict_of
from reportgen.analyzers.input_pipeline.loaders import python_waits
from reportgen.analyzers.input_pipeline.means import means_of, merge_steps
from reportgen.analyzers.input_pipeline.ops import category_times, input_ops, merge_ops
from reportgen.analyzers.input_pipeline.saving import evidence_of, saving_of
from reportgen.analyzers.input_pipeline.tfdata import merge_stages, stages
from reportgen.analyzers.input_pipeline.threads import host_threads
from reportgen.analyzers.input_pipeline.waits import (
    NOTHING,
    WAIT_COLUMNS,
    CoreWaits,
    HostInput,
    host_input,
    host_waits,
    worst_of_cores,
)
from reportgen.analyzers.inventory import host_info
from reportgen.profile.steps import StepSource
from reportgen.profile.view import HostView

_MOST_OPS = 300


@dataclass(frozen=True)
class InputPart:
    """Input processing of one host.

    Attributes:
        host: Its name.
        framework: "jax", "tensorflow", "pytorch_xla" or "".
        python_traced: Whether the Python tracer was on.
        shows_loading: Whether the getting of batches was recorded.
        steps_from_calls: Whether nothing marks the steps.
        steps: Its waits, with the columns of `waits.WAIT_COLUMNS`; the worst core of each step.
        ops: Its input ops, with the columns of `ops.OP_COLUMNS`.
        waited: What the wait of its worst core consists of.
        activity: What it did in the other time of that core, with the columns of `activity.ACTIVITY_COLUMNS`.

    """

    host: str
    framework: str
    python_traced: bool
    shows_loading: bool
    steps_from_calls: bool
    steps: pd.DataFrame
    ops: pd.DataFrame
    waited: Waited
    activity: pd.DataFrame


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
        worst = max(cores, key=lambda core: core.exposed.total, default=_no_core())
        steps = worst_of_cores(cores) if cores else worst.frame
        return InputPart(
            host=view.profile.name,
            framework=host_info(view).framework,
            python_traced=any(names.is_frame(label) for label in threads.labels),
            shows_loading=source.shows_loading(len(steps)),
            steps_from_calls=view.step_source[0] is StepSource.NONE,
            steps=steps,
            ops=input_ops(source).head(_MOST_OPS),
            waited=_waited(view, source, worst),
            activity=host_activity(source, worst, view.annotations.steps.detail if view.annotations else ""),
        )

    def merge(self, parts: Sequence[InputPart], context: Context) -> Result:
        """Return the verdict, and what stands behind it."""
        steps = merge_steps([part.steps for part in parts])
        waited = _merge_waited([part.waited for part in parts])
        activity = merge_activity([part.activity for part in parts])
        ops = merge_ops([part.ops for part in parts])
        means = means_of(steps, activity)
        blamed = blame(waited, means.share) if means else None
        traced = any(part.python_traced for part in parts)
        facts = InputFacts(
            framework=next((part.framework for part in parts if part.framework), ""),
            means=means,
            verdict=verdict_of(means, traced, all(part.shows_loading for part in parts), context.settings),
            blame=blamed,
            saving=saving_of(blamed, means) if blamed and means else None,
            evidence=evidence_of(blamed, waited, means) if blamed and means else (),
            steps=steps,
            ops=ops,
            categories=category_times(ops),
            waited=waited,
            activity=activity,
            python_traced=traced,
            steps_from_calls=all(part.steps_from_calls for part in parts),
        )
        return present.result(facts)


def _no_core() -> CoreWaits:
    return CoreWaits(pd.DataFrame(columns=list(WAIT_COLUMNS)), NOTHING, NOTHING, NOTHING)


def _waited(view: HostView, source: HostInput, core: CoreWaits) -> Waited:
    parts = by_source(source, core)
    own, workers = python_waits(source, parts["Python"])
    return Waited(
        sources={name: intervals.total for name, intervals in parts.items()},
        stages=stages(view.profile, source, parts["tf.data"]),
        step_python=own,
        loader_python=workers,
    )


def _merge_waited(parts: Sequence[Waited]) -> Waited:
    return Waited(
        sources={name: sum(part.sources[name] for part in parts) for name in parts[0].sources},
        stages=merge_stages([part.stages for part in parts]),
        step_python=reduce(add, (part.step_python for part in parts)),
        loader_python=reduce(add, (part.loader_python for part in parts)),
    )
