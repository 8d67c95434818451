"""Measure what a trace costs the program that is traced: python -m tests.capture.overhead jax|tensorflow

Blocks of steps with and without a trace alternate; the cost is the median over the pairs, in processor time. Not a
test.
"""
# ruff: noqa: T201

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reportgen.capture.bootstrap.reportgen_agent.tracers import TRACERS
from reportgen.capture.options import TraceLevels

LEVELS = [TraceLevels(1, 1, 0), TraceLevels(2, 1, 0), TraceLevels(3, 1, 0), TraceLevels(2, 1, 1)]
PAIRS, STEPS = 15, 150


def jax_step() -> Callable[[], object]:
    """Return a gradient step of an MLP, and 300 calls of a Python function beside it."""
    import jax
    import jax.numpy as jnp

    weights = [jnp.eye(256) for _ in range(4)]

    def loss(weights: list[Any], x: Any) -> Any:
        for weight in weights:
            x = jnp.tanh(x @ weight)
        return (x**2).mean()

    def call(number: int) -> int:
        return number % 7

    step, x = jax.jit(jax.grad(loss)), jnp.ones((256, 256))

    def run() -> int:
        jax.block_until_ready(step(weights, x))
        return sum(call(number) for number in range(300))

    return run


def tensorflow_step() -> Callable[[], object]:
    """Return a gradient step of an MLP on batches of a tf.data pipeline."""
    import tensorflow as tf

    data = tf.data.Dataset.range(10**9).map(lambda n: tf.fill([256], tf.cast(n % 7, tf.float32))).batch(64).repeat()
    batches = iter(data)
    weights = [tf.Variable(tf.eye(256)) for _ in range(4)]

    @tf.function
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            for weight in weights:
                x = tf.tanh(x @ weight)
            loss = tf.reduce_mean(x**2)
        return tape.gradient(loss, weights)

    def run() -> object:
        return step(next(batches))[0].numpy()

    return run


def block(framework: str, run: Callable[[], object]) -> float:
    """Return the processor's milliseconds per step, of all threads together: other programs disturb them little."""
    begin = time.process_time()
    for number in range(STEPS):
        with TRACERS[framework].step_mark(number):
            run()
    return (time.process_time() - begin) / STEPS * 1e3


def main(framework: str) -> None:
    run = {"jax": jax_step, "tensorflow": tensorflow_step}[framework]()
    block(framework, run)
    for levels in LEVELS:
        pairs, stops, sizes = [], [], []
        for _ in range(PAIRS):
            plain = block(framework, run)
            with tempfile.TemporaryDirectory() as folder:
                TRACERS[framework].start(folder, levels.host, levels.device, levels.python)
                traced = block(framework, run)
                begin = time.process_time()
                TRACERS[framework].stop()
                stops.append(time.process_time() - begin)
                sizes.append(next(Path(folder).rglob("*.xplane.pb")).stat().st_size)
            pairs.append((plain, traced))
        cost = sorted(traced / plain - 1 for plain, traced in pairs)
        print(
            f"{framework} host {levels.host} python {levels.python}: "
            f"step {statistics.median(plain for plain, _ in pairs):.2f} ms of processor time, "
            f"cost {cost[len(cost) // 2]:+.1%} (quartiles {cost[len(cost) // 4]:+.1%} {cost[-len(cost) // 4]:+.1%}), "
            f"saving {statistics.median(stops) * 1e3:.0f} ms, {statistics.median(sizes) / STEPS / 1e3:.1f} kB a step"
        )


if __name__ == "__main__":
    main(sys.argv[1])
