"""Which stage of the input pipeline is to blame for the wait, and by what fault."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from reportgen.analyzers.input_pipeline.loaders import PythonTime
from reportgen.analyzers.input_pipeline.names import READERS, frame
from reportgen.analyzers.input_pipeline.tfdata import Stage, chain, critical
from reportgen.analyzers.input_pipeline.waits import CoreWaits, HostInput
from reportgen.profile.intervals import Intervals, intersect, subtract

Cause = Literal[
    "no-prefetch", "sequential-map", "slow-map", "map-before-batch", "decoder", "small-files", "sequential-read",
    "slow-read", "python-generator", "data-service", "pipeline-stage", "loader-sleep", "loader-read", "loader-decode",
    "loader-compute", "loader-threads", "transfer", "infeed",
]  # fmt: skip
CAUSES: tuple[Cause, ...] = get_args(Cause)
Source = Literal["tf.data", "transfer", "Python", "device"]

# A map is cheap where less than this share of a short call goes into the ops of its function.
_WORTHWHILE = 0.25
_SHORT_CALL_PS = 10**9
# So few samples a file that opening files counts for more than reading them.
_SAMPLES_A_FILE = 8
_BATCHES = ("Batch", "PaddedBatch", "ParallelBatch", "MapAndBatch")
_MAPS = ("Map", "ParallelMap", "MapAndBatch", "Filter", "ParallelFilter")
_MANY_SOURCES = ("FlatMap", "Interleave", "ParallelInterleave", "LegacyParallelInterleave")
_LONGEST_PATH = 6
_READING = ("small-files", "sequential-read", "slow-read")
_DECODES = re.compile(r"Decode(?!Raw$)|Parse|Jpeg|Png|Gif|Wav|Audio|Video|Extract|Unbatch|DecompressElement")


@dataclass(frozen=True)
class Waited:
    """What a host's exposed wait consists of, in picoseconds.

    Attributes:
        sources: By what it is explained with: iterators of tf.data, transfers, Python, or the device's own waits alone.
        stages: Stages of tf.data.
        step_python: What the stepping thread did in the part explained by Python.
        loader_python: What loader threads did while the stepping thread waited for them.

    """

    sources: Mapping[Source, int]
    stages: tuple[Stage, ...]
    step_python: PythonTime
    loader_python: PythonTime


def by_source(host: HostInput, core: CoreWaits) -> dict[Source, Intervals]:
    """Return which part of a core's exposed wait each source explains: iterators before transfers before Python."""
    iterators = intersect(core.exposed, host.threads.spans(host.iterators & host.consumed))
    rest = subtract(core.exposed, iterators)
    transfers = intersect(rest, core.transferring)
    rest = subtract(rest, transfers)
    python = intersect(rest, host.threads.spans(host.calls))
    return {"tf.data": iterators, "transfer": transfers, "Python": python, "device": subtract(rest, python)}


@dataclass(frozen=True)
class Blame:
    """The stage to blame.

    Attributes:
        cause: The fault.
        source: What kind of pipeline it is in.
        stage: The stage in a word or two: "Map", "decode (train.py:49)", "device_put".
        where: Its full name: the iterator's path, or the Python functions from the outermost to the innermost.
        share: Share of the wait for which it is to blame.
        overlaps: Whether input work already runs ahead of the step, on threads of its own.

    """

    cause: Cause
    source: Source
    stage: str
    where: str
    share: float
    overlaps: bool


def blame(waited: Waited, wait_share: float) -> Blame | None:
    """Return the stage to blame; None where nothing was waited for.

    Args:
        waited: The wait of all hosts.
        wait_share: Share of the step's period that is waited.

    """
    total = sum(waited.sources.values())
    if not total:
        return None
    source = max(waited.sources, key=lambda name: waited.sources[name])
    stage = critical(waited.stages)
    if source == "tf.data" and stage is not None:
        return _blame_stage(waited.stages, stage, total, wait_share)
    share = waited.sources[source] / total
    if source == "Python":
        return _blame_python(waited, share)
    if source == "transfer":
        return Blame("transfer", source, "transfer to the device", "", share, overlaps=False)
    return Blame("infeed", "device", "infeed", "", share, overlaps=False)


