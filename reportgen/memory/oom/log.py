"""Out-of-memory errors in the text of a log: TPU compiler and runtime, GPU, TensorFlow's BFC allocator.

The sentences are those of XLA, libtpu and TensorFlow in their old and new wordings. A sentence may go over several
lines; sections with totals and lists of buffers may follow it. What a log says twice is told once.
"""

from __future__ import annotations

import dataclasses
import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from reportgen.memory.oom.clean import Line, relevant_windows
from reportgen.memory.oom.merge import merged
from reportgen.memory.oom.message import OomMessage
from reportgen.memory.oom.sections import (
    allocator_bins,
    allocator_chunks,
    allocator_statistics,
    listed_buffers,
    usage_by_type,
)
from reportgen.memory.oom.sizes import SIZE, parse_size

_MAX_SENTENCES = 5000
_BEFORE = 300  # characters before a sentence that may name the program or the error's code
_SPACES = {"hbm": "HBM", "vmem": "VMEM", "smem": "SMEM", "cmem": "CMEM", "sflag": "sync flags", "host": "host"}
_CODE = re.compile(r"\b(E\d{4}):")
_LOADING = re.compile(r"Error\s+loading\s+program\s+['\"]?([^'\"\s]+?)['\"]?:\s*$")
_ALLOCATING = re.compile(r"Error\s+allocating\s+[\w ]{1,40}:\s*$")
_ON_DEVICE = re.compile(r"^[.;\s]*\((0x[\w]*?_([A-Za-z]+)\d*)\)")
_USED = re.compile(rf"^\.?\s*Used\s+({SIZE})\s+of\s+({SIZE})(?:\s+\w+\.?)?")
_EXCEEDED = re.compile(rf"Exceeded\s+\w+\s+capacity\s+by\s+({SIZE})")
_STACK = re.compile(r"^\s+while\s+allocating\s+on\s+stack\s+for\s+%?([\w.\-]+)")
_SCOPED = re.compile(
    rf"Scoped\s+allocation\s+with\s+size\s+({SIZE})\s+and\s+limit\s+({SIZE})\s+exceeded\s+scoped\s+(\w+)\s+limit"
    rf"(?:\s+by\s+({SIZE}))?"
)
_MODULE = re.compile(r"HLO\s+module:\s+([^\s\"']+?)\.?(?=[\s\"']|$)")
_SPACE_OF = re.compile(r"\bspace=(\w+)")
_TAG = re.compile(r"tag = '([^']*)'")
_FREE_OF_TOTAL = re.compile(r"Free\s+memory/Total\s+memory:\s*(\d+)/(\d+)")
_NO_FAILURE = "not a failure"
_TENSOR_BITS = {"float": 32, "double": 64, "half": 16, "bfloat16": 16, "bool": 8, "complex64": 64, "complex128": 128}
_DIGITS = re.compile(r"\d+$")


def _sentence(words: str) -> re.Pattern[str]:
    """A pattern for a sentence that may be broken between any two words; <SIZE> stands for an amount of memory."""
    return re.compile(words.replace(" ", r"\s+").replace("<SIZE>", f"({SIZE})"))


class _Found(NamedTuple):
    """A sentence with the text around it."""

    match: re.Match[str]
    before: str
    after: str

    def size(self, group: int) -> int | None:
        return parse_size(self.match[group])


_Builder = Callable[[_Found], OomMessage | None]


def parse_oom(text: str) -> list[OomMessage]:
    """Find the out-of-memory errors in a text.

    Args:
        text: A log, a traceback or a message alone, of any length. Time is linear in it.

    Returns:
        The errors in the order of the text, without repetitions; empty where there is none.

    """
    messages = (message for window in relevant_windows(text) for message in _in_window(window))
    return merged(list(islice(messages, _MAX_SENTENCES)))


