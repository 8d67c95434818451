"""Steps of a GPU by what annotations launched, and by runs of the main program."""

from __future__ import annotations

from reportgen.profile.hlo_text import parse_hlo_text
from reportgen.profile.steps import StepSource
from reportgen.profile.view import HostView
from tests.builders import LineBuilder, Space

GPU = "/device:GPU:0"
PS = 1000

MODULE = """HloModule jit_step

ENTRY main {
  p = f32[8]{0} parameter(0)
  first = f32[8]{0} add(p, p)
  second = f32[8]{0} multiply(first, first)
  ROOT third = f32[8]{0} negate(second)
}
"""


def kernel(line: LineBuilder, op: str, start: float, duration: float, program: int = 7) -> None:
    line.event(f"{op}_kernel", start, duration, {"hlo_op": op, "hlo_module": f"jit_{program}", "program_id": program})


def asynchronous() -> Space:
    """Two annotations; each launches two kernels that run after it has ended, on two streams."""
    space = Space()
    host = space.plane("/host:CPU")
    host.line("python").event("train", 0, 100, {"_r": 1, "step_num": 5}).event(
        "train", 200, 100, {"_r": 1, "step_num": 6}
    )
    driver = host.line("driver")
    for number, start in enumerate((10, 20, 210, 220, 150)):
        driver.event("cuLaunchKernel", start, 1, {"correlation_id": number + 1})
    gpu = space.plane(GPU)
    stream = gpu.line("Stream #1(Compute)")
    for number, (start, duration) in {1: (500, 50), 3: (700, 50), 5: (900, 50)}.items():
        stream.event("k", start, duration, {"correlation_id": number})
    other = gpu.line("Stream #2(Compute)")
    for number, (start, duration) in {2: (520, 60), 4: (710, 70)}.items():
        other.event("k", start, duration, {"correlation_id": number})
    return space


def steps_of(view: HostView, plane: str = GPU) -> list[tuple[int, int, int]]:
    steps = view.steps[plane]
    return list(zip(steps.ids.tolist(), (steps.starts // PS).tolist(), (steps.ends // PS).tolist(), strict=True))


def test_a_step_is_what_its_annotation_launched() -> None:
    view = asynchronous().view()
    assert steps_of(view) == [(5, 500, 580), (6, 700, 780)]
    assert view.step_source == (StepSource.LAUNCHES, "train")


def test_a_kernel_launched_between_annotations_belongs_to_no_step() -> None:
    view = asynchronous().view()
    runs = view.cores[0].runs
    assert view.cores[0].steps.of(runs).tolist() == [0, 1, -1, 0, 1]


def test_a_step_ends_where_the_next_begins_at_the_latest() -> None:
    space = asynchronous()
    space.planes[1].line("Stream #3(Compute)").event("late", 560, 200, {"correlation_id": 2})
    assert steps_of(space.view()) == [(5, 500, 700), (6, 700, 780)]


def test_without_launches_the_annotations_are_the_steps() -> None:
    space = Space()
    space.plane("/host:CPU").line("python").event("train", 0, 100, {"_r": 1, "step_num": 5})
    space.plane(GPU).line("Stream #1(Compute)").event("k", 500, 50, {"correlation_id": 1})
    view = space.view()
    assert steps_of(view) == [(5, 0, 100)]
    assert view.step_source[0] is StepSource.ANNOTATIONS


def test_an_idle_gpu_has_no_steps_beside_a_busy_one() -> None:
    space = asynchronous()
    space.plane("/device:GPU:1")
    assert steps_of(space.view(), "/device:GPU:1") == []


def test_a_steps_line_wins_over_annotations() -> None:
    space = asynchronous()
    space.planes[1].line("Steps").event("5", 490, 100, {"group_id": 5})
    view = space.view()
    assert steps_of(view) == [(5, 490, 590)]
    assert view.step_source[0] is StepSource.STEPS_LINE


def looping() -> Space:
    """A capture that begins inside a run of the main program; another program runs between its runs."""
    space = Space()
    stream = space.plane(GPU).line("Stream #1(Compute)")
    kernel(stream, "third", 0, 10)
    for start in (100, 200):
        kernel(stream, "first", start, 20)
        kernel(stream, "second", start + 20, 20)
        kernel(stream, "third", start + 40, 20)
        kernel(stream, "other", start + 70, 5, program=8)
    return space


def test_without_steps_and_annotations_runs_of_the_main_program_are_the_steps() -> None:
    space = looping()
    space.hlo("jit_7(7)", 7, parse_hlo_text(MODULE.replace("jit_step", "jit_7")).proto.SerializeToString())
    view = space.view()
    assert steps_of(view) == [(0, 100, 160), (1, 200, 260)]
    assert view.step_source == (StepSource.MODULE_RUNS, "jit_7(7)")


def test_without_the_hlo_a_run_begins_with_the_op_that_ran_first() -> None:
    assert steps_of(looping().view()) == [(0, 0, 140), (1, 140, 240), (2, 240, 260)]


def test_kernels_of_nobody_make_no_steps() -> None:
    space = Space()
    space.plane(GPU).line("Stream #1(Compute)").event("k", 0, 50).event("k", 100, 50)
    view = space.view()
    assert steps_of(view) == []
    assert view.step_source[0] is StepSource.NONE


def test_on_cpu_too_runs_of_the_main_program_are_steps() -> None:
    space = Space()
    host = space.plane("/host:CPU")
    first, second = host.line("tf_XLAEigen/1"), host.line("tf_XLAEigen/2")
    for start in (0, 100):
        kernel(first, "first", start, 20)
        kernel(second, "second", start + 30, 40)
    assert steps_of(space.view(), "/host:CPU") == [(0, 0, 70), (1, 100, 170)]
