"""Redaction: nothing planted is left in any output, and everything that is not a name stays."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from email import message_from_bytes, policy
from functools import cache
from pathlib import Path

import msgspec
import pytest

from reportgen.api import analyze
from reportgen.cli import main
from reportgen.comparison import compare, comparison_document
from reportgen.comparison.op import read_ops
from reportgen.document import ReportDocument, from_json, to_json
from reportgen.errors import InputError, UsageError
from reportgen.exporters.limits import TraceLimits
from reportgen.exporters.of_run import write_run_trace
from reportgen.exporters.tables import export_tables
from reportgen.redact import Redactor, leaks, load_key, redact_document, redact_space, redacted_run
from reportgen.redact.document import MODES
from reportgen.renderers import RENDERERS, render
from reportgen.settings import Settings
from reportgen.sources.locate import find_run
from tests.conftest import ROOT
from tests.redact.planted import COUNT, Planted, planted_profile
from tests.renderers.documents import realistic

KEY = b"k" * 32
SAMPLES = ("jax_cpu_input_bound", "tf_cpu", "torch_xla_cpu", "resnet50_tpu_v5e")


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Planted]:
    """A log folder whose folder and file bear identifiers too, and all identifiers."""
    content, names = planted_profile()
    run = tmp_path_factory.mktemp("logs") / names.used[0] / "plugins" / "profile" / names.used[1]
    run.mkdir(parents=True)
    (run / f"{names.used[2]}.{names.used[3]}.xplane.pb").write_bytes(content)
    return run, names


def outputs(run_folder: Path, folder: Path, redactor: Redactor) -> dict[str, bytes]:
    """Return every output of a redacted run by its name."""
    run = find_run(str(run_folder))
    document = redact_document(analyze(run_folder), redactor)
    files: dict[str, bytes] = {}
    for name in RENDERERS:
        files |= render(document, name).files
    files |= {f"gitlab-{name}": content for name, content in render(document, "md", flavour="gitlab").files.items()}
    files |= export_tables(document, "csv") | export_tables(document, "parquet")
    compared = comparison_document(compare([document], document))
    files |= {f"comparison-{name}": content for name, content in render(compared, "json").files.items()}
    redacted = redacted_run(run, redactor, folder)
    files["profile"] = Path(redacted.files[0].path).read_bytes()
    stream = io.BytesIO()
    write_run_trace(redacted, Settings(), stream, TraceLimits(), document.findings)
    files["trace.json.gz"] = stream.getvalue()
    files["again.json"] = to_json(analyze(redacted.files[0].path))
    return files | {"names": "\n".join((*files, redacted.name, redacted.files[0].name)).encode()}


def unpacked(content: bytes) -> Iterator[bytes]:
    """Yield a file's bytes and those of everything packed in it."""
    yield content
    if content.startswith(b"\x1f\x8b"):
        yield from unpacked(gzip.decompress(content))
    elif content.startswith(b"PK"):
        archive = zipfile.ZipFile(io.BytesIO(content))
        for name in archive.namelist():
            yield name.encode()
            yield from unpacked(archive.read(name))
    elif b"MIME-Version" in content[:4096]:
        for part in message_from_bytes(content, policy=policy.default).walk():
            if isinstance(payload := part.get_payload(decode=True), bytes):
                yield from unpacked(payload)
    for packed in re.findall(rb"H4sI[A-Za-z0-9+/=]{40,}", content):
        yield from unpacked(base64.b64decode(packed))


def test_none_of_200_planted_identifiers_is_in_any_output(planted: tuple[Path, Planted], tmp_path: Path) -> None:
    folder, names = planted
    assert len(set(names.used)) == COUNT == 200
    before = to_json(analyze(folder))
    assert sum(name.encode() in before for name in names.used) > 80  # they do get into a report
    redactor = Redactor(KEY)
    files = outputs(folder, tmp_path, redactor)
    assert len(files) > 20
    left = [
        (file, name)
        for file, content in files.items()
        for text in unpacked(content)
        for name in names.used
        if name.encode() in text.lower()
    ]
    assert left == []
    assert leaks(files, redactor) == ()


