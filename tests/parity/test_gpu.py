"""GPU and CPU figures against XProf's: integers equal, and each intended difference at its own right value.

Where XProf counts FLOPs from HLO it takes XLA's GPU cost model, which charges an element by element operation with the
cycles that it costs (3 for an addition, 190 for a hyperbolic tangent); ours counts one FLOP an element and leaves
transcendental functions out, as XLA's own count does. Matrix products are equal.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from reportgen.analyzers.base import Context, Result
from reportgen.analyzers.kernels import KernelAnalyzer
from reportgen.profile.model import HostProfile
from reportgen.profile.ops import NO_OWNER, merge_ops, op_table
from reportgen.profile.steps import StepSource
from reportgen.profile.view import HostView
from reportgen.settings import Settings
from reportgen.wire import xplane_pb2
from tests.builders import Space, Stats
from tests.conftest import REFERENCE, ROOT
from tests.parity import xprof

pytestmark = pytest.mark.peer

MI300 = REFERENCE / "profiles" / "gpu_mi300x_jax" / "host0.xplane.pb"
GTX1080 = REFERENCE / "profiles" / "gpu_gtx1080ti_pjrt" / "host0.xplane.pb"
V100 = REFERENCE / "profiles" / "gpu_v100_8x_tf2" / "worker0.xplane.pb"
CPU = [
    next((ROOT / "sample_profiles" / name).rglob("*.xplane.pb"))
    for name in ("jax_cpu", "jax_cpu_input_bound", "tf_cpu", "tf_cpu_healthy", "torch_xla_cpu")
]
PRODUCT = "gemm_fusion_dot_general.1"
# FLOPs of the MI300 capture's library products, by program: runs, M*N*K (times the batch).
LIBRARY = {
    19: (12, 8192 * 1024 * 1024),
    32: (3, 4 * 2048 * 2048 * 1024),
    73: (3, 8192 * 4096 * 1024),
    98: (3, 8192 * 1024 * 4096),
}


@cache
def view(path: Path) -> HostView:
    if not path.exists():
        pytest.skip("optional third-party profiles are absent; REPORTGEN_REFERENCE names the folder that holds them")
    return HostView(HostProfile.from_bytes("host0", path.read_bytes()), Settings(strict=True))


@cache
def raw(path: Path) -> xplane_pb2.XSpace:
    return xplane_pb2.XSpace.FromString(path.read_bytes())


@cache
def ops(path: Path) -> pd.DataFrame:
    return merge_ops([op_table(core.runs) for core in view(path).active_cores])


@cache
def kernels(path: Path) -> Result:
    part = KernelAnalyzer().host(view(path))
    assert part is not None
    return KernelAnalyzer().merge([part], Context(Settings(), {}))


def nodes(path: Path, root: str = "byProgramExcludeIdle") -> dict[tuple[str, str, str], dict[str, Any]]:
    """XProf's metrics of each op, by label of the program, category and name."""
    found = {}
    for program in xprof.answers(path)["op_profile"][root].get("children", []):
        for category in program.get("children", []):
            for op in category["children"]:
                found[program["name"], category["name"], op["name"]] = op["metrics"]
    return found


def idle(path: Path) -> int:
    root = xprof.answers(path)["op_profile"]["byProgram"]
    found = [node for node in (root, *root.get("children", [])) if node["name"] == "IDLE"]
    return int(found[0]["metrics"]["rawTime"])


def ours(path: Path) -> pd.DataFrame:
    """Our ops that XProf knows too, with the label of their program; the rest has no HLO."""
    labels = view(path).modules.labels
    table = ops(path)
    table = table[table["program"].isin(list(labels)) & ~table["category"].isin([NO_OWNER, "unknown"])]
    return table.assign(label=[labels[program] for program in table["program"]])


@pytest.mark.parametrize("path", [MI300, GTX1080, V100])
def test_times_and_occurrences_of_every_op_are_xprofs_integers(path: Path) -> None:
    found = {(r.label, r.category, r.name): (r.time_ps, r.occurrences) for r in ours(path).itertuples()}
    expected = {key: (int(node["rawTime"]), node["occurrences"]) for key, node in nodes(path).items()}
    assert found == expected
    assert len(expected) == {MI300: 24, GTX1080: 1, V100: 0}[path]


