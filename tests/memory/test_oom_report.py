# ruff: noqa: E501, ISC004 (messages and names as they come)
"""The report of an error from a dump, from its texts alone, from one file, from a log, and from dump and log together."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from reportgen.errors import InputError
from reportgen.memory.oom.message import FAMILIES
from reportgen.memory.oom.report import OomReport, oom_report

from .conftest import compiled_program, figures
from .test_oom_log import BFC, GPU, HBM

GIB = 2**30
CAPACITY = round(15.75 * GIB)
TEXTS = ("optimizations.txt", "buffer-assignment.txt", "usage-report.txt")


def dump(folder: Path, name: str = "oom", *endings: str) -> Path:
    for ending in endings or ("",):
        compiled_program(name).unpack(folder, only=ending)
    return folder


def check_failed_step(report: OomReport, *, exact: bool = True) -> None:
    space = figures()["oom"]["totals"]["default"]
    assert (report.needed_bytes, report.memory_space, report.family) == (space, "HBM", "tpu_hbm")
    assert report.by_type["temporaries"] == 42_950_148_608
    assert report.by_type["arguments"] == 8_858_370_048
    assert report.by_type["outputs"] == 268_435_968
    assert sum(report.by_type.values()) == space
    assert [buffer.size for buffer in report.buffers[:6]] == [8 * GIB] * 6
    if exact:
        assert {buffer.source for buffer in report.buffers[1:5]} == {"programs.py:53"}
        assert "batch" in {fix.kind for fix in report.fixes}


def test_a_dump_with_the_message_beside_it(tmp_path: Path) -> None:
    dump(tmp_path)
    (tmp_path / "train.log").write_text(f"step 0\n{figures()['oom']['error']}\n")
    report = oom_report(tmp_path)
    check_failed_step(report)
    assert (report.capacity_bytes, report.exceeded_bytes) == (CAPACITY, report.needed_bytes - CAPACITY)
    assert report.message is not None
    assert report.message.code == "E1000"
    assert report.verdict == (
        "jit_oom needs 48.5 GiB of HBM, has 15.8 GiB: 40.0 GiB temporaries, 8.25 GiB arguments, 256 MiB outputs; "
        "82.5 % of it in 5 activations of dot_general (programs.py:53)."
    )
    assert any("calls everything HLO temporaries" in note for note in report.notes)
    assert report.more == ()


def test_text_alone_gives_the_same(tmp_path: Path) -> None:
    exact, text = oom_report(dump(tmp_path)), tmp_path / "text"
    text.mkdir()
    report = oom_report(dump(text, "oom", *TEXTS), capacity=CAPACITY)
    check_failed_step(report)
    assert report.by_type == exact.by_type
    assert [b.size for b in report.buffers[:20]] == [b.size for b in exact.buffers[:20]]
    both = {fix.kind: fix for fix in oom_report(tmp_path, capacity=CAPACITY).fixes}
    assert {fix.kind: fix.likely for fix in report.fixes} == {kind: fix.likely for kind, fix in both.items()}


@pytest.mark.parametrize("ending", [".hlo.pb", "buffer-assignment.txt"])
def test_one_file_of_a_dump(tmp_path: Path, ending: str) -> None:
    dump(tmp_path, "oom", ending)
    (file,) = tmp_path.iterdir()
    report = oom_report(file, capacity=CAPACITY)
    check_failed_step(report, exact=ending == ".hlo.pb")
    renamed = file.rename(tmp_path / "what.bin")
    check_failed_step(oom_report(renamed, capacity=CAPACITY), exact=ending == ".hlo.pb")


def test_a_file_of_a_dump_brings_its_siblings(tmp_path: Path) -> None:
    dump(tmp_path)
    usage = next(tmp_path.glob("*usage-report.txt"))
    check_failed_step(oom_report(usage, capacity=CAPACITY))


def test_a_compressed_dump_gives_the_same(tmp_path: Path) -> None:
    plain = oom_report(dump(tmp_path), capacity=CAPACITY)
    packed = tmp_path / "packed"
    packed.mkdir()
    for file in tmp_path.glob("module_*"):
        (packed / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    report = oom_report(packed, capacity=CAPACITY)
    check_failed_step(report)
    assert report.as_json() == plain.as_json()


def test_the_usage_report_alone(tmp_path: Path) -> None:
    dump(tmp_path, "oom", "usage-report.txt")
    report = oom_report(tmp_path)
    assert report.needed_bytes == figures()["oom"]["totals"]["default"]
    assert report.by_type == {"unknown": report.needed_bytes}
    assert report.fixes == ()
    assert any("rounded" in note for note in report.notes)
    assert "jit_oom" in report.verdict


def test_the_module_that_needs_most_is_chosen(tmp_path: Path) -> None:
    dump(tmp_path, "dense")
    dump(tmp_path, "narrow")
    assert oom_report(tmp_path).module == "jit_dense"


def test_the_module_that_failed_is_chosen(tmp_path: Path) -> None:
    dump(tmp_path, "dense")
    dump(tmp_path, "narrow")
    (tmp_path / "module_0000.jit_narrow.oom_intermediate_module.txt").write_text("HloModule jit_narrow")
    assert oom_report(tmp_path).module == "jit_narrow"


def test_the_capacity_of_the_device_that_the_dump_names(tmp_path: Path) -> None:
    dump(tmp_path)
    target = 'tpu_topology_args {\n  version: TPU_VERSION_VIPERFISH\n  variant: "lite"\n}\n'
    (tmp_path / "module_0000.jit_oom.target_arguments.txt").write_text(target)
    report = oom_report(tmp_path)
    assert report.capacity_bytes == 16 * GIB
    assert (report.device_type, report.device_count) == ("TPU v5 lite", 4)
    assert any("catalogue" in note for note in report.notes)


def test_vmem_is_another_memory(tmp_path: Path) -> None:
    """A message about VMEM beside a dump reports VMEM alone: spaces are never added together."""
    dump(tmp_path)
    text = "RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem. Used 130.00M of 128.00M vmem. Exceeded vmem "
    (tmp_path / "train.log").write_text(text + "capacity by 2.00M.")
    report = oom_report(tmp_path)
    assert (report.memory_space, report.needed_bytes, report.capacity_bytes) == ("VMEM", 130 * 2**20, 128 * 2**20)
    assert sum(report.by_type.values()) == 100_663_296
    assert [fix.kind for fix in report.fixes] == ["vmem"]


def test_a_log_alone() -> None:
    report = oom_report(HBM)
    assert (report.family, report.needed_bytes, report.module) == ("tpu_hbm", 40 * GIB, "")
    assert report.verdict.startswith("A program needs 40.0 GiB of HBM, has 15.5 GiB: 29.0 GiB temporaries")
    kinds = {fix.kind: fix for fix in report.fixes}
    assert {"batch", "padding"} <= kinds.keys()
    assert kinds["padding"].likely == (512 - 32) * 2**20
    assert any("--xla_dump_to" in step.code for step in report.more)
    assert {step.framework for step in report.more} >= {"jax", "tensorflow", "pytorch_xla"}


def test_a_log_as_file(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("much\n" * 100 + GPU)
    report = oom_report(path)
    assert (report.source, report.family) == ("train.log", "gpu_xla")
    assert report.verdict.startswith("A request for 5.14 GiB of GPU memory failed; the program takes 11.0 GiB")


@pytest.mark.parametrize(
    ("text", "kind", "likely"),
    [
        (
            "Error loading program 'jit_f': Attempting to reserve 4.00G at the bottom of memory. That was not possible. "
            "There are 3.00G free, 0B reserved, and 3.00G reservable.",
            "residents",
            GIB,
        ),
        (
            "Attempting to reserve 2.00G at the bottom of memory. That was not possible. There are 3.00G free, 0B "
            "reserved, and 1.00G reservable.",
            "fragmentation",
            2 * GIB,
        ),
        (
            "Ran out of memory in memory space vmem while allocating on stack for k. Scoped allocation with size 20.00M "
            "and limit 16.00M exceeded scoped vmem limit by 4.00M.",
            "vmem",
            4 * 2**20,
        ),
        (
            "Ran out of memory in memory space hbm. Used 49.00G of 32.00G hbm. Exceeded hbm capacity by 17.00G. Total hbm "
            "usage >= 49.00G: reserved 3.12M program unknown size arguments 48.00G",
            "sharding",
            36 * GIB,
        ),
    ],
)  # fmt: skip
def test_what_a_message_alone_advises(text: str, kind: str, likely: int) -> None:
    report = oom_report(text + "\n")
    fix = next(fix for fix in report.fixes if fix.kind == kind)
    assert fix.likely == likely
    assert fix.low <= fix.likely <= fix.high
    assert all(step.text for step in fix.steps)


def test_the_limit_that_a_kernel_needs() -> None:
    report = oom_report(figures()["kernel"]["error"])
    (fix,) = report.fixes
    assert int(fix.values["limit_kib"]) * 1024 >= (report.needed_bytes or 0)
    assert any("vmem_limit_bytes" in step.code for step in fix.steps)


def test_nothing_is_advised_that_does_not_apply() -> None:
    assert oom_report("Out of memory allocating 8589934592 bytes.\n").fixes == ()
    assert {fix.kind for fix in oom_report(BFC).fixes} == {"fragmentation"}


@pytest.mark.parametrize("text", [HBM, GPU, BFC])
def test_json_is_plain_and_complete(text: str) -> None:
    plain: dict[str, Any] = json.loads(json.dumps(oom_report(text).as_json()))
    wanted = {
        "family",
        "memory_space",
        "needed_bytes",
        "capacity_bytes",
        "exceeded_bytes",
        "by_type",
        "buffers",
        "fixes",
    }
    assert wanted <= plain.keys()
    assert plain["family"] in FAMILIES
    for fix in plain["fixes"]:
        assert {"kind", "low", "likely", "high", "how", "basis", "steps"} <= fix.keys()


def test_what_is_no_error_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        oom_report(tmp_path / "absent")
    with pytest.raises(InputError, match="neither"):
        oom_report(tmp_path)
    log = tmp_path / "train.log"
    log.write_text("all is well\n")
    with pytest.raises(InputError, match="expected an out-of-memory error"):
        oom_report(log)
    log.write_bytes(b"")
    with pytest.raises(InputError, match="empty"):
        oom_report(log)
    (tmp_path / "m.pb").write_bytes(b"\xff\x00" * 50)
    with pytest.raises(InputError, match="no HLO module"):
        oom_report(tmp_path / "m.pb")
    (tmp_path / "m.txt").write_text("HloModule m\n")
    with pytest.raises(InputError, match="does not tell what is allocated"):
        oom_report(tmp_path / "m.txt")


def test_a_dump_without_its_assignment_is_refused(tmp_path: Path) -> None:
    dump(tmp_path, "narrow", "optimizations.txt")
    with pytest.raises(InputError, match="not what it allocates"):
        oom_report(tmp_path)


def test_real_messages_make_reports(reference: Path) -> None:
    for path in sorted((reference / "oom").iterdir()):
        report = oom_report(path)
        assert report.verdict.endswith(".")
        json.dumps(report.as_json())
