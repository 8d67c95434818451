"""One error is told once, although allocator, driver and runtime each log it, and traces repeat it."""

from __future__ import annotations

import dataclasses

from reportgen.memory.oom.message import OomMessage

# Families that log one failed request side by side, the one that tells most about the program first.
_SAME_REQUEST = ("gpu_xla", "bfc", "gpu_driver")
MAX_MESSAGES = 200
_ROUNDING = 0.006  # 1.97GiB stands for anything within half of its last digit
_MOST_LINES_APART = 20_000


def merged(messages: list[OomMessage]) -> list[OomMessage]:
    """Join repetitions and the several accounts of one failed request; keep the order of the text."""
    result: list[OomMessage] = []
    places: dict[tuple[object, ...], int | None] = {}
    for message in messages:
        key = (message.family, message.needed_bytes, message.capacity_bytes, message.module, message.subject)
        if key not in places:
            places[key] = next((i for i, known in enumerate(result) if _is_same(known, message)), None)
        place = places[key]
        if place is not None:
            result[place] = _joined(result[place], message)
        elif len(result) < MAX_MESSAGES:
            places[key] = len(result)
            result.append(message)
    return result


def _is_same(one: OomMessage, other: OomMessage) -> bool:
    if one.family == other.family:
        if one.family == "bfc" and one.device == other.device and _about_equal(one, other):
            return True  # the allocator names the operation, the error the tensor
        same = one.needed_bytes == other.needed_bytes and one.capacity_bytes in {other.capacity_bytes, None}
        return same and _agree(one.module, other.module) and _agree(one.subject, other.subject)
    both_gpu = one.family in _SAME_REQUEST and other.family in _SAME_REQUEST
    near = abs(other.line - one.line) <= _MOST_LINES_APART
    return both_gpu and near and _about_equal(one, other)


def _about_equal(one: OomMessage, other: OomMessage) -> bool:
    """The same request: an allocator rounds it up, and texts round it to three digits."""
    if one.needed_bytes is None or other.needed_bytes is None:
        return False
    return abs(one.needed_bytes - other.needed_bytes) <= _ROUNDING * max(one.needed_bytes, other.needed_bytes)


def _agree(one: str, other: str) -> bool:
    return not one or not other or one == other


def _joined(one: OomMessage, other: OomMessage) -> OomMessage:
    """Fill what the fuller account does not tell from the other one."""
    first, second = (one, other) if _rank(one) <= _rank(other) else (other, one)
    empty: tuple[object, ...] = (None, "", (), {})
    filled = {
        field.name: getattr(second, field.name)
        for field in dataclasses.fields(OomMessage)
        if getattr(first, field.name) in empty and getattr(second, field.name) not in empty
    }
    if second.needed_exactly and not first.needed_exactly:
        filled |= {"needed_bytes": second.needed_bytes, "needed_exactly": True}
    repeats = one.family == other.family
    return dataclasses.replace(
        first,
        **filled,
        line=min(one.line, other.line),
        occurrences=one.occurrences + (other.occurrences if repeats else 0),
    )


def _rank(message: OomMessage) -> tuple[int, int]:
    """Order accounts by how much they tell: the family first, then how many buffers and totals."""
    family = _SAME_REQUEST.index(message.family) if message.family in _SAME_REQUEST else 0
    return family, -len(message.buffers) - len(message.by_type) - len(message.bins)
