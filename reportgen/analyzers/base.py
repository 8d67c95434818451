"""The contract of an analysis: a part per host, small, plain and picklable, and a merge over hosts.

An analysis never reads files, draws or formats; it returns metrics, tables, charts and the blocks that arrange them in
its section. What rules and later analyses need of it stands in `facts`.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

from reportgen.document import Block, Card, Chart, Metric, Table, Timeline
from reportgen.profile.view import CoreId, HostView
from reportgen.settings import Settings

SectionId = Literal["overview", "input", "ops", "memory", "timeline", "hosts", "appendix"]


@dataclass(frozen=True)
class Result:
    """What an analysis found.

    Attributes:
        metrics, tables, charts, cards, timelines: By stable id, unique over all analyses.
        blocks: How its part of the section reads, top to bottom.
        warnings: Data-quality warnings for the top of the report, as whole sentences.
        facts: A value of the analysis's own type for rules and later analyses; None where it could not look.

    """

    metrics: Mapping[str, Metric] = field(default_factory=dict)
    tables: Mapping[str, Table] = field(default_factory=dict)
    charts: Mapping[str, Chart] = field(default_factory=dict)
    cards: Mapping[str, Card] = field(default_factory=dict)
    timelines: Mapping[str, Timeline] = field(default_factory=dict)
    blocks: tuple[Block, ...] = ()
    warnings: tuple[str, ...] = ()
    facts: Any = None


@dataclass(frozen=True)
class Context:
    """What a merge may use besides its own parts.

    Attributes:
        settings: The run's settings.
        results: Results of the analyses before it, by id.

    """

    settings: Settings
    results: Mapping[str, Result]

    def facts(self, analyzer: str) -> Any:
        """Return the facts of an earlier analysis; None where it failed or could not look."""
        result = self.results.get(analyzer)
        return result.facts if result else None


class Analyzer(Protocol):
    """An analysis.

    Attributes:
        id: Kebab case, stable.
        title: For people.
        section: Section of the report that its blocks stand in.

    """

    id: ClassVar[str]
    title: ClassVar[str]
    section: ClassVar[SectionId]

    def host(self, view: HostView) -> Any:
        """Return the part of one host: small, plain, picklable; None where the host has nothing for it."""

    def merge(self, parts: Sequence[Any], context: Context) -> Result:
        """Return the result over the parts of all hosts, in the order of the hosts; never empty of parts."""


@dataclass(frozen=True)
class Failure:
    """An exception inside an analysis or rule: its message and trace, for the appendix."""

    name: str
    message: str
    trace: str

    @classmethod
    def of(cls, name: str, error: BaseException) -> Failure:
        """Return the failure for an exception; the trace names modules and lines, never folders."""
        frames = traceback.extract_tb(error.__traceback__)
        lines = [
            f"{frame.filename.rsplit('reportgen', 1)[-1].lstrip('/')}:{frame.lineno} in {frame.name}"
            for frame in frames
        ]
        return cls(name, f"{type(error).__name__}: {error}", "\n".join(lines))


def core_order(core: CoreId) -> tuple[str, int, int]:
    """Return a key that orders cores by host, chip and core."""
    return core.host, core.chip, core.core
