"""What the README and the documentation say holds: links, files, commands, figures."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from reportgen.api import oom_document_of
from reportgen.renderers import render
from tests.conftest import ROOT

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "sample_profiles" / "README.md"]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text()):
        if not target.startswith(("http:", "https:", "mailto:")):
            assert (path.parent / target).exists(), target


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_machine_is_named(path: Path) -> None:
    assert not re.search(r"/(work|tmp|root|home)/\w", path.read_text().replace("/tmp/profile", ""))


def test_commands_of_the_readme_exist() -> None:
    commands = set(re.findall(r"^    reportgen (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE))
    result = subprocess.run([sys.executable, "-m", "reportgen", "--help"], capture_output=True, text=True, check=True)
    assert {"report", "oom", "compare", "check", "mail", "rules", "run"} <= commands
    for command in commands:
        assert re.search(rf"\b{command}\b", result.stdout), command


def test_targets_of_the_readme_exist() -> None:
    targets = set(re.findall(r"^    make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert targets == {"report", "test"}
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


@pytest.mark.parametrize("path", [ROOT / "README.md", ROOT / "docs" / "oom.md"], ids=["README", "oom"])
def test_the_ticket_that_is_shown_is_the_one_that_is_made(path: Path) -> None:
    document = oom_document_of(ROOT / "sample_profiles" / "oom_tpu_v5e")
    ticket = next(iter(render(document, "md").files.values())).decode()
    shown = re.findall(r"^> (\| .*)$", path.read_text(), re.MULTILINE)
    assert len(shown) >= 5
    for line in shown:
        assert line in ticket
    text = " ".join(path.read_text().replace("\n> ", " ").split())
    assert document.verdict.split(";")[0] in text
