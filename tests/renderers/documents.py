"""Documents built by hand, with every kind of block, chart and state."""

from __future__ import annotations

import math

from reportgen.document import (
    SCHEMA_VERSION,
    Action,
    Axis,
    Card,
    Cell,
    Chart,
    ChartBlock,
    Check,
    Checks,
    Column,
    Details,
    Evidence,
    Field,
    Finding,
    Findings,
    Generator,
    Guide,
    Heading,
    KeyValues,
    Lane,
    Location,
    Metric,
    Notice,
    ProfileInfo,
    ReportDocument,
    Saving,
    Section,
    Series,
    SourceFile,
    Table,
    TableBlock,
    Text,
    Threshold,
    Tiles,
    Timeline,
    TimelineBlock,
)

GIB = 2.0**30
_STEPS = 24
_OPS = 60
_CATEGORIES = ("convolution fusion", "loop fusion", "all-reduce", "copy", "data formatting")


def realistic() -> ReportDocument:
    """Return a training run that waits for input, with all sections, and a value of every state."""
    return ReportDocument(
        schema_version=SCHEMA_VERSION,
        generator=Generator(name="reportgen", version="0.1.0"),
        title="resnet50 train_step on 8 TPU v5 lite cores",
        verdict="Input-bound: 34 % of every step waits for input; "
        "fixing the input pipeline would bring up to 41.2 ms of each 121 ms step.",
        profile=_profile(),
        metrics=_metrics(),
        findings=_findings(),
        checks=_checks(),
        tables=_tables(),
        charts=_charts(),
        cards=_cards(),
        timelines={"typical-step": _timeline()},
        sections=_sections(),
    )


def _profile() -> ProfileInfo:
    return ProfileInfo(
        name="2026_08_20_12_00_00",
        hosts=("worker-0", "worker-1"),
        device_type="TPU v5 lite",
        device_count=8,
        core_count=8,
        framework="jax",
        step_source="XLA Modules line: one step per run of jit_train_step",
        captured_at="2026-08-20T12:00:00Z",
        duration=3.2,
        versions={"jax": "0.10.2", "jaxlib": "0.10.2", "libtpu": "0.0.30"},
        options={"host_tracer_level": "2"},
        files=(SourceFile(name="worker-0.xplane.pb", size=4_100_000, sha256="0" * 64),),
        warnings=(
            "The capture ends inside step 24; that step is left out of all statistics.",
            "Device 5 dropped 1,204 events; its times are too low by up to 0.3 %.",
        ),
    )


def _metrics() -> dict[str, Metric]:
    return {
        "step_time_mean": Metric(
            title="Step time", value=0.1213, unit="seconds", better="lower", spread=0.0042, source="XLA Modules",
            definition="Mean over 23 steps of the time from the start to the end of the step's program, on all cores.",
        ),
        "flops_utilization": Metric(
            title="FLOPS utilisation", value=0.312, unit="fraction", better="higher", basis="modelled",
            definition="Model FLOPs of all ops over total device time, divided by the peak of 197 TFLOP/s (bf16).",
        ),
        "hbm_bandwidth_utilization": Metric(
            title="HBM bandwidth utilisation", value=0.587, unit="fraction", better="higher", basis="derived",
            definition="Bytes to and from HBM over total device time, divided by the peak of 819 GB/s.",
        ),
        "input_wait_fraction": Metric(
            title="Waiting for input", value=0.34, unit="fraction", better="lower",
            definition="Time in which a step waits for input, over the step's period.",
        ),
        "device_idle_fraction": Metric(
            title="Device idle", value=None, unit="fraction", better="lower",
            definition="IDLE share of total device time.",
            reason="The device plane holds no XLA Ops line. Capture with device_tracer_level=1.",
        ),
        "peak_memory": Metric(
            title="Peak memory of 16.0 GiB", value=14.2 * GIB, unit="bytes", better="lower", basis="derived",
            definition="Highest sum of live buffers in HBM of jit_train_step, from its buffer assignment.",
        ),
    }  # fmt: skip


