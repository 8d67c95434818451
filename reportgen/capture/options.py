"""What to capture, and what came of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from reportgen.errors import UsageError

_DURATION = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*(ms|s|m|min|h)?")
_SECONDS_PER = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_LONGEST_S = 24 * 3600.0


@dataclass(frozen=True)
class TraceLevels:
    """How much the profiler records.

    Attributes:
        host: 0 nothing, 1 what the user marked and critical calls, 2 the runtime's usual calls, 3 everything.
        device: 0 nothing, 1 the accelerator's timeline.
        python: 0 nothing, 1 every Python call.

    Raises:
        UsageError: A level is outside its range.

    """

    host: int = 2
    device: int = 1
    python: int = 0

    def __post_init__(self) -> None:
        for name, level, highest in (("host", self.host, 3), ("device", self.device, 1), ("python", self.python, 1)):
            if not 0 <= level <= highest:
                raise UsageError(f"The {name} tracer's level is {level}; expected 0 to {highest}.")


@dataclass(frozen=True)
class CaptureOptions:
    """How a capture over the network goes about it; all times are seconds.

    Attributes:
        duration_s: How long the profiler records.
        delay_s: How long from the request to the common start of all hosts.
        levels: How much is recorded.
        wait_s: How long to wait for servers that are not up yet.
        busy_wait_s: How long to try again while another capture holds a server.
        connect_timeout_s: How long a server may take to answer a first, empty question.
        collect_timeout_s: How long a server may take after the recording to hand the profile over.
        until_steps: Capture again, longer, until every host caught so many steps; None for a single capture.
        longest_s: The longest recording that `until_steps` leads to.
        tls: Whether the connection is encrypted; profiler servers themselves have no TLS.
        tls_ca: File with the certificate authorities to trust, PEM; None for the usual ones.
        server_logdir: Log folder or address under which an older server, which cannot send the profile, writes it;
            None for the capture's own folder, as on a shared disk.

    Raises:
        UsageError: A time is out of range.

    """

    duration_s: float = 2.0
    delay_s: float = 0.0
    levels: TraceLevels = field(default_factory=TraceLevels)
    wait_s: float = 0.0
    busy_wait_s: float = 30.0
    connect_timeout_s: float = 10.0
    collect_timeout_s: float = 120.0
    until_steps: int | None = None
    longest_s: float = 60.0
    tls: bool = False
    tls_ca: Path | None = None
    server_logdir: str | None = None

    def __post_init__(self) -> None:
        for name in ("duration_s", "connect_timeout_s", "collect_timeout_s", "longest_s"):
            if not 0.001 <= getattr(self, name) <= _LONGEST_S:
                raise UsageError(f"{_label(name)} is {getattr(self, name):g} s; expected 1 ms to 24 h.")
        for name in ("delay_s", "wait_s", "busy_wait_s"):
            if not 0 <= getattr(self, name) <= _LONGEST_S:
                raise UsageError(f"{_label(name)} is {getattr(self, name):g} s; expected 0 to 24 h.")
        if self.until_steps is not None and self.until_steps < 1:
            raise UsageError(f"The number of steps to catch is {self.until_steps}; expected 1 or more.")
        if self.tls_ca is not None and not self.tls_ca.is_file():
            raise UsageError(f"{self.tls_ca}: there is no such file with certificate authorities.")


def _label(name: str) -> str:
    return "The " + name.removesuffix("_s").replace("_", " ")


@dataclass(frozen=True)
class CapturedHost:
    """A host whose profile was written.

    Attributes:
        address: HOST:PORT as asked.
        path: The profile's file.
        size: Its bytes.
        hostname: The server's own name for itself, "" where it gave none.
        steps: How many whole or cut steps the profile shows; None where it cannot be told.

    """

    address: str
    path: Path
    size: int
    hostname: str
    steps: int | None


@dataclass(frozen=True)
class MissingHost:
    """A host that gave no profile.

    Attributes:
        address: HOST:PORT as asked.
        reason: Why there is none.
        hint: What to try, may be empty.
        empty: Whether the server did record, but nothing ran.

    """

    address: str
    reason: str
    hint: str = ""
    empty: bool = False


@dataclass(frozen=True)
class CaptureResult:
    """What a capture gave.

    Attributes:
        run_folder: LOGDIR/plugins/profile/RUN, with a file for each captured host.
        captured: The hosts with a profile, in the order asked.
        missing: The hosts without.
        warnings: What the user should know of the profiles.
        interrupted: Whether Ctrl-C ended it early.

    """

    run_folder: Path
    captured: tuple[CapturedHost, ...]
    missing: tuple[MissingHost, ...] = ()
    warnings: tuple[str, ...] = ()
    interrupted: bool = False


def parse_duration(text: str) -> float:
    """Return seconds from text such as "2s", "500ms", "1.5m" or a plain number of seconds.

    Raises:
        UsageError: The text is no duration.

    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is no duration.", "Write 2s, 500ms, 1.5m or a plain number of seconds.")
    return float(match[1]) * _SECONDS_PER[match[2] or "s"]


def parse_steps(text: str) -> tuple[int, int]:
    """Return the half-open range of steps that "5:15" stands for: the sixth to the fifteenth step.

    Raises:
        UsageError: The text is no such range, or the range is empty.

    """
    match = re.fullmatch(r"(\d{1,9}):(\d{1,9})", text.strip())
    if match is None or int(match[1]) >= int(match[2]):
        raise UsageError(
            f"{text!r} is no range of steps.",
            "Write FIRST:END, as in 5:15, which is ten steps: the first step is number 0, END is left out.",
        )
    return int(match[1]), int(match[2])
