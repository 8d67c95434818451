# ruff: noqa: E501, ISC004 (messages as they come)
"""Out-of-memory messages of every family, in logs as they come: prefixed, wrapped, escaped, repeated, among other text."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reportgen.memory.oom.clean import without_prefix
from reportgen.memory.oom.log import parse_oom
from reportgen.memory.oom.message import FAMILIES, OomMessage
from reportgen.memory.oom.sizes import parse_size

from .conftest import figures

GIB, MIB, KIB = 2**30, 2**20, 2**10

HBM = """RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 40.00G of 15.48G hbm. Exceeded hbm capacity by 24.52G.

Total hbm usage >= 40.50G:
    reserved        530.00M
    program          30.00G
    arguments        10.00G

Output size 9.00G; shares 2.00G with arguments.

Program hbm requirement 30.00G:
    global            65.0K
    scoped             1.0M
    HLO temp         29.00G (99.9% utilization: Unpadded (17.02G) Padded (17.04G), 15.5% fragmentation (3.12G))
    overlays          12.0M

  Largest program allocations in hbm:

  1. Size: 1.50G
     Operator: op_type="dot_general" op_name="jit(step)/jvp(Model)/layer_3/dot_general" source_file="model/layers.py" source_line=42
     Shape: bf16[512,16,98304]{2,1,0:T(8,128)(2,1)}
     Unpadded size: 1.50G
     XLA label: %fusion.7 = bf16[512,16,98304]{2,1,0:T(8,128)(2,1)} fusion(%a, %b), kind=kOutput
     Allocation type: HLO temp
     ==========================

  2. Size: 512.00M
     Operator: op_name="jit(step)/pad"
     Shape: f32[1048576,6]{1,0:T(8,128)}
     Unpadded size: 24.00M
     Extra memory due to padding: 488.00M (21.3x expansion)
     XLA label: %copy.3 = copy(%c)
     Allocation type: HLO temp
     ==========================

  Largest program arguments and outputs in hbm:

  1. Size: 2.00G
     Shape: f32[1024,524288]{1,0:T(8,128)}
     Unpadded size: 2.00G
     Allocation type: arguments
     ==========================
"""

GPU = """Out of memory while trying to allocate 5520758552 bytes.
BufferAssignment OOM Debugging.
BufferAssignment stats:
             parameter allocation:    1.02GiB
              constant allocation:         0B
        maybe_live_out allocation:    4.89GiB
     preallocated temp allocation:    5.14GiB
  preallocated temp fragmentation:   24.75MiB (0.02%)
                 total allocation:   11.05GiB
              total fragmentation:       112B (0.00%)
Peak buffers:
\tBuffer 1:
\t\tSize: 4.89GiB
\t\tOperator: op_name="jit(f)/dot_general[dimension_numbers=(((2,), (0,)), ((), ()))]" source_file="g.py" source_line=175
\t\tXLA Label: custom-call
\t\tShape: f32[5104,257152]
\t\t==========================

\tBuffer 2:
\t\tSize: 1004.50MiB
\t\tEntry Parameter Subshape: f16[2048,257152]
\t\t==========================

"""

BFC = """Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.31GiB (rounded to 3546841088)requested by op model/conv
Current allocation summary follows.
BFCAllocator dump for GPU_0_bfc
Bin (256): \tTotal Chunks: 37, Chunks in use: 36. 9.2KiB allocated for chunks. 9.0KiB in use in bin. 1.0KiB client-requested in use in bin.
Bin (512): \tTotal Chunks: 2, Chunks in use: 0 1.0KiB allocated for chunks. 0B client-requested for chunks. 0B in use in bin. 0B client-requested in use in bin.
Bin for 3.31GiB was 256.00MiB, Chunk State:
  Size: 1.85GiB | Requested Size: 1.85GiB | in_use: 0 | bin_num: 20, prev:   Size: 256B | Requested Size: 32B | in_use: 1
InUse at 7f5c30000000 of size 1280 next 1
     Summary of in-use Chunks by size:
36 Chunks of size 256 totalling 9.0KiB
2 Chunks of size 1985478656 totalling 3.70GiB
Sum Total of in-use chunks: 3.70GiB
total_region_allocated_bytes_: 8068241920 memory_limit_: 8068241920 available bytes: 0 curr_region_allocation_bytes_: 16136484352
Stats:
Limit:                      8068241920
InUse:                      3970967552
MaxInUse:                   3970967552
NumAllocs:                        1000
MaxAllocSize:               1985478656
LargestFreeBlock:           2000000000

