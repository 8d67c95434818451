"""Traces in JSON as profiles: what they hold is read, what they lack stays absent, damage is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from reportgen.errors import InputError
from reportgen.profile.model import HostProfile
from reportgen.profile.view import HostView
from reportgen.settings import Settings
from reportgen.sources.load import host_from_bytes, load_host
from reportgen.sources.locate import find_run
from reportgen.sources.trace_json import is_trace_json

Event = dict[str, Any]


def named(pid: int, name: str, **threads: str) -> list[Event]:
    events: list[Event] = [{"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}]
    for tid, title in threads.items():
        events.append({"ph": "M", "pid": pid, "tid": int(tid[1:]), "name": "thread_name", "args": {"name": title}})
    return events


def run_of(name: str, ts: float, dur: float, pid: int = 3, tid: int = 3, **args: object) -> Event:
    return {"ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "name": name, "args": args}


def profile_of(events: list[Event], **top: object) -> HostProfile:
    content = json.dumps({"displayTimeUnit": "ns", "traceEvents": events, **top}).encode()
    return host_from_bytes(content, "x.trace.json", "host0")


def tpu_events() -> list[Event]:
    op: dict[str, Any] = {
        "hlo_category": "convolution fusion",
        "long_name": "%fusion.1 = f32[8] fusion()",
        "bytes_accessed": "1024",
        "memory_access_breakdown": "<opaque bytes>",
        "source": "model.py:3",
        "tf_op": "jit(f)/dot:",
    }
    return [
        *named(3, "/device:TPU:0", t2="XLA Modules", t3="XLA Ops"),
        run_of("jit_f(512)", 10.0, 5.0, tid=2, run_id="850"),
        run_of("fusion.1", 10.000001, 2.5, device_offset_ps="7000001", device_duration_ps="2500000", **op),
        run_of("fusion.1", 13.0, 1.0, device_offset_ps="10000000", device_duration_ps="1000000", **op),
        {},
    ]


def test_ops_of_a_tpu_are_read_with_their_program_and_times_to_the_picosecond() -> None:
    profile = profile_of(tpu_events())
    [plane] = profile.planes
    assert plane.name == "/device:TPU:0"
    runs = HostView(profile, Settings()).cores[0].runs
    assert runs.trace_starts.tolist() == [10_000_001, 13_000_000]
    assert runs.starts.tolist() == [7_000_001, 10_000_000]
    assert runs.durations.tolist() == [2_500_000, 1_000_000]
    info = runs.infos[int(runs.ops[0])]
    assert (info.program, info.name, info.category) == (512, "fusion.1", "convolution fusion")
    assert (info.expression, info.source, info.framework_op) == (
        "%fusion.1 = f32[8] fusion()",
        "model.py:3",
        "jit(f)/dot:",
    )
    assert info.bytes == 1024
    assert runs.ops[0] == runs.ops[1]


def test_what_the_json_lacks_stays_absent() -> None:
    view = HostView(profile_of(tpu_events()), Settings())
    core = view.cores[0]
    assert core.peaks.flops.value is None
    assert core.runs.infos[int(core.runs.ops[0])].flops is None
    assert view.profile.start_ns is None
    assert len(view.modules) == 0
    assert "no HLO" in view.profile.warnings[0]


def test_the_same_op_of_two_programs_is_two_ops() -> None:
    events = [
        *named(3, "/device:TPU:0", t2="XLA Modules", t3="XLA Ops"),
        run_of("jit_f(1)", 0.0, 5.0, tid=2),
        run_of("jit_g(2)", 10.0, 5.0, tid=2),
        run_of("fusion.1", 1.0, 1.0, hlo_category="loop fusion"),
        run_of("fusion.1", 11.0, 1.0, hlo_category="loop fusion"),
        run_of("fusion.1", 7.0, 1.0, hlo_category="loop fusion"),
    ]
    runs = HostView(profile_of(events), Settings()).cores[0].runs
    assert [runs.infos[op].program for op in runs.ops.tolist()] == [1, 1, 2]
    assert runs.trace_starts.tolist() == [1_000_000, 7_000_000, 11_000_000]


def test_host_threads_steps_and_counters_are_read() -> None:
    events = [
        *named(701, "/host:CPU", t5="python"),
        run_of("train", 0.0, 5.0, 701, 5, step_num="3", _r="1"),
        run_of("train", 6.0, 5.0, 701, 5, step_num="4", _r="1"),
        {"ph": "C", "pid": 701, "tid": 0, "name": "reads", "ts": 2.0, "args": {"value": 7}},
    ]
    view = HostView(profile_of(events), Settings())
    assert view.annotations is not None
    assert view.annotations.steps.ids.tolist() == [3, 4]
    [plane] = view.profile.planes
    counters = plane.events(plane.line_indices("_counters_"), ("counter_value",))
    assert counters.stats["counter_value"].integers().tolist() == [7]
    assert counters.starts.tolist() == [2_000_000]


def test_a_list_of_events_and_a_host_before_the_plane_are_understood() -> None:
    events = [*named(3, "worker-7 /device:TPU:0", t3="XLA TraceMe"), run_of("a", 0.0, 1.0)]
    profile = host_from_bytes(json.dumps(events).encode(), "x.json", "host0")
    assert profile.name == "worker-7"
    assert profile.planes[0].name == "/device:TPU:0"


def test_names_that_are_not_utf8_or_hold_raw_control_characters_are_read() -> None:
    for raw in (b'"a\xff\xfeb"', b'"line\nbreak"', b'"half \\ud800 pair"'):
        content = b'{"traceEvents":[{"ph":"X","pid":1,"tid":1,"ts":1,"dur":2,"name":%s}]}' % raw
        [plane] = host_from_bytes(content, "x.json", "host0").planes
        assert len(plane.event_names) == 1
        assert plane.event_names[0].startswith(("a", "line\nbreak", "half "))


def test_what_is_left_out_is_said() -> None:
    events = [
        run_of("a", 0.0, 1.0),
        run_of("never", 1e300, 1.0),
        {"ph": "B", "pid": 3, "tid": 3, "ts": 0.0, "name": "open"},
    ]
    warnings = profile_of(events).warnings
    assert any("1 of kind B" in warning for warning in warnings)
    assert any("1 events of the trace have times that are no times" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b'{"traceEvents":[{"ph":"X","pid":1', "damaged JSON"),
        (b'{"traceEvents": 7, "ph": 1}', "damaged JSON"),
        (b'{"traceEvents": {"ph": 1}}', "damaged JSON"),
        (b'[{"ph":"X","pid":{}}]', "damaged JSON"),
        (b'{"traceEvents":[{"ph":"M","pid":1,"name":"process_name"}]}', "found none"),
        (b'{"traceEvents":[' + b"[" * 100_000, "damaged JSON"),
    ],
)
def test_damage_is_refused_with_the_name_of_the_file(content: bytes, found: str) -> None:
    assert is_trace_json(content)
    with pytest.raises(InputError, match=r"broken\.json: ") as error:
        host_from_bytes(content, "broken.json", "host0")
    assert found in str(error.value)


def test_a_trace_of_vllm_on_tpu_is_read_whole(profiles: Path) -> None:
    """A capture of others: every complete event of the JSON is an event of the profile."""
    path = profiles / "trace_json" / "vllm_tpu.trace.json.gz"
    raw = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    complete = [event for event in raw if event.get("ph") == "X"]
    profile, _ = load_host(find_run(str(path)).files[0])
    assert sum(plane.event_count for plane in profile.planes) == len(complete) == 10_312
    cores = HostView(profile, Settings()).active_cores
    ops = [event for event in complete if "hlo_category" in event.get("args", {})]
    assert sum(len(core.runs) for core in cores) == len(ops)
    busy = sum(int(event["args"]["device_duration_ps"]) for event in ops)
    assert sum(int(core.runs.durations.sum()) for core in cores) == busy
