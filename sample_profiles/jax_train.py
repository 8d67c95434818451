"""A JAX training loop on CPU, captured by jax.profiler: a small MLP on synthetic images.

    python jax_train.py OUT_FOLDER [--loader-ms MS]

`--loader-ms` makes the NumPy loader that much slower. The loader runs between two step annotations, as in most
hand-written loops, so the profiler's step does not hold the wait; the waits that the loop measured itself go to
OUT_FOLDER/measured.json.
"""

import argparse
import json
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

BATCH, PIXELS, WIDTH, CLASSES, STEPS, WARM_UP = 128, 784, 512, 10, 12, 3
Params = list[tuple[jax.Array, jax.Array]]
Batch = tuple[np.ndarray, np.ndarray]


def init(rng: np.random.Generator) -> Params:
    """Weights and biases of four dense layers."""
    sizes = [PIXELS, WIDTH, WIDTH, WIDTH, CLASSES]
    return [(jnp.asarray(rng.normal(0, (2 / m) ** 0.5, (m, n)), jnp.float32), jnp.zeros(n)) for m, n in pairwise(sizes)]


def loss(params: Params, images: jax.Array, labels: jax.Array) -> jax.Array:
    """Mean cross entropy."""
    x = images
    for index, (w, b) in enumerate(params):
        with jax.named_scope(f"dense_{index}"):
            x = x @ w + b
            x = jax.nn.gelu(x) if index < len(params) - 1 else x
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(x), labels[:, None], axis=1))


@jax.jit
def train_step(params: Params, images: jax.Array, labels: jax.Array) -> tuple[Params, jax.Array]:
    """One step of gradient descent."""
    value, grads = jax.value_and_grad(loss)(params, images, labels)
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), value


def load(rng: np.random.Generator, wait_s: float) -> Iterator[Batch]:
    """Batches of synthetic images; `wait_s` stands for a slow disk or network."""
    images = rng.random((8, BATCH, PIXELS), dtype=np.float32)
    labels = rng.integers(0, CLASSES, (8, BATCH), dtype=np.int32)
    index = 0
    while True:
        time.sleep(wait_s)
        yield images[index % 8], labels[index % 8]
        index += 1


def run(params: Params, batches: Iterator[Batch], steps: int) -> tuple[Params, list[float], list[float]]:
    """Train; return the parameters and, per step in milliseconds, the wait for the batch and the step itself."""
    waits, times = [], []
    for step in range(steps):
        start = time.perf_counter()
        images, labels = next(batches)
        loaded = time.perf_counter()
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            params, value = train_step(params, images, labels)
            value.block_until_ready()
        waits.append(1e3 * (loaded - start))
        times.append(1e3 * (time.perf_counter() - loaded))
    return params, waits, times


def main() -> None:
    """Warm up, then capture STEPS steps."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--loader-ms", type=float, default=0.0)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    batches = load(rng, args.loader_ms / 1e3)
    params, _, _ = run(init(rng), batches, WARM_UP)
    with jax.profiler.trace(str(args.out)):
        _, waits, times = run(params, batches, STEPS)
    measured = {"loader_wait_ms": waits, "step_ms": times}
    (args.out / "measured.json").write_text(json.dumps(measured, indent=1) + "\n")


if __name__ == "__main__":
    main()