OOM when allocating tensor with shape[32,64,658,658] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc
"""


def one(text: str) -> OomMessage:
    messages = parse_oom(text)
    assert len(messages) == 1, [message.headline for message in messages]
    assert messages[0].family in FAMILIES
    return messages[0]


def check(message: OomMessage, **expected: Any) -> None:
    assert {name: getattr(message, name) for name in expected} == expected


def test_tpu_hbm_with_its_sections() -> None:
    message = one(HBM)
    check(message, family="tpu_hbm", memory_space="HBM", needed_bytes=40 * GIB, total_bytes=parse_size("40.50G"))
    check(message, capacity_bytes=parse_size("15.48G"), exceeded_bytes=parse_size("24.52G"))
    assert message.by_type == {
        "reserved": 530 * MIB,
        "arguments": 10 * GIB,
        "outputs": 7 * GIB,
        "global": 65 * KIB,
        "scoped": MIB,
        "temporaries": 29 * GIB,
        "overlays": 12 * MIB,
    }
    assert [buffer.size for buffer in message.buffers] == [2 * GIB, 3 * GIB // 2, 512 * MIB]
    first = message.buffers[1]
    assert (first.op_name, first.source) == ("jit(step)/jvp(Model)/layer_3/dot_general", "model/layers.py:42")
    assert (first.allocation_type, first.label[:9]) == ("temporary", "%fusion.7")
    padded = message.buffers[2]
    assert (padded.unpadded_size, padded.expansion) == (24 * MIB, pytest.approx(128 / 6))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Compilation failure: Ran out of memory in memory space hbm. Used 12.34G of 8.00G hbm. Exceeded hbm "
            "capacity by 4.34G.",
            {"family": "tpu_hbm", "needed_bytes": parse_size("12.34G"), "capacity_bytes": 8 * GIB},
        ),
        (
            "RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom: Ran out of memory on HBM, the total memory required for HLO "
            "temporaries (48.50G) exceeds available HBM (15.75G). HLO module: jit_step.",
            {"family": "tpu_hbm", "code": "E1000", "module": "jit_step", "exceeded_bytes": parse_size("32.75G")},
        ),
        (
            "Used more. Ran out of memory in memory space hbm. Used 2.0G of 1.0G hbm. Exceeded hbm capacity by 1.0G. "
            "HLO module: jit_train. Memory usage report: ",
            {"family": "tpu_hbm", "module": "jit_train", "needed_bytes": 2 * GIB},
        ),
        (
            "TPU TensorCore Hbm usage: 30.00G, SparseCore Hbm usage 170.00G, exceeding available bytes: 95.00G",
            {"family": "tpu_hbm", "needed_bytes": 200 * GIB, "exceeded_bytes": 105 * GIB,
             "by_type": {"tensorcore": 30 * GIB, "sparsecore": 170 * GIB}},
        ),
        (
            "E1001: CompileTimeScopedVmemOom:\nRan out of memory in memory space vmem while allocating on stack for "
            "%attend.3 = f32[8]{0} custom-call(%a), custom_call_target=\"tpu_custom_call\".\nScoped allocation with size "
            "19.50M and limit 16.00M exceeded scoped vmem limit by 3.50M. It should not be possible to run out of "
            "scoped vmem.",
            {"family": "tpu_vmem", "code": "E1001", "subject": "attend.3", "needed_bytes": parse_size("19.5M"),
             "capacity_bytes": 16 * MIB, "exceeded_bytes": parse_size("3.5M"), "memory_space": "VMEM"},
        ),
        (
            "Ran out of memory in memory space vmem. Used 32.42M of 16.00M vmem. Exceeded vmem capacity by 16.42M",
            {"family": "tpu_vmem", "exceeded_bytes": parse_size("16.42M")},
        ),
        (
            "Allocation (size=134217728) would exceed memory (size=67108864) :: #allocation25 [shape = 'u8[134217728]{0}',"
            " space=vmem, size = 0x8000000, tag = 'scoped memory for k.2'] :: k.2",
            {"family": "tpu_vmem", "needed_bytes": 128 * MIB, "capacity_bytes": 64 * MIB, "subject": "k.2"},
        ),
        (
            "Ran out of memory in memory space smem. Used 1.02M of 1.00M smem. Exceeded smem capacity by 20.5K.",
            {"family": "tpu_smem", "memory_space": "SMEM", "exceeded_bytes": parse_size("20.5K")},
        ),
        (
            "Ran out of memory in memory space smem. It should not be possible to run out of smem - please file a bug.",
            {"family": "tpu_smem", "needed_bytes": None, "capacity_bytes": None},
        ),
        (
            "Ran out of memory in memory space cmem. Used 2.0M of 1.0M cmem. Exceeded cmem capacity by 1.0M.",
            {"family": "tpu_space", "memory_space": "CMEM"},
        ),
        (
            "Attempting to reserve 6.48G at the bottom of memory. That was not possible. There are 6.78G free, 0B "
            "reserved, and 3.33G reservable.",
            {"family": "tpu_reserve", "free_bytes": parse_size("6.78G"), "reserved_bytes": 0,
             "reservable_bytes": parse_size("3.33G"), "exceeded_bytes": parse_size("6.48G") - parse_size("3.33G")},
        ),
        (
            "E0101: RuntimeProgramAllocationFailure: Error loading program 'jit_step': Attempting to reserve 4.00G at "
            "the bottom of memory. That was not possible. There are 3.00G free, 1.00G reserved, and 2.50G reservable.",
            {"family": "tpu_program", "module": "jit_step", "code": "E0101", "reserved_bytes": GIB},
        ),
        (
            "Error loading program 'jit_step':\nAttempting to allocate 1.50G. That was not possible. There are 1.00G free.",
            {"family": "tpu_program", "module": "jit_step", "exceeded_bytes": GIB // 2, "reservable_bytes": None},
        ),
        (
            "Error allocating device buffer: Attempting to allocate 128.00M. That was not possible. There are 64.00M "
            "free.; (0x1x0_HBM0)",
            {"family": "tpu_buffer", "exceeded_bytes": 64 * MIB, "device": "0x1x0_HBM0", "subject": "device buffer"},
        ),
        (
            "Failed to allocate request for 3.39GiB (3640655872B) on device ordinal 2",
            {"family": "gpu_xla", "needed_bytes": 3640655872, "needed_exactly": True, "device": "device 2"},
        ),
        (
            "failed to allocate 3.39G (3640655872 bytes) from device: HIP_ERROR_OutOfMemory",
            {"family": "gpu_driver", "needed_bytes": 3640655872},
        ),
        (
            "failed to alloc 8589934592 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
            {"family": "gpu_driver", "memory_space": "host", "needed_bytes": 8 * GIB},
        ),
        (
            "gpu_async_0 cuMemAllocAsync failed to allocate 1073741824 bytes: CUDA error: out of memory\n Reported by "
            "CUDA: Free memory/Total memory: 73741824/17071734784",
            {"family": "gpu_driver", "free_bytes": 73741824, "capacity_bytes": 17071734784, "exceeded_bytes": 10**9},
        ),
        (
            "Out of memory while trying to allocate 5.50GiB.: while running replica 0",
            {"family": "gpu_xla", "needed_bytes": parse_size("5.5G"), "needed_exactly": False},
        ),
        ("Resource exhausted: Out of memory allocating 8589934592 bytes.", {"family": "gpu_xla", "needed_bytes": 8 * GIB}),
        (
            "OOM when allocating tensor with shape[256,1024] and type half on /device:GPU:0 by allocator GPU_0_bfc",
            {"family": "bfc", "needed_bytes": 512 * KIB, "device": "GPU_0_bfc", "subject": "half[256,1024]"},
        ),
        ("Ran out of memory trying to allocate 3.78MiB.  See logs", {"family": "bfc", "needed_bytes": parse_size("3.78M")}),
    ],
)  # fmt: skip
def test_sentences(text: str, expected: dict[str, Any]) -> None:
    check(one(text), **expected)


def test_gpu_with_buffer_assignment() -> None:
    message = one(GPU)
    check(message, family="gpu_xla", needed_bytes=5520758552, total_bytes=parse_size("11.05G"))
    assert message.by_type == {
        "arguments": parse_size("1.02G"),
        "constants": 0,
        "outputs": parse_size("4.89G"),
        "temporaries": parse_size("5.14G"),
    }
    first, second = message.buffers
    assert first.size == 5104 * 257152 * 4, "the shape tells the size that the text rounds"
    assert (first.source, first.label) == ("g.py:175", "custom-call")
    assert (second.allocation_type, second.shape) == ("parameter", "f16[2048,257152]")


def test_bfc_with_bins_chunks_and_statistics() -> None:
    """The allocator's dump and the tensor's error are one event."""
    message = one(BFC)
    check(message, family="bfc", needed_bytes=3546841088, capacity_bytes=8068241920, in_use_bytes=3970967552)
    check(message, device="GPU_0_bfc", free_bytes=8068241920 - 3970967552, reservable_bytes=2000000000)
    assert message.subject == "model/conv"
    assert [tuple(b)[:3] for b in message.bins] == [(256, 37, 36), (512, 2, 0)]
    assert [tuple(c) for c in message.chunks] == [(2, 1985478656), (36, 256)]


def test_a_dump_of_an_allocator_without_its_error_is_read() -> None:
    check(one(BFC[BFC.index("36 Chunks") : BFC.index("OOM")]), family="bfc", needed_bytes=None, in_use_bytes=3970967552)


def test_a_warning_that_is_no_failure_is_no_error() -> None:
    text = "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.13GiB with freed_by_count=0. The caller indicates "
    assert (
        parse_oom(text + "that this is not a failure, but this may mean that there could be performance gains.") == []
    )


def test_driver_allocator_and_runtime_tell_one_error() -> None:
    text = (
        "failed to allocate 5.14G (5520758552 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n"
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 5.14GiB (rounded to 5520758784)requested by op \n"
        "*****___***\nExecution of replica 0 failed: RESOURCE_EXHAUSTED: " + GPU
    )
    message = one(text)
    check(message, family="gpu_xla", needed_bytes=5520758552, device="GPU_0_bfc", line=1)
    assert message.buffers
    assert message.by_type


def test_several_errors_are_told_apart_and_repetitions_once() -> None:
    other = (
        "Error loading program 'jit_eval': Attempting to allocate 1.81G. That was not possible. There are 1.54G free."
    )
    messages = parse_oom(f"{HBM}\n{other}\nsomething else\n{HBM}\n{other}\n{other}\n")
    assert [(m.family, m.occurrences) for m in messages] == [("tpu_hbm", 2), ("tpu_program", 3)]


PREFIXES = [
    "2022-04-04 00:27:49.642380: E tensorflow/compiler/xla/xla_client/xla_util.cc:88] ",
    "2020-05-04 09:05:40.719332: E    1578 tensorflow/compiler/xla/xla_client/xla_util.cc:76] ",
    "E0528 07:02:44.350251   27487 pjrt_stream_executor_client.cc:2826] ",
    "worker-0  | 2024-05-01T10:00:00.123456789Z stderr F ",
    "[rank3]: ",
    "(RayTrainWorker pid=1234, ip=10.0.0.1) ",
    "[1] 2019-06-13 01:17:08.886805: ",
    "ERROR:root:",
]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("text", [HBM, GPU, BFC])
def test_prefixes_change_nothing(prefix: str, text: str) -> None:
    plain, prefixed = one(text), one("\n".join(prefix + line for line in text.split("\n")))
    assert prefixed == plain


@pytest.mark.parametrize("prefix", PREFIXES)
def test_prefixes_are_taken_off(prefix: str) -> None:
    assert without_prefix(f"{prefix}  Size: 1.0G").strip() == "Size: 1.0G"


@pytest.mark.parametrize("width", [80, 97, 120])
@pytest.mark.parametrize("text", [HBM, GPU])
def test_lines_that_a_terminal_wrapped_are_joined(text: str, width: int) -> None:
    wrapped = "\n".join("\n".join(_cut(line, width)) for line in text.split("\n"))
    assert one(wrapped).buffers == one(text).buffers
    assert one(wrapped).by_type == one(text).by_type


def _cut(line: str, width: int) -> list[str]:
    return [line[i : i + width] for i in range(0, len(line), width)] or [""]


@pytest.mark.parametrize("text", [HBM, GPU])
def test_messages_logged_as_one_escaped_string_are_read(text: str) -> None:
    escaped = text.replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    assert one(f'{{"severity":"ERROR","message":"{escaped}"}}').buffers == one(text).buffers


def test_colours_and_carriage_returns_are_taken_off() -> None:
    assert one("\x1b[31m" + HBM.replace("\n", "\r\n\x1b[0m")).by_type == one(HBM).by_type


def test_an_error_among_much_other_text_is_found_quickly() -> None:
    noise = (
        "2024-05-28 07:02:44.349: I step 123 loss 0.12 memory allocated and freed, Size: 12 Shape: f32[3]\n" * 50_000
    )
    begin = time.monotonic()
    message = one(noise + HBM + noise)
    assert message.line == 50_001
    assert message.buffers
    assert time.monotonic() - begin < 30


@pytest.mark.parametrize(
    "text",
    [
        "Ran out of memory in memory space hbm. Used " + " " * 500_000,
        "Total hbm usage >= 9.60G:" + "(" * 500_000,
        'memory "' + ("x" * 200 + "\n") * 20_000,
        "Out of memory while trying to allocate " + "1" * 500_000,
        "OOM when allocating tensor with shape[" + "1," * 100_000 + "] and type float",
        "Ran out of memory in memory space hbm.\n Largest program allocations in hbm:\n" + "  1. Size: 1.00G\n" * 20_000,
    ],
)  # fmt: skip
def test_hostile_text_takes_bounded_time(text: str) -> None:
    begin = time.monotonic()
    parse_oom(text)
    assert time.monotonic() - begin < 10


@settings(max_examples=60)
@given(st.integers(0, len(HBM)), st.sampled_from([HBM, GPU, BFC]))
def test_a_message_cut_off_anywhere_is_read_as_far_as_it_goes(end: int, text: str) -> None:
    for message in parse_oom(text[:end]):
        assert message.family in FAMILIES


def test_text_without_an_error_has_none() -> None:
    assert parse_oom("") == []
    assert parse_oom("allocated 3 GiB of memory, all is well\n" * 100) == []


def test_the_message_of_a_kernel_that_the_real_compiler_refuses() -> None:
    message = one(figures()["kernel"]["error"])
    check(message, family="tpu_vmem", code="E1001", memory_space="VMEM")
    assert message.needed_bytes is not None
    assert message.capacity_bytes is not None
    assert message.needed_bytes > message.capacity_bytes
    assert message.exceeded_bytes == pytest.approx(message.needed_bytes - message.capacity_bytes, rel=0.01)


def test_the_message_of_a_program_that_the_real_compiler_refuses() -> None:
    message = one(figures()["oom"]["error"])
    check(message, family="tpu_hbm", code="E1000", module="jit_oom", capacity_bytes=parse_size("15.75G"))
    assert message.needed_bytes == pytest.approx(figures()["oom"]["totals"]["default"], rel=1e-3)


# How many errors each file of the optional third-party messages holds, and of which family.
REFERENCE_MESSAGES = {
    "bfc_tf_3304.txt": ["bfc"],
    "gpu_jax_13428.txt": ["gpu_xla"],
    "gpu_jax_788_old.txt": ["gpu_xla", "gpu_xla"],
    "gpu_paligemma_v100_full.txt": ["gpu_xla"],
    "gpu_rocm_mi250_3364.txt": ["gpu_xla"],
    "tpu_hbm_albert_168.txt": ["tpu_hbm"],
    "tpu_hbm_colabfold_62_head.txt": ["tpu_hbm"],
    "tpu_hbm_easydel_166.txt": ["tpu_hbm"],
    "tpu_hbm_xla_docs_e1000.txt": ["tpu_hbm", "tpu_hbm"],
    "tpu_loadprogram_v6e.txt": ["tpu_program", "tpu_program", "tpu_program"],
    "tpu_pjrt_allocate_colabtools_5126.txt": ["tpu_buffer"],
    "tpu_reserve_torchxla_3470.txt": ["tpu_reserve"],
    "tpu_vmem_scoped_e1001.txt": ["tpu_vmem", "tpu_vmem", "tpu_vmem"],
    "tpu_vmem_xla_docs.txt": ["tpu_vmem", "tpu_vmem"],
}


@pytest.mark.parametrize("name", REFERENCE_MESSAGES)
def test_real_messages_are_read(reference: Path, name: str) -> None:
    messages = parse_oom((reference / "oom" / name).read_text())
    assert [message.family for message in messages] == REFERENCE_MESSAGES[name]
    for message in messages:
        told = (message.needed_bytes, message.in_use_bytes, message.subject)
        assert any(fact not in (None, "") for fact in told)


def test_every_real_message_is_in_the_list(reference: Path) -> None:
    assert {path.name for path in (reference / "oom").iterdir()} == set(REFERENCE_MESSAGES)


def test_real_rocm_message_with_wrapped_lines(reference: Path) -> None:
    message = one((reference / "oom/gpu_rocm_mi250_3364.txt").read_text())
    check(message, needed_bytes=165425291480, total_bytes=parse_size("192.84G"))
    first, second, third = message.buffers
    assert first.op_name.count(";") == 7
    assert "\n" not in first.op_name
    assert second.source == third.source == "/opt/miniconda3/bin/colabfold_batch:8"
    assert second.shape == "f32[256,6321,6321]"
