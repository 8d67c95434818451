"""Peaks: the user's values win over the profile's, and those over the catalogue's; chips share theirs among cores."""

from __future__ import annotations

import pytest

from reportgen.profile.devices import catalogue, find_device, peaks_of
from reportgen.settings import Settings
from tests.builders import Space


def plane(name: str, **stats: object):  # type: ignore[no-untyped-def]
    space = Space()
    space.plane(name, stats)  # type: ignore[arg-type]
    return space.profile().planes[0]


@pytest.mark.parametrize(
    ("device_type", "name"),
    [
        ("TPU v2", "TPU v2"), ("TPU v3", "TPU v3"), ("TPU v4", "TPU v4"),
        ("TPU v5 lite", "TPU v5e"),
        ("TPU v5", "TPU v5p"),
        ("TPU v6 Lite", "TPU v6e"), ("TPU v6 lite", "TPU v6e"), ("TPU7x", "TPU7x"), ("TPU v7x", "TPU7x"),
        ("NVIDIA H100 80GB HBM3", "NVIDIA H100 SXM"), ("NVIDIA H100 PCIe", "NVIDIA H100 PCIe"),
        ("NVIDIA H200", "NVIDIA H200"),
        ("NVIDIA A100-SXM4-40GB", "NVIDIA A100"), ("Tesla V100-SXM2-16GB", "NVIDIA V100"), ("NVIDIA L4", "NVIDIA L4"),
        ("Tesla T4", "NVIDIA T4"), ("NVIDIA B200", "NVIDIA B200"), ("AMD Instinct MI300X", "AMD MI300X"),
        ("AMD compute 9.4", "AMD MI300X"), ("Nvidia compute 7.0", "NVIDIA V100"), ("NVIDIA A10G", "NVIDIA A10G"),
    ],
)  # fmt: skip
def test_devices_are_found_by_the_names_that_profiles_give(device_type: str, name: str) -> None:
    device = find_device(device_type)
    assert device is not None
    assert device.name == name


def test_an_unknown_device_has_no_peaks_and_says_so() -> None:
    peaks = peaks_of(plane("/device:TPU:0", device_type_string="TPU v99"), Settings())
    assert peaks.flops.value is None
    assert "TPU v99 is not in the catalogue" in peaks.flops.source
    assert peaks.ridge is None


def test_user_over_profile_over_catalogue() -> None:
    stats = {"device_type_string": "TPU v5 lite", "peak_teraflops_per_second": 200.0}
    peaks = peaks_of(plane("/device:TPU:0", **stats), Settings())
    assert (peaks.flops.value, peaks.flops.source) == (200e12, "profile, stat peak_teraflops_per_second")
    assert peaks.hbm_bandwidth.value == 819e9
    assert "catalogue, TPU v5e" in peaks.hbm_bandwidth.source
    given = peaks_of(plane("/device:TPU:0", **stats), Settings(peak_flops=1e12))
    assert (given.flops.value, given.flops.source) == (1e12, "given by the user")


def test_two_cores_share_a_chip() -> None:
    peaks = peaks_of(plane("/device:TPU:0", device_type_string="TPU v5"), Settings())
    assert peaks.cores == 2
    assert peaks.flops.value == 459e12 / 2
    assert peaks.hbm_bandwidth.value == pytest.approx(2765e9 / 2)


def test_gpu_bandwidth_and_memory_come_from_the_profile() -> None:
    stats = {
        "compute_cap_major": 7,
        "compute_cap_minor": 0,
        "memory_bandwidth": 898048000000,
        "memory_size": 16945512448,
    }
    peaks = peaks_of(plane("/device:GPU:0", **stats), Settings())
    assert peaks.device_type == "Nvidia compute 7.0"
    assert (peaks.hbm_bandwidth.value, peaks.hbm_capacity.value) == (898048000000, 16945512448)
    assert peaks.flops.value == 125e12


def test_every_entry_of_the_catalogue_is_complete_and_of_plausible_size() -> None:
    for device in catalogue():
        assert device.source
        assert device.flops
        ridge = max(device.flops.values()) / device.hbm_bandwidth
        assert 20 < ridge < 1300, device.name
        assert 8 * 2**30 < device.hbm_capacity < 400 * 2**30