def _findings() -> tuple[Finding, ...]:
    return (
        Finding(
            id="input-bound", rule="input-bound", severity="critical", confidence="high",
            title="34 % of every step waits for input",
            summary="The TPU cores stand still while the host prepares the next batch.",
            evidence=(
                Evidence(text="waiting, of each step", value=0.34, unit="fraction", table="steps", row="step-7"),
                Evidence(text="host time in on-demand file reads", value=0.0312, unit="seconds"),
                Evidence(text="The infeed queue is empty at the start of 22 of 23 steps."),
            ),
            threshold=Threshold(
                name="input_wait", value=0.1, unit="fraction", reason="Below a tenth other causes are larger."
            ),
            saving=Saving(
                low=0.0206, likely=0.033, high=0.0412, unit="seconds", basis="measured", how="Half to all of it."
            ),
            locations=(
                Location(kind="stage", name="Iterator::Model::MapAndBatch::Shuffle", source="input.py:88"),
                Location(kind="step", name="step 7", table="steps", row="step-7"),
                Location(kind="host", name="worker-1"),
            ),
            actions=(
                Action(text="Read files in parallel and ahead of use."),
                Action(
                    text="Interleave and prefetch.", framework="tensorflow",
                    code="ds = files.interleave(read, num_parallel_calls=AUTOTUNE)\nds = ds.prefetch(AUTOTUNE)",
                ),
                Action(
                    text="Prefetch to the device.", framework="jax",
                    code="for batch in prefetch_to_device(batches, size=2):\n    state = train_step(state, batch)",
                ),
            ),
        ),
        Finding(
            id="padding-fusion-3", rule="padding", severity="high", confidence="medium",
            title="fusion.3 uses 5 % of the matrix unit: features are padded from 6 to 128",
            summary="The compiler pads the feature dimension to a whole tile, and the unit computes zeros.",
            evidence=(Evidence(text="useful share", value=0.047, unit="fraction", table="hlo_ops", row="op-fusion-3"),),
            threshold=Threshold(name="useful_share", value=0.5, unit="fraction"),
            saving=Saving(low=0.001, likely=0.0082, high=0.012, unit="seconds", basis="modelled"),
            locations=(
                Location(kind="op", name="fusion.3", table="hlo_ops", row="op-fusion-3", source="model/resnet.py:211"),
            ),
            actions=(Action(text="Choose a multiple of 128 for the number of features."),),
        ),
        Finding(
            id="memory-headroom", rule="memory-headroom", severity="medium", confidence="low",
            title="Peak memory is 89 % of the capacity", summary="A slightly larger batch will not fit.",
            evidence=(Evidence(text="peak", value=14.2 * GIB, unit="bytes"),),
            threshold=None,
            saving=Saving(low=0.0, likely=2.1 * GIB, high=3.0 * GIB, unit="bytes", basis="heuristic"),
        ),
        Finding(
            id="low-flops", rule="low-flops", severity="low", confidence="low", silenced_by="input-bound",
            title="FLOPS utilisation is 31 %", summary="Explained by the waiting for input.",
            evidence=(), threshold=None, saving=None,
        ),
    )  # fmt: skip


def _checks() -> tuple[Check, ...]:
    return (
        Check(rule="input-bound", title="Waiting for input", status="found"),
        Check(
            rule="step-spread", title="Steps of even length", status="fine", reason="The spread is 3.5 % of the mean.",
            thresholds=(Threshold(name="spread", value=0.1, unit="fraction", reason="Steps of a program vary less."),),
        ),
        Check(rule="host-transfers", title="Transfers to the host", status="fine", reason="0.2 % of each step."),
        Check(rule="megacore", title="Both cores of a chip used", status="not_applicable", reason="v5e has one core."),
        Check(
            rule="idle", title="Device idle", status="cannot_tell", reason="No XLA Ops line was captured.",
            remedy="jax.profiler.ProfileOptions().device_tracer_level = 1",
        ),
        Check(rule="stragglers", title="Slow hosts", status="error", reason="ZeroDivisionError: division by zero"),
    )  # fmt: skip


