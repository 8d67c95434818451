"""Kernels and copies of a GPU joined to the HLO ops or framework ops that launched them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reportgen.profile.attribution import ATTRIBUTION_STATS, Attribution, attribute, group_rows
from reportgen.profile.hlo import HloModule, Instruction
from reportgen.profile.kernels import (
    Launch,
    class_of_annotation,
    class_of_instruction,
    class_of_name,
    copy_category,
    matrix_product,
    matrix_unit_by_name,
    parse_launch,
)
from reportgen.profile.model import Events, Plane
from reportgen.profile.ops import OpRuns

_STATS = (
    *ATTRIBUTION_STATS, "group_id", "correlation_id", "kernel_details", "cuda_graph_id", "cuda_graph_exec_id"
)  # fmt: skip
# Lines that a profiler derives from the streams: their events would count twice. XProf numbers its own from here.
_DERIVED = ("Steps", "TensorFlow Ops", "TensorFlow Name Scope", "XLA Ops", "XLA Modules", "Source code", "Launch Stats")
_DERIVED_IDS = range(0xDEADBEEF, 0xDEADBEEF + 300)
# NVIDIA GPUs have tensor cores from this compute capability on.
_FIRST_TENSOR_CORES = 7
_MATRIX_TYPES = frozenset({"bf16", "fp16", "fp8", "fp4", "tf32", "int8", "int4"})


@dataclass(frozen=True)
class Kernel:
    """One kernel or copy as one op launched it.

    Attributes:
        name: As recorded.
        op: Row of its op in `OpRuns.infos`.
        hlo_op: Name of the HLO op that launched it; "" for none.
        launch: Launch parameters.
        copied: Its category where it is a copy or a fill, such as "memcpy H2D"; None for other kernels.
        element: Class of the elements that it computes with ("bf16", "fp8", "tf32", "f32"...); None where unknown.
        matrix_unit: Whether it uses tensor or matrix cores; None where nothing tells.
        in_graph: Whether it ran as a part of a command buffer (CUDA graph).

    """

    name: str
    op: int
    hlo_op: str
    launch: Launch
    copied: str | None
    element: str | None
    matrix_unit: bool | None
    in_graph: bool


@dataclass(frozen=True, kw_only=True)
class GpuRuns(OpRuns):
    """Runs of ops on a GPU: one row a kernel or copy, each stream in order of time, one stream after the other.

    Attributes:
        kernels: The kernels and copies.
        kernel_rows: Row in `kernels` of each run.
        correlations: Id that joins each run to its launch on the host; -1 for none.

    """

    kernels: Sequence[Kernel]
    kernel_rows: NDArray[np.int64]
    correlations: NDArray[np.int64]


def stream_lines(plane: Plane) -> list[int]:
    """Return the indices of a GPU's lines that hold what ran, one a stream, without the derived ones."""
    return [
        index
        for index, line in enumerate(plane.lines)
        if line.id & 0xFFFFFFFF not in _DERIVED_IDS
        and not line.display_name.startswith((*_DERIVED, "Framework", "_counters_", "counters_"))
    ]


def gpu_op_runs(plane: Plane, modules: Mapping[int, HloModule]) -> GpuRuns:
    """Return the kernels and copies of a GPU, each as a run of the op that launched it.

    The self time of a run is its duration, as in XProf, so that the self times add up to what ran on all streams. What
    no op owns (libraries, command buffers) is an op of its own, named by kernel.

    Raises:
        WireError: An event is damaged.

    """
    events = plane.events(stream_lines(plane), _STATS)
    events = events.where(np.lexsort((-events.durations, events.starts, events.lines)))
    found = attribute(events, modules)
    kernels, rows = _kernels(events, found, _has_matrix_units(plane))
    groups = events.stats["group_id"].integers(-1)
    return GpuRuns(
        infos=found.infos,
        ops=found.ops,
        starts=events.starts,
        durations=events.durations,
        self_times=events.durations,
        trace_starts=events.starts,
        trace_durations=events.durations,
        occurrences=np.maximum(1, events.occurrences),
        costs={},
        groups=groups,
        executions=executions(found.ops, rows, events.lines, groups),
        kernels=kernels,
        kernel_rows=rows,
        correlations=events.stats["correlation_id"].integers(-1),
    )


