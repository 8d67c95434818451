"""A host as analyses see it: cores with their ops, steps and peaks, and HLO modules; decoded once, when asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from google.protobuf.message import DecodeError

from reportgen.errors import InputError
from reportgen.profile.cpu import cpu_op_runs
from reportgen.profile.devices import Peaks, peaks_of
from reportgen.profile.gpu import GpuRuns, gpu_op_runs
from reportgen.profile.hlo import HloModule
from reportgen.profile.model import HostProfile, Kind, Plane
from reportgen.profile.ops import OpRuns, tpu_op_runs
from reportgen.profile.run_steps import launched_steps, launches, program_steps
from reportgen.profile.steps import (
    Annotations,
    Steps,
    StepSource,
    annotated_steps,
    module_runs,
    steps_of_line,
    steps_of_modules,
)
from reportgen.settings import Settings
from reportgen.wire import xplane_pb2

_UNSIGNED = 0xFFFFFFFFFFFFFFFF
NO_STEPS = Steps(
    StepSource.NONE, "", np.empty(0, np.int64), (), np.empty(0, np.int64), np.empty(0, np.int64)
)  # fmt: skip


@dataclass(frozen=True)
class CoreId:
    """Which core: its host, its device and its place.

    Attributes:
        host: Name of the host.
        plane: Name of the plane.
        device: "TPU", "GPU" or "CPU".
        chip: Number of the chip on its host (of the GPU).
        core: Number of the core on its chip.
        global_chip: Number of the chip in the whole system; -1 where not captured.

    """

    host: str
    plane: str
    device: str
    chip: int
    core: int
    global_chip: int = -1

    @property
    def label(self) -> str:
        """Such as "host0 chip 2 core 1"."""
        if self.device == "TPU":
            return f"{self.host} chip {self.chip} core {self.core}"
        return f"{self.host} GPU {self.chip}" if self.device == "GPU" else f"{self.host} CPU"


class Core:
    """A TensorCore, a GPU, or the CPU where the program ran on the host."""

    def __init__(self, view: HostView, plane: Plane) -> None:
        self.view = view
        self.plane = plane

    @cached_property
    def id(self) -> CoreId:
        """Which core it is."""
        host, plane = self.view.profile.name, self.plane
        if plane.kind is Kind.GPU:
            return CoreId(host, plane.name, "GPU", max(0, plane.ordinal), 0)
        if plane.kind is Kind.HOST:
            return CoreId(host, plane.name, "CPU", 0, 0)
        details = _core_details(plane)
        if details is None:
            return CoreId(host, plane.name, "TPU", max(0, plane.ordinal), 0)
        return CoreId(host, plane.name, "TPU", details.local_chip_id, details.core_num, details.global_chip_id)

    @cached_property
    def runs(self) -> OpRuns:
        """Every execution of an op."""
        if self.plane.kind is Kind.GPU:
            return gpu_op_runs(self.plane, self.view.modules)
        if self.plane.kind is Kind.HOST:
            return cpu_op_runs(self.plane, self.view.modules)
        return tpu_op_runs(self.plane)

    @cached_property
    def peaks(self) -> Peaks:
        """What the core can do."""
        return peaks_of(self.plane, self.view.settings)

    @property
    def steps(self) -> Steps:
        """The core's steps; empty where there are none."""
        return self.view.steps[self.plane.name]


def _core_details(plane: Plane) -> xplane_pb2.CoreDetails | None:
    message = plane.stats.get("core_details")
    try:
        return xplane_pb2.CoreDetails.FromString(message) if isinstance(message, bytes) else None
    except DecodeError:
        return None


