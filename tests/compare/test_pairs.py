"""Twelve pairs of real programs with one known change each: it is named first, and the causes add up to the whole."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from reportgen.comparison import Comparison, compare
from reportgen.comparison.words import leading, verdict
from reportgen.delivery import open_document
from reportgen.document import ReportDocument

FIXTURES = Path(__file__).parent / "fixtures"
# base, new, kind and subject of the cause to name first; "" where the step does not change.
PAIRS = [
    ("tpu", "tpu_float32", "type", "bf16 → f32"),
    ("tpu", "tpu_batch", "size", "4096 → 8192"),
    ("tpu", "tpu_layer", "added", "layer_4"),
    ("tpu", "tpu_split", "split", "fusion.10"),
    ("tpu", "tpu_remat", "added", "recomputation"),
    ("tpu", "tpu_clip", "added", "clip"),
    ("tpu", "tpu_infeed", "input", ""),
    ("tpu", "tpu_renumbered", "", ""),
    ("cpu", "cpu_batch", "size", "128 → 256"),
    ("cpu", "cpu_layer", "added", "layer_4"),
    ("cpu", "cpu_bfloat16", "type", "bf16 is new"),
    ("cpu", "cpu_wait", "between", "time between two steps"),
]


@cache
def report(name: str) -> ReportDocument:
    return open_document(FIXTURES / f"{name}.json.gz")


@cache
def pair(base: str, new: str) -> Comparison:
    return compare([report(base)], report(new))


@pytest.mark.parametrize(("base", "new", "kind", "subject"), PAIRS)
def test_the_known_change_is_named_first(base: str, new: str, kind: str, subject: str) -> None:
    named = leading(pair(base, new))
    assert (named[0].kind if named else "") == kind
    assert subject in (named[0].subject if named else "")
    if named:
        text = named[0].text
        assert text[:1].upper() + text[1:] in verdict(pair(base, new))


@pytest.mark.parametrize(("base", "new", "kind", "subject"), PAIRS)
def test_causes_add_up_to_the_whole(base: str, new: str, kind: str, subject: str) -> None:
    found = pair(base, new)
    whole = max(found.before.whole, found.after.whole)
    assert sum(one.change for one in found.causes) == pytest.approx(found.change, abs=1e-9 * whole)
    for side, when in ((found.before, "base"), (found.after, "new")):
        parts = sum(op.time for op in side.ops) + side.other_ops + side.idle + side.between
        assert parts == pytest.approx(side.whole, rel=1e-9)
        assert sum(getattr(one, when) for one in found.causes) == pytest.approx(side.whole, rel=1e-9)


@pytest.mark.parametrize(("base", "new", "kind", "subject"), PAIRS)
def test_each_op_is_in_one_place(base: str, new: str, kind: str, subject: str) -> None:
    found = pair(base, new)
    assert sum(one.base is not None for one in found.ops) == len(found.before.ops)
    assert sum(one.new is not None for one in found.ops) == len(found.after.ops)
    assert sum(one.ops for one in found.causes) >= max(len(found.before.ops), len(found.after.ops))


@pytest.mark.parametrize(
    ("base", "new", "kind"),
    [
        ("tpu_layer", "tpu", "removed"), ("tpu_split", "tpu", "merged"), ("tpu_float32", "tpu", "type"),
        ("tpu_infeed", "tpu", "input"), ("cpu_layer", "cpu", "removed"),
    ],
)  # fmt: skip
def test_the_other_way_round(base: str, new: str, kind: str) -> None:
    there, back = pair(new, base), pair(base, new)
    assert leading(back)[0].kind == kind
    assert back.change == pytest.approx(-there.change)


def test_renumbered_instructions_are_recognised() -> None:
    found = pair("tpu", "tpu_renumbered")
    assert found.renamed == len(found.after.ops) == len(found.before.ops) == 213
    assert all(one.base == one.new for one in found.ops)
    assert "The same 213 ops ran, 213 of them under other names." in verdict(found)
    assert all(one.before is None or one.before.category == one.op.category for one in found.ops)


def test_decisions_on_modelled_and_measured_pairs() -> None:
    assert pair("tpu", "tpu_clip").decision.changed  # 4.8 %: a model has no noise
    assert pair("tpu", "tpu_clip").decision.evidence == "modelled"
    assert not pair("tpu", "tpu_renumbered").decision.changed
    measured = pair("cpu", "cpu_wait").decision
    assert (measured.evidence, measured.changed) == ("few_bases", True)
    assert measured.why.startswith("One base: weak evidence.")


def test_what_is_not_comparable_is_said() -> None:
    assert any("4096 → 8192" in text for text in pair("tpu", "tpu_batch").warnings)
    assert not any("size of batch" in text for text in pair("tpu", "tpu_layer").warnings)
    said = " ".join(pair("tpu", "cpu").warnings)
    assert "device type: TPU v5 lite before, CPU now" in said
    assert "number of cores: 4 before, 1 now" in said
    assert "timeline: modelled before, measured now" in said
    assert any("same profile" in text for text in compare([report("cpu")], report("cpu")).warnings)