def executions(
    ops: NDArray[np.int64], kernels: NDArray[np.int64], lines: NDArray[np.int64], groups: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return for each kernel how many executions of its op it begins: 1, or 0 where it belongs to the one before.

    One execution may launch several kernels, one after the other on a stream (a matrix product and the sum of its
    parts). The next execution begins where the first of these kernels comes again. An op that launches the same kernel
    several times counts each as an execution.

    Args:
        ops: Op of each row, each stream in order of time.
        kernels: Kernel of each row.
        lines: Stream of each row.
        groups: Step group of each row.

    """
    if not len(ops):
        return np.empty(0, np.int64)
    keys = np.stack([ops, lines, groups])
    begins = np.concatenate([[True], (keys[:, 1:] != keys[:, :-1]).any(axis=0)])
    first = kernels[begins][np.cumsum(begins) - 1]
    return np.where(kernels == first, 1, 0)


def _kernels(events: Events, found: Attribution, has_matrix_units: bool) -> tuple[list[Kernel], NDArray[np.int64]]:
    details, texts = events.text_codes("kernel_details")
    in_graph = events.stats["cuda_graph_id"].present | events.stats["cuda_graph_exec_id"].present
    first, rows = group_rows(found.ops, events.names, details, in_graph.astype(np.int64))
    names = events.plane.event_names
    kernels = []
    for row in first.tolist():
        op = int(found.ops[row])
        owner = found.infos[op].name if events.stats["hlo_op"].present[row] else ""
        name = names[events.names[row]] if events.names[row] >= 0 else "unnamed"
        hlo = found.instructions[op]
        copied = copy_category(name)
        element = None if copied else _element_class(name, hlo, found.annotations[op])
        uses = has_matrix_units and not copied and _uses_matrix_unit(name, hlo, element)
        launch = parse_launch(texts[details[row]]) if details[row] >= 0 else Launch()
        kernels.append(Kernel(name, op, owner, launch, copied, element, uses, bool(in_graph[row])))
    return kernels, rows


def _element_class(kernel: str, hlo: tuple[HloModule, Instruction] | None, annotation: str) -> str | None:
    """The class that the HLO's operands tell, or the annotation's, or the kernel's name.

    Libraries may compute a product of f32 in tf32, which only their kernel's name tells.
    """
    named = class_of_name(kernel)
    known = (class_of_instruction(*hlo) if hlo else None) or class_of_annotation(annotation)
    return named if known is None or (known, named) == ("f32", "tf32") else known


def _uses_matrix_unit(kernel: str, hlo: tuple[HloModule, Instruction] | None, element: str | None) -> bool | None:
    """What the kernel's name tells; else what kind of instruction it is.

    XLA computes products of narrow types on matrix units in its custom (Triton) fusions, and never in its loop and
    input fusions. Its products of f32 may or may not use them, and neither is known of custom calls.
    """
    by_name = matrix_unit_by_name(kernel)
    if by_name is not None or hlo is None:
        return by_name
    module, instruction = hlo
    if instruction.opcode == "custom-call":
        return None
    if matrix_product(module, instruction) is None or instruction.proto.fusion_kind in {"kLoop", "kInput"}:
        return False
    return True if element in _MATRIX_TYPES else None


def _has_matrix_units(plane: Plane) -> bool:
    """Whether the GPU has tensor or matrix cores; taken for granted where the profile does not tell."""
    major = plane.stats.get("compute_cap_major")
    return plane.stats.get("device_vendor") == "AMD" or not isinstance(major, int) or major >= _FIRST_TENSOR_CORES
