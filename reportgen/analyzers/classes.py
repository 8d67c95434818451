"""Which kind of time an HLO category is: one place for the colours of charts and the parts of a step."""

from __future__ import annotations

from reportgen.document import Role

INPUT = frozenset({"infeed"})
OUTPUT = frozenset({"outfeed"})
HOST_TRANSFER = frozenset({"host send", "host recv", "host send-done", "host recv-done"})
COLLECTIVES = (
    "all-reduce", "all-gather", "all-to-all", "reduce-scatter", "all-reduce-scatter", "collective-permute",
    "collective-broadcast", "ragged-all-to-all", "send", "recv", "send-done", "recv-done", "barrier-cores",
)  # fmt: skip
DATA_FORMATTING = frozenset(
    {
        "data formatting",
        "copy",
        "copy-start",
        "copy-done",
        "transpose",
        "reshape",
        "bitcast",
        "async-start",
        "async-done",
    }
)
_DEVICE_COPIES = frozenset({"memcpy", "memcpy D2D", "memset"})
# XProf's convolution classes on TPU: work of the matrix units.
MATRIX = frozenset(
    {
        "convolution",
        "convolution base-dilated",
        "convolution window-dilated",
        "convolution fusion",
        "output fusion",
        "dot",
    }
)
CUSTOM = frozenset({"custom-call", "custom fusion"})
DATA_SHUFFLE = frozenset(
    {
        "gather",
        "scatter",
        "sort",
        "dynamic-slice",
        "dynamic-update-slice",
        "slice",
        "concatenate",
        "pad",
        "reverse",
        "select-and-scatter",
    }
)
# Categories whose time is that of the ops inside them.
CONTAINERS = frozenset({"call", "conditional", "while", "megacore fusion"})


def is_collective(category: str) -> bool:
    """Whether an HLO category is communication between devices."""
    return category.startswith(COLLECTIVES) and category not in HOST_TRANSFER


def role_of(category: str) -> Role:
    """Return what a category's time is spent on."""
    if category == "IDLE":
        return "idle"
    if category in INPUT:
        return "input"
    if category in OUTPUT:
        return "output"
    if category in HOST_TRANSFER or category.startswith("memcpy H") or category == "memcpy D2H":
        return "host_transfer"
    if is_collective(category):
        return "collectives"
    if category in DATA_FORMATTING or category in _DEVICE_COPIES:
        return "data_formatting"
    if category in CUSTOM:
        return "custom_call"
    return "compute"


# Parts of a step in the order of charts and tables; where ops overlap, an instant counts for the first of them.
STEP_PARTS: tuple[Role, ...] = (
    "compute", "collectives", "host_transfer", "data_formatting", "input", "output", "idle"
)  # fmt: skip


def step_part_of(category: str) -> Role:
    """Return the part of a step that a category's time belongs to: its role, with custom calls as compute."""
    role = role_of(category)
    return "compute" if role == "custom_call" else role
