"""Launch parameters, element types and use of matrix units of GPU kernels."""

from __future__ import annotations

import pytest

from reportgen.profile.gpu import GpuRuns
from reportgen.profile.hlo_text import parse_hlo_text
from reportgen.profile.kernels import (
    Launch,
    class_of_annotation,
    class_of_instruction,
    class_of_name,
    element_class,
    matrix_product,
    matrix_unit_by_name,
    parse_copied_bytes,
    parse_launch,
)
from tests.builders import Space

GRID, BLOCK = (160, 1, 1), (1024, 1, 1)


@pytest.mark.parametrize(
    ("details", "launch"),
    [
        (
            "regs:38 shm:0 grid:160,1,1 block:1024,1,1",
            Launch(GRID, BLOCK, registers=38, shared=0),
        ),
        (
            "regs:12 static_shared:64 dynamic_shared:1000 grid:160,1,1 block:1024,1,1 occ_pct:62.5",
            Launch(GRID, BLOCK, 12, 64, 1000, 1064, 0.625),
        ),
        (
            "regs:12\nstatic_shared:0\ndynamic_shared:0\ngrid:160,1,1\nblock:1024,1,1\nocc_pct:100\n",
            Launch(GRID, BLOCK, 12, 0, 0, 0, 1.0),
        ),
        (
            " grid:160,1,1 block:1024,1,1 private_mem:0 group_mem:33792 occ_pct:0",
            Launch(GRID, BLOCK, shared=33792),
        ),
        ("", Launch()),
        ("regs:-3 grid:1,2 block:a,b,c occ_pct:nan shm:99999999999999999999", Launch()),
        ("regs:²", Launch()),
    ],
)
def test_launch_parameters_are_read_and_what_was_not_captured_is_none(details: str, launch: Launch) -> None:
    assert parse_launch(details) == launch


@pytest.mark.parametrize(
    ("details", "size"),
    [
        ("size:4 dest:1 async:1", 4),
        ("kind_src:pinned kind_dst:device num_bytes:4096 dest:0", 4096),
        ("kind:Unknown", None),
        ("size:-1", None),
    ],
)
def test_the_size_of_a_copy_is_read(details: str, size: int | None) -> None:
    assert parse_copied_bytes(details) == size


# Names as libraries give them; the type is that of the operands, not of accumulator or result.
NAMES = [
    ("volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn", "fp16", True),
    ("volta_h884gemm_256x64_ldg8_tn", "fp16", True),
    ("turing_s1688gemm_fp16_128x128_ldg8_relu_f2f_tn", "fp16", True),
    ("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn", "bf16", True),
    ("ampere_fp16_s16816gemm_fp16_256x128_ldg8_f2f_tn", "fp16", True),
    ("cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4", "tf32", True),
    ("void cutlass::Kernel<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x4_tn_align8>(Params)", "bf16", True),
    ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16_stage4_warpsize2x2x1_tensor16x8x8", "tf32", True),
    ("sm80_xmma_gemm_i8i8_i8i32_f32_tn_n_tilesize64x64x64", "int8", True),
    ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute", "bf16", True),
    ("sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize64x128x128_cublas", "fp8", True),
    ("cutlass3x_sm90_tensorop_s64x128x16gemm_f16_f16_f32_void_f16_128x128x64_1x2x1_0_tnn_align8", "fp16", True),
    ("cutlass3x_sm90_tensorop_s64x256x8tf32gemm_f32_f32_f32_void_f32_128x256x32", "tf32", True),
    ("cutlass3x_sm100_tensorop_h128x256x32spgemm_e5m2_e4m3_f32_void_bf16_tcgen05", "fp8", True),
    ("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT", "bf16", True),
    ("nvjet_hsh_192x192_64x4_2x1_v_bz_coopA_TNT", "fp16", True),
    ("nvjet_sm100_qqtst_128x256_128x6_2x1_2cta_v_bz_TNT", "fp8", True),
    ("cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_31_64x64x128_4x1x1", "fp16", True),
    ("void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, cutlass::bfloat16_t>>", "bf16", True),
    ("_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalI_wgmma_half_tE", "fp16", True),
    ("Cijk_Ailk_Bljk_BBS_BH_MT256x128x32_MI16x16x16x1_SN_1LDSB1.kd", "bf16", True),
    ("Cijk_Alik_Bljk_HHS_BH_MT64x64x64_MI32x32x8x1_SN.kd", "fp16", True),
    ("Cijk_Alik_Bljk_F8F8S_BH_MT128x128x64_MI16x16x32x1_SN.kd", "fp8", True),
    ("Cijk_Alik_Bljk_I8II_BH_MT128x128x64_MI16x16x32x1_SN.kd", "int8", True),
    ("Cijk_Ailk_Bljk_SB_MT64x64x16_SE_K1.kd", "f32", False),
    ("Cijk_Ailk_Bljk_DB_MT64x64x16_MI16x16x4x1_SE_K1.kd", "f64", True),
    ("ampere_sgemm_128x64_tn", "f32", False),
    ("void cutlass::Kernel<cutlass_80_simt_sgemm_256x128_8x4_nt_align1>", "f32", False),
    ("volta_dgemm_128x64_nn", "f64", None),
    ("void gemv2T_kernel_val<int, int, float, float, float, 128>", "f32", False),
    ("void cublasLt::splitKreduce_kernel<32, 16, int, float, __half, float>", "fp16", False),
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "bf16", False),
    ("void Eigen::internal::EigenMetaKernel<Eigen::TensorMap<Eigen::Tensor<float const, 1>>>", "f32", False),
    ("layer_norm_gamma_fusion", None, None),
    ("loop_fusion_8", None, None),
    ("comma", None, None),
]


