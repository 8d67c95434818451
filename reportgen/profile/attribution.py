"""Which op an event of a GPU stream or host thread is a run of.

The statistics of the event tell: `hlo_op` (nested names joined by "::", the last is the op), `program_id`,
`hlo_module` and the framework's `name`; or, for a program that XLA did not compile, the framework's op in `tf_op` or
in the older `annotation`. What has neither is an op of its own, named by the event, so that no time is lost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reportgen.profile.gpu_cost import gpu_cost
from reportgen.profile.hlo import HloModule, Instruction, category, expression
from reportgen.profile.kernels import copy_category
from reportgen.profile.model import Events
from reportgen.profile.ops import NO_OWNER, OpInfo

ATTRIBUTION_STATS = (
    "hlo_op", "hlo_module", "program_id", "name", "tf_op", "annotation", "flops", "model_flops", "bytes_accessed"
)  # fmt: skip
UNKNOWN = "unknown"
_UNSIGNED = 0xFFFFFFFFFFFFFFFF
# XLA's own annotation of a whole program: names no op.
_PROGRAM_ANNOTATION = re.compile(r"(?:Xla|Tsl)Module\b")

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Attribution:
    """The op of each event.

    Attributes:
        infos: The ops.
        ops: Row in `infos` of each event.
        instructions: The module and instruction of each op; None where there is no HLO for it.
        annotations: The framework's annotation of each op as recorded, with shapes where it holds them.

    """

    infos: list[OpInfo]
    ops: Rows
    instructions: list[tuple[HloModule, Instruction] | None]
    annotations: list[str]


def attribute(events: Events, modules: Mapping[int, HloModule]) -> Attribution:
    """Return the op of each event; `events` hold `ATTRIBUTION_STATS`."""
    owners, owner_names = events.text_codes("hlo_op")
    labels, label_names = events.text_codes("hlo_module")
    programs = events.stats["program_id"].integers(0)
    names, name_texts = events.text_codes("name")
    annotations, annotation_texts = _annotations(events)
    owned = owners >= 0
    first, ops = group_rows(
        owners, labels, programs, np.where(owned, -1, events.names), np.where(owned, -1, annotations)
    )
    found = Attribution([], ops, [], [])
    for row in first.tolist():
        label = label_names[labels[row]] if labels[row] >= 0 else ""
        annotation = annotation_texts[annotations[row]] if annotations[row] >= 0 else ""
        program = int(programs[row]) & _UNSIGNED
        instruction = None
        if owned[row]:
            op = owner_names[owners[row]].rsplit("::", 1)[-1]
            instruction = find_instruction(modules, program, label, op)
            framework = framework_op(annotation) or (f"{name_texts[names[row]]}:" if names[row] >= 0 else "")
            info = _hlo_info(program, label, op, framework, instruction)
        else:
            name = events.plane.event_names[events.names[row]] if events.names[row] >= 0 else "unnamed"
            info = _other_info(program, label, name, framework_op(annotation))
        found.infos.append(info)
        found.instructions.append(instruction)
        found.annotations.append(annotation)
    return replace(found, infos=_with_recorded_costs(found.infos, ops, events))


def group_rows(*columns: Rows) -> tuple[Rows, Rows]:
    """Group rows that agree in all columns.

    Returns:
        The first row of each group, in the order of the groups' first rows, and the group of each row.

    """
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, distinct = pd.factorize(column)
        codes = pd.factorize(codes * max(1, len(distinct)) + values)[0].astype(np.int64)
    return np.unique(codes, return_index=True)[1], codes


def find_instruction(
    modules: Mapping[int, HloModule], program: int, label: str, op: str
) -> tuple[HloModule, Instruction] | None:
    """Return the module and instruction of an op, by program id, or by the module's name where no id leads to it."""
    module = modules.get(program)
    if module is None or (label and module.name != label and op not in module.by_name):
        named = [other for key in modules if (other := modules.get(key)) is not None and other.name == label]
        module = named[0] if len(named) == 1 else None
    instruction = module.by_name.get(op) if module is not None else None
    return (module, instruction) if module is not None and instruction is not None else None


def framework_op(annotation: str) -> str:
    """Return the innermost framework op of an annotation, as "scope/MatMul:MatMul"; "" where it names none.

    Annotations nest as "outer#metadata#::inner#metadata#".
    """
    names = [part.split("#", 1)[0] for part in annotation.split("::")]
    return next((name for name in reversed(names) if name and not _PROGRAM_ANNOTATION.match(name)), "")


def framework_type(op: str) -> str:
    """Return the type of a framework op: what follows the colon, else what its last scope says; "" without a colon."""
    name, colon, kind = op.partition(":")
    if kind or not colon:
        return kind
    return re.sub(r"_\d+$", "", name.rsplit("/", 1)[-1].split("[", 1)[0])


def _annotations(events: Events) -> tuple[Rows, list[str]]:
    """Codes and texts of each event's framework annotation: `tf_op` wins over `annotation`."""
    newer, newer_texts = events.text_codes("tf_op")
    older, older_texts = events.text_codes("annotation")
    codes = np.where(newer >= 0, newer, np.where(older >= 0, older + len(newer_texts), -1))
    return codes, newer_texts + older_texts


def _hlo_info(program: int, label: str, op: str, framework: str, found: tuple[HloModule, Instruction] | None) -> OpInfo:
    if found is None:
        return OpInfo(program, label, op, UNKNOWN, framework_op=framework)
    module, instruction = found
    cost = gpu_cost(module, instruction)
    metadata = instruction.proto.metadata
    source = instruction.source
    return OpInfo(
        program=program,
        module=label,
        name=op,
        category=category(instruction),
        expression=expression(instruction),
        framework_op=f"{metadata.op_name}:{metadata.op_type}" if metadata.op_name else framework,
        source=str(source) if source else "",
        stack="\n".join(str(frame) for frame in instruction.stack),
        shape=str(instruction.shape),
        flops=cost.flops,
        model_flops=cost.model_flops,
        bytes=cost.bytes,
        hbm_read=cost.bytes or 0.0,
        deduplicated=metadata.deduplicated_name,
    )


def _other_info(program: int, label: str, event: str, framework: str) -> OpInfo:
    """An op without HLO: a copy, a kernel of a framework op (named as in XProf), or a kernel of nobody."""
    if copied := copy_category(event):
        return OpInfo(program, label, event, copied)
    if framework:
        name = f"{framework.partition(':')[0]}/{event}"
        return OpInfo(program, label, name, framework_type(framework) or UNKNOWN, framework_op=framework)
    return OpInfo(program, label, event, NO_OWNER)


def _with_recorded_costs(infos: Sequence[OpInfo], ops: Rows, events: Events) -> list[OpInfo]:
    """Let costs that the events recorded win over those counted from HLO; all runs of an op record the same."""
    found = list(infos)
    for stat, field in (("flops", "flops"), ("model_flops", "model_flops"), ("bytes_accessed", "bytes")):
        column = events.stats[stat]
        rows = np.flatnonzero(column.present)
        values = column.integers()
        for row in rows[np.unique(ops[rows], return_index=True)[1]].tolist():
            value = float(values[row])
            more = {"flops": {"model_flops": value}, "bytes": {"hbm_read": value}}.get(field, {})
            found[ops[row]] = replace(found[ops[row]], **{field: value, **more})
    return found
