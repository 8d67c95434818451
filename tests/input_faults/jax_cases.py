"""JAX loops with planted input faults, each captured on CPU: python jax_cases.py OUT_FOLDER CASE...

What each loop measured itself goes to OUT_FOLDER/CASE/measured.json: the wait for each batch (and its transfer, where
the loop transfers it itself) and each step's period, in milliseconds by step number.
"""

import json
import queue
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

BATCH, WIDTH, STEPS, WARM_UP = 256, 512, 8, 3
Batches = Iterator[np.ndarray]


@jax.jit
def train_step(weights: jax.Array, images: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A step of a few milliseconds."""
    x = images[:BATCH, :WIDTH]
    for _ in range(24):
        x = jnp.tanh(x @ weights)
    return weights + 1e-6 * jnp.mean(x), jnp.mean(x**2)


def sleeping_loader() -> Batches:
    """Waits for a slow disk or network."""
    images = np.random.default_rng(0).random((BATCH, WIDTH), dtype=np.float32)
    while True:
        time.sleep(0.015)
        yield images


def decoding_loader() -> Batches:
    """Decompresses each batch in Python."""
    images = np.random.default_rng(0).integers(0, 64, (BATCH, WIDTH), dtype=np.uint8)
    packed = zlib.compress(images.astype(np.float32).tobytes())
    while True:
        yield np.concatenate([decode(packed) for _ in range(5)])[:BATCH]


def decode(packed: bytes) -> np.ndarray:
    """One part of a batch."""
    return np.frombuffer(zlib.decompress(packed), np.float32).reshape(BATCH, WIDTH) / 255.0


class FileLoader:
    """Reads a file for every sample."""

    def __init__(self) -> None:
        folder = Path("samples")
        folder.mkdir(exist_ok=True)
        rng = np.random.default_rng(0)
        self.files = [folder / f"{index}.npy" for index in range(64)]
        for file in self.files:
            np.save(file, rng.random((BATCH // 64, WIDTH), dtype=np.float32))

    def __iter__(self) -> "FileLoader":
        return self

    def __next__(self) -> np.ndarray:
        return np.concatenate([np.load(file) for file in self.files])


def threaded_loader() -> Batches:
    """A thread makes the batches, too slowly; the loop waits for its queue."""
    made: queue.Queue[np.ndarray] = queue.Queue(2)

    def work() -> None:
        rng = np.random.default_rng(0)
        while True:
            made.put(load_batch(rng))

    threading.Thread(target=work, daemon=True).start()
    while True:
        yield made.get()


def load_batch(rng: np.random.Generator) -> np.ndarray:
    """A batch, sorted for the work's sake."""
    return np.sort(rng.random((16, BATCH, WIDTH), dtype=np.float32), axis=2)[0]


def ready_loader() -> Batches:
    """Batches that lie in memory."""
    images = np.random.default_rng(0).random((BATCH, WIDTH), dtype=np.float32)
    while True:
        yield images


def large_loader() -> Batches:
    """Batches far larger than the step needs."""
    images = np.random.default_rng(0).random((64 * BATCH, WIDTH), dtype=np.float32)
    while True:
        yield images


Result = dict[str, dict[str, float]]


def run(batches: Batches, steps: int, inside: bool = False) -> Result:
    """Train; get the batch between the steps or inside them, and put it on the device."""
    weights = jnp.eye(WIDTH)
    waits, periods = [], []
    before = time.perf_counter()
    for step in range(steps):
        images = None  # freeing the last batch is no wait for the next one
        start = time.perf_counter()
        images = None if inside else next(batches)
        wait = time.perf_counter() - start
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            start = time.perf_counter()
            images = next(batches) if images is None else images
            images = jax.device_put(images, may_alias=False)
            images.block_until_ready()
            wait += time.perf_counter() - start
            weights, value = train_step(weights, images)
            value.block_until_ready()
        end = time.perf_counter()
        waits.append(1e3 * wait)
        periods.append(1e3 * (end - before))
        before = end
    return _by_step(waits, periods)


def _by_step(waits: list[float], periods: list[float]) -> Result:
    numbered = {"wait_ms": waits, "period_ms": periods}
    return {name: {str(step): value for step, value in enumerate(values)} for name, values in numbered.items()}


CASES: dict[str, Callable[[], Batches]] = {
    "sleeping_loader": sleeping_loader,
    "decoding_loader": decoding_loader,
    "loader_in_step": sleeping_loader,
    "file_loader": FileLoader,
    "threaded_loader": threaded_loader,
    "device_put": large_loader,
    "untraced_loader": sleeping_loader,
    "jax_healthy": ready_loader,
}


def capture(case: str, out: Path) -> None:
    """Run one case and capture STEPS steps of it, with or without the Python tracer."""
    batches, inside = iter(CASES[case]()), case == "loader_in_step"
    run(batches, WARM_UP, inside)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = int(case != "untraced_loader")
    with jax.profiler.trace(str(out), profiler_options=options):
        measured = run(batches, STEPS, inside)
    (out / "measured.json").write_text(json.dumps(measured))


def main() -> None:
    """Capture the named cases."""
    out = Path(sys.argv[1])
    for case in sys.argv[2:] or CASES:
        capture(case, out / case)


if __name__ == "__main__":
    main()