@pytest.mark.parametrize(
    "text", ["10.11.12.13", "fe80::1ff", "00:1a:2b:3c:4d:5e", "0x7f3a9c001000", "4711", "/home/", "über-"]
)
def test_addresses_and_source_lines_are_replaced(planted: tuple[Path, Planted], tmp_path: Path, text: str) -> None:
    content = next(planted[0].glob("*.pb")).read_bytes()
    assert text.encode() in content or text in ("4711", "/home/")
    profile = redact_space(content, Redactor(KEY))
    document = to_json(redact_document(analyze(planted[0]), Redactor(KEY)))
    assert text.encode() not in profile
    assert text.encode() not in document


@cache
def sample(name: str) -> ReportDocument:
    return analyze(ROOT / "sample_profiles" / name)


@cache
def clean(name: str) -> ReportDocument:
    return redact_document(sample(name), Redactor(KEY))


@pytest.mark.parametrize("name", SAMPLES)
def test_numbers_and_findings_stay(name: str) -> None:
    before, after = sample(name), clean(name)
    assert {key: one.value for key, one in after.metrics.items()} == {
        key: one.value for key, one in before.metrics.items()
    }
    assert [one.rule for one in after.findings] == [one.rule for one in before.findings]
    for key, table in before.tables.items():
        again = list(after.tables.values())[list(before.tables).index(key)]
        numbers = [[cell for cell in row if isinstance(cell, int | float)] for row in table.rows]
        assert numbers == [[cell for cell in row if isinstance(cell, int | float)] for row in again.rows]


@pytest.mark.parametrize("name", SAMPLES)
def test_our_own_sentences_stay(name: str) -> None:
    before, after = sample(name), clean(name)
    for key, metric in before.metrics.items():
        assert (after.metrics[key].title, after.metrics[key].definition) == (metric.title, metric.definition)
    for one, other in zip(before.checks, after.checks, strict=True):
        assert (other.title, other.thresholds, other.remedy) == (one.title, one.thresholds, one.remedy)
    for one, other in zip(before.findings, after.findings, strict=True):
        assert [action.text for action in other.actions] == [action.text for action in one.actions]
    columns = [column.title for table in before.tables.values() for column in table.columns]
    assert [column.title for table in after.tables.values() for column in table.columns] == columns


@pytest.mark.parametrize("name", SAMPLES)
def test_references_hold(name: str) -> None:
    """Pages check that what is linked is there: the same number of links before and after."""
    before, after = sample(name), clean(name)
    pages = [render(one, "html").files["report.html"].decode() for one in (before, after)]
    assert pages[0].count('href="#') == pages[1].count('href="#')
    assert pages[0].count("<svg") == pages[1].count("<svg")


def test_shapes_and_operations_stay_and_shapes_go_if_asked() -> None:
    document = sample("resnet50_tpu_v5e")
    text = to_json(redact_document(document, Redactor(KEY))).decode()
    assert "bf16[128,56,56,256]" in text
    assert "convolution fusion" in text
    assert '"all-reduce' in text
    assert "stage1_block1_conv1" not in text
    assert "train.py" not in text
    hidden = to_json(redact_document(document, Redactor(KEY, hide_shapes=True))).decode()
    assert "128,56,56,256" not in hidden
    assert "bf16[_]" in hidden
    layouts = [
        table for card in from_json(hidden.encode()).cards.values() for table in card.tables
        if any(column.name == "dimension" for column in table.columns)
    ]  # fmt: skip
    assert layouts
    sizes = {column.name for column in layouts[0].columns} & {"size", "padded_size"}
    places = [index for index, column in enumerate(layouts[0].columns) if column.name in sizes]
    assert all(row[place] is None for table in layouts for row in table.rows for place in places)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_redacted_profile_has_the_same_steps_and_ops(name: str, tmp_path: Path) -> None:
    run = redacted_run(find_run(str(ROOT / "sample_profiles" / name)), Redactor(KEY), tmp_path)
    after, before = analyze(run.files[0].path), sample(name)
    for key in ("step_time_mean", "step_count", "flops_utilization", "device_idle_fraction", "peak_memory"):
        assert after.metrics[key].value == before.metrics[key].value
    times = [[(op.self_time, op.category, op.sizes) for op in read_ops(one)] for one in (before, after)]
    assert sorted(times[0]) == sorted(times[1])


