"""Ways to fit where only an error message is there: fewer, and with wider ranges than with the module's dump."""

from __future__ import annotations

import math

from reportgen import units
from reportgen.errors import InputError
from reportgen.memory.fixes import steps
from reportgen.memory.fixes.model import Fix, Step, fix
from reportgen.memory.fixes.padding import better_shape
from reportgen.memory.fixes.state import is_forward
from reportgen.memory.forecast import Saved
from reportgen.memory.oom.message import OomBuffer, OomMessage
from reportgen.profile.shapes import Shape

_LEAST_SHARE = 0.01
_RUNTIME = {"tpu_program", "tpu_reserve", "tpu_buffer", "bfc", "gpu_driver"}
_KIB = 1024


def advise_message(message: OomMessage) -> tuple[Fix, ...]:
    """The ways to fit that follow from a message alone, the largest likely saving first."""
    rules = (_on_chip, _fragmentation, _residents, _padding, _narrower, _remat, _smaller_batch, _split_arguments)
    found = [made for rule in rules if (made := rule(message)) is not None]
    least = (message.needed_bytes or 0) * _LEAST_SHARE
    return tuple(sorted((one for one in found if one.likely >= least), key=lambda one: -one.likely))


def _on_chip(message: OomMessage) -> Fix | None:
    """A kernel's stack in VMEM: a larger limit, or smaller blocks."""
    needed, capacity = message.needed_bytes, message.capacity_bytes
    if message.family != "tpu_vmem" or needed is None or capacity is None or needed <= capacity:
        return None
    limit = math.ceil(needed / _KIB / 1024) * 1024
    factor = 2 ** math.ceil(math.log2(needed / capacity))
    over = needed - capacity
    raised = (
        ()
        if message.needed_exactly
        else (
            Step("jax", "Raise the limit for this kernel.", f"pltpu.CompilerParams(vmem_limit_bytes={limit * _KIB})"),
            Step(
                "",
                "Or for the whole program, before the process starts.",
                f"LIBTPU_INIT_ARGS=--xla_tpu_scoped_vmem_limit_kib={limit}",
            ),
        )
    )
    return fix(
        "vmem",
        f"Make the kernel's blocks {factor} times smaller"
        + (f", or raise the limit to {limit // 1024} MiB" if raised else ""),
        Saved(over, over, over),
        f"The kernel needs {units.binary(needed)} of VMEM and may take {units.binary(capacity)}. A block takes its "
        "bytes twice, as the next one is fetched while this one is used.",
        "derived",
        (
            Step(
                "jax",
                "Give BlockSpec smaller blocks, or a grid with more steps.",
                f"pl.BlockSpec((rows // {factor}, columns), index_map)",
            ),
            *raised,
        ),
        (message.subject,) if message.subject else (),
        limit_kib=limit,
        block_factor=factor,
    )


def _fragmentation(message: OomMessage) -> Fix | None:
    """Enough is free, but not in one piece."""
    needed, free = message.needed_bytes, message.free_bytes
    if needed is None or free is None or free < needed:
        return None
    scattered = free - (message.reservable_bytes or 0)
    return fix(
        "fragmentation",
        f"Keep memory in one piece: {units.binary(free)} are free, {units.binary(needed)} are needed",
        Saved(0, needed, scattered if scattered > needed else needed),
        "What is free would hold what is asked for, but the largest piece does not"
        + (f" ({units.binary(message.reservable_bytes)})." if message.reservable_bytes else "."),
        "derived",
        steps.FRAGMENTATION,
    )


def _residents(message: OomMessage) -> Fix | None:
    """What is on the device besides the program must make room."""
    if message.family not in _RUNTIME or not message.exceeded_bytes:
        return None
    over = message.exceeded_bytes
    had = (message.needed_bytes or over) - over
    return fix(
        "residents",
        f"Free {units.binary(over)} of what is already on the device",
        Saved(over, over, over),
        f"{units.binary(had + over)} were asked for; {units.binary(had)} could be had.",
        "derived",
        steps.RESIDENTS,
    )


