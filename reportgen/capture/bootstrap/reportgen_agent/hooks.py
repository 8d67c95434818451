"""Hooks into the frameworks that a script imports: where a step begins, and where a program is compiled."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any

from . import tracers
from .window import Window

Hook = Callable[[ModuleType], None]


def install(window: Window, on_import: Callable[[], None]) -> None:
    """Hook into JAX, TensorFlow and Keras as soon as the script imports them.

    Args:
        window: Is told of steps and programs.
        on_import: Is called before the first hook of each.

    """

    def guarded(hook: Callable[[Any, Window], None]) -> Hook:
        def run(module: ModuleType) -> None:
            try:
                on_import()
                hook(module, window)
            except Exception as error:  # whatever it is, the script goes on
                window.note(f"{module.__name__} could not be watched: {error!r}")
                window.tell()

        return run

    hooks = {"jax": _hook_jax, "tensorflow": _hook_tensorflow, "keras": _hook_keras, "torch_xla": _hook_torch_xla}
    sys.meta_path.insert(0, _ImportWatcher({name: guarded(hook) for name, hook in hooks.items()}))


class _ImportWatcher(MetaPathFinder):
    """Runs a hook after a module was executed; finds modules with the finders that stand behind it."""

    def __init__(self, hooks: dict[str, Hook]) -> None:
        self._hooks = hooks

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002
        """Return the spec of a module to be watched, None for every other."""
        hook = self._hooks.pop(fullname, None)
        if hook is None:
            return None
        spec = importlib.util.find_spec(fullname)
        loader = spec.loader if spec is not None else None
        if loader is None or not hasattr(loader, "__dict__"):
            self._hooks[fullname] = hook
            return spec
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.__dict__["exec_module"]
            try:
                execute(module)
            except BaseException:
                self._hooks[fullname] = hook  # the script may try again
                raise
            hook(module)

        loader.__dict__["exec_module"] = exec_module
        return spec


def _before(owner: Any, name: str, action: Callable[..., None]) -> None:
    """Let a method call `action` with its own arguments first."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapper(*arguments: Any, **options: Any) -> Any:
        action(*arguments, **options)
        return original(*arguments, **options)

    setattr(owner, name, wrapper)


def _hook_jax(jax: Any, window: Window) -> None:
    def on_event(event: str, _seconds: float, **_labels: Any) -> None:
        if event.endswith("/jaxpr_to_mlir_module_duration"):
            window.program(tracers.JAX, compiling=True)
        elif event.endswith("/backend_compile_duration"):
            window.program(tracers.JAX, compiling=False)

    jax.monitoring.register_event_duration_secs_listener(on_event)
    _before(
        jax.profiler.StepTraceAnnotation,
        "__init__",
        lambda *_arguments, **_options: window.step("StepTraceAnnotation", tracers.JAX),
    )
    window.imported(tracers.JAX)


def _hook_tensorflow(tensorflow: Any, window: Window) -> None:
    function = type(tensorflow.function(lambda: None))
    call = function.__call__

    @functools.wraps(call)
    def first_call(*arguments: Any, **options: Any) -> Any:
        result = call(*arguments, **options)
        if function.__call__ is first_call:
            function.__call__ = call
            window.program(tracers.TENSORFLOW, compiling=False)
        return result

    def on_trace(*_arguments: Any, **labels: Any) -> None:
        if "step_num" in labels:
            window.step("Trace", tracers.TENSORFLOW)

    function.__call__ = first_call
    _before(tensorflow.profiler.experimental.Trace, "__init__", on_trace)
    window.imported(tracers.TENSORFLOW)


def _hook_keras(keras: Any, window: Window) -> None:
    """Count and mark the batches of Model.fit, which marks none itself."""
    open_marks: list[Any] = []

    def end(*_arguments: Any, **_options: Any) -> None:
        while open_marks:
            open_marks.pop().__exit__(None, None, None)

    def begin(*_arguments: Any, **_options: Any) -> None:
        framework = keras.backend.backend()
        if framework not in (tracers.JAX, tracers.TENSORFLOW):
            return
        end()
        number = window.status.steps
        window.step("keras", framework)
        if window.tracing:
            mark = tracers.TRACERS[framework].step_mark(number)
            mark.__enter__()
            open_marks.append(mark)

    _before(keras.callbacks.CallbackList, "on_train_batch_begin", begin)
    _before(keras.callbacks.CallbackList, "on_train_batch_end", end)


def _hook_torch_xla(_module: ModuleType, window: Window) -> None:
    window.note(
        "PyTorch/XLA is not traced by `reportgen run`: use reportgen.StepProfiler in the loop, or start a server with "
        "torch_xla.debug.profiler.start_server and use `reportgen capture`"
    )
    window.tell()
