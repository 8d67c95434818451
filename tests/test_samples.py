"""Every sample and every optional third-party profile gives a whole, honest report."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from reportgen.api import analyze
from reportgen.document import ReportDocument, from_json, to_json
from reportgen.renderers import render
from reportgen.settings import Settings
from tests.builders import Space
from tests.conftest import REFERENCE, ROOT
from tests.renderers import pages
from tests.renderers.hostile import SAMPLES as HOSTILE

SAMPLES = (
    "jax_cpu", "jax_cpu_input_bound", "tf_cpu", "tf_cpu_healthy", "torch_xla_cpu", "resnet50_tpu_v5e",
)  # fmt: skip
THIRD_PARTY = ("tpu_v6e_4chip", "gpu_v100_8x_tf2", "gpu_mi300x_jax", "gpu_gtx1080ti_pjrt", "trace_json")
PATHS = {name: ROOT / "sample_profiles" / name for name in SAMPLES}
PATHS |= {name: REFERENCE / "profiles" / name for name in THIRD_PARTY}


@cache
def document(name: str) -> ReportDocument:
    if not PATHS[name].exists():
        pytest.skip("optional third-party profiles are absent; REPORTGEN_REFERENCE names the folder that holds them")
    return analyze(PATHS[name], Settings(strict=True, jobs=1))


@pytest.fixture(params=[*SAMPLES, *THIRD_PARTY])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_page_is_whole_and_small(name: str) -> None:
    html = render(document(name), "html").files["report.html"]
    assert len(html) < 2_000_000
    page = pages.read(html)
    assert document(name).verdict.split(". ")[0][:40] in page.text


def test_the_markdown_fits_a_ticket(name: str) -> None:
    text = next(iter(render(document(name), "md").files.values())).decode()
    assert 2000 < len(text) < 60_000
    assert document(name).verdict[:30].split("`")[0] in text


def test_no_check_failed_and_what_is_missing_says_why(name: str) -> None:
    found = document(name)
    assert [check.rule for check in found.checks if check.status == "error"] == []
    for key, metric in found.metrics.items():
        assert (metric.value is None) == bool(metric.reason), key
        assert metric.definition, key
        assert metric.value is None or metric.source, key
    for check in found.checks:
        assert check.status != "cannot_tell" or check.remedy, check.rule


def test_shares_lie_between_nothing_and_all(name: str) -> None:
    for key, metric in document(name).metrics.items():
        if metric.unit == "fraction" and metric.value is not None:
            assert 0 <= metric.value <= 1.0001, key


def test_references_inside_the_document_lead_somewhere(name: str) -> None:
    found = document(name)
    for key, table in found.tables.items():
        width = len(table.columns)
        assert all(len(row) == width for row in table.rows), key
        assert len(table.row_ids) in (0, len(table.rows)), key
        assert len(set(table.row_ids)) == len(table.row_ids), key
    for chart in found.charts.values():
        assert not chart.table or chart.table in found.tables
    for finding in found.findings:
        for place in (*finding.evidence, *finding.locations):
            assert not place.table or place.table in found.tables, (finding.id, place)
            assert not place.row or place.row in found.tables[place.table].row_ids, (finding.id, place)


def test_the_document_survives_its_own_json(name: str) -> None:
    found = document(name)
    again = from_json(to_json(found))
    assert again == found
    for form in ("html", "md", "json"):
        assert render(again, form).files == render(found, form).files


def test_a_modelled_timeline_is_called_that_everywhere() -> None:
    found = document("resnet50_tpu_v5e")
    assert found.profile.timeline_basis == "modelled"
    for form in ("html", "md"):
        assert b"odelled timeline" in next(iter(render(found, form).files.values()))


def test_no_time_of_a_modelled_timeline_is_called_measured() -> None:
    found = document("resnet50_tpu_v5e").metrics
    assert not [name for name, metric in found.items() if metric.basis == "measured"]
    assert {found[name].basis for name in ("step_time_mean", "flops_utilization", "device_idle_fraction")} == {
        "modelled"
    }
    assert {found[name].basis for name in ("peak_memory", "memory_allocated")} == {"derived"}
    assert document("jax_cpu").metrics["step_time_mean"].basis == "measured"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("jax_cpu_input_bound", "input-bound"),
        ("tf_cpu", "input-bound"),
        ("resnet50_tpu_v5e", "memory-bound convolutions"),
    ],
)
def test_the_verdict_names_the_main_limit(name: str, words: str) -> None:
    assert words in document(name).verdict


@pytest.mark.parametrize("name", ["jax_cpu", "tf_cpu_healthy"])
def test_a_healthy_loop_is_not_called_input_bound(name: str) -> None:
    assert not [finding for finding in document(name).findings if finding.rule == "input-bound"]


def test_hostile_names_in_a_profile_are_harmless_and_readable() -> None:
    space = Space()
    texts = [text.encode("utf-8", "surrogatepass").decode("utf-8", "replace") for text in HOSTILE]
    texts.append("%op = f32[8]{0} add(" + "x" * 100_000 + ")")
    plane = space.plane("/device:TPU:0", {"device_type_string": texts[1], "peak_teraflops_per_second": 1.0})
    steps, ops = plane.line("Steps"), plane.line("XLA Ops")
    for number, text in enumerate(texts, 1):
        stats = {"program_id": 5, "symbol_id": number, "hlo_category": text, "tf_op": text, "source": text}
        plane.metadata(text, stats | {"shape_with_layout": text, "flops": 10, "bytes_accessed": 10}, text[:200])
    for step in range(3):
        steps.event(texts[0], step * 1000, 900, {"group_id": step})
        for number, text in enumerate(texts):
            ops.event(text, step * 1000 + number * 50, 40)
    space.plane("/host:CPU").line(texts[0]).event(texts[2], 0, 10, {"_r": 1, "step_num": 1})
    space.proto.hostnames.append(texts[2])
    space.proto.warnings.extend(texts[:3])
    found = _analyze_space(space)
    page = pages.read(render(found, "html").files["report.html"])
    assert "<script>alert(1)</script>" in page.text
    assert "100,0" in page.text  # the long expression says how long it is
    assert "<script>" not in next(iter(render(found, "md").files.values())).decode().replace("`<script>", "")


def _analyze_space(space: Space) -> ReportDocument:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "host0.xplane.pb"
        path.write_bytes(space.proto.SerializeToString())
        return analyze(path, Settings(strict=True))