@pytest.mark.parametrize("path", [MI300, GTX1080, V100])
def test_span_less_owned_time_is_xprofs_idle(path: Path) -> None:
    spans = [core.runs.span for core in view(path).active_cores]
    assert sum(end - start for start, end in spans) - ours(path)["self_ps"].sum() == idle(path)


@pytest.mark.parametrize("path", [MI300, GTX1080, V100])
def test_no_time_of_a_stream_is_lost(path: Path) -> None:
    streams = [
        event.duration_ps
        for plane in raw(path).planes
        if plane.name.startswith("/device:GPU")
        for line in plane.lines
        if line.name.startswith("Stream #")
        for event in line.events
    ]
    table = ops(path)
    assert (table["self_ps"].sum(), table["time_ps"].sum()) == (sum(streams), sum(streams))
    assert table["occurrences"].sum() == len(streams)


def test_what_xprof_drops_is_named() -> None:
    """XProf shows no op without HLO: copies on MI300, and on V100 all that TensorFlow ran without XLA."""
    copies = ops(MI300)[ops(MI300)["program"] == 0]
    assert copies[["name", "category", "time_ps", "occurrences"]].values.tolist() == [
        ["__amd_rocclr_copyBuffer.kd", "memcpy", 82_560_000, 18]
    ]
    assert not nodes(V100)
    by_category = ops(V100).groupby("category")["occurrences"].sum().to_dict()
    assert by_category["memcpy H2D"] + by_category["memcpy D2H"] == 202 + 24
    assert sum(by_category.values()) - 226 == 2 * 665
    assert {"RandomUniform", "Cast", "GreaterEqual", "Mul"} <= set(by_category)


@pytest.mark.parametrize("path", [MI300, GTX1080])
def test_bytes_are_xprofs_where_it_counts_them(path: Path) -> None:
    counted = ours(path)[ours(path)["category"] != "custom-call"]
    found = {(r.label, r.category, r.name): r.bytes for r in counted.itertuples()}
    expected = {key: sum(n["rawBytesAccessedArray"]) for key, n in nodes(path).items() if key[1] != "custom-call"}
    assert found == pytest.approx(expected, rel=1e-12)


def test_flops_of_products_are_xprofs() -> None:
    found = ours(MI300).set_index("name")["flops"][PRODUCT]
    (expected,) = [node["rawFlops"] for key, node in nodes(MI300).items() if key[2] == PRODUCT]
    assert found == expected == 3 * 2 * 4 * 4 * 2048 * 1024 * 512


def test_library_products_have_flops_that_xprof_lacks() -> None:
    table = ours(MI300)
    calls = table[table["category"] == "custom-call"].set_index("program")
    assert calls["flops"].to_dict() == {program: 2 * runs * size for program, (runs, size) in LIBRARY.items()}
    assert [node["rawFlops"] for key, node in nodes(MI300).items() if key[1] == "custom-call"] == [0] * 4


def test_the_difference_of_all_other_flops_is_the_cost_of_elementwise_operations() -> None:
    table = ours(MI300)
    rest = table[(table["category"] != "custom-call") & (table["name"] != PRODUCT)]
    theirs = {key: n["rawFlops"] for key, n in nodes(MI300).items() if key[1] != "custom-call" and key[2] != PRODUCT}
    assert (rest["flops"].sum(), sum(theirs.values())) == (3_674_284_047, 34_477_474_035)
    mine = dict(zip(zip(rest["label"], rest["category"], rest["name"], strict=True), rest["flops"], strict=True))
    ratios = {key: theirs[key] / flops for key, flops in mine.items() if flops}
    dear = {"jit_exp(53)": 46, "jit_tanh(92)": 98, "jit_sqrt(43)": 78}
    assert ratios == pytest.approx({key: dear.get(key[0], 3) for key in ratios}, rel=1e-3)


def test_the_flops_of_a_split_product_count_once_where_xprof_counts_them_for_each_kernel(tmp_path: Path) -> None:
    """Two kernels an execution, as in split-K products: XProf multiplies the op's FLOPs by its kernels."""
    space = Space()
    space.hlo("jit_matmul(59)", 59, view(MI300).modules[59].proto.SerializeToString())
    gpu = space.plane("/device:GPU:0", {"device_vendor": "Nvidia", "compute_cap_major": 9})
    line = gpu.line("Stream #1(Compute)")
    launch = "regs:8 static_shared:0 dynamic_shared:0 grid:1,1,1 block:1,1,1 occ_pct:50"
    for start in (0, 100, 200):
        for name, offset in (("splitk_gemm", 0), ("splitk_sum", 40)):
            stats: Stats = {
                "hlo_op": PRODUCT,
                "program_id": 59,
                "kernel_details": launch,
                "correlation_id": start + offset,
            }
            line.event(name, start + offset, 30, stats)
    path = tmp_path / "host0.xplane.pb"
    path.write_bytes(space.proto.SerializeToString())
    (node,) = nodes(path).values()
    (row,) = ours(path).itertuples()
    once = 2 * 4 * 4 * 2048 * 1024 * 512
    assert (node["occurrences"], int(node["rawTime"]), node["rawFlops"]) == (6, 180_000, 6 * once)
    assert (row.occurrences, row.time_ps, row.flops) == (6, 180_000, 3 * once)


