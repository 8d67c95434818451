"""The op profile as tables: ops, categories, programs, framework scopes, framework ops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from reportgen.analyzers.classes import CONTAINERS
from reportgen.analyzers.op_cards import op_ids
from reportgen.analyzers.op_rates import with_rates
from reportgen.analyzers.tables import slug, table_of, unique_slugs
from reportgen.document import (
    Block,
    Chart,
    ChartBlock,
    Column,
    Details,
    Heading,
    Table,
    TableBlock,
    Text,
)
from reportgen.units import PS_PER_SECOND, percent

if TYPE_CHECKING:
    from reportgen.analyzers.op_profile import OpFacts

OP_SUMS = (
    "occurrences", "time_ps", "self_ps", "flops", "model_flops", "bytes", "hbm_read", "hbm_write", "onchip_read",
    "onchip_write",
)  # fmt: skip
_SCOPE_DEPTH = 3
_TOP = 10
_OPENED_CATEGORIES = 12
_OPENED_ROWS = 10

_SELF = Column(name="self_s", unit="seconds", title="Self time", definition="Time without the ops inside.")
_SHARE = Column(
    name="self_share", unit="fraction", title="Self share", display="bar", definition="Share of total device time."
)
_COUNT = Column(name="occurrences", unit="count", title="Count")
_FLOPS = Column(
    name="flops_utilization",
    unit="fraction",
    title="FLOPS",
    display="flame",
    definition="FLOP rate over the peak FLOP rate of the cores that ran it.",
)
_HBM = Column(name="hbm_utilization", unit="fraction", title="HBM", definition="HBM rate over the peak bandwidth.")
_WASTED = Column(
    name="wasted_share",
    unit="fraction",
    title="Wasted",
    definition="Self share × (1 − the larger of FLOPS and HBM utilisation).",
)
_BOUND = Column(name="bound_by", title="Bound by", definition="The resource that it uses most.")
_OP_COLUMNS = (
    Column(name="name", title="Op", display="code"),
    Column(name="category", title="Category"),
    _SELF,
    _SHARE,
    _COUNT,
    Column(name="average_s", unit="seconds", title="Average", definition="Total time over count."),
    _FLOPS,
    _HBM,
    _BOUND,
    _WASTED,
    Column(name="framework_op", title="Framework op", display="code"),
    Column(name="source", title="Source", display="code"),
    Column(name="module", title="Program", display="code"),
    Column(name="time_s", unit="seconds", title="Total time"),
    Column(name="model_flops", unit="flops", title="FLOPs", definition="True count, of all executions."),
    Column(name="flops", unit="flops", display="machine", definition="FLOPs, normalised to the peak's type."),
    Column(name="flop_rate", unit="flops/s", title="FLOP rate"),
    Column(name="bytes", unit="bytes", title="Bytes", definition="Accessed in all memories."),
    Column(name="hbm_bytes", unit="bytes", display="machine"),
    Column(name="onchip_bytes", unit="bytes", display="machine"),
    Column(name="hbm_rate", unit="bytes/s", title="HBM rate"),
    Column(name="onchip_read_utilization", unit="fraction", title="On-chip read"),
    Column(name="onchip_write_utilization", unit="fraction", title="On-chip write"),
    Column(name="intensity", unit="flops/byte", title="Intensity", definition="FLOPs per byte of all memories."),
    Column(name="hbm_intensity", unit="flops/byte", title="HBM intensity"),
    Column(name="efficiency", unit="fraction", title="Roofline efficiency"),
    Column(name="self_ps", unit="picoseconds", display="machine"),
    Column(name="time_ps", unit="picoseconds", display="machine"),
    Column(name="position", title="Order", definition="Rank by the start of the first execution."),
    Column(name="shape", title="Result shape", display="code", definition="With layout; long ones cut in the middle."),
)
_SHAPE_LETTERS = 160
_MEMBER_COLUMNS = (*_OP_COLUMNS[:1], *_OP_COLUMNS[2:11])
_GROUP_COLUMNS = (_SELF, _SHARE, _COUNT, _FLOPS, _HBM, _BOUND, _WASTED)


def op_tables(facts: OpFacts, step_count: int) -> dict[str, Table]:
    """Return the tables of the op profile."""
    ops = facts.ops
    ops = ops.assign(
        position=ops["first_ps"].rank(method="first").astype("int64"),
        shape=[text if len(text) <= _SHAPE_LETTERS else f"{text[:120]}…{text[-39:]}" for text in ops["shape"]],
    )
    tables = {
        "hlo_ops": table_of(ops, "XLA ops", _OP_COLUMNS, row_ids=op_ids(ops), note=_ops_note(facts, step_count)),
        "top_hlo_ops": _top_ops(facts),
        "top_operations": framework_ops(facts, limit=_TOP),
        "op_categories": _groups(facts, "category", "Categories", "category", idle=True),
        "op_programs": _groups(facts, "module", "Programs", "program"),
        "op_scopes": _groups(facts, "scope", "Framework scopes", "scope"),
        "framework_ops": framework_ops(facts, limit=None),
    }
    tables |= {table_id: table for _, table_id, table in _category_tables(facts)}
    if len(repeated := _repeated(facts)):
        tables["op_duplicates"] = repeated_table(repeated)
    return tables


def _ops_note(facts: OpFacts, step_count: int) -> str:
    kind = "core" if facts.device == "TPU" else "device"
    note = f"Sums over the whole capture and {len(facts.cores)} {kind}{'' if len(facts.cores) == 1 else 's'}"
    note += f"; {step_count} step{' was' if step_count == 1 else 's were'} captured whole." if step_count else "."
    return note + " An op without a cost model has no FLOPs and bytes."


def _top_ops(facts: OpFacts) -> Table:
    top = facts.ops.head(_TOP).copy()
    share = top["self_ps"] / max(1, facts.ops["self_ps"].sum())
    top["op_share"] = share
    top["cumulative_share"] = share.cumsum()
    columns = (
        Column(name="name", title="Op", display="code"),
        Column(name="category", title="Category"),
        _SELF,
        Column(name="op_share", unit="fraction", title="Share of op time", display="bar"),
        Column(name="cumulative_share", unit="fraction", title="Cumulative"),
        Column(name="flop_rate", unit="flops/s", title="FLOP rate"),
        _FLOPS,
        _BOUND,
        _WASTED,
        Column(name="framework_op", title="Framework op", display="code"),
        Column(name="source", title="Source", display="code"),
    )
    ids = [f"top-{row_id}" for row_id in op_ids(facts.ops)[:_TOP]]
    return table_of(top, "Top 10 XLA ops", columns, row_ids=ids, note="Shares are of the self time of all ops.")


def framework_ops(facts: OpFacts, limit: int | None) -> Table:
    """Return ops grouped by framework op, as XProf's overview and framework op table group them.

    The name is the text before the last ":"; the type what follows it or, for JAX, the last scope up to "[". An op
    without a framework op stands for itself. Occurrences are the largest of its XLA ops'.
    """
    ops = facts.ops[~facts.ops["category"].isin(list(CONTAINERS))]
    split = [_framework_op(path, name) for path, name in zip(ops["framework_op"], ops["name"], strict=True)]
    grouped = ops.assign(operation=[name for name, _ in split], type=[kind for _, kind in split])
    groups = grouped.groupby(["operation", "type"], sort=False)
    summed = groups[[name for name in OP_SUMS if name != "occurrences"]].sum(min_count=1)
    summed["occurrences"] = groups["occurrences"].max()
    summed["xla_ops"] = groups.size()
    summed = rated(facts, summed.reset_index()).sort_values("self_ps", ascending=False, kind="stable")
    share = summed["self_ps"] / max(1, grouped["self_ps"].sum())
    summed["op_share"], summed["cumulative_share"] = share, share.cumsum()
    columns = (
        Column(name="operation", title="Operation", display="code"),
        Column(name="type", title="Type", definition="Type of the framework op; Unknown where the profile has none."),
        _SELF,
        Column(name="op_share", unit="fraction", title="Share of op time", display="bar"),
        Column(name="cumulative_share", unit="fraction", title="Cumulative"),
        Column(name="flop_rate", unit="flops/s", title="FLOP rate"),
        _FLOPS,
        _BOUND,
        _COUNT,
        Column(name="xla_ops", unit="count", title="XLA ops"),
    )
    title = "Top 10 operations" if limit else "Framework ops"
    shown = summed.head(limit) if limit else summed
    prefix = "top-operation" if limit else "framework-op"
    return table_of(
        shown,
        title,
        columns,
        row_ids=unique_slugs(prefix, shown["operation"]),
        note="Self time of XLA ops, grouped by the framework's op; shares are of all ops' self time, idle left out.",
    )


def _framework_op(path: str, name: str) -> tuple[str, str]:
    if not path:
        return name, "Unknown"
    operation, colon, kind = path.rpartition(":")
    if not colon:
        return path, "Unknown"
    return operation, kind or operation.rsplit("/", 1)[-1].split("[", 1)[0]


def rated(facts: OpFacts, groups: pd.DataFrame) -> pd.DataFrame:
    """Return summed groups with rates and times in seconds."""
    total = sum(core.total for core in facts.cores)
    found = with_rates(groups, facts.peaks, total)
    found["self_s"] = found["self_ps"] / PS_PER_SECOND
    return found


def _groups(facts: OpFacts, key: str, title: str, prefix: str, idle: bool = False) -> Table:
    ops = facts.ops
    if key == "scope":
        ops = ops.assign(scope=[_scope(path) for path in ops["framework_op"]])
    counted = ops if key == "category" else ops[~ops["category"].isin(list(CONTAINERS))]
    groups = counted.groupby(key, sort=False)[list(OP_SUMS)].sum(min_count=1)
    found = rated(facts, groups.reset_index()).sort_values("self_ps", ascending=False, kind="stable")
    found["op_share"] = found["self_ps"] / max(1, int(found["self_ps"].sum()))
    if idle and facts.device != "CPU" and facts.idle > 0:
        idle_row = {key: "IDLE", "self_s": facts.idle, "self_share": facts.idle / facts.total, "occurrences": 0,
                    "self_ps": round(facts.idle * PS_PER_SECOND), "bound_by": ""}  # fmt: skip
        found = pd.concat([found, pd.DataFrame([idle_row])], ignore_index=True)
    columns = (
        Column(name=key, title=prefix.capitalize(), display="code"),
        *_GROUP_COLUMNS[:2],
        Column(
            name="op_share", unit="fraction", title="Without idle", definition="Share of the op time, IDLE left out."
        ),
        *_GROUP_COLUMNS[2:],
        Column(name="model_flops", unit="flops", title="FLOPs"),
        Column(name="bytes", unit="bytes", title="Bytes"),
        Column(name="flop_rate", unit="flops/s", title="FLOP rate"),
        Column(name="hbm_rate", unit="bytes/s", title="HBM rate"),
        Column(name="onchip_read_utilization", unit="fraction", title="On-chip read"),
        Column(name="onchip_write_utilization", unit="fraction", title="On-chip write"),
        Column(name="hbm_intensity", unit="flops/byte", title="HBM intensity"),
        Column(name="efficiency", unit="fraction", title="Roofline efficiency"),
        Column(name="self_ps", unit="picoseconds", display="machine"),
    )
    return table_of(found, title, columns, row_ids=unique_slugs(f"op-{prefix}", map(str, found[key])), most=300)


def _category_tables(facts: OpFacts) -> list[tuple[str, str, Table]]:
    """Return the largest categories opened to their ops: label, table id and table each."""
    ops = facts.ops.assign(row_id=[f"in-{row_id}" for row_id in op_ids(facts.ops)])
    sums = ops.groupby("category", sort=False)["self_ps"].sum().sort_values(ascending=False, kind="stable")
    whole = max(1, int(sums.sum()))
    found = []
    for category, time in sums.head(_OPENED_CATEGORIES).items():
        members = ops[ops["category"] == category]
        label = f"{category}: {percent(time / whole)} of the op time, {len(members)} ops"
        table = table_of(members, f"Ops of {category}", _MEMBER_COLUMNS, row_ids=members["row_id"], most=_OPENED_ROWS)
        found.append((label, f"op_category_{slug(str(category)).replace('-', '_')}", table))
    return found


def _scope(path: str) -> str:
    """Return the outer scopes of a framework op: the layer, as far as names tell."""
    parts = path.rpartition(":")[0].split("/") if ":" in path else path.split("/")
    return "/".join(parts[:-1][:_SCOPE_DEPTH]) or "(no scope)"


def _repeated(facts: OpFacts) -> pd.DataFrame:
    ops = facts.ops
    if not (ops["deduplicated"] != "").any():
        return pd.DataFrame()
    marked = ops[ops["deduplicated"] != ""]
    groups = marked.groupby(["module", "deduplicated"], sort=False)
    found = groups[list(OP_SUMS)].sum(min_count=1)
    found["copies"] = groups.size()
    found = rated(facts, found.reset_index())
    return found[found["copies"] > 1].sort_values("self_ps", ascending=False, kind="stable")


def repeated_table(groups: pd.DataFrame) -> Table:
    """Return the groups of identical ops."""
    columns = (Column(name="deduplicated", title="Op and its duplicates", display="code"),
               Column(name="copies", unit="count", title="Copies"), *_GROUP_COLUMNS)  # fmt: skip
    ids = unique_slugs("op-group", groups["deduplicated"])
    return table_of(groups, "Identical ops", columns, row_ids=ids, most=200)


def op_blocks(facts: OpFacts, charts: Mapping[str, Chart]) -> tuple[Block, ...]:
    """Return how the op profile reads, with the charts that there are."""
    blocks: list[Block] = [ChartBlock("op_categories"), TableBlock("op_categories")]
    blocks += [Details(label, (TableBlock(table_id),)) for label, table_id, _ in _category_tables(facts)]
    blocks.append(Heading("Ops", "ops-all"))
    blocks.append(TableBlock("hlo_ops"))
    folded: list[Block] = [TableBlock("op_programs"), TableBlock("op_scopes"), TableBlock("framework_ops")]
    if len(_repeated(facts)):
        folded.append(TableBlock("op_duplicates"))
    blocks.append(Details("By program, framework scope, framework op, and identical ops", tuple(folded)))
    blocks.append(Heading("Roofline", "ops-roofline"))
    shown = [ChartBlock(name) for name in charts if name.startswith("roofline")]
    blocks += shown or [Text("No roofline: the ops carry no cost, or the device's peaks are not known.")]
    return tuple(blocks)
