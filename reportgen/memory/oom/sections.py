"""The parts that follow an error's first sentence: totals by type, lists of buffers, an allocator's bins."""

from __future__ import annotations

import re
from itertools import islice

from reportgen.errors import InputError
from reportgen.memory.oom.message import Bin, Chunks, OomBuffer
from reportgen.memory.oom.sizes import SIZE, parse_size
from reportgen.profile.shapes import Shape

_MAX_BUFFERS = 10_000
_ROUNDING = 0.006
_NESTED = re.compile(r"\((?:[^()]|\([^()]*\))*\)")
_TOTAL = re.compile(rf"Total\s+(\w+)\s+usage\s*>=\s*({SIZE})\s*:?")
_PROGRAM = re.compile(rf"Program\s+(\w+)\s+requirement\s+({SIZE}|unknown\s+size)\s*:?")
_OUTPUT = re.compile(rf"Output\s+size\s+({SIZE})(?:;\s*shares\s+({SIZE})\s+with\s+arguments)?")
_ROW = re.compile(rf"(HLO temp|[a-zA-Z][\w-]*(?: [a-z][\w-]*)?)\s+({SIZE}|unknown\s+size)(?=\s|$|\")")
_SECTION_END = re.compile(r"Output\s+size|Program\s+\w+\s+requirement|Largest\s+program|Total\s+\w+\s+usage|\n\s*\n")
_STATISTIC = re.compile(
    rf"(parameter|constant|maybe_live_out|preallocated temp|total)\s+(allocation|fragmentation):\s+({SIZE})"
)
_ENTRY = re.compile(
    rf"(?:^|\n)[^\n]{{0,200}}?(?:(?<![\w.])\d+\.\s+Size:\s*({SIZE})|Buffer\s+\d+:\s*\n[^\n]{{0,200}}?Size:\s*({SIZE}))"
)
_LIST_START = re.compile(r"Largest\s+program\s+allocations|Largest\s+program\s+arguments|Peak\s+buffers:")
_FIELDS = {
    "shape": re.compile(r"(?<!Sub)(?<!sub)[Ss]hape:[ \t]*([^\n]+)"),
    "parameter": re.compile(r"Entry Parameter Subshape:[ \t]*([^\n]+)"),
    "unpadded": re.compile(rf"Unpadded size:[ \t]*({SIZE})"),
    "label": re.compile(r"XLA [Ll]abel:[ \t]*([^\n]+)"),
    "tag": re.compile(r"Tag:[ \t]*([^\n]+)"),
    "type": re.compile(r"Allocation type:[ \t]*([^\n]+)"),
    "op_name": re.compile(r'op_name="((?:[^"\\]|\\.)*)'),
    "file": re.compile(r'source_file="([^"]*)"'),
    "line": re.compile(r"source_line=(\d+)"),
}
_BIN = re.compile(
    rf"Bin\s+\((\d+)\):\s*Total\s+Chunks:\s*(\d+),\s*Chunks\s+in\s+use:\s*(\d+)\.?\s*({SIZE})\s+allocated\s+for\s+chunks\."
    rf"(?:\s*{SIZE}\s+client-requested\s+for\s+chunks\.)?\s*({SIZE})\s+in\s+use\s+in\s+bin"
)
_CHUNKS = re.compile(r"(\d+)\s+Chunks?\s+of\s+size\s+(\d+)\s+totall?ing")
_ALLOCATOR = re.compile(
    r"\b(Limit|InUse|MaxInUse|NumAllocs|MaxAllocSize|Reserved|PeakReserved|LargestFreeBlock):\s+(\d+)"
)
_IN_USE_TOTAL = re.compile(rf"Sum\s+Total\s+of\s+in-use\s+chunks:\s*({SIZE})")
_REGION_LIMIT = re.compile(r"memory_limit_:\s*(\d+)")

# XLA's and TensorFlow's words for what memory holds, and ours.
_NAMES = {
    "hlo temp": "temporaries",
    "preallocated temp": "temporaries",
    "parameter": "arguments",
    "constant": "constants",
    "maybe_live_out": "outputs",
    "output": "outputs",
}
_TYPES = {"hlo temp": "temporary", "arguments": "parameter", "argument": "parameter"}


def usage_by_type(text: str) -> tuple[dict[str, int], int | None]:
    """Read the totals of a TPU or GPU message.

    Returns:
        Bytes by what they hold, and the total that the text gives.

    """
    if _STATISTIC.search(text):
        return _assignment_statistics(text)
    total = _TOTAL.search(text)
    by_type = _rows(text, total)
    program = _PROGRAM.search(text)
    parts = _rows(text, program)
    if parts:
        by_type.pop("program", None)
    output = _OUTPUT.search(text)
    if output and (size := parse_size(output[1])):
        by_type["outputs"] = size - (parse_size(output[2]) or 0)
    for name, size in parts.items():
        by_type[name] = by_type.get(name, 0) + size
    return by_type, parse_size(total[2]) if total else None