@pytest.mark.parametrize("path", [MI300, GTX1080])
def test_framework_ops_and_source_lines_are_xprofs(path: Path) -> None:
    """Where the HLO names no framework op XProf has none; ours is then what the kernel itself recorded."""
    rows = list(xprof.rows(xprof.answers(path)["hlo_stats"]))
    theirs = {
        (int(row["program_id"]), row["hlo_op_name"]): (row["tf_op_name"], _file_and_line(row["source_info"]))
        for row in rows
        if row["category"] != "IDLE"
    }
    found = {(row.program, row.name): (row.framework_op, row.source) for row in ours(path).itertuples()}
    assert {key: value[1] for key, value in found.items()} == {key: value[1] for key, value in theirs.items()}
    more = {key: found[key][0] for key, value in theirs.items() if found[key][0] != value[0]}
    assert {theirs[key][0] for key in more} == ({""} if path == MI300 else set())
    assert set(more.values()) == (FROM_EVENTS if path == MI300 else set())


FROM_EVENTS = {
    f"jit({name}:"
    for name in (
        "_reduce_max)/max", "add)/add", "exp)/exp", "integer_pow)/integer_pow", "matmul)/dot_general", "multiply)/mul",
        "tanh)/tanh", "true_divide)/div",
    )
}  # fmt: skip


def _file_and_line(cell: str) -> str:
    match = re.search(r">([^<]+)</div>", cell)
    return match[1] if match else ""


def _kernels_of_xprof(path: Path) -> Counter[tuple[str, ...]]:
    found: Counter[tuple[str, ...]] = Counter()
    for row in xprof.rows(xprof.answers(path)["kernel_stats"]):
        key = (row["kernel_name"], row["grid_dim"], row["block_dim"], str(int(row["registers_per_thread"])))
        found[(*key, "occurrences")] += int(row["occurrences"])
        found[(*key, "ns")] += round(1000 * row["total_duration_us"])
    return found


@pytest.mark.parametrize("path", [MI300, GTX1080, V100])
def test_kernels_are_those_of_kernel_stats(path: Path) -> None:
    """Summed over ops, since XProf groups by framework op; a register count that was not captured is 0 there."""
    found: Counter[tuple[str, ...]] = Counter()
    for row in kernels(path).facts.kernels.itertuples():
        key = (row.kernel, row.grid, row.block, str(0 if pd.isna(row.registers) else row.registers))
        found[(*key, "occurrences")] += row.occurrences
        found[(*key, "ns")] += row.time_ps // 1000
    assert found == _kernels_of_xprof(path)
    assert len(found) == {MI300: 2 * 15, GTX1080: 2, V100: 2 * 15}[path]


@pytest.mark.parametrize("path", [MI300, GTX1080, V100])
def test_kernels_on_tensor_cores_are_xprofs(path: Path) -> None:
    table = kernels(path).facts.kernels
    rows = list(xprof.rows(xprof.answers(path)["kernel_stats"]))
    theirs = {row["kernel_name"] for row in rows if row["is_kernel_using_tensor_core"]}
    assert set(table["kernel"][table["matrix_unit"] == "yes"]) == theirs
    assert len(theirs) == (5 if path == MI300 else 0)


def test_occupancy_and_shared_memory_that_were_not_captured_are_no_zeros() -> None:
    amd, nvidia = kernels(MI300).facts.kernels, kernels(GTX1080).facts.kernels
    assert amd["occupancy"].isna().all()
    assert amd["registers"].isna().all()
    assert set(amd["shared"]) == {0, 16, 8192, 8704, 31616, 32768, 33792}
    assert nvidia[["registers", "static_shared", "dynamic_shared", "occupancy"]].values.tolist() == [[12, 0, 0, 1.0]]


