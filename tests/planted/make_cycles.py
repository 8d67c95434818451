"""Compile single dots and convolutions of many sizes for a TPU, and keep the compiler's cycles with their layouts.

    python tests/planted/make_cycles.py v5e|v5p|v6e      # writes fixtures/cycles-NAME.json.gz

The law in `reportgen.profile.matrix_cost` was fitted to v5e's, and is held against all three. Takes a few minutes each.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from typing import Any

from make_tpu import HERE, compile_program, write_gzip

from reportgen.analyzers.matrix_ops import matrix_op
from reportgen.profile.hlo import HloModule
from tests.planted.tpu_programs import Program, convolution, dot

UNITS = {"v5e": 128, "v5p": 128, "v6e": 256}
SIZES = (6, 64, 100, 128, 129, 130, 192, 256, 300)


def programs() -> Iterator[tuple[str, tuple[int, ...], Program]]:
    """Yield kind, sizes and program: rows, contracted, columns; or batch, side, features in, out, kernel."""
    for size in SIZES:
        for rows, contracted, columns in ((size, 1024, 2048), (1024, size, 2048), (1024, 2048, size)):
            yield "dot", (rows, contracted, columns), dot(rows, contracted, columns)
    for batch, inputs, outputs in itertools.product(
        (10, 64, 128), (5, 8, 64, 100, 128, 130, 256), (64, 100, 128, 130, 256)
    ):
        yield "convolution", (batch, 32, inputs, outputs, 3), convolution(batch, 32, inputs, outputs)
    for inputs, outputs in itertools.product((64, 100, 128, 129, 200, 256, 257, 512), (64, 128, 130, 256, 257)):
        yield "convolution", (64, 16, inputs, outputs, 1), convolution(64, 16, inputs, outputs, 1)


def rows(unit: int) -> Iterator[dict[str, Any]]:
    """Yield each program's sizes, the layout of its op and the op's cycles; programs without one op left out."""
    for kind, sizes, program in programs():
        proto, cycles = compile_program(program, 1)
        module = HloModule.from_bytes(proto)
        found = [(i.name, op) for i in module.entry.instructions if (op := matrix_op(module, i, unit)) is not None]
        if len(found) == 1 and found[0][0] in cycles:
            name, op = found[0]
            layout = [list(entry) for entry in op.layout.dimensions]
            types = op.layout.element_types
            yield {"kind": kind, "sizes": sizes, "cycles": cycles[name], "layout": layout, "types": types}


def main() -> None:
    """Make the cycles of one generation; the accelerator's type comes from the environment (see make_tpu.py)."""
    name = sys.argv[1]
    text = json.dumps(list(rows(UNITS[name])), separators=(",", ":"))
    write_gzip(HERE / "fixtures" / f"cycles-{name}.json.gz", text.encode())


if __name__ == "__main__":
    main()
