"""The report of an out-of-memory error: from a dump, from a module, from a log, or from a dump and a log together."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reportgen import units
from reportgen.errors import InputError
from reportgen.memory.fixes.advise import advise
from reportgen.memory.fixes.from_message import advise_message
from reportgen.memory.fixes.model import Fix, Step
from reportgen.memory.forecast import Program
from reportgen.memory.model import (
    CONSTANT,
    MAIN_SPACE,
    OUTPUT,
    PARAMETER,
    SPACE_NAMES,
    TEMPORARY,
    Buffer,
    ModuleMemory,
    SpaceMemory,
    by_size,
)
from reportgen.memory.oom.load import Loaded, load
from reportgen.memory.oom.log import parse_oom
from reportgen.memory.oom.message import OomBuffer, OomMessage
from reportgen.memory.oom.more import how_to_get_more
from reportgen.memory.oom.verdict import verdict_of_memory, verdict_of_message
from reportgen.profile.hlo import HloModule

_PLURALS = {PARAMETER: "arguments", OUTPUT: "outputs", TEMPORARY: "temporaries", CONSTANT: "constants"}
_MOST_BUFFERS = 1000
_NOT_PATHS = re.compile(r"[\n\r]")


@dataclasses.dataclass(frozen=True, eq=False)
class OomReport:
    """An out-of-memory error with everything that is known of it.

    Attributes:
        source: What it was made from: a file's or folder's name.
        family: One of `reportgen.memory.oom.message.FAMILIES`.
        memory_space: The memory that was too small. Other spaces are other memories and are not in any sum.
        verdict: One sentence.
        needed_bytes: What the program, or the one request, needs; exact where a dump is there.
        capacity_bytes: What the memory holds for it; None where not known.
        exceeded_bytes: By how much it does not fit; None where not known.
        by_type: Bytes by what they hold, largest first.
        buffers: The largest buffers, largest first.
        fixes: Ways to fit, the largest likely saving first; they overlap.
        module: The module or program.
        device_type: Such as "TPU v5 lite"; None where nothing tells.
        device_count: Devices that run the program together; None where nothing tells.
        message: The error's message; None where only a dump is there.
        others: Further errors in the same log.
        memory: The module's memory; None where only a message is there.
        more: How to get what is missing.
        notes: What must be known about the figures.

    """

    source: str
    family: str
    memory_space: str
    verdict: str
    needed_bytes: int | None
    capacity_bytes: int | None
    exceeded_bytes: int | None
    by_type: dict[str, int]
    buffers: tuple[OomBuffer, ...]
    fixes: tuple[Fix, ...]
    module: str = ""
    device_type: str | None = None
    device_count: int | None = None
    message: OomMessage | None = None
    others: tuple[OomMessage, ...] = ()
    memory: ModuleMemory | None = None
    more: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The report as plain data, as it stands under `oom` in report.json."""
        facts = ("family", "memory_space", "verdict", "module", "device_type", "device_count")
        sizes = ("needed_bytes", "capacity_bytes", "exceeded_bytes")
        return {name: getattr(self, name) for name in (*facts, *sizes)} | {
            "by_type": self.by_type,
            "buffers": [_buffer_json(buffer) for buffer in self.buffers],
            "fixes": [_fix_json(one) for one in self.fixes],
            "message": _message_json(self.message) if self.message else None,
            "others": [other.headline for other in self.others],
            "more": [step._asdict() for step in self.more],
            "notes": list(self.notes),
        }


def oom_report(source: str | Path, *, capacity: int | None = None) -> OomReport:
    """Report on an out-of-memory error.

    Args:
        source: An XLA dump folder, a file of one, a serialised HloProto, a log; or the text of a log itself.
        capacity: Bytes that the memory holds for a program, where neither the message nor the dump tells.

    Raises:
        InputError: There is no such file, or nothing about memory in it.

    """
    if isinstance(source, str) and _NOT_PATHS.search(source):
        return report_of_text(source, "the text", capacity=capacity)
    loaded = load(str(source))
    if not loaded.modules:
        return report_of_text(loaded.log, loaded.name, capacity=capacity)
    return report_of_dump(loaded, capacity)


def report_of_text(text: str, name: str, *, capacity: int | None = None) -> OomReport:
    """Report on the first error in a log that tells most.

    Raises:
        InputError: The text holds no out-of-memory error.

    """
    messages = parse_oom(text)
    if not messages:
        raise InputError(
            f"{name}: expected an out-of-memory error, found none.",
            "Give the whole log, with the lines from RESOURCE_EXHAUSTED on, or the folder of an XLA dump.",
        )
    message = max(messages, key=_tells)
    if capacity is not None and message.capacity_bytes is None:
        message = dataclasses.replace(message, capacity_bytes=capacity)
    return OomReport(
        source=name,
        family=message.family,
        memory_space=message.memory_space,
        verdict=verdict_of_message(message),
        needed_bytes=message.needed_bytes,
        capacity_bytes=message.capacity_bytes,
        exceeded_bytes=message.exceeded_bytes,
        by_type=_ordered(message.by_type),
        buffers=message.buffers[:_MOST_BUFFERS],
        fixes=advise_message(message),
        module=message.module,
        message=message,
        others=tuple(other for other in messages if other is not message),
        more=how_to_get_more(message.family, has_dump=False),
        notes=("Figures of the message are rounded to two or three digits.",)
        if message.needed_bytes and not message.needed_exactly
        else (),
    )


