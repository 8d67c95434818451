"""The profilers of the frameworks, driven through their public functions."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

JAX, TENSORFLOW, TORCH_XLA = "jax", "tensorflow", "torch_xla"


class TraceRefusedError(RuntimeError):
    """Tracing is not possible here, or would harm the program; says why and what to change."""


class Tracer(Protocol):
    """A framework's profiler; every method may raise whatever the framework raises."""

    def start(self, folder: str, host: int, device: int, python: int) -> None:
        """Start a trace for a log folder, with the levels of the host, device and Python tracers."""

    def stop(self) -> None:
        """End the trace and write it, in TensorBoard's layout."""

    def step_mark(self, number: int) -> AbstractContextManager[Any]:
        """Return a context that marks a training step in the trace."""


class _Jax:
    def start(self, folder: str, host: int, device: int, python: int) -> None:
        """Start a trace; refuses where libtpu was loaded without a TPU: its tracer then crashes the process."""
        jax: Any = import_module("jax")
        with suppress(OSError):
            mapped = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
            if "libtpu" in mapped and (backend := jax.default_backend()) != "tpu":
                raise TraceRefusedError(
                    f"libtpu is loaded although JAX runs on {backend}: a trace would crash the process. "
                    f"Set JAX_PLATFORMS={backend}, or uninstall libtpu on this machine."
                )
        if not hasattr(jax.profiler, "ProfileOptions"):
            jax.profiler.start_trace(folder)
            return
        options = jax.profiler.ProfileOptions()
        options.host_tracer_level = host
        options.device_tracer_level = device
        options.python_tracer_level = python
        jax.profiler.start_trace(folder, profiler_options=options)

    def stop(self) -> None:
        import_module("jax").profiler.stop_trace()

    def step_mark(self, number: int) -> AbstractContextManager[Any]:
        mark = import_module("jax").profiler.StepTraceAnnotation("train", step_num=number)
        return cast("AbstractContextManager[Any]", mark)


class _TensorFlow:
    def start(self, folder: str, host: int, device: int, python: int) -> None:
        profiler: Any = import_module("tensorflow").profiler.experimental
        profiler.start(folder, profiler.ProfilerOptions(host, python, device))

    def stop(self) -> None:
        import_module("tensorflow").profiler.experimental.stop()

    def step_mark(self, number: int) -> AbstractContextManager[Any]:
        mark = import_module("tensorflow").profiler.experimental.Trace("train", step_num=number, _r=1)
        return cast("AbstractContextManager[Any]", mark)


class _TorchXla:
    def start(self, folder: str, host: int, device: int, python: int) -> None:  # noqa: ARG002
        """Start a trace; this profiler takes no levels."""
        import_module("torch_xla.debug.profiler").start_trace(folder)

    def stop(self) -> None:
        import_module("torch_xla.debug.profiler").stop_trace()

    def step_mark(self, number: int) -> AbstractContextManager[Any]:
        """Return the plain mark: xp.StepTrace would synchronise, and forbid the loop to do so itself."""
        mark = import_module("torch_xla")._XLAC.profiler.TraceMe("train", step_num=number, _r=1)
        return cast("AbstractContextManager[Any]", mark)


TRACERS: dict[str, Tracer] = {TORCH_XLA: _TorchXla(), JAX: _Jax(), TENSORFLOW: _TensorFlow()}


def framework_in_use() -> str | None:
    """Return the framework that the program runs on, of those imported so far.

    TensorFlow and JAX import each other (for input data, for conversions), so JAX counts before TensorFlow only once it
    has devices.
    """
    imported = [framework for framework in TRACERS if framework in sys.modules]
    if imported == [JAX, TENSORFLOW]:
        return JAX if jax_has_devices() else TENSORFLOW
    return imported[0] if imported else None


def jax_has_devices() -> bool:
    """Tell whether JAX has chosen its devices; asking them for anything before would choose them."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bool(getattr(bridge, "backends_are_initialized", lambda: True)())
