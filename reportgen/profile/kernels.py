"""GPU kernels: launch parameters, copies, element types and use of matrix units, from what a profile records.

A profile names kernels; it records neither their element types nor whether they ran on tensor cores (NVIDIA) or matrix
cores (AMD). The HLO instruction that launched a kernel tells the types of its operands; the names that libraries give
their kernels tell the rest. `MATRIX_NAMES` and `TYPE_NAMES` are patterns of such names, from Volta to Blackwell and
CDNA, as cuBLAS, cuDNN, CUTLASS, Tensile and flash-attention kernels carry them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from reportgen.profile.hlo import HloModule, Instruction
from reportgen.profile.shapes import ELEMENT_BITS, Shape

Dimensions = tuple[int, int, int]

MEMSET = "memset"
MEMCPY = "memcpy"
_LONGEST_NAME = 4096
_PRODUCTS = frozenset({"dot", "convolution", "ragged-dot", "scaled-dot"})


@dataclass(frozen=True)
class Launch:
    """Launch parameters of a kernel; None where not captured.

    Attributes:
        grid: Blocks (work-groups) in x, y and z.
        block: Threads (work-items) of a block in x, y and z.
        registers: Registers a thread.
        static_shared, dynamic_shared: Bytes of shared memory a block (LDS on AMD), where the two are told apart.
        shared: Bytes of shared memory a block.
        occupancy: Theoretical occupancy of a multiprocessor, a fraction.

    """

    grid: Dimensions | None = None
    block: Dimensions | None = None
    registers: int | None = None
    static_shared: int | None = None
    dynamic_shared: int | None = None
    shared: int | None = None
    occupancy: float | None = None


@lru_cache(maxsize=65536)
def parse_launch(details: str) -> Launch:
    """Read the statistic `kernel_details`, such as "regs:38 shm:0 grid:160,1,1 block:1024,1,1 occ_pct:50".

    Static and dynamic shared memory are told apart in newer captures ("static_shared", "dynamic_shared"), not in older
    ones ("shm") nor on AMD ("group_mem"). An occupancy of 0 was not computed, since the kernel ran. What cannot be read
    counts as not captured.
    """
    fields = dict(part.split(":", 1) for part in details.split() if ":" in part)
    static, dynamic = _integer(fields.get("static_shared")), _integer(fields.get("dynamic_shared"))
    total = _integer(fields.get("shm", fields.get("group_mem")))
    percent = _decimal(fields.get("occ_pct"))
    return Launch(
        grid=_dimensions(fields.get("grid")),
        block=_dimensions(fields.get("block")),
        registers=_integer(fields.get("regs")),
        static_shared=static,
        dynamic_shared=dynamic,
        shared=static + dynamic if static is not None and dynamic is not None else total,
        occupancy=percent / 100 if percent else None,
    )


def parse_copied_bytes(details: str) -> int | None:
    """Read the size out of the statistic `memcpy_details`, such as "size:4 dest:1 async:1"; None where it has none."""
    fields = dict(part.split(":", 1) for part in details.split() if ":" in part)
    return _integer(fields.get("size", fields.get("num_bytes")))


def _integer(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None


def _decimal(text: str | None) -> float | None:
    return float(text) if text and re.fullmatch(r"\d{1,9}(\.\d{1,15})?", text) else None


def _dimensions(text: str | None) -> Dimensions | None:
    parts = [_integer(part) for part in (text or "").split(",")]
    if len(parts) != 3 or parts[0] is None or parts[1] is None or parts[2] is None:
        return None
    return parts[0], parts[1], parts[2]


_COPY = re.compile(
    r"(?:memcpy|copy)\W*([HDP])(?:ost|evice|eer)?\W*(?:2|to)\W*([HDP])(?:ost|evice|eer)?\b", re.IGNORECASE
)
_ANY_COPY = re.compile(r"memcpy|__amd_rocclr_copyBuffer", re.IGNORECASE)
_FILL = re.compile(r"mem\W?set|__amd_rocclr_fillBuffer", re.IGNORECASE)


@lru_cache(maxsize=65536)
def copy_category(name: str) -> str | None:
    """Return the category of a copy or fill by its name: "memcpy H2D", "memcpy" without a direction, "memset".

    H is the host, D the device, P a peer. The kernels with which AMD's runtime copies do not tell a direction.

    Returns:
        None where the name is that of another kernel.

    """
    if match := _COPY.match(name):
        return f"{MEMCPY} {match[1].upper()}2{match[2].upper()}"
    if _ANY_COPY.match(name):
        return MEMCPY
    return MEMSET if _FILL.match(name) else None


_ELEMENT_CLASSES = {"f16": "fp16", "s8": "int8", "u8": "int8", "s4": "int4", "u4": "int4"}


def element_class(element_type: str) -> str:
    """Return the class of an HLO element type as the device catalogue names its peaks: "bf16", "fp8", "f32", "int8"."""
    if element_type.startswith(("f8", "f4")) and element_type != "f8e8m0fnu":
        return f"fp{element_type[1]}"
    return _ELEMENT_CLASSES.get(element_type, element_type)


# TensorFlow's names of element types, as annotations show shapes: "half[4,384,1024]".
_TF_CLASSES = {"half": "fp16", "bfloat16": "bf16", "float": "f32", "double": "f64", "int8": "int8", "uint8": "int8"}
_TF_SHAPE = re.compile(r"\b([a-z]+[0-9]*(?:_e\dm\d\w*)?)\[([\d,]{0,200})\]")


def class_of_instruction(module: HloModule, instruction: Instruction) -> str | None:
    """Return the class of the elements that an HLO instruction computes with.

    For a matrix product or convolution, also inside a fusion, it is the wider type of its two operands; for any other
    instruction the floating point type of the largest operand or, without any, of the result.

    Returns:
        None where it handles no arrays.

    """
    product = matrix_product(module, instruction)
    if product is not None:
        types = [leaf.element_type for operand in product.operands[:2] for leaf in operand.shape.leaves()]
        return element_class(max(types, key=_width)) if types else None
    inputs = [leaf for operand in instruction.operands for leaf in operand.shape.leaves()]
    return _largest_class(inputs) or _largest_class(instruction.shape.leaves())


def _largest_class(arrays: Iterable[Shape]) -> str | None:
    """The type of the array with most elements, floating point before integers, the wider of two as large."""
    kept = [array for array in arrays if ELEMENT_BITS.get(array.element_type)]
    if not kept:
        return None
    floating = [array for array in kept if array.element_type.startswith(("f", "bf", "c"))]
    best = max(floating or kept, key=lambda array: (array.element_count, _width(array.element_type)))
    return element_class(best.element_type)


def _width(element_type: str) -> int:
    return ELEMENT_BITS.get(element_type, 0)


def matrix_product(module: HloModule, instruction: Instruction) -> Instruction | None:
    """Return the matrix product or convolution that an instruction is or, as a fusion, holds at any depth."""
    pending, seen = [instruction], set[str]()
    for found in pending:
        if found.opcode in _PRODUCTS or is_library_product(found):
            return found if len(found.operands) > 1 else None
        for computation in module.called_computations(found) if found.is_fusion else ():
            if computation.name not in seen:
                seen.add(computation.name)
                pending.extend(computation.instructions)
    return None


def is_library_product(instruction: Instruction) -> bool:
    """Whether an instruction calls a library's matrix product or convolution."""
    if instruction.opcode != "custom-call":
        return False
    target = instruction.proto.custom_call_target
    return "gemm_backend_config" in instruction.backend_config or target.startswith("__cudnn$conv")


