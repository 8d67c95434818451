"""Matching of ops, what became of findings and metrics, and the document that a comparison becomes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from reportgen.cli import main
from reportgen.comparison import compare, comparison_document
from reportgen.comparison.findings import finding_changes
from reportgen.comparison.matching import match
from reportgen.comparison.metrics import metric_changes
from reportgen.comparison.op import Op, scopes_of
from reportgen.delivery import compare as compared
from reportgen.document import Check, Finding, ReportDocument, Saving, Table, from_json, to_json
from reportgen.errors import UsageError
from reportgen.renderers import render
from tests.compare.test_pairs import FIXTURES, pair, report
from tests.renderers.documents import realistic
from tests.renderers.hostile import SAMPLES, poisoned


def op(name: str, **changes: object) -> Op:
    given = {
        "category": "loop fusion", "framework_op": "jit(step)/jvp(layer_0)/add:", "source": "a/train.py:10",
        "module": "jit_step(1)", "shape": "bf16[8,8]{1,0:T(8,128)}", "position": 0, "self_time": 1.0, "row": name,
    }  # fmt: skip
    return Op(name=name, **(given | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"module": "jit_step(77)"},
        {"source": "b/train.py:10"},  # another checkout
        {"source": "a/train.py:12"},  # a line moved
        {"framework_op": "jit(step)/jvp(renamed)/add:"},
        {"framework_op": "jit(step)/jvp(layer_0)/checkpoint/add:"},
        {"shape": "bf16[16,8]{1,0:T(8,128)}"},
        {"shape": "f32[8,8]{0,1:T(8,128)}"},
        {"category": "output fusion"},
        {"framework_op": "jit(step)/jvp(layer_0)/add:", "module": "jit_other(3)", "source": ""},
    ],
)
def test_an_op_is_recognised_by_what_stays(changes: dict[str, object]) -> None:
    other = op("decoy.1", framework_op="jit(step)/jvp(layer_9)/mul:", source="a/train.py:99", category="copy")
    found = match([op("fusion.3"), other], [op("decoy.7", framework_op=other.framework_op, source=other.source,
                                               category="copy"), op("fusion.9", **changes)])  # fmt: skip
    assert {(left.name, right.name) for left, right in found.pairs} == {
        ("fusion.3", "fusion.9"),
        ("decoy.1", "decoy.7"),
    }


def test_ops_that_look_alike_are_matched_in_the_order_of_the_program() -> None:
    base = [op("a", position=1), op("b", position=2)]
    new = [op("z", position=5), op("y", position=4), op("x", position=6)]
    found = match(base, new)
    assert [(left.name, right.name) for left, right in found.pairs] == [("a", "y"), ("b", "z")]
    assert [one.name for one in found.new] == ["x"]


def test_ops_without_a_framework_op_are_matched_by_shape_and_stem() -> None:
    bare = {"framework_op": "", "source": ""}
    base = [op("copy.1", category="copy", **bare), op("dot.2", category="dot", **bare)]
    new = [op("dot.5", category="dot", shape="bf16[9,9]", **bare), op("copy.8", category="copy", **bare)]
    assert {(left.name, right.name) for left, right in match(base, new).pairs} == {
        ("copy.1", "copy.8"),
        ("dot.2", "dot.5"),
    }


@pytest.mark.parametrize(
    ("path", "scopes"),
    [
        ("jit(step)/transpose(jvp(layer_0))/dot_general:", ("layer_0",)),
        ("jit(step)/jit(main)/while/body/closed_call/block/mlp/add", ("block", "mlp")),
        ("jit(step)/transpose(jvp(a))/jvp(a)/rematted_computation/mul", ("a",)),
        ("gradient_tape/model/dense/MatMul:MatMul", ("model", "dense")),
        ("add", ()),
        ("", ()),
    ],
)
def test_scopes(path: str, scopes: tuple[str, ...]) -> None:
    assert scopes_of(path) == scopes


def test_what_a_cut_table_lacks_counts_as_other_ops() -> None:
    whole = report("tpu")
    table = whole.tables["hlo_ops"]
    cut = msgspec.structs.replace(table, rows=table.rows[:20], row_ids=table.row_ids[:20], total_rows=len(table.rows))
    found = compare([whole], msgspec.structs.replace(whole, tables={**whole.tables, "hlo_ops": cut}))
    assert found.after.other_ops > 0.1 * found.after.whole
    assert found.after.whole == pytest.approx(found.before.whole)
    assert sum(one.change for one in found.causes) == pytest.approx(0, abs=1e-12)


def test_reports_without_steps_are_compared_by_op_time() -> None:
    metrics = {
        key: msgspec.structs.replace(one, value=None) if key.startswith("step_") else one
        for key, one in report("tpu").metrics.items()
    }
    found = compare([msgspec.structs.replace(report("tpu"), metrics=metrics)], report("tpu_layer"))
    assert found.decision is None
    assert any("no steps" in text for text in found.warnings)
    assert sum(one.change for one in found.causes) == pytest.approx(found.change)
    assert "layer_4" in comparison_document(found).verdict


def test_the_median_of_several_bases_is_compared_with() -> None:
    found = compare([report("cpu_wait"), report("cpu"), report("cpu_layer")], report("cpu"))
    assert found.base is report("cpu")
    with pytest.raises(UsageError):
        compare([], report("cpu"))


def finding(key: str, severity: str = "high", likely: float | None = 1.0) -> Finding:
    saving = None if likely is None else Saving(low=0, likely=likely, high=9, unit="seconds", basis="modelled")
    return msgspec.structs.replace(realistic().findings[0], id=key, rule=key, severity=severity, saving=saving)


def with_findings(*findings: Finding, blind: tuple[str, ...] = ()) -> ReportDocument:
    checks = tuple(Check(rule=rule, title=rule, status="cannot_tell") for rule in blind)
    return msgspec.structs.replace(realistic(), findings=findings, checks=checks)


@pytest.mark.parametrize(
    ("old", "now", "state"),
    [
        (None, finding("a"), "new"),
        (finding("a"), None, "fixed"),
        (finding("a", "medium"), finding("a", "high"), "worse"),
        (finding("a", "high"), finding("a", "medium"), "better"),
        (finding("a", likely=1.0), finding("a", likely=1.2), "worse"),
        (finding("a", likely=1.2), finding("a", likely=1.0), "better"),
        (finding("a", likely=1.0), finding("a", likely=1.05), "same"),
        (finding("a", likely=None), finding("a", likely=1.0), "same"),
    ],
)
def test_what_became_of_a_finding(old: Finding | None, now: Finding | None, state: str) -> None:
    before, after = (with_findings(*([one] if one else [])) for one in (old, now))
    assert [one.state for one in finding_changes(before, after)] == [state]


def test_a_finding_whose_rule_could_not_tell_is_not_called_fixed() -> None:
    before, after = with_findings(finding("a")), with_findings(blind=("a",))
    assert [one.state for one in finding_changes(before, after)] == ["unknown"]


@pytest.mark.parametrize(
    ("key", "value", "verdict"),
    [
        ("step_time_mean", 0.14, "worse"), ("step_time_mean", 0.11, "better"), ("step_time_mean", 0.1214, "same"),
        ("flops_utilization", 0.4, "better"), ("flops_utilization", 0.2, "worse"),
        ("flops_utilization", None, "not captured"),
    ],
)  # fmt: skip
def test_what_became_of_a_metric(key: str, value: float | None, verdict: str) -> None:
    base = realistic()
    new = msgspec.structs.replace(
        base, metrics={**base.metrics, key: msgspec.structs.replace(base.metrics[key], value=value)}
    )
    assert {one.id: one.verdict for one in metric_changes([base], base, new)}[key] == verdict


def test_the_document_holds_everything_in_every_format() -> None:
    document = comparison_document(pair("tpu", "tpu_layer"))
    again = from_json(to_json(document))
    assert again.verdict == document.verdict
    html = render(document, "html").files["report.html"].decode()
    text = render(document, "md").files["report.md"].decode()
    for shown in (html, text):
        assert "8 ops are new: layer_4" in shown
        assert "New ops" in shown
        assert "Where the difference comes from" in shown
    machine = document.extra["comparison"]
    assert machine["decision"]["changed"] is True
    assert sum(one["change"] for one in machine["causes"]) == pytest.approx(machine["step_seconds"]["change"])


def test_the_waterfall_goes_from_nothing_to_the_whole() -> None:
    found = pair("tpu", "tpu_layer")
    chart = comparison_document(found).charts["waterfall"]
    edges = sorted((y, x, end) for one in chart.series for x, end, y in zip(one.x, one.ends, one.y, strict=True))
    assert edges[0][1] == 0.0
    assert edges[-1][1:] == (0.0, found.change)
    for (_, *one), (_, *other) in pairwise(edges):
        assert set(map(_rounded, one)) & set(map(_rounded, other))


def _rounded(value: float) -> float:
    return round(value, 15)


@pytest.mark.parametrize("enemy", SAMPLES)
def test_text_from_strangers_breaks_no_comparison(enemy: str) -> None:
    base = poisoned(realistic(), lambda text: text + enemy)
    new = poisoned(realistic(), lambda text: f"{text}{enemy}2")
    document = comparison_document(compare([base], new))
    html = render(document, "html").files["report.html"].decode()
    assert "<script>alert" not in html
    assert "<img" not in html


def test_empty_reports_can_be_compared() -> None:
    empty = msgspec.structs.replace(realistic(), metrics={}, tables={}, findings=(), cards={}, charts={})
    document = comparison_document(compare([empty], empty))
    assert document.verdict
    assert render(document, "html").files


def test_two_tables_of_old_reports_lack_columns() -> None:
    table = report("tpu").tables["hlo_ops"]
    kept = [
        index for index, column in enumerate(table.columns) if column.name not in ("position", "shape", "occurrences")
    ]
    old = Table(
        title=table.title,
        columns=tuple(table.columns[index] for index in kept),
        rows=tuple(tuple(row[index] for index in kept) for row in table.rows),
        row_ids=table.row_ids,
    )
    found = compare(
        [msgspec.structs.replace(report("tpu"), tables={**report("tpu").tables, "hlo_ops": old})], report("tpu")
    )
    assert found.change == pytest.approx(0)
    assert not any(one.base is None for one in found.ops)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs `reportgen compare` in an empty folder; gives the exit code."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> int:
        monkeypatch.setattr("sys.argv", ["reportgen", "compare", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0)

    return command


def test_the_command_exits_0_whatever_it_finds(
    run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(str(FIXTURES / "tpu.json.gz"), str(FIXTURES / "tpu_layer.json.gz")) == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "comparison.html", "comparison.json", "comparison.md",
    ]  # fmt: skip
    assert "Slower: a step takes 25.4 % longer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("tpu", "tpu", "--format", "md", "-o", "-"), 0),
        (("tpu",), 2),
        (("tpu", "tpu", "-o", "-"), 2),
        (("tpu", "tpu", "--format", "pdf"), 2),
        (("tpu", "tpu", "--error-rate", "2"), 2),
        (("tpu", "absent"), 4),
    ],
)
def test_exit_codes_of_the_command(run: Callable[..., int], arguments: tuple[str, ...], code: int) -> None:
    files = [str(FIXTURES / f"{one}.json.gz") if one in ("tpu", "absent") else one for one in arguments]
    assert run(*files) == code


def test_the_python_api_takes_documents_and_paths() -> None:
    document = compared(report("tpu"), FIXTURES / "tpu_layer.json.gz")
    assert "layer_4" in document.verdict
    with pytest.raises(UsageError, match="found 1 in all"):
        compared(report("tpu"))
