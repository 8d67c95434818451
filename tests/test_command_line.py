"""The report command as a user meets it: files, streams, exit codes, messages."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import jsonschema
import pytest

from reportgen.document import from_json, json_schema
from reportgen.wire import xplane_pb2
from tests.conftest import ROOT

SAMPLE = ROOT / "sample_profiles" / "jax_cpu"
FILE = next(SAMPLE.rglob("*.xplane.pb*"))


def reportgen(*arguments: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "reportgen", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, check=False, env=os.environ | environment, timeout=120)


def content() -> bytes:
    data = FILE.read_bytes()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def test_the_default_writes_all_four_formats(tmp_path: Path) -> None:
    result = reportgen("report", SAMPLE, "-o", "out", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout == b""
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "report.html", "report.json", "report.md", "trace.json.gz",
    ]  # fmt: skip
    for name in ("report.html", "report.md", "report.json", "trace.json.gz"):
        assert name.encode() in result.stderr


def test_a_document_goes_to_stdout_alone(tmp_path: Path) -> None:
    result = reportgen("report", SAMPLE, "-o", "-", "--format", "json", cwd=tmp_path)
    assert result.returncode == 0
    assert json.loads(result.stdout)["schema_version"] == 1
    assert list(tmp_path.iterdir()) == []


def test_two_formats_on_stdout_are_refused(tmp_path: Path) -> None:
    result = reportgen("report", SAMPLE, "-o", "-", "--format", "json,md", cwd=tmp_path)
    assert result.returncode == 2
    assert b"exactly one format" in result.stderr


def test_the_json_is_valid_by_the_published_schema(tmp_path: Path) -> None:
    result = reportgen("report", SAMPLE, "-o", "-", "--format", "json", cwd=tmp_path)
    published = json.loads((ROOT / "docs" / "report.schema.json").read_text())
    jsonschema.Draft202012Validator(published).validate(json.loads(result.stdout))
    assert published == json.loads(json.dumps(json_schema())), "docs/report.schema.json is out of date: make golden"


def test_the_json_holds_what_machines_rely_on(tmp_path: Path) -> None:
    result = reportgen("report", SAMPLE, "-o", "-", "--format", "json", cwd=tmp_path)
    document = json.loads(result.stdout)
    for name in (
        "step_time_mean", "step_time_stddev", "step_count", "flops_utilization", "hbm_bandwidth_utilization",
        "device_idle_fraction", "step_period_mean", "device_duty_cycle", "input_wait_fraction", "peak_memory",
        "peak_memory_unpadded", "memory_capacity", "total_device_time",
    ):  # fmt: skip
        metric = document["metrics"][name]
        assert metric["value"] is not None or metric["reason"], name
        assert metric["definition"]
        assert metric["unit"]
    assert document["metrics"]["total_device_time"]["value"] is None
    for name in ("steps", "top_operations", "top_hlo_ops", "op_categories", "hlo_ops", "cores"):
        assert document["tables"][name]["columns"], name
        assert document["tables"][name]["rows"], name
    assert document["profile"]["step_source"].startswith("step annotations on a host thread")
    assert from_json(result.stdout).verdict == document["verdict"]


@pytest.mark.parametrize("name", ["html", "md", "json", "trace"])
def test_the_same_profile_gives_the_same_bytes(tmp_path: Path, name: str) -> None:
    """Independent of path, time zone, hash seed and number of workers."""
    outputs = []
    for seed, zone, jobs in (("1", "UTC", "1"), ("77", "Asia/Tokyo", "2")):
        folder = tmp_path / f"copy {seed}" / "deep" / SAMPLE.name
        shutil.copytree(SAMPLE, folder)
        arguments = ("report", folder, "-o", "-", "--format", name, "--jobs", jobs)
        result = reportgen(*arguments, cwd=tmp_path, PYTHONHASHSEED=seed, TZ=zone)
        assert result.returncode == 0, result.stderr
        outputs.append(result.stdout)
    assert outputs[0] == outputs[1]


def test_the_profile_folder_is_never_written_to(tmp_path: Path) -> None:
    folder = tmp_path / "profile"
    shutil.copytree(SAMPLE, folder)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert reportgen("report", folder, "-o", "out", cwd=tmp_path).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_help_imports_neither_pandas_nor_matplotlib(tmp_path: Path) -> None:
    program = "import sys\nsys.argv = ['reportgen', '--help']\nfrom reportgen.cli import main\ntry:\n    main()\nexcept SystemExit:\n    pass\nprint(sorted({'pandas', 'matplotlib', 'numpy'} & set(sys.modules)))"  # noqa: E501
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("kind", ["file", "gzip", "zip", "hidden", "logdir"])
def test_every_form_of_path_is_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "host0.xplane.pb"
    match kind:
        case "file":
            path.write_bytes(content())
        case "gzip":
            path = tmp_path / "host0.xplane.pb.gz"
            path.write_bytes(gzip.compress(content()))
        case "zip":
            path = tmp_path / "artifact.zip"
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("logs/plugins/profile/2026_01_01_00_00_00/host0.xplane.pb", content())
        case "hidden":
            path = tmp_path / "work"
            (path / ".cache" / "deep").mkdir(parents=True)
            (path / ".cache" / "deep" / "host0.xplane.pb").write_bytes(content())
        case "logdir":
            path = tmp_path / "logs"
            run = path / "plugins" / "profile" / "2026_01_01_00_00_00"
            run.mkdir(parents=True)
            (run / "host0.xplane.pb").write_bytes(content())
    result = reportgen("report", path, "-o", "-", "--format", "json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["metrics"]["step_count"]["value"] == 12


def test_the_newest_run_by_default_and_any_by_name(tmp_path: Path) -> None:
    for run in ("2026_01_02_00_00_00", "2025_12_31_00_00_00"):
        folder = tmp_path / "plugins" / "profile" / run
        folder.mkdir(parents=True)
        (folder / "h.xplane.pb").write_bytes(content())
    listed = reportgen("report", tmp_path, "--list", cwd=tmp_path)
    assert listed.stdout.decode().splitlines() == [
        "2025_12_31_00_00_00: 1 host (h)",
        "2026_01_02_00_00_00: 1 host (h)",
    ]
    newest = reportgen("report", tmp_path, "-o", "-", "--format", "json", cwd=tmp_path)
    assert json.loads(newest.stdout)["profile"]["name"] == "2026_01_02_00_00_00"
    named = reportgen("report", tmp_path, "--run", "2025_12_31_00_00_00", "-o", "-", "--format", "json", cwd=tmp_path)
    assert json.loads(named.stdout)["profile"]["name"] == "2025_12_31_00_00_00"
    missing = reportgen("report", tmp_path, "--run", "x", cwd=tmp_path)
    assert (missing.returncode, b"2026_01_02" in missing.stderr) == (4, True)


REFUSED = {
    "empty": (b"", "empty file"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
    "lossy": (content().decode("utf-8", "replace").encode(), "lossy text decode"),
    "riegeli": (bytes.fromhex("83af70d10d884a3f0000000000000000"), "riegeli"),
    "hlo": (b"\x0a\x07\x0a\x05jit_f", "HloProto"),
    "text": (b"<html><body>Not found</body></html>", "found text"),
    "words": ("Zugriff verweigert: höhere Rechte nötig\n".encode() * 300, "found text"),
    "noise": (bytes(range(1, 256)) * 20, "cannot be decoded"),
    "cut": (content()[:300], "before its first plane"),
}


@pytest.mark.parametrize("kind", sorted(REFUSED))
def test_what_is_no_profile_is_refused_by_name(tmp_path: Path, kind: str) -> None:
    data, reason = REFUSED[kind]
    (tmp_path / "host0.xplane.pb").write_bytes(data)
    result = reportgen("report", "host0.xplane.pb", cwd=tmp_path)
    message = result.stderr.decode()
    assert result.returncode == 4, message
    assert reason in message
    assert "host0.xplane.pb" in message
    assert "Traceback" not in message
    assert not (tmp_path / "out").exists()


def test_the_refusal_of_an_hlo_proto_names_the_command_that_takes_it(tmp_path: Path) -> None:
    (tmp_path / "m.pb").write_bytes(REFUSED["hlo"][0])
    assert b"reportgen oom m.pb" in reportgen("report", "m.pb", cwd=tmp_path).stderr


def test_a_folder_without_profiles_says_what_lay_there(tmp_path: Path) -> None:
    (tmp_path / "logs" / "train").mkdir(parents=True)
    (tmp_path / "logs" / "train" / "events.out.tfevents.1").write_bytes(b"x")
    result = reportgen("report", "logs", cwd=tmp_path)
    message = result.stderr.decode()
    assert result.returncode == 4
    assert "train" in message
    assert "events.out.tfevents.1" in message
    assert "plugins/profile" in message


def test_a_folder_of_compiler_dumps_names_the_command_that_takes_it(tmp_path: Path) -> None:
    result = reportgen("report", ROOT / "sample_profiles" / "oom_tpu_v5e", cwd=tmp_path)
    assert result.returncode == 4
    assert b"`reportgen oom " in result.stderr


def test_an_archive_without_profiles_names_its_own_folders(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("readme.txt", "x")
    result = reportgen("report", "a.zip", cwd=tmp_path)
    assert result.returncode == 4
    assert b"Searched 1 folder (.)," in result.stderr


def test_a_folder_of_riegeli_chunks_is_refused_with_that_reason(tmp_path: Path) -> None:
    (tmp_path / "logs" / "run").mkdir(parents=True)
    (tmp_path / "logs" / "run" / "host0.xplane.riegeli").write_bytes(b"x")
    result = reportgen("report", "logs", cwd=tmp_path)
    assert result.returncode == 4
    assert b"host0.xplane.riegeli: expected an XSpace profile, found a riegeli capture" in result.stderr


def test_a_truncated_file_is_read_as_far_as_it_is_whole(tmp_path: Path) -> None:
    space = xplane_pb2.XSpace.FromString(content())
    whole = xplane_pb2.XSpace(planes=space.planes[:-1]).SerializeToString()
    data = whole + xplane_pb2.XSpace(planes=space.planes[-1:]).SerializeToString()[:-7]
    (tmp_path / "host0.xplane.pb").write_bytes(data)
    result = reportgen("report", "host0.xplane.pb", "-o", "-", "--format", "json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert any("ends early" in warning for warning in json.loads(result.stdout)["profile"]["warnings"])


@pytest.mark.parametrize(
    "arguments", [["--format", "pdf"], ["--only", "no-such-rule"], ["--set", "a.b"], ["--set", "a.b=1"]]
)
def test_wrong_usage_ends_with_two(tmp_path: Path, arguments: list[str]) -> None:
    result = reportgen("report", SAMPLE, *arguments, cwd=tmp_path)
    assert result.returncode == 2, result.stderr
    assert b"Traceback" not in result.stderr


def test_a_missing_path_ends_with_four(tmp_path: Path) -> None:
    result = reportgen("report", "nowhere", cwd=tmp_path)
    assert result.returncode == 4
    assert b"no such file" in result.stderr


def test_peaks_of_the_user_win_and_the_report_says_so(tmp_path: Path) -> None:
    sample = ROOT / "sample_profiles" / "resnet50_tpu_v5e"
    common = ("report", sample, "-o", "-", "--format", "json")
    plain = json.loads(reportgen(*common, cwd=tmp_path).stdout)["metrics"]["flops_utilization"]
    given = json.loads(reportgen(*common, "--peak-flops", "394e12", cwd=tmp_path).stdout)["metrics"][
        "flops_utilization"
    ]
    assert given["value"] == pytest.approx(plain["value"] / 2)
    assert "given by the user" in given["source"]
    assert "profile, stat" in plain["source"]
    (tmp_path / "settings.toml").write_text("peak_flops = 394e12\n")
    file = json.loads(reportgen(*common, "--settings", "settings.toml", cwd=tmp_path).stdout)
    assert file["metrics"]["flops_utilization"]["value"] == pytest.approx(given["value"])
