"""What Python did while the step waited for its input: the functions, their lines, and the kind of work.

The kind of a moment is that of the nearest event, from the innermost outwards, whose name tells one: a sleep, a wait
for another thread or process, a read, a decoder. What tells nothing is computing: NumPy and plain Python.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from reportgen.analyzers.input_pipeline import names
from reportgen.analyzers.input_pipeline.threads import Mask, Rows, Threads
from reportgen.analyzers.input_pipeline.waits import NOTHING, HostInput
from reportgen.profile.intervals import Intervals, intersect, sum_by

Kind = Literal["sleep", "worker", "read", "decode", "compute"]
_MOST = 20
_KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("sleep", re.compile(r"\$time sleep|\$\S* (select|poll)$|\$(socket|ssl|_socket)\S* recv\w*")),
    (
        "worker",
        re.compile(
            r"\$(queue|threading|connection|_base|pool|process|thread)\.py:\d+ (get|wait|join|recv\w*|result|acquire"
            r"|_try_get_data|poll)$|\$\S* (acquire|_try_get_data)$"
        ),
    ),
    (
        "decode",
        re.compile(
            r"\$(zlib|gzip|bz2|lzma|snappy|lz4|zstd\w*|pickle|_pickle|json|_json|cv2|PIL|_imaging\w*|msgpack)\b"
            r"|\$\S* \w*(decode|decompress|unpack|loads|imread|inflate)\w*$"
            r"|\$(Image|ImageFile|PngImagePlugin|JpegImagePlugin)\.py"
        ),
    ),
    ("read", re.compile(r"\$_?npyio\w*\.py:\d+ |\$\S* (fromfile|memmap|genfromtxt|read_\w+|load_file)$")),
)  # fmt: skip


def kind_of(label: str) -> Kind | None:
    """Return the kind of work that an event's name tells; None where it tells none."""
    label = label[: names.LONGEST_NAME]
    kind = next((kind for kind, pattern in _KINDS if pattern.match(label)), None)
    return "read" if kind is None and names.is_read(label) else kind


@dataclass
class PythonTime:
    """Time of Python code in picoseconds.

    Attributes:
        kinds: By kind of work.
        functions: Of functions with a line, with all that they call, by label.
        events: Of innermost events, by label.
        homes: Of calls that get a batch, by the file that calls them: most likely the user's own.

    """

    kinds: Counter[str] = field(default_factory=Counter)
    functions: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    homes: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """All of it."""
        return sum(self.kinds.values())

    def path(self, share: float = 0.5) -> tuple[str, ...]:
        """Return the functions that held at least this share of the time, the outermost first."""
        least = share * self.total
        return tuple(label for label, time in self.functions.most_common() if time >= least)

    def small(self) -> PythonTime:
        """Return it without the entries that matter least."""
        return PythonTime(self.kinds, _top(self.functions), _top(self.events), _top(self.homes))

    def __add__(self, other: PythonTime) -> PythonTime:
        """Return the sum, as over hosts."""
        return PythonTime(
            self.kinds + other.kinds,
            self.functions + other.functions,
            self.events + other.events,
            self.homes + other.homes,
        )


def _top(counter: Counter[str]) -> Counter[str]:
    return Counter(dict(counter.most_common(_MOST)))


def python_time(threads: Threads, of: Sequence[int], within: Intervals, inside: Mask) -> PythonTime:
    """Return what some threads did inside some intervals.

    Args:
        threads: All host threads.
        of: Which threads.
        within: When.
        inside: Only below or in these events.

    """
    found = [threads.time_by_row(thread, within) for thread in of]
    rows = np.concatenate([rows for rows, _ in found] or [np.empty(0, np.int64)])
    times = np.concatenate([times for _, times in found] or [np.empty(0, np.int64)])
    holds = threads.nearest(inside) >= 0
    rows, times = rows[holds[rows]], times[holds[rows]]
    count = len(threads.labels)
    kinds = np.array([_KIND_CODES.get(kind_of(label) or "", -1) for label in threads.labels] + [-1])
    telling = threads.nearest(kinds[threads.codes] >= 0)[rows]
    codes = np.where(telling >= 0, kinds[threads.codes[telling]], _KIND_CODES["compute"])
    by_kind = sum_by(codes, times, len(_KIND_CODES))
    return PythonTime(
        Counter({kind: int(by_kind[code]) for kind, code in _KIND_CODES.items() if by_kind[code]}),
        _by_function(threads, rows, times, holds),
        _counter(threads, sum_by(threads.codes[rows], times, count)),
        _homes(threads, of, inside),
    )


_KIND_CODES: dict[str, int] = {kind: code for code, kind in enumerate(get_args(Kind))}


def _homes(threads: Threads, of: Sequence[int], inside: Mask) -> Counter[str]:
    """Return the files that call the outermost of the events `inside`, by the time of these calls."""
    outermost = inside & (np.append(threads.nearest(inside), -1)[threads.parents] < 0) & np.isin(threads.threads, of)
    rows = np.flatnonzero(outermost)
    callers = np.append(threads.nearest(threads.labelled(names.is_frame)), -1)[threads.parents[rows]]
    files: Counter[str] = Counter()
    for caller, time in zip(callers.tolist(), threads.durations[rows].tolist(), strict=True):
        found = names.frame(threads.labels[threads.codes[caller]]) if caller >= 0 else None
        if found is not None:
            files[found.file] += time
    return files


def _by_function(threads: Threads, rows: Rows, times: Rows, holds: Mask) -> Counter[str]:
    """Add each event's time to all functions around it up to the outermost that `holds`, once for each entry."""
    sums = np.zeros(len(threads.labels), np.int64)
    frames = np.append(threads.labelled(names.is_frame), False)
    while len(rows):
        hit = frames[rows]
        sums += sum_by(threads.codes[rows[hit]], times[hit], len(sums))
        rows = threads.parents[rows]
        kept = (rows >= 0) & holds[rows]
        rows, times = rows[kept], times[kept]
    return _counter(threads, sums)


def _counter(threads: Threads, sums: Rows) -> Counter[str]:
    return Counter({threads.labels[code]: int(sums[code]) for code in np.flatnonzero(sums).tolist()})


def python_waits(host: HostInput, exposed: Intervals) -> tuple[PythonTime, PythonTime]:
    """Return what the stepping thread did while the step waited, and what loader threads did while it waited for them.

    Args:
        host: The host's input work.
        exposed: When the step waited in Python, with nothing else to blame.

    """
    threads = host.threads
    own = python_time(threads, host.step_threads, exposed, host.calls)
    waiting = _worker_waits(host, exposed)
    traced = threads.labelled(names.is_frame)
    others = [int(thread) for thread in np.unique(threads.threads[traced]) if thread not in host.step_threads]
    return own.small(), python_time(threads, others, waiting, traced).small()


def _worker_waits(host: HostInput, exposed: Intervals) -> Intervals:
    waits = host.threads.labelled(lambda label: kind_of(label) == "worker")
    waits &= np.isin(host.threads.threads, host.step_threads)
    return intersect(host.threads.spans(waits), exposed) if waits.any() else NOTHING