@pytest.mark.parametrize(("name", "element", "uses"), NAMES)
def test_library_names_tell_the_element_type_and_the_matrix_unit(
    name: str, element: str | None, uses: bool | None
) -> None:
    assert (class_of_name(name), matrix_unit_by_name(name)) == (element, uses)


CLASSES = {"bf16": "bf16", "f16": "fp16", "f8e4m3fn": "fp8", "f8e5m2fnuz": "fp8", "f4e2m1fn": "fp4", "s8": "int8"}


@pytest.mark.parametrize(("hlo", "element"), [*CLASSES.items(), ("u4", "int4"), ("f32", "f32"), ("s32", "s32")])
def test_element_types_have_classes(hlo: str, element: str) -> None:
    assert element_class(hlo) == element


def test_an_annotation_tells_the_type_of_the_largest_operand() -> None:
    assert class_of_annotation("a/Mul:Mul#shape=(float[];half[4,384,1024];int32[2])#") == "fp16"
    assert class_of_annotation("a/Cast:Cast#shape=(bfloat16[4])#") == "bf16"
    assert class_of_annotation("a/Split:Split#shape=(int32[3])#") is None
    assert class_of_annotation(f"a#shape=(half[{'9' * 5000}])#") is None


MODULE = """HloModule jit_f

inner {
  p = bf16[8,8]{1,0} parameter(0)
  q = bf16[8,8]{1,0} parameter(1)
  ROOT dot = f32[8,8]{1,0} dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

outer {
  p = bf16[8,8]{1,0} parameter(0)
  q = f32[8,8]{1,0} parameter(1)
  r = bf16[8,8]{1,0} convert(q)
  ROOT nested = f32[8,8]{1,0} fusion(p, r), kind=kCustom, calls=inner
}

scale {
  p = bf16[8,8]{1,0} parameter(0)
  s = f32[] parameter(1)
  ROOT m = bf16[8,8]{1,0} convert(p)
}

ENTRY main {
  p = bf16[8,8]{1,0} parameter(0)
  q = f32[8,8]{1,0} parameter(1)
  s = f32[] parameter(2)
  i = s32[8]{0} parameter(3)
  gemm = f32[8,8]{1,0} fusion(p, q), kind=kCustom, calls=outer
  loop = f32[8,8]{1,0} fusion(p, q), kind=kLoop, calls=outer
  scaled = bf16[8,8]{1,0} fusion(p, s), kind=kLoop, calls=scale
  wide = f32[8,8]{1,0} dot(q, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  counts = s32[8]{0} add(i, i)
  ROOT called = bf16[8,8]{1,0} custom-call(p, q), custom_call_target="mine"
}
"""


def test_the_hlo_tells_the_type_that_an_op_computes_with() -> None:
    module = parse_hlo_text(MODULE)
    classes = {
        name: class_of_instruction(module, module.by_name[name]) for name in ("gemm", "scaled", "wide", "counts")
    }
    assert classes == {"gemm": "bf16", "scaled": "bf16", "wide": "f32", "counts": "s32"}
    product = matrix_product(module, module.by_name["gemm"])
    assert product is not None
    assert product.name == "dot"
    assert matrix_product(module, module.by_name["scaled"]) is None


def kernel_of(op: str, name: str, stats: dict[str, int | str]) -> tuple[str | None, bool | None]:
    space = Space()
    space.hlo("jit_f(3)", 3, parse_hlo_text(MODULE).proto.SerializeToString())
    space.plane("/device:GPU:0", stats).line("Stream #1").event(name, 0, 5, {"hlo_op": op, "program_id": 3})
    runs = space.view().cores[0].runs
    assert isinstance(runs, GpuRuns)
    return runs.kernels[0].element, runs.kernels[0].matrix_unit


HOPPER: dict[str, int | str] = {"compute_cap_major": 9, "compute_cap_minor": 0, "device_vendor": "Nvidia"}
PASCAL: dict[str, int | str] = {"compute_cap_major": 6, "compute_cap_minor": 1, "device_vendor": "Nvidia"}


@pytest.mark.parametrize(
    ("op", "name", "element", "uses"),
    [
        ("gemm", "gemm_1", "bf16", True),  # XLA's own product of a narrow type
        ("loop", "loop_1", "bf16", False),  # loop fusions multiply element by element
        ("scaled", "scaled_1", "bf16", False),
        ("wide", "wide_1", "f32", None),  # may be tf32 or not
        ("wide", "cutlass_80_tensorop_s1688gemm_tf32", "tf32", True),  # the name knows better
        ("wide", "ampere_sgemm_128x64_tn", "f32", False),
        ("called", "mine_1", "f32", None),
        ("gone", "nvjet_tst_128x256_64x4", "bf16", True),
    ],
)
def test_hlo_comes_before_the_name(op: str, name: str, element: str, uses: bool | None) -> None:
    assert kernel_of(op, name, HOPPER) == (element, uses)


def test_a_gpu_without_tensor_cores_uses_none() -> None:
    assert kernel_of("gemm", "gemm_1", PASCAL) == ("bf16", False)
