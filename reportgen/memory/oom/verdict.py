"""One sentence that says what did not fit, what it consists of and where it comes from."""

from __future__ import annotations

from collections.abc import Callable

from reportgen import units
from reportgen.memory.fixes.state import is_backward, is_forward
from reportgen.memory.groups import layer_of, operation
from reportgen.memory.model import CONSTANT, OUTPUT, PARAMETER, TEMPORARY, Buffer, ModuleMemory, SpaceMemory
from reportgen.memory.oom.message import OomMessage

_PARTS = ((TEMPORARY, "temporaries"), (PARAMETER, "arguments"), (OUTPUT, "outputs"), (CONSTANT, "constants"))
_LEAST_PART = 0.001
_LEAST_GROUP = 0.2


def verdict_of_memory(memory: ModuleMemory, space: SpaceMemory, needed: int, capacity: int | None) -> str:
    """The verdict on a module: needs 48.5 GiB of HBM, has 15.8 GiB: 40.0 GiB temporaries...; 77 % in 5 activations."""
    has = "" if capacity is None else f", has {units.binary(capacity)}"
    sizes = [(name, space.by_type.get(kind, 0)) for kind, name in _PARTS]
    parts = [f"{units.binary(size)} {name}" for name, size in sizes if size > space.allocated_bytes * _LEAST_PART]
    what = f": {', '.join(parts)}" if parts else ""
    largest = _largest_group(space)
    where = f"; {largest}" if largest else ""
    return f"{memory.name} needs {units.binary(needed)} of {space.name}{has}{what}{where}."


def verdict_of_message(message: OomMessage) -> str:
    """The verdict on a message alone."""
    needed = units.quantity(message.needed_bytes, "bytes")
    who = message.module or message.subject
    if message.needed_bytes is None:
        return f"{who or 'A program'} ran out of {message.memory_space}; how much it needs is not in the message."
    if message.family in {"tpu_program", "tpu_reserve", "tpu_buffer"}:
        return _runtime(message, who)
    if message.family in {"bfc", "gpu_xla", "gpu_driver"}:
        return _gpu(message, who)
    capacity = f", has {units.binary(message.capacity_bytes)}" if message.capacity_bytes is not None else ""
    return f"{who or 'A program'} needs {needed} of {message.memory_space}{capacity}{_by_type(message)}."


def _runtime(message: OomMessage, who: str) -> str:
    needed = units.quantity(message.needed_bytes, "bytes")
    free = f"{units.binary(message.free_bytes)} are free" if message.free_bytes is not None else ""
    piece = message.reservable_bytes
    largest = f", {units.binary(piece)} in one piece" if piece is not None and piece != message.free_bytes else ""
    name = (
        f"Loading {who}"
        if message.family == "tpu_program"
        else "A program"
        if message.family == "tpu_reserve"
        else "An array"
    )
    return f"{name} needs {needed} of {message.memory_space} beside what is there already: {free}{largest}."


def _gpu(message: OomMessage, who: str) -> str:
    needed = units.quantity(message.needed_bytes, "bytes")
    where = f" on {message.device}" if message.device else ""
    asked = f" for {who}" if who else ""
    total = f"; the program takes {units.binary(message.total_bytes)}{_by_type(message)}" if message.total_bytes else ""
    limit = ""
    if message.capacity_bytes is not None and message.in_use_bytes is not None:
        limit = f"; {units.binary(message.in_use_bytes)} of {units.binary(message.capacity_bytes)} were in use"
    return f"A request for {needed} of {message.memory_space}{where}{asked} failed{limit}{total}."


def _by_type(message: OomMessage) -> str:
    total = sum(message.by_type.values())
    ordered = sorted(message.by_type.items(), key=lambda item: -item[1])
    parts = [f"{units.binary(size)} {name}" for name, size in ordered if size > total * _LEAST_PART]
    return f": {', '.join(parts)}" if parts else ""


def _largest_group(space: SpaceMemory) -> str:
    """The buffers of one layer, or of one operation in several layers, that hold most.

    As in "77 % of it in 5 activations of layer dense_3", "75 % of it in 8 activations bf16[16,16,2048,2048] of
    dot_general (model.py:53) in 8 layers".
    """
    return _largest(space, _place) or _largest(space, _repeated)


def _largest(space: SpaceMemory, place_of: Callable[[Buffer], str]) -> str:
    groups: dict[tuple[str, str], list[Buffer]] = {}
    for buffer in space.peak_buffers:
        if (
            buffer.size > space.allocated_bytes * _LEAST_PART
            and (place := place_of(buffer))
            and (noun := _noun(buffer))
        ):
            groups.setdefault((noun, place), []).append(buffer)
    if not groups:
        return ""
    (noun, place), buffers = max(groups.items(), key=lambda item: sum(b.size for b in item[1]))
    share = sum(b.size for b in buffers) / max(1, space.allocated_bytes)
    if share < _LEAST_GROUP:
        return ""
    layers = len({layer_of(buffer.op_name) for buffer in buffers})
    across = f" in {layers} layers" if layers > 1 else ""
    return f"{units.percent(share)} of it in {len(buffers)} {noun if len(buffers) > 1 else noun[:-1]} {place}{across}"


def _place(buffer: Buffer) -> str:
    """The layer, or the operation with its line."""
    if layer := layer_of(buffer.op_name):
        return f"of layer {layer}"
    name = _called(buffer)
    return f"of {name}" if name else ""


def _repeated(buffer: Buffer) -> str:
    """The shape and the operation, which layers share."""
    name = _called(buffer)
    return f"{buffer.shape.partition('{')[0]} of {name}" if name else ""


def _called(buffer: Buffer) -> str:
    name = operation(buffer.op_name)
    return f"{name} ({buffer.source})" if name and buffer.source else name


def _noun(buffer: Buffer) -> str:
    if buffer.allocation_type == PARAMETER:
        return "arguments"
    if buffer.allocation_type != TEMPORARY:
        return "buffers"
    return "gradients" if is_backward(buffer.op_name) else "activations" if is_forward(buffer.op_name) else "buffers"