def _tables() -> dict[str, Table]:
    steps = [(index, *_step(index)) for index in range(_STEPS)]
    return {
        "steps": Table(
            title="Steps",
            columns=(
                Column(name="step", title="Step", display="number"),
                Column(name="compute", unit="seconds", title="Compute", display="number"),
                Column(name="input", unit="seconds", title="Input", display="number"),
                Column(name="idle", unit="seconds", title="Idle", display="number"),
                Column(name="outlier", title="Outlier", display="flag"),
            ),
            rows=tuple((index, compute, wait, idle, index == 7) for index, compute, wait, idle in steps),
            row_ids=tuple(f"step-{index}" for index in range(_STEPS)),
            note="Step 24 is cut off by the end of the capture and left out.",
        ),
        "hlo_ops": _ops_table(),
        "environment": Table(
            title="Run environment",
            columns=(Column(name="item", title="Item"), Column(name="value", title="Value", display="code")),
            rows=(("Hosts", "2"), ("Device", "TPU v5 lite"), ("Cores", "8"), ("Compiler flags", None)),
        ),
        "cores": Table(
            title="Cores",
            columns=(
                Column(name="core", title="Core"),
                Column(name="busy", unit="fraction", title="Busy", display="bar", definition="Of the capture's span."),
            ),
            rows=tuple((f"chip {index}", 0.5 + index / 20) for index in range(8)),
        ),
    }


def _step(index: int) -> tuple[float, float, float]:
    return 0.07 + 0.002 * math.sin(index), 0.04 + (0.05 if index == 7 else 0.004 * math.cos(index)), 0.008


def _ops_table() -> Table:
    columns = (
        Column(name="op", title="Op", display="code", definition="Name in the compiled program."),
        Column(name="category", title="Category"),
        Column(name="occurrences", title="Count", unit="count", display="number"),
        Column(name="self_time", title="Self time", unit="seconds", display="number", definition="Without callees."),
        Column(name="share", title="Share", unit="fraction", display="bar", definition="Of total device time."),
        Column(name="flops", title="FLOPS utilisation", unit="fraction", display="flame"),
        Column(name="hbm", title="HBM bandwidth", unit="bytes/s", display="number"),
        Column(name="wasted", title="Wasted", unit="seconds", display="number"),
    )
    return Table(
        title="XLA operations",
        columns=columns,
        rows=tuple(_op_row(index) for index in range(_OPS)),
        row_ids=tuple(f"op-fusion-{index}" for index in range(_OPS)),
        total_rows=1234,
        note="Self time summed over all cores.",
    )


def _op_row(index: int) -> tuple[Cell, ...]:
    name = f"%fusion.{index} = bf16[256,56,56,64]{{0,3,2,1:T(8,128)(2,1)}} fusion" if index == 4 else f"fusion.{index}"
    share = 0.3 * 0.8**index
    rate = None if index % 9 == 8 else 4e11 * 0.97**index
    return (name, _CATEGORIES[index % 5], 23 * 8, share * 2.4, share, (index * 7 % 21) / 20, rate, share * 0.9)


def _cards() -> dict[str, Card]:
    layout = Table(
        title="Layout of the input, minor to major",
        columns=(
            Column(name="dimension", title="Dimension"),
            Column(name="size", title="Size", unit="count", display="number"),
            Column(name="padded", title="Padded", unit="count", display="number"),
            Column(name="useful", title="Useful", unit="fraction", display="flame"),
        ),
        rows=(("features", 6, 128, 0.047), ("batch", 256, 256, 1.0)),
    )
    return {
        f"op-fusion-{index}": Card(
            title=f"fusion.{index}",
            fields=(
                Field(label="Framework op", value=f"jit(train_step)/ResNet/stage{index % 4}/conv", display="code"),
                Field(label="Source", value=f"model/resnet.py:{200 + index}", display="code"),
                Field(label="FLOPs", value=1.2e9 + index, unit="flops"),
                Field(label="Bytes in HBM", value=None, unit="bytes"),
            ),
            expression=f"%fusion.{index} = bf16[256,56,56,64] fusion(%p0, %p1), kind=kOutput, calls=%fused.{index}",
            tables=(layout,) if index < 5 else (),
        )
        for index in range(30)
    }


