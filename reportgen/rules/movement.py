"""Ops that only change layout or type, from the HLO where the profile has it, else by category and framework op."""

from __future__ import annotations

import pandas as pd

from reportgen.analyzers.data_movement import Content
from reportgen.rules.base import Evidences

# Copies between memories (copy-start, copy-done) are no formatting.
_CATEGORIES: dict[Content, tuple[str, ...]] = {
    "formatting": ("data formatting", "copy", "transpose", "reshape"),
    "conversion": ("convert",),
}
_FRAMEWORK_OPS: dict[Content, frozenset[str]] = {
    "formatting": frozenset({"transpose", "reshape", "squeeze", "expand_dims", "copy", "rev", "Transpose", "Reshape"}),
    "conversion": frozenset({"convert_element_type", "Cast", "convert"}),
}


def moving_ops(evidence: Evidences, content: Content) -> pd.DataFrame:
    """Return the ops of one content by self time, with at_edge, beside and operand (see `Movement`)."""
    return evidence.once(f"moving {content}", lambda shared: _moving_ops(shared, content))


def _moving_ops(evidence: Evidences, content: Content) -> pd.DataFrame:
    facts = evidence.facts("data-movement")
    known = facts.ops if facts is not None else {}
    seen = facts.programs if facts is not None else frozenset()
    ops = evidence.ops
    by_name = _by_name(ops, content)
    chosen, at_edge, beside, operand = [], [], [], []
    keys = zip(ops["program"], ops["_module_key"], ops["name"], by_name, strict=True)
    for program, module, name, named in keys:
        movement = known.get((program, module, name))
        chosen.append(movement.content == content if movement is not None else bool(named) and program not in seen)
        at_edge.append(movement is not None and movement.at_edge)
        beside.append(movement.beside if movement is not None else "")
        operand.append(movement.operand if movement is not None else "")
    return ops.assign(at_edge=pd.Series(at_edge, dtype=bool), beside=beside, operand=operand)[chosen]


def _by_name(ops: pd.DataFrame, content: Content) -> pd.Series[bool]:
    """Return which ops are of a content by their category, or as a fusion without FLOPs by their framework op."""
    last = last_of(ops["framework_op"])
    idle = ops["flops"].isna() | (ops["flops"] == 0) | (content == "conversion")
    fused = ops["category"].isin(["loop fusion", "custom fusion"]) & idle & last.isin(_FRAMEWORK_OPS[content])
    return ops["category"].isin(_CATEGORIES[content]) | fused


def last_of(framework_ops: pd.Series[str]) -> pd.Series[str]:
    """Return the last part of framework ops: "jit(f)/dot_general:" gives "dot_general"."""
    return framework_ops.str.rstrip(":").str.rsplit("/", n=1).str[-1].str.split("[").str[0]