def _blame_stage(found: Sequence[Stage], stage: Stage, total: int, wait_share: float) -> Blame:
    path = chain(found, stage)
    overlaps = any(entry.is_async for entry in path)
    cause = _cause(found, stage, path)
    shown = stage
    if cause in _READING:
        shown = next((entry for entry in path if _is(entry, _MANY_SOURCES) and not _is_inner(entry, path)), stage)
    if not overlaps and wait_share <= 0.5:
        # All of this work would fit beside the rest of the step.
        cause = "no-prefetch"
    waits = stage.wait_ps
    if cause in _READING:
        waits = sum(entry.wait_ps for entry in found if f"{entry.name}::".startswith(f"{shown.name}::"))
    return Blame(cause, "tf.data", shown.kind, shown.name, waits / total, overlaps)


def _is(stage: Stage, kinds: Sequence[str]) -> bool:
    """Whether a stage is of one of these kinds, in any version: "MapV2" is a "Map"."""
    return re.sub(r"V\d+$", "", stage.kind) in kinds


def _is_inner(stage: Stage, path: Sequence[Stage]) -> bool:
    """Whether a stage only wraps a reader: tf.data puts a flat map around the files of one reader."""
    return stage.kind == "FlatMap" and any(entry.name == stage.parent and _is(entry, _MANY_SOURCES) for entry in path)


def _cause(found: Sequence[Stage], stage: Stage, path: Sequence[Stage]) -> Cause:
    if stage.kind == "Generator":
        return "python-generator"
    if "DataService" in stage.kind:
        return "data-service"
    if _is(stage, _MAPS):
        return _map_cause(stage, path)
    if _is(stage, (*_MANY_SOURCES, *READERS)):
        return _reading_cause(found, path)
    return "pipeline-stage"


def _map_cause(stage: Stage, path: Sequence[Stage]) -> Cause:
    total = sum(time for _, time in stage.function)
    for pattern, cause in (
        (r"ReadFile|ReadRecord", "small-files"),
        (_DECODES, "decoder"),
        (r"(Eager)?PyFunc", "python-generator"),
    ):
        matching = sum(time for kind, time in stage.function if re.search(pattern, kind))
        if matching > total / 2:
            return cause  # type: ignore[return-value]
    called_by_batch = len(path) > 1 and _is(path[1], _BATCHES)
    short = stage.self_ps < _SHORT_CALL_PS * stage.count
    if called_by_batch and short and total < _WORTHWHILE * stage.self_ps:
        return "map-before-batch"
    return "slow-map" if stage.is_async else "sequential-map"


def _reading_cause(found: Sequence[Stage], path: Sequence[Stage]) -> Cause:
    many = [entry for entry in path if _is(entry, _MANY_SOURCES)]
    outer = many[-1] if many else path[0]
    files = sum(entry.made for entry in found if _is(entry, READERS) and entry.name.startswith(outer.name))
    if files and outer.count < _SAMPLES_A_FILE * files:
        return "small-files"
    return "slow-read" if any(entry.is_async for entry in many) else "sequential-read"


_LOADER_CAUSES: dict[str, Cause] = {
    "sleep": "loader-sleep",
    "read": "loader-read",
    "decode": "loader-decode",
    "compute": "loader-compute",
    "worker": "loader-threads",
}


def _blame_python(waited: Waited, share: float) -> Blame:
    own = waited.step_python
    kind = max(own.kinds, key=lambda name: own.kinds[name], default="compute")
    worker = kind == "worker"
    time = waited.loader_python if worker and waited.loader_python.total else own
    path = time.path()
    stage = _own_function(path, own.homes) or next(iter(dict(time.events.most_common(1))), "Python")
    where = " → ".join(label.removeprefix("$") for label in _shortened(path))
    return Blame(_LOADER_CAUSES[kind], "Python", stage, where, share, overlaps=worker)


def _own_function(path: Sequence[str], homes: Counter[str]) -> str:
    """Return the innermost function that is most likely the user's own; "" where none was traced.

    It is in the file that asks for the batches, or else in the file that the path begins in.
    """
    files = [found.file if (found := frame(label)) else "" for label in path]
    for home in (*(file for file, _ in homes.most_common(1)), *files[:1]):
        inner = [label for label, file in zip(path, files, strict=True) if file == home]
        if inner:
            return inner[-1].removeprefix("$")
    return ""


def _shortened(path: Sequence[str]) -> Sequence[str]:
    return path if len(path) <= _LONGEST_PATH else (path[0], "…", *path[2 - _LONGEST_PATH :])