def _in_window(window: list[Line]) -> Iterator[OomMessage]:
    text = "\n".join(line.text for line in window)
    found = sorted(_sentences(text), key=lambda pair: (pair[0].start(), -pair[0].end()))
    apart = [pair for place, pair in enumerate(found) if place == 0 or pair[0].start() >= found[place - 1][0].end()]
    ends = [match.start() for match, _ in apart[1:]] + [len(text)]
    breaks = [match.start() for match in re.finditer("\n", text)]
    for (match, build), next_start in zip(apart, ends, strict=False):
        before = text[max(0, match.start() - _BEFORE) : match.start()]
        message = build(_Found(match, before, text[match.end() : next_start]))
        if message is not None:
            line = window[bisect_left(breaks, match.start())].number
            yield dataclasses.replace(
                message, line=line, headline=message.headline or _one_line(match[0]), code=_last_code(before)
            )
    if not apart and (leftover := _allocator_alone(text, window)):
        yield leftover


def _sentences(text: str) -> Iterator[tuple[re.Match[str], _Builder]]:
    for pattern, build in _SENTENCES:
        for match in pattern.finditer(text):
            yield match, build


def _last_code(before: str) -> str:
    codes = _CODE.findall(before)
    return codes[-1] if codes else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _in_space(found: _Found) -> OomMessage:
    """Ran out of memory in memory space hbm. Used 9.08G of 7.48G hbm. Exceeded hbm capacity by 1.60G."""
    space = found.match[1].lower()
    used, exceeded = _USED.match(found.after), _EXCEEDED.search(found.after[:400])
    scoped, stack = _SCOPED.search(found.after), _STACK.match(found.after)
    module = _MODULE.search(found.after[:1000])
    by_type, total = usage_by_type(found.after)
    numbers = (scoped[1], scoped[2], scoped[4]) if scoped else (used[1], used[2], None) if used else (None, None, None)
    needed, capacity, over = (parse_size(number) for number in numbers)
    return _message(
        f"tpu_{space}" if space in {"hbm", "vmem", "smem"} else "tpu_space",
        _SPACES.get(space, space),
        needed_bytes=needed,
        capacity_bytes=capacity,
        exceeded_bytes=parse_size(exceeded[1]) if exceeded else _over(needed, capacity, over),
        total_bytes=total,
        by_type=by_type,
        buffers=listed_buffers(found.after),
        module=module[1] if module else "",
        subject=stack[1].rstrip(".") if stack else "",
        headline=_one_line(
            " ".join([found.match[0] + (used or stack or [""])[0], *(m[0] for m in (exceeded, scoped) if m)])
        ),
    )


def _on_space(found: _Found) -> OomMessage:
    """Ran out of memory on HBM, the total memory required for HLO temporaries (48.50G) exceeds available (15.75G)."""
    needed, capacity = found.size(3), found.size(4)
    space = found.match[1].lower()
    by_type, total = usage_by_type(found.after)
    return _message(
        f"tpu_{space}" if space in {"hbm", "vmem", "smem"} else "tpu_space",
        _SPACES.get(space, space),
        needed_bytes=needed,
        capacity_bytes=capacity,
        exceeded_bytes=_over(needed, capacity),
        total_bytes=total,
        by_type=by_type,
        buffers=listed_buffers(found.after),
        module=found.match[5] or "",
    )


def _by_core(found: _Found) -> OomMessage:
    """TPU TensorCore Hbm usage: 34.82G, SparseCore Hbm usage 174.10G, exceeding available bytes: 95.74G."""
    parts = {"tensorcore": found.size(1), "sparsecore": found.size(2)}
    by_type = {name: size for name, size in parts.items() if size is not None}
    needed, capacity = sum(by_type.values()), found.size(3)
    return _message(
        "tpu_hbm",
        "HBM",
        needed_bytes=needed,
        capacity_bytes=capacity,
        exceeded_bytes=_over(needed, capacity),
        by_type=by_type,
    )


