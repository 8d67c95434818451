"""Ways to fit against what the real compiler made of the changed programs (figures.json, made by fixtures/make.py)."""

from __future__ import annotations

from functools import cache

import pytest

from reportgen.memory.fixes.advise import LEAST_SHARE, advise
from reportgen.memory.fixes.model import Fix
from reportgen.memory.fixes.padding import better_shape
from reportgen.memory.forecast import Program
from reportgen.profile.shapes import Shape

from .conftest import compiled_program, figures

CAPACITY = round(15.75 * 2**30)  # of the compile that fails, by its message
FRAMEWORKS = {"jax", "tensorflow", "pytorch_xla"}
# Program, the way to fit, and the same program with it.
CLOSE = [
    ("dense", "donation", "dense_donated"),
    ("dense", "dtype", "dense_bf16"),
    ("dense", "batch", "dense_half_batch"),
    ("conv", "donation", "conv_donated"),
    ("conv", "dtype", "conv_bf16"),
    ("conv", "batch", "conv_half_batch"),
    ("conv_rows", "padding", "conv"),
    ("attention", "donation", "attention_donated"),
    ("attention", "dtype", "attention_bf16"),
    ("attention", "batch", "attention_half_batch"),
    ("cache", "padding", "cache_merged"),
    ("narrow_rows", "padding", "narrow_columns"),
]
IN_RANGE = [
    ("attention", "remat", "attention_remat"),
    ("attention_deep", "remat", "attention_deep_remat"),
    ("scan", "remat", "scan_remat"),
    ("scan_oom", "remat", "scan_oom_remat"),
    ("scan", "offload", "scan_offload"),
    ("dense", "microbatches", "dense_parts"),
    ("lookup", "sharding", "lookup_split"),
    ("oom", "batch", "oom_half_batch"),
    ("oom", "donation", "oom_donated"),
]


@cache
def program(name: str) -> Program:
    compiled = compiled_program(name)
    return Program(compiled.module, compiled.memory, CAPACITY if "oom" in name else None)


@cache
def advice(name: str) -> tuple[Fix, ...]:
    return advise(program(name), least_share=0.0)


def largest(name: str, kind: str) -> Fix:
    return max((fix for fix in advice(name) if fix.kind == kind), key=lambda fix: fix.likely)


def recompiled_saving(name: str, twin: str) -> int:
    totals = figures()
    return int(totals[name]["totals"]["default"]) - int(totals[twin]["totals"]["default"])


@pytest.mark.parametrize(("name", "kind", "twin"), CLOSE)
def test_the_likely_saving_is_within_15_percent(name: str, kind: str, twin: str) -> None:
    fix = largest(name, kind)
    saving = recompiled_saving(name, twin)
    assert saving > 0
    assert fix.likely == pytest.approx(saving, rel=0.15)
    assert fix.low <= saving <= fix.high


@pytest.mark.parametrize(("name", "kind", "twin"), IN_RANGE)
def test_the_recompiled_saving_lies_in_a_range_called_modelled(name: str, kind: str, twin: str) -> None:
    fix = largest(name, kind)
    assert fix.basis == "modelled"
    assert fix.low <= recompiled_saving(name, twin) <= fix.high
    assert fix.low <= fix.likely <= fix.high


def test_a_checkpoint_that_makes_it_worse_is_not_advised() -> None:
    """Each layer keeps only what enters it; recompiled with jax.checkpoint the program needs 32 GiB more."""
    assert recompiled_saving("oom", "oom_remat") < 0
    assert not [fix for fix in advice("oom") if fix.kind in {"remat", "offload"}]


def test_the_largest_batch_that_fits_is_cautious() -> None:
    """An eighth of the batch fits when recompiled; the plain forecast's 327,680 does not."""
    batch = int(largest("oom", "batch").values["largest_batch"])
    totals = figures()
    assert totals["oom_eighth_batch"]["totals"]["default"] <= CAPACITY < totals["oom_largest"]["totals"]["default"]
    assert 131072 <= batch < 327680


def test_padding_is_explained_by_places_in_the_tile() -> None:
    fix = largest("narrow_rows", "padding")
    assert fix.values["shape"] == "f32[1048576,6]{1,0:T(8,128)}"
    assert fix.values["padding_bytes"] == 2**20 * (128 - 6) * 4
    assert "dimension 1 (6) lies on the lanes and is padded to 128" in fix.how
    assert any(step.code == "x = jnp.transpose(x, (1, 0))" for step in fix.steps)


def test_padding_is_gone_when_fixed_as_advised() -> None:
    """The 488 MiB of padding that the report shows are not in the recompiled program."""
    space = compiled_program("narrow_rows").memory.main
    assert space is not None
    lost = int(largest("narrow_rows", "padding").values["padding_bytes"])
    assert space.padding_bytes == pytest.approx(lost, rel=1e-3)
    assert recompiled_saving("narrow_rows", "narrow_columns") == pytest.approx(lost, rel=0.02)


def test_what_does_not_apply_is_not_advised() -> None:
    kinds = {fix.kind for fix in advise(program("scan_remat"))}
    assert "remat" not in kinds, "it is rematerialised already"
    assert "dtype" not in kinds, "it is bfloat16 already"
    assert "sharding" not in kinds, "it runs on one chip"
    assert "donation" not in {fix.kind for fix in advise(program("dense_donated"))}
    assert "padding" not in {fix.kind for fix in advise(program("dense"))}


def test_small_savings_are_left_out() -> None:
    space = program("conv").space
    assert space is not None
    told = advise(program("conv"))
    assert all(fix.likely >= space.allocated_bytes * LEAST_SHARE for fix in told)
    assert len(told) < len(advice("conv"))
    assert [fix.likely for fix in told] == sorted((fix.likely for fix in told), reverse=True)


@pytest.mark.parametrize("name", ["dense", "conv", "scan", "lookup", "narrow_rows"])
def test_every_fix_says_how_and_what_to_do(name: str) -> None:
    for fix in advice(name):
        assert fix.how.endswith(".")
        assert fix.buffers or fix.kind == "microbatches"
        known = {step.framework for step in fix.steps if step.code}
        assert known >= ({"jax"} if fix.kind == "offload" else FRAMEWORKS), fix.kind


@pytest.mark.parametrize(
    ("text", "better"),
    [
        ("f32[1048576,6]{1,0:T(8,128)}", "f32[6,1048576]{1,0:T(8,128)}"),
        ("bf16[64,1024,8,64]{3,2,1,0:T(8,128)(2,1)}", "bf16[64,1024,512]{2,1,0:T(8,128)(2,1)}"),
        ("f32[1000,3]{1,0:T(8,128)}", "f32[3,1000]{1,0:T(4,128)}"),
        ("f32[1024,128]{1,0:T(8,128)}", None),
        ("f32[1048576,6]{1,0}", None),
        ("f32[6]{0:T(128)}", None),
    ],
)
def test_better_shapes(text: str, better: str | None) -> None:
    found = better_shape(Shape.parse(text))
    assert (str(found.shape) if found else None) == better