def class_of_annotation(annotation: str) -> str | None:
    """Return the class of a TensorFlow op's largest operand, from an annotation such as "a:Add#shape=(half[4,8])#"."""
    shapes = [
        (math.prod(int(size) for size in sizes.split(",") if size), kind)
        for kind, sizes in _TF_SHAPE.findall(annotation)
    ]
    known = [(count, _TF_CLASSES[kind]) for count, kind in shapes if kind in _TF_CLASSES]
    return max(known)[1] if known else None


# First match wins: narrow types first, since a name also holds the wider types of accumulator and result.
TYPE_NAMES: tuple[tuple[str, str], ...] = (
    ("fp4", r"e2m1|fp4|mxf4|nvf4"),
    ("fp8", r"e4m3|e5m2|fp8|f8f8|float8|mxf8|Cijk_[A-Za-z]+_[A-Za-z]+_[FB]8|nvjet_(?:sm\d+_)?q"),
    ("int8", r"(?<![a-z0-9])[isu]8(?![0-9])|int8|imma|i8816|i16832|Cijk_[A-Za-z]+_[A-Za-z]+_(?:I8|4xi8)"),
    ("bf16", r"bf16|bfloat16|Cijk_[A-Za-z]+_[A-Za-z]+_B[BS]|nvjet_(?:sm\d+_)?t"),
    (
        "fp16",
        (
            r"fp16|(?<![a-z])f16|h884|h1688|h16816|hgemm|(?<![a-z])half(?![a-z])|"
            r"Cijk_[A-Za-z]+_[A-Za-z]+_H|nvjet_(?:sm\d+_)?h|turing_s1688|s884"
        ),
    ),
    ("tf32", r"tf32|xf32|(?:ampere|cutlass_80)_\w*s1688|nvjet_(?:sm\d+_)?s"),
    ("f64", r"dgemm|d884|d16816|(?<![a-z])f64|(?<![a-z])double(?![a-z])|Cijk_[A-Za-z]+_[A-Za-z]+_D|nvjet_(?:sm\d+_)?d"),
    ("f32", r"sgemm|(?<![a-z])f32|fp32|(?<![a-z])float(?![a-z0-9])|Cijk_[A-Za-z]+_[A-Za-z]+_S"),
)
_TYPE_NAMES = tuple((kind, re.compile(pattern)) for kind, pattern in TYPE_NAMES)

