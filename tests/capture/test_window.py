"""When the agent starts and ends its trace: every turn of it, with a clock and a profiler of the test's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reportgen.capture.bootstrap.reportgen_agent import tracers, window
from reportgen.capture.bootstrap.reportgen_agent.window import DONE, STEPPED, TIMED, WAITING, Settings, Window


class FakeTracer:
    """A profiler that notes what it is told, and fails when it should."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.fails_at = ""

    def start(self, folder: str, host: int, device: int, python: int) -> None:
        self._note(f"start {host}{device}{python}")
        Path(folder, "trace").mkdir(parents=True)

    def stop(self) -> None:
        self._note("stop")

    def _note(self, call: str) -> None:
        self.calls.append(call)
        if self.fails_at and call.startswith(self.fails_at):
            raise RuntimeError("no trace today")


class Scene:
    """A window with its clock and its profiler."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.now, self.tracer = folder, 100.0, FakeTracer()
        (folder / "control").mkdir()
        self.give_way: Any = None
        self.restored = 0
        monkeypatch.setattr(tracers, "TRACERS", {"jax": self.tracer, "tensorflow": self.tracer})
        monkeypatch.setattr(tracers, "jax_has_devices", lambda: True)
        monkeypatch.setattr(window, "_before_own_trace", self._before_own_trace)
        self.window = self.new_window()

    def new_window(self) -> Window:
        settings = Settings(
            control=str(self.folder / "control"),
            traces=str(self.folder / "traces"),
            pythonpath=None,
            first=2,
            end=4,
            quiet_s=1.0,
            duration_s=3.0,
            host=2,
            device=1,
            python=0,
        )
        return Window(settings, clock=lambda: self.now)

    def _before_own_trace(self, _framework: str, give_way: Any) -> Any:
        self.give_way = give_way

        def restore() -> None:
            self.restored += 1

        return restore

    def compile(self) -> None:
        self.window.program("jax", compiling=True)
        self.window.program("jax", compiling=False)

    def after(self, seconds: float) -> None:
        self.now += seconds
        self.window.tick()

    def told(self) -> dict[str, Any]:
        (status,) = (self.folder / "control").glob("status-*.json")
        told: dict[str, Any] = json.loads(status.read_text())
        return told


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(tmp_path, monkeypatch)


def test_marked_steps(scene: Scene) -> None:
    states = []
    for _ in range(6):
        scene.window.step("marks", "jax")
        states.append(scene.window.state)
    assert states == [WAITING, WAITING, STEPPED, STEPPED, DONE, DONE]
    assert scene.tracer.calls == ["start 210", "stop"]
    told = scene.told()
    assert (told["kind"], told["saved"], told["steps"], told["failure"]) == (STEPPED, True, 4, None)
    assert scene.restored == 1


def test_marks_of_a_second_kind_do_not_count_on_top(scene: Scene) -> None:
    for _ in range(3):
        scene.window.step("keras", "jax")
        scene.window.step("marks", "jax")
    assert scene.window.status.steps == 3


def test_timed_window_begins_when_compilations_are_over_for_a_while(scene: Scene) -> None:
    scene.after(10)
    assert scene.window.state == WAITING
    scene.compile()
    scene.after(0.9)
    scene.compile()
    scene.after(0.9)
    assert scene.window.state == WAITING
    scene.after(0.2)
    assert scene.window.state == TIMED
    scene.after(2.9)
    assert scene.window.state == TIMED
    scene.after(0.2)
    assert (scene.window.state, scene.told()["kind"], scene.told()["saved"]) == (DONE, TIMED, True)


def test_a_long_compilation_is_no_quiet(scene: Scene) -> None:
    scene.window.program("jax", compiling=True)
    scene.after(50)
    assert scene.window.state == WAITING


def test_devices_are_not_chosen_for_the_script(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracers, "jax_has_devices", lambda: False)
    scene.compile()
    scene.after(50)
    assert scene.tracer.calls == []


def test_compilation_makes_a_timed_window_void_three_times_at_most(scene: Scene) -> None:
    for _ in range(3):
        scene.compile()
        scene.after(1.1)
        assert scene.window.state == TIMED
        scene.compile()
        assert scene.window.state == WAITING
        assert not (scene.folder / "traces").exists()
        assert scene.told()["saved"] is False
    scene.after(1.1)
    scene.compile()
    assert scene.window.state == TIMED


def test_first_mark_makes_a_timed_window_void(scene: Scene) -> None:
    scene.compile()
    scene.after(1.1)
    for _ in range(5):
        scene.window.step("marks", "jax")
    assert scene.tracer.calls == ["start 210", "stop", "start 210", "stop"]
    assert (scene.told()["kind"], scene.told()["saved"]) == (STEPPED, True)


def test_program_of_tensorflow_in_a_program_of_jax_is_input_data(scene: Scene) -> None:
    scene.compile()
    scene.now += 5
    scene.window.program("tensorflow", compiling=False)
    scene.after(0)
    assert scene.window.state == TIMED


def test_end_of_the_script_inside_the_window(scene: Scene) -> None:
    for _ in range(3):
        scene.window.step("marks", "jax")
    scene.window.finish()
    assert scene.tracer.calls == ["start 210", "stop"]
    assert scene.told()["notes"] == ["the script ended inside the window, which was cut short"]


def test_the_script_traces_itself(scene: Scene) -> None:
    for _ in range(3):
        scene.window.step("marks", "jax")
    scene.give_way()
    scene.give_way()
    assert (scene.window.state, scene.tracer.calls, scene.restored) == (DONE, ["start 210", "stop"], 1)
    assert scene.told()["notes"] == ["the script traces itself: the window ended there"]


@pytest.mark.parametrize(("call", "verb"), [("start", "started"), ("stop", "saved")])
def test_profiler_that_fails(call: str, verb: str, scene: Scene) -> None:
    scene.tracer.fails_at = call
    for _ in range(6):
        scene.window.step("marks", "jax")
    assert scene.told()["failure"] == f"the trace could not be {verb}: no trace today"
    assert scene.told()["saved"] is False
    assert scene.window.state == DONE


def test_second_process_of_a_script_is_not_traced(scene: Scene) -> None:
    for _ in range(3):
        scene.window.step("marks", "jax")
    second = scene.new_window()
    for _ in range(3):
        second.step("marks", "jax")
    assert second.state == DONE
    assert second.status.failure is not None
    assert "another process of the script is traced already" in second.status.failure
    assert scene.tracer.calls == ["start 210"]


def test_forked_child_traces_nothing(scene: Scene) -> None:
    scene.window.step("marks", "jax")
    scene.window.abandon()
    for _ in range(5):
        scene.window.step("marks", "jax")
    scene.window.finish()
    assert scene.tracer.calls == []


def test_parent_that_is_gone_ends_the_window_quietly(scene: Scene) -> None:
    (scene.folder / "control").rmdir()
    for _ in range(6):
        scene.window.step("marks", "jax")
    assert scene.window.state == DONE
    assert not scene.window.status.saved


def test_libtpu_without_a_tpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tracer would crash the script's process with a segmentation fault."""
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "7f00 r-xp /site-packages/libtpu/libtpu.so\n")

    class Jax:
        @staticmethod
        def default_backend() -> str:
            return "cpu"

    monkeypatch.setattr(tracers, "import_module", lambda _name: Jax)
    with pytest.raises(tracers.TraceRefusedError, match="Set JAX_PLATFORMS=cpu"):
        tracers.TRACERS["jax"].start("unused", 2, 1, 0)
