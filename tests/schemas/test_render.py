"""Reports are rendered again: the same bytes as when they were made, and those of every schema so far."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from reportgen.api import report
from reportgen.cli import main
from reportgen.document import SCHEMA_VERSION, from_json, to_json
from reportgen.errors import InputError
from reportgen.exporters.tables import export_tables
from reportgen.renderers import RENDERERS, render
from tests.conftest import ROOT
from tests.renderers.documents import realistic

EXAMPLES = sorted(Path(__file__).parent.glob("v*.json"))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs `reportgen render` in a folder with a report; gives the exit code."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "report.json").write_bytes(to_json(realistic()))

    def command(*arguments: str) -> int:
        monkeypatch.setattr("sys.argv", ["reportgen", "render", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0)

    return command


def test_there_is_an_example_of_every_schema() -> None:
    versions = {int(path.name[1:].partition("-")[0]) for path in EXAMPLES}
    assert versions == set(range(1, SCHEMA_VERSION + 1))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
@pytest.mark.parametrize("name", sorted(RENDERERS))
def test_an_older_report_still_renders(path: Path, name: str) -> None:
    document = from_json(path.read_bytes(), path.name)
    assert f"v{document.schema_version}-" in path.name
    files = render(document, name).files
    assert all(len(content) > 500 for content in files.values())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_older_report_still_gives_tables(path: Path) -> None:
    document = from_json(path.read_bytes(), path.name)
    assert len(export_tables(document, "csv")) == len(document.tables) + 1


def test_a_newer_report_is_refused() -> None:
    content = json.loads(EXAMPLES[0].read_bytes())
    content["schema_version"] = SCHEMA_VERSION + 1
    with pytest.raises(InputError, match="Install a newer reportgen"):
        from_json(json.dumps(content).encode())


def test_what_a_later_version_added_does_not_hinder() -> None:
    content = json.loads(EXAMPLES[0].read_bytes())
    content["added_later"] = {"x": 1}
    content["profile"]["added_later"] = [1]
    assert from_json(json.dumps(content).encode()).title == content["title"]


def test_rendering_again_gives_the_same_bytes(run: Callable[..., int], tmp_path: Path) -> None:
    written = report(ROOT / "sample_profiles" / "jax_cpu", tmp_path / "first", ("html", "md", "json"))
    assert run("first/report.json", "--to", "html,md,json", "-o", "again") == 0
    for file in written.files:
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes(), file.name


def test_twice_gives_the_same_bytes_in_every_format(run: Callable[..., int], tmp_path: Path) -> None:
    for folder in ("one", "two"):
        assert run("report.json", "--to", "html,md,json,mail,csv,parquet", "-o", folder) == 0
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert len(files) > 10
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes(), file


def test_to_stdout(run: Callable[..., int], capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run("report.json", "--to", "md", "-o", "-") == 0
    assert capfdbinary.readouterr().out == render(realistic(), "md").files["report.md"]


def test_redacted(run: Callable[..., int], tmp_path: Path) -> None:
    for folder in ("one", "two"):
        assert run("report.json", "--to", "html,json", "-o", folder, "--redact", "--redact-key", "key") == 0
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    first, second = ((tmp_path / folder / "report.json").read_bytes() for folder in ("one", "two"))
    assert first == second
    assert b"worker-0" not in first
    assert b"worker-0" in (tmp_path / "report.json").read_bytes()


def test_a_leak_is_not_written(run: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reportgen.redact.leak_search.leaks", lambda files, redactor: ("report.html: somebody",))
    assert run("report.json", "--redact") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("report.json", "--to", "pdf"), 2),
        (("report.json", "--to", "html,md", "-o", "-"), 2),
        (("report.json", "--flavour", "bitbucket"), 2),
        (("report.json", "--to", "csv", "--table", "nothing"), 2),
        (("report.json", "--redact-key", "absent/key"), 2),
        (("absent.json",), 4),
    ],
)
def test_exit_codes(run: Callable[..., int], arguments: tuple[str, ...], code: int) -> None:
    assert run(*arguments) == code


@pytest.mark.parametrize(("flavour", "sign"), [("github", "\n## "), ("gitlab", "\n## "), ("jira", "\nh2. ")])
def test_flavours_of_tickets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flavour: str, sign: str) -> None:
    """The report's own command writes tickets too, at most 60,000 characters long, folded where that is possible."""
    sample = ROOT / "sample_profiles" / "jax_cpu_input_bound"
    written = report(sample, tmp_path, ("md",), flavour=flavour)
    text = written.files[0].read_text(encoding="utf-8")
    assert sign in f"\n{text}"
    assert len(text) <= 60_000
    assert ("<details>" in text) is (flavour != "jira")
    assert "![" not in text
    monkeypatch.setattr(
        "sys.argv", ["reportgen", "report", str(sample), "--format", "md", "--flavour", flavour, "-o", str(tmp_path)]
    )
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert written.files[0].read_text(encoding="utf-8") == text