def test_the_share_of_narrow_types_is_that_of_the_operands() -> None:
    """XProf finds no type on MI300, since it looks for "half" only, and only in steps."""
    assert kernels(MI300).facts.element_times == {"bf16": 0.003527002, "f32": 0.00022196, "s32": 1.404e-05}
    assert kernels(MI300).metrics["device_16bit_time_fraction"].value == pytest.approx(0.937284, abs=1e-6)
    assert kernels(MI300).metrics["tensor_core_time_fraction"].value == pytest.approx(0.502269, abs=1e-6)
    assert xprof.answers(MI300)["overview_page"][0]["p"]["device_compute_16bit_percent"] == "0.0%"


def test_kernels_that_only_write_narrow_types_count_where_xprof_counts_those_that_read_them() -> None:
    """On V100 the operands of most kernels are no floating point numbers: their names tell that they make halves."""
    table = kernels(V100).facts.kernels
    narrow = table[table["element"] == "fp16"]
    kinds = narrow["framework_op"].str.rsplit(":").str[-1]
    shares = narrow.groupby(kinds)["time_ps"].sum() / table["time_ps"].sum()
    assert kernels(V100).metrics["device_16bit_time_fraction"].value == pytest.approx(shares.sum())
    assert xprof.answers(V100)["overview_page"][0]["p"]["device_compute_16bit_percent"] == "30.5%"
    assert shares.drop(["RandomUniform", "Cast"]).sum() == pytest.approx(0.305, abs=5e-4)
    assert shares[["RandomUniform", "Cast"]].to_dict() == pytest.approx(
        {"RandomUniform": 0.266, "Cast": 0.175}, abs=1e-3
    )


def test_the_step_of_v100_is_xprofs() -> None:
    (step,) = xprof.rows(xprof.answers(V100)["overview_page"][1])
    theirs = step["deviceComputeTimeMs"] + step["otherTimeMs"]
    assert max(core.steps.durations.max(initial=0) for core in view(V100).cores) / 1e9 == pytest.approx(
        theirs, rel=1e-9
    )


def test_eager_programs_of_which_none_takes_half_of_the_time_have_no_steps() -> None:
    assert not list(xprof.rows(xprof.answers(MI300)["overview_page"][1]))
    assert view(MI300).step_source == (StepSource.NONE, "")
    assert len(view(MI300).active_cores[0].steps) == 0


@pytest.mark.parametrize("path", CPU, ids=lambda path: path.parents[3].name)
def test_steps_on_cpu_are_xprofs_with_the_first_and_the_last_that_it_drops(path: Path) -> None:
    rows = list(xprof.rows(xprof.answers(path)["overview_page"][1]))
    parts = [name for name in rows[0] if name.endswith("TimeMs") and name != "stepTimeMs"]
    (core,) = view(path).active_cores
    assert [f"train {label}" for label in core.steps.labels[1:-1]] == [row["stepnum"] for row in rows]
    theirs = [sum(row[part] for part in parts) for row in rows]
    assert (core.steps.durations[1:-1] / 1e9).tolist() == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("path", CPU, ids=lambda path: path.parents[3].name)
def test_on_cpu_xprof_shows_no_op_and_we_show_all(path: Path) -> None:
    answers = xprof.answers(path)
    assert not nodes(path)
    assert not list(xprof.rows(answers["hlo_stats"]))
    owned = [
        (stats["hlo_op"], event.duration_ps)
        for plane in raw(path).planes
        for line in plane.lines
        for event in line.events
        if "hlo_op" in (stats := _texts(plane, event))
    ]
    table = ops(path)
    expected = pd.DataFrame(owned, columns=["name", "time"]).groupby("name")["time"].agg(["count", "sum"])
    found = table.groupby("name")[["occurrences", "time_ps"]].sum()
    assert found.values.tolist() == expected.loc[found.index].values.tolist()
    assert len(found) == len(expected) > 20
    assert not table["category"].isin([NO_OWNER, "unknown"]).any()
    assert table["flops"].sum() > 1e9


def _texts(plane: xplane_pb2.XPlane, event: xplane_pb2.XEvent) -> dict[str, str]:
    found = {}
    for stat in event.stats:
        text = plane.stat_metadata[stat.ref_value].name if stat.HasField("ref_value") else stat.str_value
        found[plane.stat_metadata[stat.metadata_id].name.decode()] = text.decode()
    return found