# "mma" only as a part of its own, with the letters that name the instruction's kind: hmma, wgmma, xmma, not "gamma".
MATRIX_NAMES = (
    r"(?:^|[^a-z])(?:[hidqugwsx]|wg|utc|ut|sparse_)?mma(?:[^a-z]|$)|fmha|sdpa|tensorop|tcgen05|mfma|"
    r"[hsid]884|[hsi]8816|[hsc]1688|[hsd]16816|i16832|s161616|nvjet_|Cijk_.*_MI\d+x\d+x|"
    r"flash_(?:fwd|bwd)|flash_fprop|flash_bprop"
)
# Kernels that are known to use none: plain gemm and gemv, element by element work, sums, communication.
PLAIN_NAMES = (
    r"simt|sgemm|gemv|gemmk1|splitK|splitk|Eigen::|tensorflow::functor|cub::|thrust::|nccl|rccl|redzone|"
    r"Cijk_(?!.*_MI\d+x)|__amd_rocclr"
)
_MATRIX = re.compile(MATRIX_NAMES, re.IGNORECASE)
_PLAIN = re.compile(PLAIN_NAMES)


@lru_cache(maxsize=65536)
def class_of_name(kernel: str) -> str | None:
    """Return the class of the elements that a kernel computes with by its name; None where that does not tell."""
    return next((kind for kind, pattern in _TYPE_NAMES if pattern.search(kernel[:_LONGEST_NAME])), None)


@lru_cache(maxsize=65536)
def matrix_unit_by_name(kernel: str) -> bool | None:
    """Return whether a kernel uses tensor or matrix cores by its name; None where the name does not tell."""
    if _MATRIX.search(kernel[:_LONGEST_NAME]):
        return True
    return False if _PLAIN.search(kernel[:_LONGEST_NAME]) else None
