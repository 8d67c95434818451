"""Padding: which dimension lies where in the tile, what that costs, and the shape that avoids it."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import NamedTuple

from reportgen import units
from reportgen.memory.dimensions import Nodes
from reportgen.memory.fixes.model import Fix, Step, fix
from reportgen.memory.forecast import Program, saved
from reportgen.memory.model import PARAMETER, Buffer
from reportgen.profile.shapes import Layout, Shape

_MOST = 5  # shapes that get advice of their own
_LEAST_EXPANSION = 1.1
_WORTH_MERGING = 32


class Better(NamedTuple):
    """Another shape for the same elements: by another order of the dimensions, or by merging the last ones."""

    shape: Shape
    order: tuple[int, ...] | None

    @property
    def arguments(self) -> str:
        """The order, or the new sizes, as arguments."""
        return ", ".join(map(str, self.order if self.order is not None else self.shape.dimensions))


def padding(program: Program) -> list[Fix]:
    """One fix for each shape that loses most, where another order or a merged dimension loses less."""
    space = program.space
    shapes: dict[Shape, list[Buffer]] = {}
    for buffer in space.peak_buffers if space else ():
        if buffer.expansion >= _LEAST_EXPANSION and not program.shape(buffer).is_tuple:
            shapes.setdefault(program.shape(buffer), []).append(buffer)
    worst = sorted(shapes, key=lambda shape: -sum(b.padding for b in shapes[shape]))[:_MOST]
    return [found for shape in worst if (found := _for_shape(program, shape, shapes[shape])) is not None]


def better_shape(shape: Shape) -> Better | None:
    """The order of dimensions, or the merged dimension, that takes the fewest bytes; None where none takes fewer.

    The first dimension is not merged with others: it is the batch or the rows. A dimension that fills a good part of
    the lanes, such as the size of a head, is better merged than moved; a few channels are better moved.
    """
    if shape.layout is None or not shape.layout.tiles or len(shape.layout.tiles[0]) != 2 or shape.rank < 2:
        return None
    merges, orders = _merges(shape), _orders(shape)
    simplest = [*merges, *orders] if shape.dimensions[shape.minor_to_major[0]] >= _WORTH_MERGING else [*orders, *merges]
    best = min(simplest, key=lambda better: better.shape.padded_bytes, default=None)
    return best if best is not None and best.shape.padded_bytes < shape.padded_bytes else None


def _for_shape(program: Program, shape: Shape, buffers: list[Buffer]) -> Fix | None:
    better = better_shape(shape)
    if better is None:
        return None

    def resize(buffer: Buffer, given: Shape, nodes: Nodes) -> Shape | None:
        del buffer, nodes
        return better.shape if given == shape else None

    saving = saved(program, resize)
    lost = sum(buffer.padding for buffer in buffers)
    if saving.likely <= 0:
        return None
    return fix(
        "padding",
        f"Store {shape.without_layout()} as {better.shape.without_layout()}",
        saving,
        f"{_explained(shape)} {len(buffers)} such buffers take {units.binary(buffers[0].size)} each for "
        f"{units.binary(buffers[0].unpadded_size)} of elements, {units.binary(lost)} of padding together. As "
        f"{better.shape} each takes {units.binary(better.shape.padded_bytes)}.",
        "modelled",
        _steps(better, is_parameter=any(b.allocation_type == PARAMETER for b in buffers)),
        tuple(buffer.name for buffer in buffers[:20]),
        shape=str(shape),
        better_shape=str(better.shape),
        padding_bytes=lost,
    )


def _explained(shape: Shape) -> str:
    """Say where the padded dimensions lie."""
    places = {0: "lanes", 1: "sublanes"}
    parts = [
        f"dimension {number} ({dimension.size}) lies on the {places.get(dimension.place, 'tile')} and is padded to "
        f"{dimension.padded_size}"
        for number, dimension in enumerate(shape.padded_dimensions)
        if dimension.padded_size > dimension.size
    ]
    return f"In {shape} {' and '.join(parts)}." if parts else f"{shape} is padded by its tiles."


def _orders(shape: Shape) -> list[Better]:
    """The same dimensions with another pair of them in the tile."""
    found = []
    for minor, second in itertools.permutations(range(shape.rank), 2):
        others = [dimension for dimension in range(shape.rank) if dimension not in {minor, second}]
        order = (*others, second, minor)
        dimensions = tuple(shape.dimensions[dimension] for dimension in order)
        found.append(Better(_tiled(shape, dimensions), order))
    return sorted(found, key=lambda better: _inversions(better.order or ()))


def _inversions(order: tuple[int, ...]) -> int:
    """How far an order is from the present one."""
    return sum(a > b for a, b in itertools.combinations(order, 2))


def _merges(shape: Shape) -> list[Better]:
    """Trailing dimensions merged into one, as few as possible first."""
    found = []
    for first in reversed(range(1, shape.rank - 1)):
        dimensions = (*shape.dimensions[:first], math.prod(shape.dimensions[first:]))
        found.append(Better(_tiled(shape, dimensions), None))
    return found


def _tiled(shape: Shape, dimensions: tuple[int, ...]) -> Shape:
    """A row-major array in the tile of a shape, with fewer sublanes where the second dimension is small."""
    layout = shape.layout or Layout()
    (sublanes, lanes), *inner = layout.tiles
    packed = inner[0][0] if inner else 1
    while sublanes // 2 >= max(packed, dimensions[-2]):
        sublanes //= 2
    order = tuple(reversed(range(len(dimensions))))
    tiles = ((sublanes, lanes), *inner)
    return Shape(shape.element_type, dimensions, dataclasses.replace(layout, minor_to_major=order, tiles=tiles))


def _steps(better: Better, *, is_parameter: bool) -> tuple[Step, ...]:
    text = "Keep the array in this shape, and undo it only where the code needs the old one."
    arguments = better.arguments
    if better.order is not None:
        codes = (f"jnp.transpose(x, ({arguments}))", f"tf.transpose(x, ({arguments}))", f"x.permute({arguments})")
    else:
        codes = (f"x.reshape({arguments})", f"tf.reshape(x, ({arguments}))", f"x.reshape({arguments})")
    jax, tensorflow, torch = (f"x = {code}" for code in codes)
    steps = (Step("jax", text, jax), Step("tensorflow", text, tensorflow), Step("pytorch_xla", text, torch))
    automatic = Step(
        "jax",
        "Where the layout of the argument was fixed, let the compiler choose it.",
        "jax.jit(step, in_shardings=Format(Layout.AUTO, sharding))",
    )
    return (*steps, automatic) if is_parameter else steps