def _charts() -> dict[str, Chart]:
    steps = [_step(index) for index in range(_STEPS)]
    rows = tuple(f"step-{index}" for index in range(_STEPS))
    ops = _ops_table()
    return {
        "step_time": Chart(
            title="Input takes 34 % of every step; step 7 waits twice as long",
            kind="stacked_steps", alt="Step time from 112 to 170 ms over 24 steps; a third of each is waiting.",
            x=Axis(label="Step"), y=Axis(label="Time per step", unit="seconds"), table="steps",
            series=(
                Series(name="Compute", role="compute", y=tuple(step[0] for step in steps), row_ids=rows),
                Series(name="Input", role="input", y=tuple(step[1] for step in steps), row_ids=rows),
                Series(name="Idle", role="idle", y=tuple(step[2] for step in steps), row_ids=rows),
            ),
            guides=(Guide(label="mean 121 ms", value=0.1213),),
        ),
        "top_ops": Chart(
            title="Five fusions take 67 % of device time",
            kind="bars", alt="fusion.0 takes 720 ms, fusion.1 576 ms.", table="hlo_ops",
            x=Axis(label="Self time", unit="seconds"), y=Axis(label=""),
            categories=tuple(str(row[0]) for row in ops.rows[:10]),
            series=(
                Series(
                    name="Self time", role="compute", y=tuple(0.72 * 0.8**index for index in range(10)),
                    labels=tuple(str(row[0]) for row in ops.rows[:10]), row_ids=ops.row_ids[:10],
                ),
            ),
        ),
        "cores": Chart(
            title="Core 5 waits longest", kind="stacked_bars", alt="Eight cores; core 5 is idle 40 % of the time.",
            x=Axis(label="Time in the capture", unit="seconds"), y=Axis(label="Core"), table="cores",
            categories=tuple(f"chip {index}" for index in range(8)),
            series=(
                Series(name="Compute", role="compute", y=tuple(1.2 + index / 20 for index in range(8))),
                Series(name="Collectives", role="collectives", y=(0.3,) * 8),
                Series(name="Data formatting", role="data_formatting", y=(0.12,) * 8),
                Series(name="Idle", role="idle", y=tuple(0.8 - index / 20 for index in range(8))),
            ),
        ),
        "memory": Chart(
            title="Memory peaks at 14.2 GiB of 16 GiB in the backward pass",
            kind="curve", alt="The curve climbs to 14.2 GiB at instruction 310 and falls to 6 GiB.",
            x=Axis(label="Position in the program"), y=Axis(label="Memory in use", unit="bytes"),
            series=(
                Series(
                    name="Heap", role="accent", x=tuple(float(index) for index in range(600)),
                    y=tuple((6 + 8.2 * math.exp(-(((index - 310) / 120) ** 2))) * GIB for index in range(600)),
                ),
                Series(
                    name="Lifetimes", role="warning", x=(10.0, 200.0), ends=(400.0, 350.0),
                    labels=("activations 1.1 GiB", "gradients 0.8 GiB"), row_ids=("op-fusion-0", "op-fusion-1"),
                ),
            ),
            guides=(
                Guide(label="capacity 16 GiB", value=16 * GIB),
                Guide(label="peak at 310", axis="x", value=310.0),
            ),
        ),
        "roofline": Chart(
            title="Most operations are bound by memory",
            kind="scatter", alt="45 of 60 operations lie under the sloped roof, left of 240 FLOP/B.", table="hlo_ops",
            x=Axis(label="Operational intensity", unit="flops/byte", log=True),
            y=Axis(label="Achieved rate", unit="flops/s", log=True),
            series=(
                Series(
                    name="Fusions", role="compute", x=tuple(0.5 * 1.15**index for index in range(45)),
                    y=tuple(1e11 * 1.12**index for index in range(45)),
                    labels=tuple(f"fusion.{index}" for index in range(45)), row_ids=ops.row_ids[:45],
                ),
                Series(
                    name="Copies", role="data_formatting", x=tuple(0.2 * 1.3**index for index in range(15)),
                    y=tuple(2e10 * 1.2**index for index in range(15)),
                    labels=tuple(f"fusion.{index}" for index in range(45, 60)), row_ids=ops.row_ids[45:],
                ),
            ),
            guides=(
                Guide(label="HBM 819 GB/s", axis="roof", points=((0.1, 8.19e10), (240.5, 1.97e14))),
                Guide(label="peak 197 TFLOP/s", axis="roof", points=((240.5, 1.97e14), (2000.0, 1.97e14))),
            ),
        ),
        "lifetimes": Chart(
            title="Three buffers hold the address range around the peak",
            kind="spans", alt="Rectangles over program position and address.",
            x=Axis(label="Position in the program"), y=Axis(label="Address", unit="bytes"),
            series=(
                Series(
                    name="Temporaries", role="accent", x=(0.0, 50.0, 120.0), ends=(100.0, 300.0, 600.0),
                    y=(0.0, 2 * GIB, 6 * GIB), tops=(2 * GIB, 6 * GIB, 9 * GIB), labels=("a", "b", "c"),
                ),
                Series(
                    name="Parameters", role="neutral", x=(0.0,), ends=(600.0,), y=(10 * GIB,), tops=(14 * GIB,),
                    labels=("weights",),
                ),
            ),
        ),
        "lanes": Chart(
            title="Collectives overlap with compute", kind="spans", alt="Two lanes.",
            x=Axis(label="Time", unit="seconds"), y=Axis(label=""), categories=("compute", "collectives"),
            series=(
                Series(name="Compute", role="compute", x=(0.0, 0.05), ends=(0.04, 0.12), y=(0.0, 0.0)),
                Series(name="Collectives", role="collectives", x=(0.03,), ends=(0.06,), y=(1.0,)),
            ),
        ),
    }  # fmt: skip