def _allocation(found: _Found) -> OomMessage:
    """Allocation (size=134217728) would exceed memory (size=67108864) :: #allocation25 [... space=vmem ...] :: name."""
    rest = found.after[:4000].split("\n", 1)[0]
    space = _SPACE_OF.search(rest)
    tag = _TAG.search(rest)
    name = space[1].lower() if space else "vmem"
    needed, capacity = int(found.match[1]), int(found.match[2])
    subject = rest.rsplit("::", 1)[-1].strip() if "::" in rest else ""
    return _message(
        f"tpu_{name}" if name in {"hbm", "vmem", "smem"} else "tpu_space",
        _SPACES.get(name, name),
        needed_bytes=needed,
        needed_exactly=True,
        capacity_bytes=capacity,
        exceeded_bytes=_over(needed, capacity),
        subject=subject or (tag[1] if tag else ""),
    )


def _reservation(found: _Found) -> OomMessage:
    """Attempting to reserve 6.48G at the bottom of memory. That was not possible. There are 6.78G free, ..."""
    program = _LOADING.search(found.before)
    device = _ON_DEVICE.match(found.after)
    needed, free, reservable = found.size(2), found.size(3), found.size(5)
    reserves = found.match[1].lower() == "reserve"
    family = "tpu_program" if program else "tpu_reserve" if reserves else "tpu_buffer"
    return _message(
        family,
        _SPACES.get(device[2].lower(), device[2]) if device else "HBM",
        needed_bytes=needed,
        exceeded_bytes=_over(needed, free if reservable is None else reservable),
        free_bytes=free,
        reserved_bytes=found.size(4),
        reservable_bytes=reservable,
        module=program[1] if program else "",
        subject="device buffer" if _ALLOCATING.search(found.before) else "",
        device=device[1] if device else "",
    )


def _gpu_request(found: _Found) -> OomMessage:
    """Out of memory while trying to allocate 2110783616 bytes, or failed to allocate 3.39GiB (3640655872B)."""
    groups = found.match.groupdict()
    by_type, total = usage_by_type(found.after)
    ordinal = groups.get("ordinal")
    exact = groups.get("bytes")
    text = exact or groups["size"]
    told = _FREE_OF_TOTAL.search(found.after[:600])
    needed, free = parse_size(text), int(told[1]) if told else None
    return _message(
        "gpu_driver" if groups.get("driver") is not None else "gpu_xla",
        "host" if groups.get("host") else "GPU memory",
        needed_bytes=needed,
        needed_exactly="." not in text,
        total_bytes=total,
        by_type=by_type,
        buffers=listed_buffers(found.after),
        device=f"device {ordinal}" if ordinal else "",
        free_bytes=free,
        exceeded_bytes=_over(needed, free),
        capacity_bytes=int(told[2]) if told else None,
    )


def _allocator(found: _Found) -> OomMessage | None:
    """Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.97GiB (rounded to 2110783744)requested by op."""
    if _NO_FAILURE in found.after[:400]:
        return None
    exact = found.match[3]
    message = _message(
        "bfc",
        _allocator_space(found.match[1] or ""),
        needed_bytes=int(exact) if exact else found.size(2),
        needed_exactly=bool(exact),
        device=found.match[1] or "",
        subject=found.match[4] or "",
    )
    return _with_allocator(message, found.after)


def _tensor(found: _Found) -> OomMessage:
    """OOM when allocating tensor with shape[256,1024] and type float on device by allocator GPU_0_bfc."""
    name = found.match[2].lower()
    width = _DIGITS.search(name)
    bits = _TENSOR_BITS.get(name) or (int(width[0]) if width else None)
    dimensions = [int(size) for size in found.match[1].split(",") if size.strip()]
    allocator = (found.match[4] or "").rstrip(".,;")
    message = _message(
        "bfc",
        _allocator_space(allocator or found.match[3] or ""),
        needed_bytes=math.prod(dimensions) * bits // 8 if bits else None,
        needed_exactly=bits is not None,
        device=allocator or found.match[3] or "",
        subject=f"{name}[{','.join(map(str, dimensions))}]",
    )
    return _with_allocator(message, found.after)


def _allocator_alone(text: str, window: list[Line]) -> OomMessage | None:
    """An allocator's dump whose first sentence is not in the text."""
    if not allocator_chunks(text) and not allocator_bins(text):
        return None
    message = _message("bfc", "GPU memory", headline="dump of an allocator", line=window[0].number)
    return _with_allocator(message, text)


