"""How to get what a message does not tell: the settings for a dump, for each framework."""

from __future__ import annotations

from reportgen.memory.fixes.model import Step

DUMP = (
    Step(
        "jax",
        "Let the compiler write what it allocates; a compile that fails writes it too.",
        "XLA_FLAGS=--xla_dump_to=xla_dump python train.py\nreportgen oom xla_dump",
    ),
    Step(
        "tensorflow",
        "Let the compiler write what it allocates.",
        "XLA_FLAGS=--xla_dump_to=xla_dump TF_XLA_FLAGS=--tf_xla_auto_jit=0 python train.py\nreportgen oom xla_dump",
    ),
    Step(
        "pytorch_xla",
        "Let the compiler write what it allocates.",
        "XLA_FLAGS=--xla_dump_to=xla_dump PJRT_DEVICE=TPU python train.py\nreportgen oom xla_dump",
    ),
    Step(
        "",
        "With --xla_dump_hlo_as_proto in addition every lifetime is exact.",
        "XLA_FLAGS='--xla_dump_to=xla_dump --xla_dump_hlo_as_proto'",
    ),
)
LIVE = (
    Step(
        "jax",
        "What was on the device already, by Python call stack.",
        "jax.profiler.save_device_memory_profile('memory.prof')  # just before the failing call\n"
        "reportgen report memory.prof",
    ),
    Step(
        "tensorflow",
        "List the tensors that are alive when it fails.",
        "options = tf.compat.v1.RunOptions(report_tensor_allocations_upon_oom=True)",
    ),
)
_RUNTIME = {"tpu_program", "tpu_reserve", "tpu_buffer", "gpu_driver", "bfc"}


def how_to_get_more(family: str, *, has_dump: bool) -> tuple[Step, ...]:
    """What to run next time so that the report can tell more; empty where everything is there."""
    dump = () if has_dump else DUMP
    return (*LIVE, *dump) if family in _RUNTIME else dump