def listed_buffers(text: str) -> tuple[OomBuffer, ...]:
    """Read a list of buffers: "Largest program allocations" of a TPU or "Peak buffers" of a GPU."""
    start = _LIST_START.search(text)
    if start is None:
        return ()
    entries = list(islice(_ENTRY.finditer(text, start.end()), _MAX_BUFFERS))
    ends = [entry.start() for entry in entries[1:]] + [len(text)]
    buffers = [_buffer(entry, text[entry.end() : end]) for entry, end in zip(entries, ends, strict=False)]
    return tuple(sorted(buffers, key=lambda buffer: -buffer.size))


def allocator_bins(text: str) -> tuple[Bin, ...]:
    """Read the bins of a BFC allocator's dump."""
    found = []
    for match in _BIN.finditer(text):
        total, in_use = parse_size(match[4]) or 0, parse_size(match[5]) or 0
        found.append(Bin(int(match[1]), int(match[2]), int(match[3]), total, in_use))
    return tuple(found)


def allocator_chunks(text: str) -> tuple[Chunks, ...]:
    """Read the summary of a BFC allocator's chunks in use, the sizes that hold most first."""
    found = [Chunks(int(match[1]), int(match[2])) for match in _CHUNKS.finditer(text)]
    return tuple(sorted(found, key=lambda chunks: -chunks.number * chunks.size))


def allocator_statistics(text: str) -> dict[str, int]:
    """Read "Limit: 503270604" and the other statistics of an allocator, in bytes."""
    found = {match[1]: int(match[2]) for match in _ALLOCATOR.finditer(text)}
    if "InUse" not in found and (total := _IN_USE_TOTAL.search(text)):
        found["InUse"] = parse_size(total[1]) or 0
    if "Limit" not in found and (limit := _REGION_LIMIT.search(text)):
        found["Limit"] = int(limit[1])
    return found


def _rows(text: str, heading: re.Match[str] | None) -> dict[str, int]:
    """Rows such as "reserved 530.00M" under a heading, or on its line."""
    if heading is None:
        return {}
    end = _SECTION_END.search(text, heading.end())
    section = _NESTED.sub(" ", text[heading.end() : end.start() if end else heading.end() + 4000])
    found: dict[str, int] = {}
    for name, size_text in _ROW.findall(section):
        size = parse_size(size_text)
        if size is not None:
            found[_NAMES.get(name.lower(), name.lower())] = size
    return found


def _assignment_statistics(text: str) -> tuple[dict[str, int], int | None]:
    by_type: dict[str, int] = {}
    total = None
    for name, kind, size_text in _STATISTIC.findall(text):
        size = parse_size(size_text)
        if size is None or (name != "total") != (kind == "allocation"):
            total = size if (name, kind) == ("total", "allocation") else total
            continue
        if kind == "allocation":
            by_type[_NAMES[name]] = size
    return by_type, total


def _buffer(entry: re.Match[str], text: str) -> OomBuffer:
    fields = {name: match[1].strip() for name, pattern in _FIELDS.items() if (match := pattern.search(text))}
    shape = fields.get("shape") or fields.get("parameter", "")
    kind = fields.get("type", "parameter" if "parameter" in fields else "").lower()
    line = f":{fields['line']}" if "line" in fields else ""
    size, unpadded = _exact(parse_size(entry[1] or entry[2]) or 0, shape)
    return OomBuffer(
        size=size,
        unpadded_size=unpadded or parse_size(fields.get("unpadded")),
        shape=shape,
        op_name=fields.get("op_name", ""),
        source=f"{fields['file']}{line}" if "file" in fields else "",
        label=fields.get("label") or fields.get("tag", ""),
        allocation_type=_TYPES.get(kind, kind),
    )


def _exact(rounded: int, shape: str) -> tuple[int, int | None]:
    """The size that the text rounds to two or three digits, and the bytes of the elements, by the shape.

    The rounded size stays where the shape does not explain it: an allocation may be larger than the array in it.
    """
    try:
        parsed = Shape.parse(shape)
    except InputError:
        return rounded, None
    if parsed.is_tuple:
        return rounded, None
    padded = parsed.padded_bytes
    return padded if abs(padded - rounded) <= _ROUNDING * padded else rounded, parsed.unpadded_bytes