def test_the_same_key_gives_the_same_pseudonyms_and_reports_stay_comparable() -> None:
    first, second = (redact_document(sample("jax_cpu_input_bound"), Redactor(KEY)) for _ in range(2))
    other = redact_document(sample("jax_cpu_input_bound"), Redactor(b"x" * 32))
    assert to_json(first) == to_json(second)
    assert to_json(first) != to_json(other)
    found = compare([first], second)
    assert found.change == 0
    assert found.renamed == 0
    assert not any(one.base is None or one.new is None for one in found.ops)


NAMES = [
    ("fusion.39", "fusion.39"),
    ("all-reduce-start.3.clone", "all-reduce-start.3.clone"),
    ("multiply_reduce_fusion.12", "multiply_reduce_fusion.12"),
    ("ThunkExecutor::Execute (wait for completion)", "ThunkExecutor::Execute (wait for completion)"),
    ("Iterator::Root::PaddedBatchV2::Map[3]", "Iterator::Root::PaddedBatchV2::Map[3]"),
    ("bf16[128,56]{1,0:T(8,128)(2,1)S(1)}", "bf16[128,56]{1,0:T(8,128)(2,1)S(1)}"),
    ("TPU v5 lite", "TPU v5 lite"),
    ("NVIDIA H100", "NVIDIA H100"),
    ("/device:TPU:0", "/device:TPU:0"),
    ("1.97e+14", "1.97e+14"),
    ("2026-11-30T13:07:33+00:00", "2026-11-30T13:07:33+00:00"),
    ("jit(step)/jvp(ID)/dot_general:", "jit(step)/jvp({ID})/dot_general:"),
    ("jit_secret_model(123)", "jit_{secret_model}(123)"),
    ("PjitFunction(secret_model)", "PjitFunction({secret_model})"),
    ("secret_model.7", "{secret_model}.7"),
    ("train_secret", "train_{train_secret}"),
    ("a/secret/b", "a/{secret}/b"),
]


@pytest.mark.parametrize(("name", "expected"), NAMES)
def test_names(name: str, expected: str) -> None:
    redactor = Redactor(KEY)
    found = redactor.name(name)
    for original, pseudonym in redactor.replaced.items():
        found = found.replace(pseudonym, f"{{{original}}}")
    assert found == expected


SENTENCES = [
    ("A step takes 73.2 ms, FLOPS utilisation is 21.3 %.", "A step takes 73.2 ms, FLOPS utilisation is 21.3 %."),
    ("fusion.39 does 13.9 FLOP/B of 1.97e+14 FLOP/s.", "fusion.39 does 13.9 FLOP/B of 1.97e+14 FLOP/s."),
    ("Host zork-7 is late.", "Host {zork-7} is late."),
    ("See /home/data/train.py:38 and model.py.", "See /{home}/{data}/... and ..."),
    ("reportgen capture HOST:PORT --duration 5s", "reportgen capture HOST:PORT --duration 5s"),
    ("Use num_parallel_calls=tf.data.AUTOTUNE.", "Use num_parallel_calls=tf.data.AUTOTUNE."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), SENTENCES)
def test_sentences(text: str, expected: str) -> None:
    redactor = Redactor(KEY)
    found = redactor.prose(text)
    if "..." in expected:
        assert not any(word in found for word in ("home", "train", "model.py"))
        return
    for original, pseudonym in redactor.replaced.items():
        found = found.replace(pseudonym, f"{{{original}}}")
    assert found == expected


def test_hosts_are_replaced_even_where_they_are_ordinary_words() -> None:
    redactor = Redactor(KEY, hosts=["memory"])
    assert redactor.prose("memory is late") == f"{redactor.host('memory')} is late"
    assert redactor.name("memory CPU") == f"{redactor.host('memory')} CPU"


def test_every_text_of_the_document_has_a_mode() -> None:
    for kind, modes in MODES.items():
        known = {field.name for field in msgspec.structs.fields(kind)}
        assert set(modes) <= known, kind
    missing = [
        (kind.__name__, field.name)
        for kind in MODES
        for field in msgspec.structs.fields(kind)
        if field.name not in MODES[kind] and _holds_text(field.type)
    ]
    assert missing == []