class HostView:
    """What analyses ask of one host's profile."""

    def __init__(self, profile: HostProfile, settings: Settings) -> None:
        self.profile = profile
        self.settings = settings

    @cached_property
    def cores(self) -> tuple[Core, ...]:
        """TensorCores and GPUs, also idle ones; the CPU where there is no device at all and XLA ops ran on the host."""
        devices = self.profile.of_kind(Kind.TPU, Kind.GPU)
        if devices:
            return tuple(Core(self, plane) for plane in devices)
        hosts = (Core(self, plane) for plane in self.profile.of_kind(Kind.HOST))
        return tuple(core for core in hosts if "hlo_op" in core.plane.stat_names.values())

    @cached_property
    def active_cores(self) -> tuple[Core, ...]:
        """Cores on which an op ran."""
        return tuple(core for core in self.cores if len(core.runs))

    @cached_property
    def annotations(self) -> Annotations | None:
        """Step annotations on host threads."""
        return annotated_steps(self.profile.planes)

    @cached_property
    def steps(self) -> Mapping[str, Steps]:
        """Steps of each core by the name of its plane, all from the same kind of evidence."""
        names = [core.plane.name for core in self.cores]
        lines = {core.plane.name: steps_of_line(core.plane) for core in self.cores}
        if any(lines.values()):
            return {name: lines[name] or NO_STEPS for name in names}
        tpus = [core for core in self.cores if core.plane.kind is Kind.TPU]
        runs = steps_of_modules([module_runs(core.plane) for core in tpus])
        if runs:
            return {core.plane.name: steps for core, steps in zip(tpus, runs, strict=True)}
        if self.annotations:
            return self._annotated_steps(self.annotations.steps)
        found = program_steps([core.runs for core in self.active_cores], self.modules) or []
        return dict.fromkeys(names, NO_STEPS) | {
            core.plane.name: steps for core, steps in zip(self.active_cores, found, strict=False)
        }

    def _annotated_steps(self, annotations: Steps) -> Mapping[str, Steps]:
        """Steps by annotations: on GPU what they launched, where launches were recorded."""
        names = [core.plane.name for core in self.cores]
        launched = launches(self.profile.planes)
        found = {
            core.plane.name: launched_steps(annotations, launched, core.runs)
            for core in self.active_cores
            if isinstance(core.runs, GpuRuns)
        }
        if any(found.values()):
            return {name: found.get(name) or NO_STEPS for name in names}
        return dict.fromkeys(names, annotations)

    @cached_property
    def step_source(self) -> tuple[StepSource, str]:
        """Which evidence defines the steps, and its detail: the module's or annotation's name."""
        found = next((steps for steps in self.steps.values() if len(steps)), None)
        if found is None and self.annotations is not None:
            found = self.annotations.steps
        return (found.source, found.detail) if found else (StepSource.NONE, "")

    @cached_property
    def modules(self) -> ModuleTable:
        """HLO modules by program id."""
        return ModuleTable(self.profile)


class ModuleTable(Mapping[int, HloModule]):
    """HLO modules of a host by program id, parsed when asked for. A damaged module is absent and named in `damaged`."""

    def __init__(self, profile: HostProfile) -> None:
        self._protos: dict[int, bytes] = {}
        self._labels: dict[int, str] = {}
        self._parsed: dict[int, HloModule] = {}
        self.damaged: list[str] = []
        for plane in profile.of_kind(Kind.METADATA):
            for entry in plane.event_metadata:
                stats = dict(plane.stat_values(entry.stats))
                proto = stats.get("Hlo Proto") or stats.get("hlo_proto")
                if isinstance(proto, bytes):
                    program = stats.get("program_id", entry.id)
                    key = (program if isinstance(program, int) else entry.id) & _UNSIGNED
                    self._protos[key] = proto
                    self._labels[key] = entry.name.decode("utf-8", "replace")

    @property
    def labels(self) -> Mapping[int, str]:
        """Label of each module, such as "jit_f(123)", without parsing it."""
        return self._labels

    def largest(self, count: int) -> list[int]:
        """Return the program ids of the modules with the largest protos, largest first."""
        return sorted(self._protos, key=lambda program: (-len(self._protos[program]), program))[:count]

    def __getitem__(self, program: int) -> HloModule:
        """Return a module.

        Raises:
            KeyError: There is none, or it is damaged.

        """
        if program not in self._parsed:
            try:
                self._parsed[program] = HloModule.from_bytes(self._protos[program], self._labels[program])
            except InputError as error:
                self.damaged.append(self._labels[program])
                del self._protos[program]
                raise KeyError(program) from error
        return self._parsed[program]

    def __iter__(self) -> Iterator[int]:
        """Iterate over program ids."""
        return iter(list(self._protos))

    def __len__(self) -> int:
        """Return the number of modules."""
        return len(self._protos)
