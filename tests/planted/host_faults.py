"""A training loop on JAX or TensorFlow with a planted fault on the host: python host_faults.py OUT CASE [--repaired].

Runs on CPU and captures itself into OUT. Every case's repaired twin does the same work without the fault.
"""

import argparse
import gc
import os
import time
from collections.abc import Callable
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
STEPS, WARM_UP, WIDTH, ROWS = 12, 4, 512, 512

# Cases whose fault shows in calls of Python functions only; elsewhere they would fill the file.
PYTHON_TRACED = frozenset({"garbage", "python", "growing", "checkpoints"})


class Node:
    """An object that takes part in a cycle."""

    other: "Node"


def make_garbage(count: int) -> None:
    """Leave cycles for the collector."""
    for _ in range(count):
        one, two = Node(), Node()
        one.other, two.other = two, one


def count_up(rounds: int) -> int:
    """Keep Python busy."""
    total = 0
    for number in range(rounds):
        total += number
    return total


def jax_step(case: str, repaired: bool) -> Callable[[int], None]:
    """Return the step of a case: called with its number, it returns when it is done."""
    import jax
    import jax.numpy as jnp

    def train(w: jax.Array, x: jax.Array, scale: float = 1.0) -> jax.Array:
        y = x
        for layer in range(8):
            y = jnp.tanh(y @ w)
            if case == "debug-print" and not repaired:
                jax.debug.print("layer {} {}", layer, y)
        return w - 1e-3 * scale * (x.T @ y)

    state = {"w": jnp.ones((WIDTH, WIDTH)) / WIDTH, "x": jnp.ones((ROWS, WIDTH))}
    # Batches of other sizes, made outside the steps, as a loader does.
    batches = [jnp.ones((ROWS - 8 * number, WIDTH)) for number in range(STEPS + WARM_UP)]
    step = jax.jit(train, static_argnums=2)
    kept: list[float] = []

    def run(number: int) -> None:
        w, x, scale = state["w"], state["x"], 1.0
        if case == "recompile-shapes" and not repaired:
            x = batches[number]
        if case == "recompile-static" and not repaired:
            scale = 1.0 + number
        if case == "eager" and not repaired:
            for _ in range(40):
                w = w.at[0, 0].add(float(w[0, 0]) * 1e-9)
        state["w"] = step(w, x, scale)
        state["w"].block_until_ready()
        if repaired:
            return
        if case == "garbage":
            make_garbage(60_000)
            gc.collect()
        if case == "python":
            count_up(600_000)
        if case == "checkpoints" and number % 4 == 3:
            time.sleep(0.08)
        if case == "growing":
            kept.extend([0.5] * 500_000)
            sum(kept)

    return run


def tensorflow_step(repaired: bool) -> Callable[[int], None]:
    """Return a step whose function is traced anew for every Python number."""
    import tensorflow as tf

    w = tf.Variable(tf.ones((WIDTH, WIDTH)) / WIDTH)
    x = tf.ones((ROWS, WIDTH))

    @tf.function(jit_compile=True)
    def train(scale: object) -> object:
        y = x
        for _ in range(8):
            y = tf.tanh(y @ w)
        w.assign_sub(1e-3 * tf.cast(scale, tf.float32) * tf.matmul(x, y, transpose_a=True))
        return y[0, 0]

    def run(number: int) -> None:
        train(tf.constant(1.0 + number) if repaired else 1.0 + number).numpy()

    return run


def capture_jax(out: Path, case: str, step: Callable[[int], None]) -> None:
    """Capture the steps after some warm-up."""
    import jax

    for number in range(WARM_UP):
        step(STEPS + number)
    gc.collect()
    gc.freeze()
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = int(case in PYTHON_TRACED)
    with jax.profiler.trace(str(out), profiler_options=options):
        for number in range(STEPS):
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                step(number)


def capture_tensorflow(out: Path, step: Callable[[int], None]) -> None:
    """Capture the steps after some warm-up."""
    import tensorflow as tf

    for number in range(WARM_UP):
        step(STEPS + number)
    with tf.profiler.experimental.Profile(str(out)):
        for number in range(STEPS):
            with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
                step(number)


def main() -> None:
    """Run one case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("case")
    parser.add_argument("--repaired", action="store_true")
    args = parser.parse_args()
    if args.case == "retrace-tensorflow":
        capture_tensorflow(args.out, tensorflow_step(args.repaired))
    else:
        capture_jax(args.out, args.case, jax_step(args.case, args.repaired))


if __name__ == "__main__":
    main()