def report_of_dump(loaded: Loaded, capacity: int | None = None) -> OomReport:
    """Report on the module of a dump that failed, or that needs most, with the message that lies beside it."""
    chosen = loaded.chosen
    messages = parse_oom(loaded.log) if loaded.log else []
    own = [m for m in messages if not m.module or m.module.split("(")[0] == chosen.memory.name] or messages
    message = max(own, key=_tells, default=None)
    told = capacity or (message.capacity_bytes if message else None)
    report = report_of_memory(
        chosen.memory,
        chosen.module,
        source=loaded.name,
        capacity=told or loaded.capacity,
        device_type=loaded.device_type,
        message=message,
        others=tuple(other for other in messages if other is not message),
    )
    if told is None and report.capacity_bytes is not None:
        note = "The capacity is the device's by the catalogue; XLA keeps a part of it for itself."
        report = dataclasses.replace(report, notes=(note, *report.notes))
    return report


def report_of_memory(
    memory: ModuleMemory,
    module: HloModule | None,
    *,
    source: str,
    capacity: int | None = None,
    device_type: str | None = None,
    message: OomMessage | None = None,
    others: tuple[OomMessage, ...] = (),
) -> OomReport:
    """Report on a module whose memory is known.

    Raises:
        InputError: The module takes no memory of any space.

    """
    space = _space(memory, message)
    if space is None:
        raise InputError(f"{source}: the module {memory.name} allocates no memory.")
    needed, held = _needed(space, message, capacity)
    over = needed - held if held is not None and needed > held else None
    program = Program(module, memory, held if space.color == MAIN_SPACE else None) if module else None
    fixes = advise(program) if program and space.color == MAIN_SPACE else ()
    return OomReport(
        source=source,
        family=message.family if message else ("tpu_hbm" if program is None or program.is_tpu else "gpu_xla"),
        memory_space=space.name,
        verdict=verdict_of_memory(memory, space, needed, held),
        needed_bytes=needed,
        capacity_bytes=held,
        exceeded_bytes=over,
        by_type=_ordered({_PLURALS.get(kind, kind): size for kind, size in space.by_type.items() if size}),
        buffers=tuple(_as_oom_buffer(buffer) for buffer in by_size(space.peak_buffers)[:_MOST_BUFFERS]),
        fixes=_merged(fixes, advise_message(message) if message and space.color != MAIN_SPACE else ()),
        module=memory.name,
        device_type=device_type,
        device_count=module.device_count if module else None,
        message=message,
        others=others,
        memory=memory,
        notes=(*_corrections(message, space), *memory.notes),
    )


def _tells(message: OomMessage) -> tuple[int, int]:
    """Order messages by how much they tell."""
    known = [message.needed_bytes, message.capacity_bytes, message.exceeded_bytes, message.free_bytes]
    return len(message.buffers) + len(message.by_type), sum(one is not None for one in known)


def _space(memory: ModuleMemory, message: OomMessage | None) -> SpaceMemory | None:
    """The memory space that the message names, or the main one."""
    if message is not None:
        named = [space for space in memory.spaces.values() if space.name == message.memory_space]
        if named and message.memory_space != SPACE_NAMES[MAIN_SPACE]:
            return named[0]
    return memory.main or next(iter(memory.spaces.values()), None)


def _needed(space: SpaceMemory, message: OomMessage | None, capacity: int | None) -> tuple[int, int | None]:
    """What is needed and what there is: for main memory the exact total, elsewhere as the message says."""
    if space.color != MAIN_SPACE and message and message.needed_bytes is not None:
        return message.needed_bytes, message.capacity_bytes
    return space.allocated_bytes, capacity


def _corrections(message: OomMessage | None, space: SpaceMemory) -> list[str]:
    """Say where the compiler's message calls something by a wrong name."""
    if message is None or "HLO temporaries" not in message.headline or space.color != MAIN_SPACE:
        return []
    share = space.temporary_bytes / space.allocated_bytes if space.allocated_bytes else 1.0
    if share > 0.995:
        return []
    told = f"by the buffer assignment {units.percent(share)} of it are temporaries, the rest arguments and outputs"
    return [f"The compiler's message calls everything HLO temporaries; {told}."]


def _as_oom_buffer(buffer: Buffer) -> OomBuffer:
    return OomBuffer(
        size=buffer.size,
        unpadded_size=buffer.unpadded_size,
        shape=buffer.shape,
        op_name=buffer.op_name,
        source=buffer.source,
        label=buffer.name,
        allocation_type=buffer.allocation_type,
    )


def _merged(first: Sequence[Fix], second: Sequence[Fix]) -> tuple[Fix, ...]:
    known = {one.kind for one in first}
    return (*first, *(one for one in second if one.kind not in known))


def _ordered(by_type: dict[str, int]) -> dict[str, int]:
    return dict(sorted(by_type.items(), key=lambda item: -item[1]))


def _buffer_json(buffer: OomBuffer) -> dict[str, Any]:
    return dataclasses.asdict(buffer) | {"expansion": buffer.expansion}


def _message_json(message: OomMessage) -> dict[str, Any]:
    """The message without its buffers, which stand in the report."""
    plain = dataclasses.asdict(dataclasses.replace(message, buffers=()))
    del plain["buffers"]
    plain["bins"] = [one._asdict() for one in message.bins]
    plain["chunks"] = [one._asdict() for one in message.chunks]
    return plain


def _fix_json(one: Fix) -> dict[str, Any]:
    plain = dataclasses.asdict(one)
    plain["steps"] = [step._asdict() for step in one.steps]
    return plain
