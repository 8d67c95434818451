"""The profiler lost events, or the file its end."""

from __future__ import annotations

import re

from reportgen.document import Action, Evidence, Location, Threshold
from reportgen.rules.base import Draft, Evidences, Fine, Found, Outcome, Rule
from reportgen.rules.parts import SHOWN
from reportgen.units import percent

_LOST = re.compile(r"drop|lost|overflow|truncat|incomplete|buffer (is |was )?full|too many events", re.IGNORECASE)

_ACTIONS = (
    Action(
        text="Capture fewer steps or less detail.",
        code="reportgen capture HOST:PORT --duration 2s --host-level 1",
    ),
    Action(
        text="Trace less on the host, where most events come from.",
        framework="jax",
        code="options = jax.profiler.ProfileOptions()\noptions.python_tracer_level = 0\noptions.host_tracer_level = 1\n"
        "jax.profiler.start_trace(logdir, profiler_options=options)",
    ),
    Action(
        text="Trace less on the host.",
        framework="tensorflow",
        code="tf.profiler.experimental.start(logdir, tf.profiler.experimental.ProfilerOptions(host_tracer_level=1))",
    ),
)


class DroppedEvents(Rule):
    """What the profiler or reading the file says was lost."""

    id = "dropped-events"
    title = "Lost events"
    needs = ()
    thresholds = (
        Threshold(name="messages", value=1, unit="messages", reason="The profiler does not complain without a cause."),
        Threshold(name="missing", value=0.0, unit="of the file", reason="Any cut may hold the slow step."),
    )

    def check(self, evidence: Evidences) -> Outcome:
        """Search the profiler's own messages, and look for files without an end."""
        every = [(host.name, text) for host in evidence.hosts for text in (*host.errors, *host.warnings)]
        messages = [(name, text) for name, text in every if _LOST.search(text)]
        cut = [host for host in evidence.hosts if host.missing > evidence.limits["missing"]]
        if len(messages) < evidence.limits["messages"] and not cut:
            return Fine("Nothing says that events were lost.")
        hosts = dict.fromkeys([name for name, _ in messages] + [host.name for host in cut])
        most = max((host.missing for host in cut), default=0.0)
        names = ", ".join([*hosts][:3])
        title = f"{percent(most)} of a file is missing" if cut else f"The profiler lost events on {names}"
        return Found(
            (
                Draft(
                    title=title,
                    summary="Counts, totals and shares of this report are of what is left; ops and waits may be "
                    "missing altogether.",
                    evidence=(
                        *(Evidence(text=f"{name}: {text[:300]}") for name, text in messages[:SHOWN]),
                        *(
                            Evidence(text=f"{host.name}: missing of the file", value=host.missing, unit="fraction")
                            for host in cut[:SHOWN]
                        ),
                    ),
                    threshold="missing" if cut else "messages",
                    saving=None,
                    confidence="high",
                    locations=tuple(Location(kind="host", name=name) for name in [*hosts][:SHOWN]),
                    actions=_ACTIONS,
                    stake=max(0.15, most),
                ),
            )
        )