def _timeline() -> Timeline:
    ops = tuple(0.0008 * index for index in range(150))
    return Timeline(
        title="Step 11, a typical step of 121 ms",
        alt="Two cores compute for 80 ms after 41 ms of waiting, while the host reads files.",
        start=1.4,
        duration=0.121,
        names=("fusion.3", "all-reduce.1", "wait for input", "read record"),
        roles=("compute", "collectives", "input", "neutral"),
        lanes=(
            Lane(
                title="XLA ops", group="chip 0", starts=tuple(0.0005 + at for at in ops), durations=(0.0006,) * 150,
                names=tuple(index % 2 for index in range(150)), roles=tuple(index % 2 for index in range(150)),
            ),
            Lane(title="Steps", group="chip 0", starts=(0.0,), durations=(0.041,), names=(2,), roles=(2,)),
            Lane(
                title="reader/0", group="worker-0", starts=(0.0, 0.02, 0.06), durations=(0.015, 0.03, 0.04),
                names=(3, 3, 3), roles=(3, 3, 3),
            ),
        ),
        note="Events shorter than 1 µs are left out.",
    )  # fmt: skip


def _sections() -> tuple[Section, ...]:
    return (
        Section(id="summary", title="Summary", blocks=(Tiles(metrics=tuple(_metrics())),)),
        Section(id="findings", title="Findings", blocks=(Findings(), Checks())),
        Section(
            id="overview",
            title="Overview",
            blocks=(
                ChartBlock(chart="step_time"),
                TableBlock(table="steps"),
                ChartBlock(chart="top_ops"),
                Heading(text="Run environment", id="run-environment"),
                TableBlock(table="environment", open_rows=0),
                KeyValues(
                    fields=(
                        Field(label="Step source", value="XLA Modules"),
                        Field(label="Peak", value=1.97e14, unit="flops/s"),
                        Field(label="Cost model", value=None, unit="seconds"),
                    )
                ),
            ),
        ),
        Section(
            id="input-pipeline",
            title="Input pipeline",
            blocks=(
                Notice(
                    text="The host plane was not captured, so host stages are not known.",
                    code="jax.profiler.ProfileOptions().host_tracer_level = 2",
                ),
            ),
        ),
        Section(
            id="op-profile",
            title="Op profile",
            blocks=(Text("Time by operation, all cores together."), ChartBlock("roofline"), TableBlock("hlo_ops")),
        ),
        Section(id="memory", title="Memory", blocks=(ChartBlock("memory"), ChartBlock("lifetimes"))),
        Section(id="timeline", title="Timeline", blocks=(TimelineBlock("typical-step"), ChartBlock("lanes"))),
        Section(id="hosts", title="Hosts and cores", blocks=(ChartBlock("cores"),)),
        Section(
            id="appendix",
            title="Appendix",
            blocks=(Details(summary="Glossary", blocks=(Text("MXU: the matrix unit of a TPU core."),)),),
        ),
    )
