"""Rematerialisation: what the forward pass keeps for the backward pass, and could compute again.

A layer that is checkpointed keeps only what enters it. Of n layers that each keep r bytes, of which b enter, n*r
shrinks to n*b and the r of the one layer that is being computed again. The heap simulation is repeated with that,
as the peak may move to where something else is large. Where a layer keeps nothing but what enters it, a checkpoint
saves nothing and may cost: it is not advised then.
"""

from __future__ import annotations

from typing import NamedTuple

from reportgen import units
from reportgen.memory.fixes import steps
from reportgen.memory.fixes.model import Fix, fix
from reportgen.memory.fixes.state import is_forward, trains
from reportgen.memory.forecast import Program, Saved, allocated
from reportgen.memory.model import TEMPORARY, Buffer

_LEAST_LAYERS = 2
# Of a layer's bytes; less than that are statistics, such as maxima of a softmax, not what enters a layer.
_LEAST_ENTERING = 0.01
_LOW, _HIGH = 0.6, 1.05


class Kept(NamedTuple):
    """What the forward pass keeps: layers, bytes kept by each, bytes of those that enter it, and the buffers.

    `scanned` says that the layers are the turns of a loop.
    """

    layers: int
    per_layer: int
    entering: int
    buffers: tuple[Buffer, ...]
    scanned: bool = False


def remat(program: Program) -> Fix | None:
    """Temporaries that live from the forward to the backward pass, where layers keep more than what enters them."""
    kept = kept_for_backward(program)
    if kept is None:
        return None
    layers, per_layer, entering, buffers, _ = kept
    likely = _saved_with(program, kept, per_layer + layers * entering)
    most = _saved_with(program, kept, layers * entering)
    if likely <= 0:
        return None
    return fix(
        "remat",
        f"Compute {layers} layers' activations again in the backward pass",
        Saved(max(likely - per_layer, int(likely * _LOW)), likely, int(most * _HIGH)),
        f"{len(buffers)} buffers live from the forward to the backward pass, {units.binary(layers * per_layer)} "
        f"together in {layers} layers. Checkpointed layers keep {units.binary(entering)} each, and one layer's "
        f"{units.binary(per_layer)} exist at a time; XLA's heap simulation was repeated with that. "
        "The step takes about a third longer.",
        "modelled",
        steps.REMAT,
        tuple(buffer.name for buffer in buffers[:20]),
        layers=layers,
    )


def _saved_with(program: Program, kept: Kept, remaining: int) -> int:
    """Bytes saved where only `remaining` bytes of what is kept are in use at a time."""
    space = program.space
    if space is None:
        return 0
    total = kept.layers * kept.per_layer
    sizes = {buffer.id: buffer.size for buffer in space.buffers}
    sizes |= {buffer.id: buffer.size * remaining // total for buffer in kept.buffers}
    return space.allocated_bytes - allocated(space, sizes)


def offload(program: Program) -> Fix | None:
    """What a scan over layers keeps, moved to the host's memory until the backward pass needs it (TPU, JAX)."""
    kept = kept_for_backward(program)
    if kept is None or not kept.scanned or not program.is_tpu:
        return None
    total = kept.layers * kept.per_layer
    likely = total - 2 * kept.per_layer
    if likely <= 0:
        return None
    return fix(
        "offload",
        f"Move the activations of {kept.layers} scanned layers to the host",
        Saved(likely - 2 * kept.per_layer, likely, total),
        f"{len(kept.buffers)} arrays that the loop fills, {units.binary(total)} together, less two layers' "
        f"{units.binary(2 * kept.per_layer)} that are on their way. The link to the host must carry them twice a step.",
        "modelled",
        steps.OFFLOAD,
        tuple(buffer.name for buffer in kept.buffers[:20]),
        layers=kept.layers,
    )


def kept_for_backward(program: Program) -> Kept | None:
    """What the forward pass keeps at the peak, by layers; None where the program has no backward pass that tells."""
    space = program.space
    if space is None or not trains(program):
        return None
    forward = [b for b in space.peak_buffers if b.allocation_type == TEMPORARY and is_forward(b.op_name)]
    stacked = _stacked(program, forward)
    if stacked is not None:
        return stacked
    classes: dict[tuple[str, tuple[int, ...]], list[Buffer]] = {}
    for buffer in forward:
        shape = program.shape(buffer)
        classes.setdefault((shape.element_type, shape.dimensions), []).append(buffer)
    if not classes:
        return None
    largest = max(classes.values(), key=lambda buffers: sum(b.size for b in buffers))
    layers = len(largest)
    repeated = [buffers for buffers in classes.values() if len(buffers) >= max(_LEAST_LAYERS, layers - 1)]
    if layers < _LEAST_LAYERS or not repeated:
        return None
    kept = sorted((b for buffers in repeated for b in buffers), key=lambda b: -b.size)
    per_layer = sum(b.size for b in kept) // layers
    return Kept(layers, per_layer, _entering(per_layer, [b.size for b in kept]), tuple(kept))


def _stacked(program: Program, forward: list[Buffer]) -> Kept | None:
    """What a scan over layers keeps: arrays with a leading dimension for the layer, filled slice by slice."""
    filled = [b for b in forward if "while/body" in b.op_name and program.shape(b).rank > 1]
    by_layers: dict[int, list[Buffer]] = {}
    for buffer in filled:
        by_layers.setdefault(program.shape(buffer).dimensions[0], []).append(buffer)
    if not by_layers:
        return None
    layers, buffers = max(by_layers.items(), key=lambda item: sum(b.size for b in item[1]))
    carried = [b for b in forward if program.shape(b).rank > 1 and program.shape(b).dimensions[0] == layers]
    if layers < _LEAST_LAYERS:
        return None
    everything = {b.id: b for b in (*buffers, *carried)}
    ordered = sorted(everything.values(), key=lambda b: -b.size)
    per_layer = sum(b.size for b in ordered) // layers
    entering = _entering(per_layer, [b.size // layers for b in ordered])
    return Kept(layers, per_layer, entering, tuple(ordered), scanned=True)


def _entering(per_layer: int, sizes: list[int]) -> int:
    """The bytes that enter a layer: the smallest of what it keeps."""
    return min(size for size in sizes if size >= per_layer * _LEAST_ENTERING)