def _padding(message: OomMessage) -> Fix | None:
    """Listed buffers that another shape would make smaller."""
    saving, names = 0, []
    for buffer in message.buffers:
        shape = _shape(buffer)
        better = better_shape(shape) if shape is not None else None
        if shape is not None and better is not None and shape.padded_bytes > shape.unpadded_bytes * 1.1:
            saving += shape.padded_bytes - better.shape.padded_bytes
            names.append(f"{shape.without_layout()} as {better.shape.without_layout()}")
    if not saving:
        return None
    return fix(
        "padding",
        "Store arrays so that tiles do not pad them",
        Saved(int(saving * 0.5), saving, saving),
        f"Of the listed buffers: {'; '.join(dict.fromkeys(names[:5]))}. Buffers that take each other's place save "
        "only once.",
        "heuristic",
        (Step("", "Merge or reorder dimensions so that the last one fills 128 lanes.", "x = x.reshape(...)"),),
    )


def _narrower(message: OomMessage) -> Fix | None:
    """Listed buffers of 32-bit floats."""
    wide = [b for b in message.buffers if (shape := _shape(b)) is not None and shape.element_type == "f32"]
    saving = sum(b.size for b in wide) // 2
    if not saving:
        return None
    return fix(
        "dtype",
        "Keep float32 values as bfloat16",
        Saved(saving // 2, saving, max(saving, (message.by_type.get("temporaries") or 0) // 2)),
        f"{len(wide)} listed buffers are float32; half their size. How many live at once is not in the message.",
        "heuristic",
        steps.DTYPE,
        tuple(_name(b) for b in wide[:20]),
    )


def _remat(message: OomMessage) -> Fix | None:
    """Listed values of the forward pass, of more than one shape."""
    kept = [b for b in message.buffers if is_forward(b.op_name) and b.allocation_type != "parameter"]
    if len(kept) < 2 or len({b.shape for b in kept}) < 2:
        return None
    total = sum(b.size for b in kept)
    return fix(
        "remat",
        "Compute activations again in the backward pass",
        Saved(0, total // 2, total),
        f"{len(kept)} listed buffers are of the forward pass. Which of them live until the backward pass is not in the "
        "message; a dump tells.",
        "heuristic",
        steps.REMAT,
        tuple(_name(b) for b in kept[:20]),
    )


def _smaller_batch(message: OomMessage) -> Fix | None:
    """Temporaries mostly grow with the batch."""
    temporaries = message.by_type.get("temporaries") or message.by_type.get("program") or 0
    if temporaries < (message.needed_bytes or 0) * 0.5 or not temporaries or message.family in {"tpu_vmem", "tpu_smem"}:
        return None
    over = message.exceeded_bytes
    share = max(0.0, 1 - over / temporaries) if over else 0.5
    return fix(
        "batch",
        "Halve the batch" + (f"; to fit, about {units.percent(share)} of the present one" if over else ""),
        Saved(int(temporaries * 0.25), int(temporaries * 0.45), temporaries // 2),
        f"{units.binary(temporaries)} are temporaries, most of which grow with the batch; a dump tells which.",
        "heuristic",
        (*steps.BATCH, *steps.MICROBATCHES),
        batch_share=round(share, 3),
    )


def _split_arguments(message: OomMessage) -> Fix | None:
    """Arguments alone that do not fit: they must be split over devices."""
    arguments, capacity = message.by_type.get("arguments", 0), message.capacity_bytes
    if not capacity or arguments <= capacity * 0.5:
        return None
    devices = 2 ** math.ceil(math.log2(max(2, arguments / (capacity * 0.5))))
    saving = arguments - arguments // devices
    return fix(
        "sharding",
        f"Split the arguments over {devices} devices",
        Saved(saving // 2, saving, saving),
        f"The arguments take {units.binary(arguments)} of {units.binary(capacity)}; split over {devices} devices each "
        f"holds {units.binary(arguments // devices)}.",
        "heuristic",
        steps.SHARDING,
        devices=devices,
    )


def _shape(buffer: OomBuffer) -> Shape | None:
    try:
        shape = Shape.parse(buffer.shape)
    except InputError:
        return None
    return None if shape.is_tuple else shape


def _name(buffer: OomBuffer) -> str:
    return buffer.label.split(" ", 1)[0].lstrip("%") or buffer.shape
