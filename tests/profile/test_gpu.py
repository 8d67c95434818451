"""Kernels and copies of a GPU as runs of ops: owners, costs, executions; no device time is lost."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reportgen.profile.gpu import GpuRuns, executions
from reportgen.profile.gpu_cost import gpu_cost
from reportgen.profile.hlo_text import parse_hlo_text
from reportgen.profile.kernels import matrix_product
from reportgen.profile.ops import NO_OWNER, op_table
from reportgen.profile.view import HostView
from tests.builders import PlaneBuilder, Space, Stats

GPU = "/device:GPU:0"
GEMM = json.dumps(
    {
        "gemm_backend_config": {
            "dot_dimension_numbers": {"lhs_contracting_dimensions": ["1"], "rhs_batch_dimensions": []}
        }
    }
)
METADATA = '{op_name="jit(f)/dot" op_type="dot_general" source_file="m.py" source_line=3}'


def call(target: str) -> str:
    return f'custom_call_target="{target}", backend_config={GEMM}'


MODULE = f"""HloModule jit_f

fused_dot {{
  a = bf16[64,32]{{1,0}} parameter(0)
  b = bf16[32,16]{{1,0}} parameter(1)
  ROOT dot = bf16[64,16]{{1,0}} dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}

fused_add {{
  x = f32[8]{{0}} parameter(0)
  ROOT sum = f32[8]{{0}} add(x, x)
}}

ENTRY main {{
  a = bf16[64,32]{{1,0}} parameter(0)
  b = bf16[32,16]{{1,0}} parameter(1)
  x = f32[8]{{0}} parameter(2)
  q = f8e4m3fn[64,32]{{1,0}} parameter(3)
  gemm_fusion.1 = bf16[64,16]{{1,0}} fusion(a, b), kind=kCustom, calls=fused_dot, metadata={METADATA}
  loop_fusion = f32[8]{{0}} fusion(x), kind=kLoop, calls=fused_add
  library = (bf16[64,16]{{1,0}}, s8[4096]{{0}}) custom-call(a, b), {call("__cublas$gemm")}
  eighth = (bf16[64,16]{{1,0}}, s8[4096]{{0}}) custom-call(q, b), {call("__cublas$lt$matmul$f8")}
  ROOT other = f32[8]{{0}} custom-call(x), custom_call_target="mine"
}}
"""
DOT = 2 * 64 * 32 * 16


def owned(op: str, program: int = 3, **more: int | str) -> Stats:
    return {"hlo_op": op, "hlo_module": "jit_f", "program_id": program, **more}


def with_module() -> tuple[Space, PlaneBuilder]:
    space = Space()
    space.hlo("jit_f(3)", 3, parse_hlo_text(MODULE).proto.SerializeToString())
    return space, space.plane(GPU, {"compute_cap_major": 9, "compute_cap_minor": 0})


def gpu_runs(view: HostView) -> GpuRuns:
    runs = view.cores[0].runs
    assert isinstance(runs, GpuRuns)
    return runs


def ops(space: Space) -> dict[str, dict[str, Any]]:
    rows = op_table(gpu_runs(space.view())).to_dict("records")
    return {str(row["name"]): {str(key): value for key, value in row.items()} for row in rows}


def values(row: dict[str, Any], *columns: str) -> list[Any]:
    return [row[column] for column in columns]


def test_the_owner_is_the_innermost_op_with_its_hlo() -> None:
    space, gpu = with_module()
    gpu.line("Stream #1(Compute)").event("kernel_1", 0, 5, owned("while::body::gemm_fusion.1"))
    row = ops(space)["gemm_fusion.1"]
    assert (row["program"], row["category"], row["module"]) == (3, "custom fusion", "jit_f")
    assert (row["framework_op"], row["source"]) == ("jit(f)/dot:dot_general", "m.py:3")
    assert (row["flops"], row["bytes"]) == (DOT, 2 * (64 * 32 + 32 * 16 + 64 * 16))


def test_an_op_without_its_hlo_keeps_its_name() -> None:
    space = Space()
    space.plane(GPU).line("Stream #1(Compute)").event("k", 0, 5, owned("fusion.3"))
    row = ops(space)["fusion.3"]
    assert row["category"] == "unknown"
    assert np.isnan(row["flops"])


def test_without_hlo_the_framework_op_is_what_the_event_says() -> None:
    space = Space()
    space.plane(GPU).line("Stream #1").event("k", 0, 5, owned("fusion.3", tf_op="XlaModule:", name="jit(f)/dot"))
    assert ops(space)["fusion.3"]["framework_op"] == "jit(f)/dot:"


def test_a_module_is_found_by_its_name_where_the_event_has_no_program_id() -> None:
    space, gpu = with_module()
    gpu.line("Stream #1(Compute)").event("k", 0, 5, {"hlo_op": "loop_fusion", "hlo_module": "jit_f"})
    assert ops(space)["loop_fusion"]["category"] == "loop fusion"


def test_what_nobody_owns_is_named_by_its_kernel() -> None:
    space, gpu = with_module()
    gpu.line("Stream #1(Compute)").event("mystery", 0, 5).event("mystery", 9, 6, {"tf_op": "XlaModule:"})
    table = ops(space)
    assert values(table["mystery"], "category", "time_ps", "occurrences") == [NO_OWNER, 11_000, 2]


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("MemcpyH2D", "memcpy H2D"),
        ("MEMCPYDtoH", "memcpy D2H"),
        ("Memcpy DtoD (Device -> Device)", "memcpy D2D"),
        ("CopyHostToDevice", "memcpy H2D"),
        ("MemcpyP2P", "memcpy P2P"),
        ("MemcpyOther", "memcpy"),
        ("__amd_rocclr_copyBuffer.kd", "memcpy"),
        ("Memset", "memset"),
        ("__amd_rocclr_fillBufferAligned.kd", "memset"),
        ("copy_fusion", NO_OWNER),
    ],
)
def test_copies_are_told_by_their_name(name: str, category: str) -> None:
    space = Space()
    space.plane(GPU).line("Stream #1(MemcpyH2D)").event(name, 0, 5)
    assert ops(space)[name]["category"] == category


def test_a_framework_op_owns_kernels_that_xla_did_not_compile() -> None:
    space = Space()
    line = space.plane(GPU).line("Stream #1(Compute)")
    line.event("gemm", 0, 5, {"tf_op": "model/dense/MatMul:MatMul"})
    line.event("cast", 9, 5, {"annotation": "model/Cast:Cast#shape=(half[4,8])#::#edge_name=e#"})
    line.event("jax", 20, 5, {"tf_op": "jit(f)/transpose[permutation=(1, 0)]:"})
    table = ops(space)
    assert values(table["model/dense/MatMul/gemm"], "category", "framework_op") == [
        "MatMul", "model/dense/MatMul:MatMul"
    ]  # fmt: skip
    assert values(table["model/Cast/cast"], "category", "framework_op") == ["Cast", "model/Cast:Cast"]
    assert table["jit(f)/transpose[permutation=(1, 0)]/jax"]["category"] == "transpose"


def test_derived_lines_do_not_count_twice() -> None:
    space, gpu = with_module()
    gpu.line("Stream #1(Compute)").event("k", 0, 5, owned("loop_fusion"))
    for name in ("XLA Ops", "XLA Modules", "Steps", "TensorFlow Ops", "Framework Name Scope"):
        gpu.line(name).event("loop_fusion", 0, 5)
    numbered = gpu.line("of any name")
    numbered.proto.id = 0xDEADBEEF + 3 - (1 << 32)
    numbered.event("k", 0, 5)
    assert gpu_runs(space.view()).durations.sum() == 5_000


def test_the_cost_of_an_execution_counts_once_for_all_its_kernels() -> None:
    space, gpu = with_module()
    line = gpu.line("Stream #1(Compute)")
    for start in (0, 20):
        line.event("splitk_gemm", start, 8, owned("gemm_fusion.1")).event(
            "splitk_sum", start + 9, 2, owned("gemm_fusion.1")
        )
    row = ops(space)["gemm_fusion.1"]
    assert (row["occurrences"], row["time_ps"], row["flops"]) == (4, 20_000, 2 * DOT)


def test_an_execution_begins_where_its_first_kernel_comes_again() -> None:
    op = np.array([0, 0, 0, 0, 1, 0, 0, 0])
    kernel = np.array([5, 6, 5, 6, 7, 5, 5, 6])
    line = np.array([1, 1, 1, 1, 1, 1, 2, 2])
    group = np.array([-1] * 8)
    assert executions(op, kernel, line, group).tolist() == [1, 0, 1, 0, 1, 1, 1, 0]
    group[1] = 4
    assert executions(op, kernel, line, group)[:4].tolist() == [1, 1, 1, 0]
    assert executions(*[np.empty(0, np.int64)] * 4).tolist() == []


def test_costs_in_the_file_win_over_those_counted_from_hlo() -> None:
    space, gpu = with_module()
    line = gpu.line("Stream #1(Compute)")
    for start in (0, 10):
        line.event("k", start, 5, owned("gemm_fusion.1", flops=1000, bytes_accessed=64))
    line.event("k", 20, 5, owned("other", flops=7))
    table = ops(space)
    assert values(table["gemm_fusion.1"], "flops", "model_flops", "bytes", "hbm_read") == [2000, 2000, 128, 128]
    assert table["other"]["flops"] == 7


def test_library_products_have_exact_flops_and_bytes_without_workspace() -> None:
    space, gpu = with_module()
    line = gpu.line("Stream #1(Compute)")
    for start, op in enumerate(("library", "eighth", "other")):
        line.event("k", 10 * start, 5, owned(op))
    table = ops(space)
    assert values(table["library"], "flops", "model_flops") == [DOT, DOT]
    assert table["library"]["bytes"] == 2 * (64 * 32 + 32 * 16 + 64 * 16)
    assert values(table["eighth"], "flops", "model_flops") == [DOT / 2, DOT]
    assert np.isnan(table["other"]["flops"])


CONVOLUTION = """HloModule c

ENTRY main {{
  x = f16[4,8,10,10]{{3,2,1,0}} parameter(0)
  w = f16[16,8,3,3]{{3,2,1,0}} parameter(1)
  y = f16[4,16,8,8]{{3,2,1,0}} parameter(2)
  ROOT conv = ({result}, u8[64]{{0}}) custom-call({operands}), {attributes}
}}
"""
X, W, Y = "f16[4,8,10,10]{3,2,1,0}", "f16[16,8,3,3]{3,2,1,0}", "f16[4,16,8,8]{3,2,1,0}"


@pytest.mark.parametrize(
    ("target", "operands", "result"),
    [
        ("__cudnn$convForward", "x, w", Y),
        ("__cudnn$convBiasActivationForward", "x, w", Y),
        ("__cudnn$convBackwardInput", "y, w", X),
        ("__cudnn$convBackwardFilter", "x, y", W),
    ],
)
def test_library_convolutions_cost_as_much_forwards_as_backwards(target: str, operands: str, result: str) -> None:
    attributes = f'window={{size=3x3}}, dim_labels=bf01_oi01->bf01, custom_call_target="{target}"'
    module = parse_hlo_text(CONVOLUTION.format(attributes=attributes, operands=operands, result=result))
    space = Space()
    space.hlo("c(3)", 3, module.proto.SerializeToString())
    space.plane(GPU).line("Stream #1(Compute)").event("k", 0, 5, owned("conv"))
    assert ops(space)["conv"]["flops"] == 2 * 4 * 16 * 8 * 8 * 8 * 3 * 3


UNREADABLE = {"dot_dimension_numbers": {"lhs_contracting_dimensions": ["x", "99", "-1", 7, None]}}


@pytest.mark.parametrize(
    "config",
    ["{}", "not json", '{"gemm_backend_config": 3}', json.dumps({"gemm_backend_config": UNREADABLE})],
)
def test_a_library_call_that_cannot_be_read_has_no_cost(config: str) -> None:
    space = Space()
    space.hlo("jit_f(3)", 3, parse_hlo_text(MODULE.replace(GEMM, config)).proto.SerializeToString())
    space.plane(GPU).line("Stream #1(Compute)").event("k", 0, 5, owned("library"))
    assert np.isnan(ops(space)["library"]["flops"])


NESTED = """HloModule jit_f

hand_on {
  ROOT p = bf16[64,32]{1,0} parameter(0)
}

outer {
  p = bf16[64,32]{1,0} parameter(0)
  q = bf16[32,16]{1,0} parameter(1)
  block = bf16[64,32]{1,0} fusion(p), kind=kCustom, calls=hand_on
  ROOT dot = bf16[64,16]{1,0} dot(block, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

ENTRY main {
  p = bf16[64,32]{1,0} parameter(0)
  q = bf16[32,16]{1,0} parameter(1)
  ROOT gemm = bf16[64,16]{1,0} fusion(p, q), kind=kCustom, calls=outer
}
"""


def test_a_parameter_that_a_nested_fusion_hands_on_is_read_whole() -> None:
    module = parse_hlo_text(NESTED)
    assert gpu_cost(module, module.by_name["gemm"]).bytes == 2 * (64 * 32 + 32 * 16 + 64 * 16)


ENDLESS = """HloModule jit_f

itself {
  p = f32[8]{0} parameter(0)
  a = f32[8]{0} fusion(p), kind=kLoop, calls=itself
  b = f32[8]{0} fusion(p), kind=kLoop, calls=itself
  ROOT c = f32[8]{0} add(a, b)
}

ENTRY main {
  p = f32[8]{0} parameter(0)
  ROOT gemm = f32[8]{0} fusion(p), kind=kCustom, calls=itself
}
"""


def test_a_fusion_that_calls_itself_is_counted_once_and_ends() -> None:
    module = parse_hlo_text(ENDLESS)
    cost = gpu_cost(module, module.by_name["gemm"])
    assert cost.flops == 8
    assert matrix_product(module, module.by_name["gemm"]) is None


def test_a_damaged_instruction_has_no_cost() -> None:
    module = parse_hlo_text(CONVOLUTION.format(attributes="dim_labels=bf01_oi01->bf01", operands="x, w", result=Y))
    broken = module.by_name["conv"]
    broken.proto.opcode = "convolution"
    del broken.proto.operand_ids[1:]
    assert gpu_cost(module, broken) == (None, None, None)


EVENTS = st.lists(
    st.tuples(
        st.integers(0, 3),  # stream
        st.integers(0, 10**6),  # start
        st.integers(0, 10**5),  # duration
        st.sampled_from(["a", "b", "MemcpyH2D"]),
        st.sampled_from([None, "loop_fusion", "x::gemm_fusion.1", "gone"]),
    ),
    max_size=40,
)


@given(EVENTS)
@settings(max_examples=40, deadline=None)
def test_no_device_time_is_lost(events: list[tuple[int, int, int, str, str | None]]) -> None:
    space, gpu = with_module()
    lines = [gpu.line(f"Stream #{number}(Compute)") for number in range(4)]
    gpu.line("XLA Ops").event("derived", 0, 10**6)
    for stream, start, duration, name, op in events:
        lines[stream].event(name, start, duration, owned(op) if op else None)
    total = sum(duration for _, _, duration, _, _ in events) * 1000
    runs = gpu_runs(space.view())
    table = op_table(runs)
    assert table["self_ps"].sum() == table["time_ps"].sum() == total
    assert table["occurrences"].sum() == len(events) == len(runs)
    assert runs.busy <= min(total, runs.span[1] - runs.span[0])
