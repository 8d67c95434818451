"""When to trace: the one window of a script's life that is recorded."""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from . import tracers

WAITING, TIMED, STEPPED, DONE = "waiting", "timed", "stepped", "done"
_TICK_S = 0.05
_VOID_LIMIT = 3


@dataclass
class Settings:
    """What `reportgen run` asks for, sent through the environment as JSON.

    Attributes:
        control: Folder for messages to the parent process.
        traces: Log folder for the trace and nothing else.
        pythonpath: PYTHONPATH as it was, None where there was none.
        first: The first step of the window, counted from 0.
        end: The step before which it ends.
        quiet_s: For scripts that mark no steps: time without a compilation before the window begins.
        duration_s: For the same: length of the window.
        host: Level of the host tracer.
        device: Level of the device tracer.
        python: Level of the Python tracer.

    """

    control: str
    traces: str
    pythonpath: str | None
    first: int
    end: int
    quiet_s: float
    duration_s: float
    host: int
    device: int
    python: int


@dataclass
class Status:
    """What the parent process is told about one Python process.

    Attributes:
        frameworks: What it imported, of the frameworks that can be traced.
        steps: Steps marked until the window was over.
        kind: STEPPED or TIMED once the window began.
        saved: Whether a trace was written.
        failure: Why none could be.
        notes: What the user should know beside.

    """

    frameworks: list[str] = field(default_factory=list)
    steps: int = 0
    kind: str | None = None
    saved: bool = False
    failure: str | None = None
    notes: list[str] = field(default_factory=list)


class Window:
    """Counts steps and compilations, and starts and ends the trace.

    A script that marks its steps is traced from step `first` to step `end`. One that marks none is traced for a time,
    once nothing has been compiled for a while; a compilation or a first step mark makes such a window void.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self.status = Status()
        self.state = WAITING
        self._clock = clock
        self._lock = threading.RLock()
        self._source: str | None = None  # what marks the steps; others are not counted on top
        self._compiled: str | None = None  # the framework that ran a program
        self._compiling = False
        self._since = clock()  # of the last compilation, or the begin of the window
        self._voided = 0
        self._claimed = False
        self._framework = ""
        self._restore: Callable[[], None] = lambda: None

    def imported(self, framework: str) -> None:
        """Note that the script imported a framework, and begin to watch it."""
        with self._lock:
            first = not self.status.frameworks
            self.status.frameworks.append(framework)
            self._since = self._clock()
        if first:
            threading.Thread(target=self._watch, name="reportgen", daemon=True).start()
            atexit.register(self.finish)
        self.tell()

    def program(self, framework: str, *, compiling: bool) -> None:
        """Note that a compilation of a program is about to begin, or is done.

        A program that uses JAX runs on it, also where its input data comes from TensorFlow.
        """
        with self._lock:
            if self._compiled == tracers.JAX != framework:
                return
            self._compiled, self._compiling, self._since = framework, compiling, self._clock()
            if self.state == TIMED and self._voided < _VOID_LIMIT:
                self._voided += 1
                self._void()

    def step(self, source: str, framework: str) -> None:
        """Count a step that is about to begin, and start or end the trace before it."""
        with self._lock:
            if self.state == DONE or self._source not in (None, source):
                return
            self._source = source
            if self.state == TIMED:
                self._void()
            if self.state == WAITING and self.status.steps == self.settings.first:
                self._begin(framework, STEPPED)
            elif self.state == STEPPED and self.status.steps == self.settings.end:
                self._end()
            self.status.steps += 1

    def tick(self) -> None:
        """Start or end a timed window when its time has come."""
        with self._lock:
            passed = self._clock() - self._since
            if self.state == WAITING and self._source is None and self._is_quiet() and passed >= self.settings.quiet_s:
                self._begin(self._compiled or "", TIMED)
            elif self.state == TIMED and passed >= self.settings.duration_s:
                self._end()

    def finish(self) -> None:
        """End with the script: what is being traced is saved."""
        with self._lock:
            if self.state in (TIMED, STEPPED):
                self.note("the script ended inside the window, which was cut short")
                self._end()
            self.tell()

    def abandon(self) -> None:
        """Trace nothing in this process, which is a fork of the script's."""
        self._lock = threading.RLock()
        self.state = DONE
        atexit.unregister(self.finish)

    @property
    def tracing(self) -> bool:
        """Whether a trace is running now."""
        return self.state in (TIMED, STEPPED)

    def note(self, text: str) -> None:
        """Keep something that the user should know."""
        if text not in self.status.notes:
            self.status.notes.append(text)

    def tell(self) -> None:
        """Write the status for the parent process."""
        path = Path(self.settings.control) / f"status-{os.getpid()}.json"
        partial = path.with_suffix(".partial")
        try:
            partial.write_text(json.dumps(asdict(self.status)), encoding="utf-8")
            partial.replace(path)
        except OSError:  # the parent and its folder are gone
            self.state = DONE

    def _watch(self) -> None:
        while self.state != DONE:
            self.tick()
            time.sleep(_TICK_S)

    def _is_quiet(self) -> bool:
        if self._compiled is None or self._compiling:
            return False
        return self._compiled != tracers.JAX or tracers.jax_has_devices()

    def _begin(self, framework: str, kind: str) -> None:
        settings = self.settings
        try:
            if not self._claim():
                raise tracers.TraceRefusedError("another process of the script is traced already")
            tracers.TRACERS[framework].start(settings.traces, settings.host, settings.device, settings.python)
        except Exception as error:  # whatever it is, the script goes on
            self.status.failure = f"the trace could not be started: {error}"
            self.state = DONE
        else:
            self.state = self.status.kind = kind
            self._framework, self._since = framework, self._clock()
            self._restore = _before_own_trace(framework, self._give_way)
        self.tell()

    def _end(self) -> None:
        self.state = DONE
        try:
            self._restore()
            tracers.TRACERS[self._framework].stop()
            self.status.saved = True
        except Exception as error:  # whatever it is, the script goes on
            self.status.failure = f"the trace could not be saved: {error}"
        self.tell()

    def _void(self) -> None:
        self._end()
        shutil.rmtree(self.settings.traces, ignore_errors=True)
        self.status.saved, self.status.kind = False, None
        self.state = WAITING
        self._since = self._clock()
        self.tell()

    def _give_way(self) -> None:
        with self._lock:
            if self.tracing:
                self.note("the script traces itself: the window ended there")
                self._end()

    def _claim(self) -> bool:
        """Tell whether this process is the one of the script that is traced: the first to get here."""
        if not self._claimed:
            try:
                (Path(self.settings.control) / "claim").touch(exist_ok=False)
            except FileExistsError:
                return False
            self._claimed = True
        return True


def _before_own_trace(framework: str, give_way: Callable[[], None]) -> Callable[[], None]:
    """Let the script's own start of a trace end ours first; returns what undoes it."""
    if framework == tracers.JAX:
        public, name = sys.modules["jax.profiler"], "start_trace"
    else:
        public, name = sys.modules["tensorflow"].profiler.experimental, "start"
    original = getattr(public, name)
    places = (public, sys.modules[original.__module__])

    @functools.wraps(original)
    def start(*arguments: Any, **options: Any) -> Any:
        give_way()
        return original(*arguments, **options)

    def restore() -> None:
        for place in places:
            setattr(place, name, original)

    for place in places:
        setattr(place, name, start)
    return restore
