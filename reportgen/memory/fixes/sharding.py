"""Sharding: parameters that every device holds whole could be split over the devices."""

from __future__ import annotations

from reportgen import units
from reportgen.memory.dimensions import Nodes
from reportgen.memory.fixes import steps
from reportgen.memory.fixes.model import Fix, fix
from reportgen.memory.fixes.state import state_pairs
from reportgen.memory.forecast import Program, Saved, saved
from reportgen.memory.model import Buffer
from reportgen.profile.shapes import Shape

_REPLICATED = 0
_LEAST_SHARE = 0.01


def sharding(program: Program) -> Fix | None:
    """Large parameters that every device of several holds whole."""
    devices, space = program.module.device_count, program.space
    if devices < 2 or space is None:
        return None
    least = space.allocated_bytes * _LEAST_SHARE
    whole = [b for b in replicated_parameters(program) if b.size >= least and _split(program, b, devices) is not None]
    if not whole:
        return None
    outputs = [pair.output for pair in state_pairs(program) if pair.parameter in whole and not pair.aliased]
    lasting = sum(b.size for b in (*whole, *outputs))
    kept = lasting - lasting // devices
    groups = [group for b in whole if (group := _split(program, b, devices)) is not None]

    def resize(buffer: Buffer, shape: Shape, nodes: Nodes) -> Shape | None:
        del buffer
        group = next((g for g in own if any(program.dimensions.contains(node, g) for node in nodes)), None)
        return None if group is None else program.dimensions.scaled(shape, nodes, group, 1 / devices)

    own = [g for g in groups if _is_own(program, g)]
    everything = saved(program, resize) if own else Saved(kept, kept, kept)
    gathered = max(b.size for b in whole)
    return fix(
        "sharding",
        f"Split {len(whole)} parameters over the {devices} devices",
        Saved(kept - gathered, (kept + everything.likely) // 2, max(kept, everything.high)),
        f"{len(whole)} parameters and {len(outputs)} outputs that replace them are whole on each of {devices} devices, "
        f"{units.binary(lasting)} together. At the high end everything that has a dimension of theirs alone is split "
        "with them; at the low end the largest is gathered whole for its use.",
        "modelled",
        steps.SHARDING,
        tuple(b.name for b in sorted(whole, key=lambda b: -b.size)[:20]),
        devices=devices,
    )


def replicated_parameters(program: Program) -> list[Buffer]:
    """Parameters that the partitioner was told to hold whole on each device, or whose sum is taken over all devices."""
    space = program.space
    shardings = program.module.proto.hlo_module.spmd_parameters_shardings
    if space is None:
        return []
    parameters = {p.name: p for p in program.module.entry_parameters}
    buffers = [b for b in space.buffers if b.instruction in parameters and not b.index]
    if shardings:
        numbers = {name: p.proto.parameter_number for name, p in parameters.items()}
        known = [b for b in buffers if numbers[b.instruction] < len(shardings)]
        return [b for b in known if shardings[numbers[b.instruction]].type == _REPLICATED]
    summed = {
        (s.element_type, s.dimensions) for i in program.module if i.opcode == "all-reduce" for s in i.shape.leaves()
    }
    pairs = {pair.parameter.instruction for pair in state_pairs(program)}
    return [b for b in buffers if b.instruction in pairs and _key(program.shape(b)) in summed]


def _is_own(program: Program, group: int) -> bool:
    """Whether a dimension belongs to one parameter alone, such as a vocabulary."""
    parameters = [p for p in program.module.entry_parameters if not p.shape.is_tuple]
    return sum(any(program.dimensions.contains(n, group) for n in program.dimensions.of(p)) for p in parameters) == 1


def _split(program: Program, buffer: Buffer, devices: int) -> int | None:
    """The group of a parameter's largest dimension that the devices can split evenly."""
    pairs = [(size, node) for size, node in zip(program.shape(buffer).dimensions, program.nodes(buffer), strict=False)]
    divisible = [pair for pair in pairs if pair[0] % devices == 0 and pair[0] > 1]
    return max(divisible, key=lambda pair: pair[0])[1] if divisible else None


def _key(shape: Shape) -> tuple[object, ...]:
    return shape.element_type, shape.dimensions
