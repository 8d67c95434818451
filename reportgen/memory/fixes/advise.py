"""All ways to make a program fit that apply to it, the largest saving first."""

from __future__ import annotations

from reportgen.memory.fixes.donation import donation
from reportgen.memory.fixes.model import Fix
from reportgen.memory.fixes.padding import padding
from reportgen.memory.fixes.remat import offload, remat
from reportgen.memory.fixes.scaling import batch, dtype, microbatches
from reportgen.memory.fixes.sharding import sharding
from reportgen.memory.forecast import Program

# Below this share of what the program allocates a saving is not worth the change.
LEAST_SHARE = 0.005


def advise(program: Program, least_share: float = LEAST_SHARE) -> tuple[Fix, ...]:
    """Find the ways to fit.

    Args:
        program: The module with its memory, and its capacity where known.
        least_share: The smallest saving that is told, as a share of what the program allocates.

    Returns:
        The fixes that apply, the largest likely saving first. They overlap: their savings must not be added up.

    """
    if program.space is None:
        return ()
    single = [rule(program) for rule in (donation, batch, microbatches, dtype, remat, offload, sharding)]
    found = [fix for fix in (*single, *padding(program)) if fix is not None]
    least = program.space.allocated_bytes * least_share
    return tuple(sorted((fix for fix in found if fix.likely >= least), key=lambda fix: -fix.likely))