def _holds_text(annotation: object) -> bool:
    text = str(annotation)
    return annotation is str or ("str" in text.replace("Struct", "") and "document." not in text)


def test_leaks_are_found_in_packed_and_escaped_files() -> None:
    redactor = Redactor(KEY)
    redactor.name("zorkmid-host élan")
    packed = gzip.compress(b"a zorkmid-host b")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as stream:
        stream.writestr("inner.gz", packed)
    files = {
        "plain": b"x zorkmid-host", "gz": packed, "zip": archive.getvalue(), "json": json.dumps("élan").encode(),
        "html": b"&eacute;lan", "clean": b"nothing here",
        "base64": b'{"x": "' + base64.b64encode(gzip.compress(b"zorkmid-host " * 9)) + b'"}',
    }  # fmt: skip
    assert {one.partition(":")[0] for one in leaks(files, redactor)} == set(files) - {"clean"}


def test_keys(tmp_path: Path) -> None:
    path = tmp_path / "redact.key"
    key = load_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_key(path) == key
    assert load_key(None) != load_key(None)
    path.chmod(0o640)
    with pytest.raises(UsageError, match="others may read"):
        load_key(path)
    path.chmod(0o600)
    path.write_text("abcd\n")
    with pytest.raises(UsageError, match="32 bytes"):
        load_key(path)
    path.write_text("no key")
    with pytest.raises(UsageError, match="found none"):
        load_key(path)
    with pytest.raises(UsageError, match="cannot be written"):
        load_key(tmp_path / "absent" / "key")


def test_a_damaged_profile_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="whole XSpace"):
        redact_space(b"\x0a\xff\x01abc", Redactor(KEY), "a.xplane.pb")


def test_a_report_without_anything_can_be_redacted() -> None:
    empty = msgspec.structs.replace(realistic(), metrics={}, tables={}, findings=(), cards={}, charts={}, sections=())
    assert redact_document(empty, Redactor(KEY)).metrics == {}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs reportgen in an empty folder; gives the exit code."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> int:
        monkeypatch.setattr("sys.argv", ["reportgen", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0)

    return command


@pytest.mark.parametrize(
    "command",
    [
        ("report", "LOGS", "--format", "html,md,json,trace", "-o", "out"),
        ("trace", "LOGS", "-o", "out/trace.json.gz"),
        ("trace", "LOGS", "--report", "plain/report.json", "-o", "out/trace.json.gz"),
        ("render", "plain/report.json", "--to", "html,md,json,mail,csv", "-o", "out"),
        ("compare", "plain/report.json", "plain/report.json", "-o", "out"),
    ],
    ids=lambda command: command[0],
)
def test_commands_leave_nothing_planted(
    planted: tuple[Path, Planted], run: Callable[..., int], tmp_path: Path, command: tuple[str, ...]
) -> None:
    folder, names = planted
    assert run("report", str(folder), "--format", "json", "-o", "plain") == 0
    arguments = [str(folder) if one == "LOGS" else one for one in command]
    assert run(*arguments, "--redact", "--redact-key", "key") == 0
    files = {str(path): path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert files
    left = [
        (file, name)
        for file, content in files.items()
        for text in (file.removeprefix(str(tmp_path)).encode(), *unpacked(content))
        for name in names.used
        if name.encode() in text.lower()
    ]
    assert left == []


def test_a_report_to_stdout_is_redacted_too(
    planted: tuple[Path, Planted], run: Callable[..., int], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    for form in ("json", "trace"):
        assert run("report", str(planted[0]), "--format", form, "-o", "-", "--redact") == 0
        out = capfdbinary.readouterr().out
        assert len(out) > 1000
        assert not [name for text in unpacked(out) for name in planted[1].used if name.encode() in text.lower()]


def test_a_leak_into_the_trace_is_not_written(
    planted: tuple[Path, Planted], run: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reportgen.redact.run.redact_space", lambda content, redactor, name: content)
    assert run("report", str(planted[0]), "--format", "trace", "-o", "out", "--redact") == 1
    assert not list((tmp_path / "out").glob("*"))
