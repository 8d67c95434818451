"""What a trace holds: sections, tracks, arguments, flows, counters, marks; and what limits cut."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from itertools import pairwise

import pytest

from reportgen.document import Evidence, Finding, Location
from reportgen.errors import UsageError
from reportgen.exporters.limits import Level, TraceLimits
from reportgen.profile.model import HostProfile
from reportgen.profile.view import HostView
from reportgen.settings import Settings
from reportgen.wire import xplane_pb2
from tests.builders import LineBuilder, PlaneBuilder, Space, StatValue
from tests.exporters.traces import Trace, nanoseconds

PROGRAM = 12_190_760_917_235_803_885
CORE = "host0 chip 2 core 1"


def tpu_space() -> tuple[Space, PlaneBuilder]:
    details = xplane_pb2.CoreDetails(local_chip_id=2, core_num=1).SerializeToString()
    space = Space()
    return space, space.plane(
        "/device:TPU:0",
        {
            "core_details": details,
            "device_type_string": "TPU v6 Lite",
            "peak_teraflops_per_second": 1.0,
            "peak_hbm_bw_gigabytes_per_second": 1.0,
        },
    )


def add_op(plane: PlaneBuilder, name: str, category: str = "loop fusion", **stats: str | int) -> None:
    own: dict[str, StatValue] = {
        "hlo_category": category,
        "program_id": PROGRAM,
        "symbol_id": len(plane.proto.event_metadata) + 1,
    }
    plane.metadata(f"%{name} = f32[8] add()", {**own, **stats}, display_name=name)


def tpu_view() -> HostView:
    """Two steps of two framework ops; the second step is slower."""
    space, plane = tpu_space()
    for name, tf_op, source in (
        ("fusion.1", "jit(f)/layer/dot:", "model.py:1"),
        ("fusion.2", "jit(f)/layer/dot:", "model.py:1"),
        ("fusion.3", "jit(f)/loss/sum:", "model.py:2"),
    ):
        add_op(plane, name, flops=1_000_000, bytes_accessed=500, tf_op=tf_op, source=source)
    steps = plane.line("Steps")
    modules = plane.line("XLA Modules")
    ops = plane.line("XLA Ops")
    for step, (start, length) in enumerate([(0, 100_000), (200_000, 300_000)]):
        steps.event(str(step), start, length, {"group_id": step})
        modules.event(f"jit_f({PROGRAM})", start, length, {"run_id": step})
        third = length / 3
        for number in range(3):
            ops.event(f"%fusion.{number + 1} = f32[8] add()", start + number * third, third)
    return space.view()


def test_a_core_has_its_section_and_tracks_in_order() -> None:
    assert Trace([tpu_view()]).tracks == [
        (CORE, "Steps"),
        (CORE, "Framework Name Scope (derived)"),
        (CORE, "Framework Ops (derived)"),
        (CORE, "XLA Modules"),
        (CORE, "XLA Ops"),
        (CORE, "Source code (derived)"),
    ]


def test_an_op_shows_what_its_card_shows() -> None:
    first = Trace([tpu_view()]).slices(CORE, "XLA Ops")[0]
    assert first["name"] == "fusion.1"
    assert nanoseconds(first) == (0, 33_333)
    assert first["args"] == {
        "expression": "%fusion.1 = f32[8] add()",
        "category": "loop fusion",
        "program": str(PROGRAM),
        "flops": 1_000_000,
        "bytes": 500,
        "framework_op": "jit(f)/layer/dot:",
        "source": "model.py:1",
        "step": "0",
        "flops_utilisation": "3.0 %",
        "hbm_utilisation": "1.5 %",
        "start_ps": "0",
        "duration_ps": "33333333",
    }


def test_neighbours_of_one_framework_op_scope_and_source_become_one_slice() -> None:
    trace = Trace([tpu_view()])
    names = [(event["name"], *nanoseconds(event)) for event in trace.slices(CORE, "Framework Ops (derived)")]
    assert names == [("dot", 0, 66_666), ("sum", 66_666, 33_334), ("dot", 200_000, 200_000), ("sum", 400_000, 100_000)]
    scopes = [(event["name"], *nanoseconds(event)) for event in trace.slices(CORE, "Framework Name Scope (derived)")]
    assert ("jit(f)", 0, 100_000) in scopes
    assert ("layer", 200_000, 200_000) in scopes
    sources = [event["name"] for event in trace.slices(CORE, "Source code (derived)")]
    assert sources == ["model.py:1", "model.py:2"] * 2


def test_steps_are_derived_from_runs_of_the_main_module() -> None:
    space, plane = tpu_space()
    plane.line("XLA Modules").event("jit_f(7)", 100, 50, {"run_id": 5}).event("jit_f(7)", 300, 60, {"run_id": 6})
    steps = Trace([space.view()]).slices(CORE, "Steps (derived)")
    assert [nanoseconds(event) for event in steps] == [(100, 50), (300, 60)]
    assert steps[0]["args"]["evidence"] == "runs of the module with the most device time, jit_f(7)"


def test_nesting_and_adjacency_survive_picoseconds() -> None:
    """Rounded each by itself, 1.6 + 1.0 and 2.6 ns would overlap: 2 + 1 against 3."""
    space, plane = tpu_space()
    line = plane.line("XLA TraceMe")
    for name, start, length in (("whole", 1600, 2000), ("left", 1600, 1000), ("right", 2600, 1000)):
        line.event(name, start / 1000, length / 1000)
    slices = Trace([space.view()]).slices(CORE, "XLA TraceMe")
    assert [nanoseconds(event) for event in slices] == [(1, 2), (1, 1), (2, 1)]
    assert slices[2]["args"] == {"start_ps": "2600", "duration_ps": "1000"}


def test_overlapping_events_go_to_lanes() -> None:
    space, plane = tpu_space()
    plane.line("XLA TraceMe").event("a", 0, 10).event("b", 5, 10)
    trace = Trace([space.view()])
    assert trace.tracks == [(CORE, "XLA TraceMe"), (CORE, "XLA TraceMe (lane 2)")]
    assert trace.summary.events == 2


def test_asynchronous_ops_go_to_tracks_by_kind() -> None:
    space, plane = tpu_space()
    plane.line("Async XLA Ops").event("copy-start.7", 0, 10, {"hlo_op": "copy-done.7"}).event("copy-start.8", 5, 10)
    trace = Trace([space.view()])
    begin, end = trace.of_kind("b", "e")[:2]
    assert (begin["name"], begin["ts"], begin["args"]) == (
        "copy-start",
        0.0,
        {"op": "copy-start.7", "hlo_op": "copy-done.7"},
    )
    assert (end["name"], end["ts"], end["id2"]) == ("copy-start", 0.01, begin["id2"])
    assert len({event["id2"]["local"] for event in trace.of_kind("b")}) == 2


def test_sparse_cores_stand_apart_and_threads_are_busiest_first() -> None:
    space, plane = tpu_space()
    plane.line("XLA TraceMe").event("a", 0, 10)
    space.plane("/device:TPU:0 SparseCore 3").line("Sparse Core Ops").event("gather", 0, 10)
    threads = space.plane("/host:CPU")
    threads.line("idle/1").event("a", 0, 10)
    threads.line("busy/2").event("b", 0, 1000)
    assert Trace([space.view()]).tracks == [
        (CORE, "XLA TraceMe"),
        ("host0 chip 0 SparseCore 3", "Sparse Core Ops"),
        ("host0 threads", "busy/2"),
        ("host0 threads", "idle/1"),
    ]


def gpu_space() -> tuple[Space, LineBuilder, LineBuilder]:
    space = Space()
    stream = space.plane("/device:GPU:1").line("Stream #13(Compute)")
    return space, stream, space.plane("/host:CPU").line("main/1")


def test_streams_have_ops_and_modules_and_launches_flow_to_kernels() -> None:
    space, stream, thread = gpu_space()
    thread.event("cuLaunchKernel", 10, 5, {"correlation_id": 7})
    stats: dict[str, StatValue] = {
        "correlation_id": 7,
        "hlo_op": "fusion.1",
        "hlo_module": "jit_f",
        "tf_op": "scope/add:Add",
        "program_id": 3,
    }
    stream.event("kernel_a", 50, 10, stats).event("kernel_b", 60, 10, {**stats, "correlation_id": 8})
    trace = Trace([space.view()])
    section = "host0 GPU 1"
    assert [event["name"] for event in trace.slices(section, "Stream #13(Compute)")] == ["kernel_a", "kernel_b"]
    [module] = trace.slices(section, "XLA Modules (derived)")
    assert (module["name"], *nanoseconds(module)) == ("jit_f(3)", 50, 20)
    assert trace.slices(section, "XLA Ops (derived)")[0]["name"] == "fusion.1"
    begin, end = trace.of_kind("s", "f")
    assert (trace.thread(begin), begin["ts"]) == ("main/1", 0.01)
    assert (trace.thread(end), end["ts"]) == ("Stream #13(Compute)", 0.05)


def test_copies_are_no_hlo_ops() -> None:
    space, stream, _ = gpu_space()
    stats: dict[str, StatValue] = {"hlo_op": "fusion.1", "hlo_module": "jit_f", "program_id": 3}
    stream.event("kernel_a", 0, 10, stats).event("kernel_b", 20, 10, stats).event("MemcpyH2D", 40, 10)
    slices = Trace([space.view()]).slices("host0 GPU 1", "XLA Ops (derived)")
    assert [(event["name"], *nanoseconds(event)) for event in slices] == [("fusion.1", 0, 30)]


def test_ops_far_apart_are_no_neighbours() -> None:
    space, plane = tpu_space()
    for number in range(3):
        add_op(plane, f"fusion.{number}", tf_op="jit(f)/add:")
    ops = plane.line("XLA Ops")
    for number, start in enumerate((0, 20, 200_000)):
        ops.event(f"%fusion.{number} = f32[8] add()", start, 10)
    slices = Trace([space.view()]).slices(CORE, "Framework Ops (derived)")
    assert [nanoseconds(event) for event in slices] == [(0, 30), (200_000, 10)]


def test_a_launch_flows_to_its_module_run_and_not_to_another_type_of_the_same_id() -> None:
    space, plane = tpu_space()
    plane.line("XLA Modules").event("jit_f(7)", 100, 50, {"_ct": 12, "_c": -5})
    space.plane("/host:CPU").line("main/1").event("Enqueue", 10, 5, {"_pt": 12, "_p": -5}).event(
        "other", 20, 5, {"_pt": 7, "_p": -5}
    )
    begin, end = Trace([space.view()]).of_kind("s", "f")
    assert (begin["ts"], end["ts"], begin["id"]) == (0.01, 0.1, end["id"])


def test_the_kth_send_meets_the_kth_receive_of_its_channel() -> None:
    space, sender = tpu_space()
    receiver = space.plane(
        "/device:TPU:1", {"core_details": xplane_pb2.CoreDetails(local_chip_id=3).SerializeToString()}
    )
    for plane, opcode, starts in ((sender, "send", (0, 100)), (receiver, "recv", (50, 150))):
        text = f"%{opcode}.1 = f32[8] {opcode}(f32[8] %x), channel_id=4, is_host_transfer=false"
        plane.metadata(text, {"hlo_category": opcode, "program_id": 1, "symbol_id": 1}, display_name=f"{opcode}.1")
        line = plane.line("XLA Ops")
        for start in starts:
            line.event(text, start, 10)
    flows = Trace([space.view()]).of_kind("s", "f")
    joined = {(begin["ts"], end["ts"]) for begin, end in zip(flows[::2], flows[1::2], strict=True)}
    assert joined == {(0.0, 0.05), (0.1, 0.15)}


def counters(trace: Trace, name: str) -> list[tuple[float, float]]:
    found = [event for event in trace.of_kind("C") if event["name"] == name]
    return [(event["ts"], next(iter(event["args"].values()))) for event in found]


def test_rates_are_amounts_over_time() -> None:
    rates = counters(Trace([tpu_view()]), "FLOP rate")
    assert rates[-1][1] == 0
    total = sum(value * (after - start) for (start, value), (after, _) in pairwise(rates))
    assert total / 1e6 == pytest.approx(6_000_000, rel=1e-3)


def test_there_is_no_rate_where_there_is_no_cost_model() -> None:
    space, plane = tpu_space()
    add_op(plane, "fusion.1")
    plane.line("XLA Ops").event("%fusion.1 = f32[8] add()", 0, 10)
    assert counters(Trace([space.view()]), "FLOP rate") == []


def test_memory_and_hardware_counters() -> None:
    space, plane = tpu_space()
    plane.line("_counters_").event("HBM reads", 10, 0, {"counter_value": 5}).event(
        "HBM reads", 20, 0, {"counter_value": 2.5}
    )
    thread = space.plane("/host:CPU").line("main/1")
    for start, size in ((10, 100), (20, 40)):
        stats: dict[str, StatValue] = {
            "bytes_allocated": size,
            "bytes_reserved": 1,
            "allocator_name": "bfc",
            "device_ordinal": 0,
        }
        thread.event("MemoryAllocation", start, 0, stats)
    trace = Trace([space.view()])
    assert counters(trace, "HBM reads") == [(0.01, 5), (0.02, 2.5)]
    assert counters(trace, "memory in use, device 0 bfc") == [(0.01, 101), (0.02, 41)]


def finding(name: str, *locations: Location) -> Finding:
    return Finding(
        id=name, rule=name, severity="high", title=f"title of {name}", summary="why", confidence="high",
        evidence=(Evidence(text="fact"),), threshold=None, saving=None, locations=locations,
    )  # fmt: skip


def test_findings_and_slow_steps_are_marked_where_they_happen() -> None:
    found = [
        finding("on-op", Location(kind="op", name="fusion.3")),
        finding("on-step", Location(kind="step", name="step 1")),
        finding("nowhere"),
    ]
    marks = {event["name"]: event for event in Trace([tpu_view()], found).of_kind("i")}
    assert marks["title of on-op"]["ts"] == 66.666
    assert marks["title of on-step"]["ts"] == 200.0
    assert marks["title of nowhere"]["ts"] == 0.0
    assert marks["title of on-op"]["args"]["evidence 1"] == "fact"
    assert marks["step 1: 300 µs, 1.50 × the median"]["ts"] == 200.0


def test_limits_cut_and_say_so() -> None:
    steps = Trace([tpu_view()], limits=TraceLimits(steps=(1, 1)))
    assert {event["args"]["step"] for event in steps.slices(CORE, "XLA Ops")} == {"1"}
    assert steps.summary.cut == {"events are outside the chosen steps": 12}
    assert steps.metadata["cut"] == ["12 events are outside the chosen steps"]
    level = Trace([tpu_view()], limits=TraceLimits(level=Level.STEPS))
    assert [track for _, track in level.tracks] == ["Steps", "XLA Modules"]
    longest = Trace([tpu_view()], limits=TraceLimits(max_events=5))
    assert [track for _, track in longest.tracks] == ["Steps", "Framework Name Scope (derived)", "XLA Modules"]
    assert longest.summary.events == 5
    with pytest.raises(UsageError, match="its steps are 0 to 1"):
        Trace([tpu_view()], limits=TraceLimits(steps=(7, 9)))


def test_events_before_the_capture_and_without_a_time() -> None:
    space, plane = tpu_space()
    plane.line("XLA TraceMe").event("early", -5, 8).event("late", 4, 2).aggregate("many", 3, 10)
    trace = Trace([space.view()])
    assert [nanoseconds(event) for event in trace.slices(CORE, "XLA TraceMe")] == [(0, 3), (4, 2)]
    assert trace.summary.cut == {
        "aggregated events have no time and are not drawn": 1,
        "events began before the capture and are drawn from its start": 1,
    }


def host_view(name: str, start_ns: int) -> HostView:
    space = Space()
    space.plane("/host:CPU").line("main/1").event("work", 100, 10)
    space.plane("Task Environment", {"profile_start_time": start_ns, "profile_stop_time": start_ns + 1000})
    return space.view(host=name)


def test_hosts_stand_on_one_clock_that_counts_from_the_earliest_start() -> None:
    trace = Trace([host_view("late", 1_700_000_000_000_005_000), host_view("early", 1_700_000_000_000_000_000)],
                  start_ns=1_700_000_000_000_000_000)  # fmt: skip
    assert trace.metadata == {"start_unix_ns": "1700000000000000000", "hosts": ["late", "early"], "cut": []}
    assert nanoseconds(trace.slices("late threads", "main/1")[0]) == (5_100, 10)
    assert nanoseconds(trace.slices("early threads", "main/1")[0]) == (100, 10)


def test_a_host_is_let_go_before_the_next_is_asked_for() -> None:
    alive: list[weakref.ref[HostView]] = []

    def views() -> Iterator[HostView]:
        for number in range(3):
            assert not any(reference() for reference in alive)
            view = host_view(f"host{number}", 0)
            alive.append(weakref.ref(view))
            yield view
            del view

    assert Trace(views()).summary.hosts == ["host0", "host1", "host2"]


def test_only_named_hosts_are_written() -> None:
    trace = Trace([host_view("a", 0), host_view("b", 0)], limits=TraceLimits(hosts=("b",)))
    assert trace.tracks == [("b threads", "main/1")]


def test_same_profile_same_bytes() -> None:
    assert Trace([tpu_view()]).content == Trace([tpu_view()]).content


def test_whole_numbers_of_64_bits_are_strings() -> None:
    space, plane = tpu_space()
    plane.line("XLA TraceMe").event("a", 0, 1, {"big": 2**63 + 1, "small": -3, "exact": 2**53, "ratio": float("inf")})
    [event] = Trace([space.view()]).slices(CORE, "XLA TraceMe")
    assert event["args"] == {"big": str(2**63 + 1), "small": -3, "exact": 2**53, "ratio": "inf"}


def test_a_long_name_of_many_events_is_cut_and_of_few_is_kept() -> None:
    space, plane = tpu_space()
    many, few = "m" * 100_000, "f" * 100_000
    line = plane.line("XLA TraceMe").event(few, 0, 1)
    for number in range(100):
        line.event(many, number * 10 + 5, 1)
    names = [event["name"] for event in Trace([space.view()]).slices(CORE, "XLA TraceMe")]
    assert names[0] == few
    assert {len(name) for name in names[1:]} == {2001}


def test_peaks_of_the_user_win() -> None:
    view = HostView(tpu_view().profile, Settings(peak_flops=1e11))
    assert Trace([view]).slices(CORE, "XLA Ops")[0]["args"]["flops_utilisation"] == "30 %"


def damaged(view: HostView, marker: bytes, new: bytes) -> HostView:
    """The same profile with some bytes replaced by as many others."""
    content = bytes(view.profile.planes[0].raw.buffer.data)
    assert content.count(marker) == 1
    assert len(marker) == len(new)
    return HostView(HostProfile.from_bytes("host0", content.replace(marker, new)), Settings())


def damage_view() -> HostView:
    space = Space()
    threads = space.plane("/host:CPU")
    threads.line("good/1").event("a", 0, 1)
    threads.line("bad/2").event("b", 5, 0.777, {"text": "findme"})
    return space.view()


def test_a_damaged_line_is_left_out_and_said() -> None:
    """The event's duration, 777 ps, becomes a field of an unknown wire type."""
    trace = Trace([damaged(damage_view(), b"\x18\x89\x06", b"\x1f\x89\x06")])
    assert trace.tracks == [("host0 threads", "good/1")]
    assert trace.summary.cut == {"lines are damaged and could not be read whole": 1}


def test_damaged_arguments_are_left_out_and_said() -> None:
    """The text's length runs past the end of its statistic."""
    trace = Trace([damaged(damage_view(), b"\x06findme", b"\x7ffindme")])
    [event] = trace.slices("host0 threads", "bad/2")
    assert event["args"] == {"start_ps": "5000", "duration_ps": "777"}
    assert trace.summary.cut == {"tracks hold arguments that are damaged and were left out": 1}


def test_events_of_no_known_kind_are_drawn_without_a_name() -> None:
    space = Space()
    space.plane("/host:CPU").line("main/1").event("a", 0, 1)
    space.planes[0].proto.lines[0].events[0].metadata_id = 99
    [event] = Trace([space.view()]).slices("host0 threads", "main/1")
    assert (event["name"], event["args"]) == ("unnamed", {})
