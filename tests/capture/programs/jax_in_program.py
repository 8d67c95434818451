"""JAX programs that profile themselves, with every fault that may happen: a folder. Prints what came of it as JSON."""
# ruff: noqa: T201

import json
import logging
import sys
from pathlib import Path

import jax
import jax.numpy as jnp

from reportgen.capture.contents import look
from reportgen.capture.in_program import StepProfiler, profiled

output = Path(sys.argv[1])
step = jax.jit(lambda x: jnp.tanh(x @ x).sum())
x = jnp.ones((128, 128))
step(x).block_until_ready()
logged: list[str] = []
handler = logging.Handler()
handler.emit = lambda record: logged.append(record.getMessage())  # type: ignore[method-assign]
logging.getLogger("reportgen").addHandler(handler)
reports: list[tuple[str, int | None]] = []


def report(run_folder: Path, folder: Path) -> None:
    (profile,) = run_folder.glob("*.xplane.pb")
    assert profile.is_relative_to(folder.absolute() / "plugins" / "profile")
    contents = look(profile.read_bytes())
    assert contents.events
    reports.append((folder.name, contents.steps))


def fail(*_: object) -> None:
    raise RuntimeError("no report today")


def loop(profiler: StepProfiler, steps: int) -> None:
    with profiler:
        for _ in range(steps):
            with profiler.step():
                step(x).block_until_ready()


for _ in range(2):  # within one second: the frameworks name runs by the second
    with profiled(output / "context", report=report), jax.profiler.StepTraceAnnotation("train", step_num=1):
        step(x).block_until_ready()
loop(StepProfiler(output / "steps", (2, 5), report=report), 8)
loop(StepProfiler(output / "short", (2, 5), report=report), 4)
loop(StepProfiler(output / "none", (2, 5), report=report), 2)
with profiled(output / "outer", report=report), profiled(output / "inner", report=report):
    step(x).block_until_ready()
with profiled(output / "fails", report=fail):
    step(x).block_until_ready()
(output / "file").write_text("")
with profiled(output / "file", report=report):
    step(x).block_until_ready()
error = ""
try:
    with profiled(output / "raises", report=report):
        step(x).block_until_ready()
        raise ValueError("of the training")
except ValueError as caught:
    error = str(caught)
left = sorted(path.name for path in output.rglob(".trace*"))
print(json.dumps({"reports": reports, "logged": logged, "error": error, "left": left}))
