"""Peaks of a device: from the user, the profile, or the catalogue, and which of them it was."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

from reportgen.profile.model import Kind, Plane
from reportgen.settings import Settings

BY_USER = "given by the user"


@dataclass(frozen=True)
class Device:
    """A device of the catalogue (`devices.toml`): values of one chip or GPU.

    Attributes:
        flops: Dense FLOP/s by type of the operands.
        hbm_bandwidth: Bytes per second.
        hbm_capacity: Bytes.
        cores: TensorCores of a chip that each have a plane.
        matrix_unit: Rows and columns of the matrix unit; 0 where not known.
        source: Where the figures were published.

    """

    name: str
    match: tuple[str, ...]
    flops: dict[str, float]
    hbm_bandwidth: float
    hbm_capacity: int
    source: str
    cores: int = 1
    matrix_unit: int = 0


@dataclass(frozen=True)
class Peak:
    """A peak value of one core or GPU with its origin; None where nobody knows it."""

    value: float | None
    source: str


@dataclass(frozen=True)
class Peaks:
    """What one plane's core or GPU can do.

    Attributes:
        device_type: The device's type as the profile writes it, or made from its capabilities; None where unknown.
        flops: FLOP/s at the type that the profile's own FLOP figures are normalised to (bf16, on old GPUs f32).
        by_type: FLOP/s by operand type, from the catalogue, scaled to the core.
        hbm_bandwidth: Bytes per second.
        hbm_capacity: Bytes.
        onchip_read, onchip_write: Bytes per second of the on-chip memory (VMEM, CMEM).
        matrix_unit: Rows and columns of the matrix unit; 0 where not known.
        cores: Cores that share a chip and its figures.
        listed_hbm_bandwidth: The catalogue's figure, to compare the profile's with; None where there is none.

    """

    device_type: str | None
    flops: Peak
    by_type: dict[str, float]
    hbm_bandwidth: Peak
    hbm_capacity: Peak
    onchip_read: Peak
    onchip_write: Peak
    matrix_unit: int = 0
    cores: int = 1
    listed_hbm_bandwidth: float | None = None

    @property
    def ridge(self) -> float | None:
        """Operational intensity (FLOP per byte of HBM) above which compute is the limit."""
        if not self.flops.value or not self.hbm_bandwidth.value:
            return None
        return self.flops.value / self.hbm_bandwidth.value


@cache
def catalogue() -> tuple[Device, ...]:
    """Return the devices of the catalogue, in the order in which they are tried."""
    content = tomllib.loads(resources.files(__package__).joinpath("devices.toml").read_text(encoding="utf-8"))
    return tuple(Device(**{**entry, "match": tuple(entry["match"])}) for entry in content["device"])


def find_device(device_type: str) -> Device | None:
    """Return the catalogue's device of a type such as "TPU v5 lite" or "NVIDIA H100 80GB HBM3"."""
    for device in catalogue():
        if any(re.search(pattern, device_type, re.IGNORECASE) for pattern in device.match):
            return device
    return None


def device_type_of(plane: Plane) -> str | None:
    """Return the type of a plane's device: as written there, else from vendor and compute capability."""
    for stat in ("device_type_string", "gpu_device_name"):
        if isinstance(name := plane.stats.get(stat), str) and name:
            return name
    major, minor = plane.stats.get("compute_cap_major"), plane.stats.get("compute_cap_minor")
    if plane.kind is not Kind.GPU or major is None:
        return None
    vendor = "AMD" if plane.stats.get("device_vendor") == "AMD" else "Nvidia"
    return f"{vendor} compute {major!s}.{minor!s}"


def peaks_of(plane: Plane, settings: Settings) -> Peaks:
    """Return the peaks of a plane's core or GPU.

    The user's values win over the profile's, and those over the catalogue's. On GPU the profile holds no FLOP/s but
    a clock and a number of multiprocessors, whose product overstates what boost clocks sustain; so the catalogue's
    figure comes first there.
    """
    device_type = device_type_of(plane)
    device = find_device(device_type) if device_type else None
    cores = device.cores if device else 1
    stats = plane.stats

    def pick(user: float | None, stat: str, scale: float, listed: float | None) -> Peak:
        if user is not None:
            return Peak(user / cores, BY_USER)
        captured = stats.get(stat)
        if isinstance(captured, int | float) and captured > 0:
            return Peak(captured * scale, f"profile, stat {stat}")
        if device is not None and listed is not None:
            return Peak(listed / cores, f"catalogue, {device.name} ({device.source})")
        return Peak(None, "not captured" if device else f"{device_type or 'the device'} is not in the catalogue")

    tpu = plane.kind in (Kind.TPU, Kind.SPARSE_CORE)
    vmem = "vmem" if stats.get("peak_vmem_rd_bw_gigabytes_per_second") else "cmem"
    listed_flops = max((device.flops.get(t, 0.0) for t in ("bf16", "fp16")), default=0.0) if device else 0.0
    return Peaks(
        device_type=device_type,
        flops=pick(
            settings.peak_flops,
            "peak_teraflops_per_second",
            1e12,
            (listed_flops or device.flops.get("f32")) if device else None,
        ),
        by_type={kind: value / cores for kind, value in device.flops.items()} if device else {},
        hbm_bandwidth=pick(
            settings.hbm_bandwidth,
            "peak_hbm_bw_gigabytes_per_second" if tpu else "memory_bandwidth",
            1e9 if tpu else 1.0,
            device.hbm_bandwidth if device else None,
        ),
        hbm_capacity=pick(settings.hbm_capacity, "memory_size", 1.0, device.hbm_capacity if device else None),
        onchip_read=pick(None, f"peak_{vmem}_rd_bw_gigabytes_per_second", 1e9, None),
        onchip_write=pick(None, f"peak_{vmem}_wr_bw_gigabytes_per_second", 1e9, None),
        matrix_unit=device.matrix_unit if device else 0,
        cores=cores,
        listed_hbm_bandwidth=device.hbm_bandwidth / cores if device else None,
    )
