"""The document of an out-of-memory report: every format, and what stands in it."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from reportgen import api
from reportgen.assembly.oom import oom_document
from reportgen.document import Details, ReportDocument, TableBlock
from reportgen.document.report import from_json, to_json
from reportgen.errors import InputError
from reportgen.memory.oom.report import oom_report
from tests.conftest import ROOT

from .conftest import compiled_program, figures
from .test_oom_log import BFC, GPU, HBM

SAMPLE = ROOT / "sample_profiles" / "oom_tpu_v5e"
TICKET = 60_000
KERNEL = str(figures()["kernel"]["error"])
SOURCES: dict[str, str | Path] = {"dump": SAMPLE, "hbm": HBM, "gpu": GPU, "bfc": BFC, "kernel": KERNEL}


@cache
def document_of(name: str) -> ReportDocument:
    return oom_document(oom_report(SOURCES[name]))


@pytest.fixture(params=SOURCES)
def document(request: pytest.FixtureRequest) -> ReportDocument:
    return document_of(request.param)


def facts(document: ReportDocument) -> dict[str, Any]:
    assert document.oom is not None
    return document.oom


def shown_tables(document: ReportDocument) -> set[str]:
    pending = [block for section in document.sections for block in section.blocks]
    found = set()
    while pending:
        block = pending.pop()
        if isinstance(block, Details):
            pending += block.blocks
        elif isinstance(block, TableBlock):
            found.add(block.table)
    return found


def test_every_format_is_made(document: ReportDocument) -> None:
    for name in ("html", "md", "json"):
        text = api.rendered(document, name).decode()
        assert document.title.split()[-1] in text.replace("\\", "")
    assert from_json(to_json(document)) == document


def test_a_ticket_is_short_and_says_the_verdict_first(document: ReportDocument) -> None:
    text = api.rendered(document, "md").decode()
    assert len(text) <= TICKET
    assert text.replace("\\", "").index(document.verdict[:20]) < 300


def test_a_message_that_tells_no_way_to_fit_says_how_to_learn_more() -> None:
    document = oom_document(oom_report("Out of memory allocating 8589934592 bytes.\n"))
    text = api.rendered(document, "md").decode()
    assert "worth changing" not in text
    assert "see below how to get the rest" in text
    assert "--xla_dump_to" in text


def test_tables_that_are_shown_are_there(document: ReportDocument) -> None:
    assert shown_tables(document) <= document.tables.keys()
    assert document.tables.keys() >= {"oom_types"} if facts(document)["by_type"] else True


def test_json_holds_the_figures_of_the_report(document: ReportDocument) -> None:
    plain = facts(document)
    for key in ("needed", "capacity", "exceeded"):
        assert document.metrics[f"oom_{key}"].value == plain[f"{key}_bytes"]
    assert len(document.findings) == len(plain["fixes"])


def test_each_way_to_fit_is_a_finding_with_its_saving() -> None:
    document = document_of("dump")
    plain = facts(document)["fixes"]
    savings = [finding.saving for finding in document.findings]
    assert [(s.low, s.likely, s.high) for s in savings if s] == [(f["low"], f["likely"], f["high"]) for f in plain]
    assert [finding.severity for finding in document.findings] == ["critical", "critical", "high", "low"]
    assert {action.framework for finding in document.findings for action in finding.actions} == {"jax"}


def test_the_hardware_of_a_dump() -> None:
    assert document_of("dump").profile.device_count == 4
    text = api.rendered(document_of("hbm"), "md").decode()
    assert "0 devices" not in text
    assert "0 hosts" not in text


def test_a_log_with_its_dump(tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    dump.mkdir()
    compiled_program("oom").unpack(dump)
    log = tmp_path / "train.log"
    log.write_text(figures()["oom"]["error"])
    written = api.oom(log, dump=dump, output=tmp_path / "out", formats=["json"])
    assert facts(written.document)["needed_bytes"] == figures()["oom"]["totals"]["default"]
    assert written.document.metrics["oom_capacity"].value == round(15.75 * 2**30)
    with pytest.raises(InputError, match="no such file"):
        api.oom_document_of(tmp_path / "absent.log", dump=dump)


def test_text_in_place_of_a_file() -> None:
    document = api.oom_document_of("-", text=io.StringIO(HBM).read())
    assert document.profile.name == "standard input"
    assert facts(document)["family"] == "tpu_hbm"


def test_a_profile_tells_what_its_largest_module_needs() -> None:
    document = api.oom_document_of(ROOT / "sample_profiles" / "resnet50_tpu_v5e")
    assert document.profile.device_type == "TPU v5 lite"
    assert document.metrics["oom_needed"].value == facts(document)["needed_bytes"]
    assert document.metrics["oom_exceeded"].value is None
    assert round(document.metrics["oom_live_peak"].value / 2**20, 1) == 4449.7  # type: ignore[operator]


def test_hostile_names_are_text() -> None:
    document = oom_document(oom_report(HBM.replace("dot_general", "<script>alert(1)</script>")))
    assert "<script>alert" not in api.rendered(document, "html").decode()
    assert "`jit(step)/jvp(Model)/layer_3/<script>alert(1)</script>`" in api.rendered(document, "md").decode()