def _with_allocator(message: OomMessage, text: str) -> OomMessage:
    statistics = allocator_statistics(text)
    limit, in_use = statistics.get("Limit"), statistics.get("InUse")
    free = max(0, limit - in_use) if limit is not None and in_use is not None else None
    return dataclasses.replace(
        message,
        capacity_bytes=limit,
        in_use_bytes=in_use,
        free_bytes=free,
        exceeded_bytes=_over(message.needed_bytes, free),
        reservable_bytes=statistics.get("LargestFreeBlock") or None,
        bins=allocator_bins(text),
        chunks=allocator_chunks(text),
    )


def _allocator_space(name: str) -> str:
    return "host" if "cpu" in name.lower() or "host" in name.lower() else "GPU memory"


def _over(needed: int | None, capacity: int | None, told: int | None = None) -> int | None:
    """By how much it does not fit: as told, or worked out; None where it would fit or is not known."""
    if told is not None:
        return told
    return needed - capacity if needed is not None and capacity is not None and needed > capacity else None


def _message(family: str, space: str, headline: str = "", line: int = 1, **fields: object) -> OomMessage:
    return dataclasses.replace(OomMessage(family, space, headline, line), **fields)  # type: ignore[arg-type]


_SENTENCES: tuple[tuple[re.Pattern[str], _Builder], ...] = (
    (_sentence(r"Ran out of memory in memory space (\w+)"), _in_space),
    (
        _sentence(
            r"Ran out of memory on (\w+), the total memory required for ([\w\s]+?) \(<SIZE>\) exceeds available \w+ "
            r"\(<SIZE>\)(?:\. HLO module: ([^\s\"']+?)\.?(?=[\s\"']|$))?"
        ),
        _on_space,
    ),
    (
        _sentence(
            r"TensorCore H[Bb][Mm] usage:?\s*<SIZE>(?:,\s*SparseCore H[Bb][Mm] usage:?\s*<SIZE>)?,"
            r"\s*exceeding available bytes:?\s*<SIZE>"
        ),
        _by_core,
    ),
    (_sentence(r"Allocation \(size=(\d+)\) would exceed memory \(size=(\d+)\)"), _allocation),
    (
        _sentence(
            r"Attempt(?:ing|ed) to (reserve|allocate) <SIZE>(?: at the bottom of memory)?\. That was not possible\."
            r"(?: There (?:are|is) <SIZE> free)?(?:, <SIZE> reserved)?(?:,? and <SIZE> reservable)?"
        ),
        _reservation,
    ),
    (_sentence(r"Out of memory (?:while trying to allocate|allocating) (?P<size><SIZE>)"), _gpu_request),
    (
        _sentence(
            r"Failed to allocate request for (?P<size><SIZE>)\s*\((?P<bytes>\d+)\s?B(?:ytes)?\)"
            r"(?: on device ordinal (?P<ordinal>\d+))?"
        ),
        _gpu_request,
    ),
    (
        _sentence(
            r"failed to alloc(?:ate)? (?P<size><SIZE>)(?: \((?P<bytes>\d+) bytes\))? "
            r"(?P<driver>from device|on (?P<host>host))"
        ),
        _gpu_request,
    ),
    (_sentence(r"(?P<driver>[mM]alloc|cuMemAlloc)Async failed to allocate (?P<size><SIZE>)"), _gpu_request),
    (
        _sentence(
            r"(?:Allocator \(([^)\n]{1,80})\) r|R)an out of memory trying to allocate <SIZE>"
            r"(?:\s*\(rounded to (\d+)\))?(?:\s*requested by op[^\S\n]+([^\s*]\S*))?"
        ),
        _allocator,
    ),
    (
        _sentence(
            r"OOM when allocating tensor (?:of|with) shape\s*\[([\d,\s]*)\](?: and type (\w+))(?: on (\S+))?"
            r"(?: by allocator (\S+))?"
        ),
        _tensor,
    ),
)
