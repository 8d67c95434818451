"""Donation: outputs that could take the place of parameters which nobody needs afterwards."""

from __future__ import annotations

from reportgen.memory.fixes import steps
from reportgen.memory.fixes.model import Fix, fix
from reportgen.memory.fixes.state import state_pairs
from reportgen.memory.forecast import Program, Saved

# A program that does not fit is scheduled anew by the compiler, which gives part of the saving away.
_LOW_FAILING = 0.5


def donation(program: Program) -> Fix | None:
    """Outputs of the same type and dimensions as a parameter that are not aliased with it."""
    pairs = [pair for pair in state_pairs(program) if not pair.aliased]
    saving = sum(min(pair.parameter.size, pair.output.size) for pair in pairs)
    if not saving:
        return None
    names = tuple(pair.parameter.name for pair in sorted(pairs, key=lambda pair: -pair.parameter.size))
    low = int(saving * _LOW_FAILING) if program.fails else int(saving * 0.85)
    return fix(
        "donation",
        f"Donate {len(pairs)} arguments that an output of the same shape replaces",
        Saved(low, saving, int(saving * 1.02)),
        f"The sizes of {len(pairs)} outputs that have the type and dimensions of a parameter and no alias to one.",
        "modelled" if program.fails else "derived",
        steps.DONATION,
        names,
    )
