"""A way to fit, as plain data."""

from __future__ import annotations

import dataclasses
from typing import Literal, NamedTuple

from reportgen.memory.forecast import Saved

Basis = Literal["derived", "modelled", "heuristic"]
Framework = Literal["", "jax", "tensorflow", "pytorch_xla"]


class Step(NamedTuple):
    """What to do, for one framework or ("") for all; with the code or setting."""

    framework: Framework
    text: str
    code: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Fix:
    """A way to fit.

    Attributes:
        kind: "donation", "batch", "microbatches", "dtype", "padding", "remat", "sharding", "offload", "vmem",
            "residents" or "fragmentation".
        title: What to do, one line; what it brings stands in the other fields.
        low: Bytes saved at least.
        likely: Bytes saved, the likely figure.
        high: Bytes saved at most.
        how: How the bytes were worked out, in a sentence or two.
        basis: "derived" from exact sizes, "modelled" by repeating XLA's heap simulation, or a "heuristic".
        steps: What to do for each framework.
        buffers: Names of the buffers that it is about, largest first.
        values: Further numbers for machines, such as the largest batch that fits.

    """

    kind: str
    title: str
    low: int
    likely: int
    high: int
    how: str
    basis: Basis
    steps: tuple[Step, ...]
    buffers: tuple[str, ...] = ()
    values: dict[str, int | float | str] = dataclasses.field(default_factory=dict)


def fix(
    kind: str,
    title: str,
    saving: Saved,
    how: str,
    basis: Basis,
    steps: tuple[Step, ...],
    buffers: tuple[str, ...] = (),
    **values: int | float | str,
) -> Fix:
    """Make a fix; the range is put in order and kept above zero."""
    low, likely, high = sorted(max(0, int(bytes_saved)) for bytes_saved in saving)
    return Fix(kind, title, low, likely, high, how, basis, steps, buffers, values)
