"""Profiles taken by the training program itself: a context, a step counter for loops, and a Keras callback.

Each traces a window through the framework's own profiler and writes a report when training is over. None of them makes
training fail: a fault is logged under the name of this module, and training goes on. Wrong arguments raise at once,
before training.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from reportgen.capture.bootstrap.reportgen_agent.tracers import TRACERS, framework_in_use
from reportgen.capture.options import TraceLevels
from reportgen.capture.reporting import ReportHook, write_report
from reportgen.capture.store import adopt_trace
from reportgen.errors import UsageError

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def _logged(what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        _log.warning("%s: %s", what, error, exc_info=True)


class _Recorder:
    """One trace and its report; every fault is logged instead of raised."""

    def __init__(self, output: str | Path, framework: str | None, levels: TraceLevels | None, report: ReportHook):
        if framework is not None and framework not in TRACERS:
            raise UsageError(f"{framework!r} is no framework that can be traced; known are {', '.join(TRACERS)}.")
        self._output, self._framework, self._report = Path(output), framework, report
        self._levels = levels or TraceLevels()
        self._active: str | None = None
        self._traces: Path | None = None
        self._run_folder: Path | None = None

    def start(self) -> None:
        """Start the trace."""
        with _logged("the trace could not be started"):
            framework = self._framework or framework_in_use()
            if framework is None:
                raise UsageError("Neither JAX, TensorFlow nor PyTorch/XLA was imported: name it with framework=...")
            self._output.mkdir(parents=True, exist_ok=True)
            self._traces = Path(tempfile.mkdtemp(prefix=".trace-", dir=self._output)).absolute()
            levels = self._levels
            TRACERS[framework].start(str(self._traces), levels.host, levels.device, levels.python)
            self._active = framework

    def step_mark(self, number: int) -> AbstractContextManager[Any]:
        """Return a context that marks a step; it does nothing while no trace is running."""
        if self._active is not None:
            with _logged("a step could not be marked"):
                return TRACERS[self._active].step_mark(number)
        return contextlib.nullcontext()

    def stop(self) -> None:
        """End the trace, if there is one, and write it."""
        framework, self._active = self._active, None
        traces, self._traces = self._traces, None
        with _logged("the trace could not be saved"):
            if framework is not None and traces is not None:
                TRACERS[framework].stop()
                self._run_folder = adopt_trace(traces, self._output)
        if traces is not None:
            shutil.rmtree(traces, ignore_errors=True)

    def report(self) -> None:
        """Write the report of what was traced, if anything was."""
        run_folder, self._run_folder = self._run_folder, None
        if run_folder is not None:
            with _logged("the report could not be written"):
                self._report(run_folder, self._output)


@contextlib.contextmanager
def profiled(
    output: str | Path,
    *,
    framework: str | None = None,
    levels: TraceLevels | None = None,
    report: ReportHook = write_report,
) -> Iterator[None]:
    """Profile what runs inside, and write a report afterwards.

    Args:
        output: Folder for the profile (in TensorBoard's layout) and the report.
        framework: "jax", "tensorflow" or "torch_xla"; None takes the one that the program uses so far.
        levels: How much is recorded; PyTorch/XLA takes no levels.
        report: Called with the run's folder and `output`.

    Raises:
        UsageError: The framework is not known.

    """
    recorder = _Recorder(output, framework, levels, report)
    recorder.start()
    try:
        yield
    finally:
        recorder.stop()
        recorder.report()


class StepProfiler:
    """Counts the steps of a training loop, profiles some of them, and reports when the loop is over.

    In a loop of plain JAX or PyTorch/XLA::

        with StepProfiler("out/", steps=(5, 15)) as profiler:
            for batch in data:
                with profiler.step():
                    state = train_step(state, batch)

    The device works behind the host: wait for the result inside the step (jax.block_until_ready) where the last steps
    of the window must be whole.
    """

    def __init__(
        self,
        output: str | Path,
        steps: tuple[int, int] = (5, 15),
        *,
        framework: str | None = None,
        levels: TraceLevels | None = None,
        report: ReportHook = write_report,
    ) -> None:
        """Prepare; nothing is traced yet.

        Args:
            output: Folder for the profile (in TensorBoard's layout) and the report.
            steps: The first step to profile and the step before which to end, counted from 0.
            framework: "jax", "tensorflow" or "torch_xla"; None takes the one that the program uses at the first step.
            levels: How much is recorded; PyTorch/XLA takes no levels.
            report: Called with the run's folder and `output`.

        Raises:
            UsageError: The range is empty, or the framework is not known.

        """
        if not 0 <= steps[0] < steps[1]:
            raise UsageError(f"{steps} is no range of steps; expected (FIRST, END) with 0 <= FIRST < END.")
        self._first, self._end = steps
        self._count = 0
        self._recorder = _Recorder(output, framework, levels, report)

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Count and mark a step: what runs inside."""
        number, self._count = self._count, self._count + 1
        if number == self._first:
            self._recorder.start()
        elif number == self._end:
            self._recorder.stop()
        with self._recorder.step_mark(number):
            yield

    def close(self) -> None:
        """End the trace if it still runs, and write the report."""
        self._recorder.stop()
        if self._count <= self._first:
            _log.warning("nothing was profiled: %d step(s) ran, the first to profile is %d", self._count, self._first)
        self._recorder.report()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def keras_callback(
    output: str | Path,
    steps: tuple[int, int] = (5, 15),
    *,
    levels: TraceLevels | None = None,
    report: ReportHook = write_report,
) -> Any:
    """Return a keras.callbacks.Callback for Model.fit that profiles some batches and reports when training ends.

    Needs Keras 3 on JAX or TensorFlow; it is imported by this call and not before.

    Args:
        output: Folder for the profile (in TensorBoard's layout) and the report.
        steps: The first batch to profile and the batch before which to end, counted from 0 over all epochs.
        levels: How much is recorded.
        report: Called with the run's folder and `output`.

    Raises:
        UsageError: The range is empty, or Keras runs on a framework that cannot be traced.

    """
    keras: Any = import_module("keras")
    profiler = StepProfiler(output, steps, framework=keras.backend.backend(), levels=levels, report=report)
    current = contextlib.ExitStack()
    methods = {
        "on_train_batch_begin": lambda _self, _batch, logs=None: current.enter_context(profiler.step()),  # noqa: ARG005
        "on_train_batch_end": lambda _self, _batch, logs=None: current.close(),  # noqa: ARG005
        "on_train_end": lambda _self, logs=None: profiler.close(),  # noqa: ARG005
    }
    return type("ReportgenCallback", (keras.callbacks.Callback,), methods)()
