"""What a host's file holds: planes, versions, capture options, what the profiler recorded of itself."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import DecodeError

from reportgen.document import Plane
from reportgen.profile.model import HostProfile, Kind
from reportgen.profile.steps import StepSource
from reportgen.profile.view import HostView
from reportgen.wire import profiler_pb2


@dataclass(frozen=True)
class HostInfo:
    """Who a host is and what its file holds.

    Attributes:
        device_type: Type of its devices; "CPU" where the program ran on the host; None where unknown.
        devices: Chips or GPUs with a plane.
        cores: TensorCores or GPUs with a plane.
        active_cores: Those on which an op ran.
        framework: "jax", "tensorflow", "pytorch_xla" or "".
        versions, options: Software versions and capture options, as far as they were recorded.
        start_ns, stop_ns: Unix time of the capture's start and stop in nanoseconds.
        step_source, step_detail: Which evidence defines the steps.
        modelled: How the timeline was modelled, "" where it was measured.

    """

    name: str
    device_type: str | None
    devices: int
    cores: int
    active_cores: int
    framework: str
    versions: dict[str, str]
    options: dict[str, str]
    start_ns: int | None
    stop_ns: int | None
    step_source: StepSource
    step_detail: str
    planes: tuple[Plane, ...]
    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    missing: float
    modelled: str = ""


def host_info(view: HostView) -> HostInfo:
    """Return who a host is and what its file holds."""
    profile, cores = view.profile, view.cores
    source, detail = view.step_source
    environment = profile.environment
    modelled = next((text for text in profile.warnings if text.startswith("Modelled timeline:")), "")
    if not modelled and environment.get("reportgen_timeline") == "modelled":
        modelled = "Modelled timeline."
    return HostInfo(
        name=profile.name,
        device_type=_device_type(view),
        devices=len({(core.id.chip, core.id.device) for core in cores if core.id.device != "CPU"}),
        cores=len(cores),
        active_cores=len(view.active_cores),
        framework=_framework(profile),
        versions=_versions(profile),
        options=_options(profile),
        start_ns=profile.start_ns,
        stop_ns=profile.stop_ns,
        step_source=source,
        step_detail=detail,
        planes=tuple(
            Plane(host=profile.name, name=plane.name, lines=len(plane.lines), events=plane.event_count)
            for plane in profile.planes
        ),
        errors=profile.errors,
        warnings=tuple(text for text in profile.warnings if not text.startswith("Modelled timeline:")),
        missing=profile.missing,
        modelled=modelled,
    )


def _device_type(view: HostView) -> str | None:
    if not view.cores:
        return None
    if view.cores[0].id.device == "CPU":
        return "CPU"
    return next((core.peaks.device_type for core in view.cores if core.peaks.device_type), None)


def _versions(profile: HostProfile) -> dict[str, str]:
    """Return software versions: JAX writes them on the metadata plane, others beside the capture's times."""
    stats = [plane.stats for plane in profile.of_kind(Kind.METADATA)]
    found = {key: value for source in (*stats, profile.environment) for key, value in source.items()}
    return {key: _text(value) for key, value in sorted(found.items()) if "version" in key.lower()}


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


_RECORDED = ("profile_start_time", "profile_stop_time", "reportgen_timeline")


def _options(profile: HostProfile) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in sorted(profile.environment.items()):
        if key == "profile_options" and isinstance(value, bytes):
            found |= _profile_options(value)
        elif key not in _RECORDED and "version" not in key.lower():
            found[key] = _text(value)
    return found


def _profile_options(message: bytes) -> dict[str, str]:
    """Return the options that the capture was started with, by name, those that were set."""
    try:
        options = profiler_pb2.ProfileOptions.FromString(message)
    except DecodeError:
        return {}
    shown = ((field.name, value) for field, value in options.ListFields())
    return {name: str(value) for name, value in shown if name not in ("repository_path", "session_id", "version")}


# What only one framework's runtime calls its host events, and its modules.
_EVENT_SIGNS = {
    "pytorch_xla": ("torch_xla", "XLAGraphExecutor", "PjRtComputationClient::", "CollectSyncTensors", "aten::"),
    "jax": ("PjitFunction", "jit(", "pjit(", "jax"),
    "tensorflow": ("Iterator::", "EagerLocalExecute", "EagerExecute", "ExecutorState::", "RunGraph", "FunctionRun"),
}
_MODULE_SIGNS = {
    "pytorch_xla": ("SyncTensorsGraph", "IrToHlo"),
    "jax": ("jit_", "pjit_", "pmap_"),
    "tensorflow": ("a_inference_", "cluster_", "__inference_"),
}


def _framework(profile: HostProfile) -> str:
    """Return the framework whose signs most module labels carry, else most event names; "" where none carries any."""
    labels = [name for plane in profile.of_kind(Kind.METADATA) for name in plane.event_names]
    names = [name for plane in profile.of_kind(Kind.HOST) for name in plane.event_names]
    modules = {key: sum(label.startswith(signs) for label in labels) for key, signs in _MODULE_SIGNS.items()}
    events = {key: sum(any(sign in name for sign in signs) for name in names) for key, signs in _EVENT_SIGNS.items()}
    best = max(_EVENT_SIGNS, key=lambda key: (modules[key], events[key]))
    return best if modules[best] or events[best] else ""
