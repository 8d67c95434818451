"""TensorFlow input pipelines with planted faults, each captured on CPU: python tf_cases.py OUT_FOLDER CASE...

Every case trains the same small compiled step on batches of one pipeline. What the loop measured itself goes to
OUT_FOLDER/CASE/measured.json: the wait for each batch and each step's period, in milliseconds by step number.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

WIDTH, STEPS, WARM_UP = 512, 8, 3
DATA = Path("data")


def features(values: Any) -> Any:
    """The step's input: WIDTH numbers a sample."""
    return tf.reshape(tf.cast(values, tf.float32), [-1])[:WIDTH]


def costly(seed: Any, draws: int) -> Any:
    """Work in a map function: the mean of many random vectors."""
    noise = tf.random.stateless_normal([draws, WIDTH], [tf.cast(seed, tf.int32), 0])
    return tf.reduce_mean(noise, axis=0)


def slow_map() -> Any:
    """A costly map function on one thread; prefetching cannot hide it."""
    return tf.data.Dataset.range(10**9).map(lambda x: costly(x, 120)).batch(16).prefetch(2)


def no_prefetch() -> Any:
    """Little enough work to hide behind the step, but nothing is prefetched."""
    return tf.data.Dataset.range(10**9).map(lambda x: costly(x, 8)).batch(32)


def small_files() -> Any:
    """One sample a file, read one after the other."""
    folder = DATA / "small"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for index in range(600):
        (folder / f"{index:04d}.bin").write_bytes(rng.random(WIDTH, dtype=np.float32).tobytes())
    files = tf.data.Dataset.from_tensor_slices([str(path) for path in sorted(folder.iterdir())]).repeat()
    data = files.flat_map(lambda name: tf.data.FixedLengthRecordDataset(name, record_bytes=4 * WIDTH))
    return data.map(lambda record: tf.io.decode_raw(record, tf.float32)).batch(128).prefetch(2)


def slow_decoder() -> Any:
    """PNG images decoded on one thread."""
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (256, 256, 3), dtype=np.uint8)
    png = tf.io.encode_png(image).numpy()
    data = tf.data.Dataset.from_tensors(png).repeat()
    return data.map(lambda x: features(tf.io.decode_png(x))).batch(16).prefetch(2)


def interleave_one() -> Any:
    """Compressed record files read one at a time."""
    folder = DATA / "gzip"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    names = [str(folder / f"part-{index}.tfrecord") for index in range(4)]
    for name in names:
        with tf.io.TFRecordWriter(name, "GZIP") as writer:
            for _ in range(64):
                writer.write(rng.integers(0, 32, 1 << 17, dtype=np.uint8).tobytes())
    files = tf.data.Dataset.from_tensor_slices(names).repeat()
    data = files.interleave(lambda name: tf.data.TFRecordDataset(name, "GZIP"), cycle_length=1)
    return data.map(lambda x: features(tf.io.decode_raw(x, tf.uint8))).batch(24).prefetch(2)


def map_before_batch() -> Any:
    """A cheap map called for every element, where one call a batch would do."""
    table = tf.data.Dataset.from_tensors(tf.ones(WIDTH)).repeat()
    return table.map(lambda x: x * 2.0 - 1.0).batch(256).prefetch(2)


def python_generator() -> Any:
    """Samples made by a Python generator."""

    def samples() -> Any:
        rng = np.random.default_rng(0)
        while True:
            yield np.sort(rng.random(1 << 14, dtype=np.float32))[:WIDTH]

    return tf.data.Dataset.from_generator(samples, output_signature=tf.TensorSpec([WIDTH])).batch(64).prefetch(2)


def tf_healthy() -> Any:
    """Little work in parallel, prefetched."""
    data = tf.data.Dataset.range(10**9).map(lambda x: costly(x, 2), num_parallel_calls=tf.data.AUTOTUNE)
    return data.batch(32).prefetch(tf.data.AUTOTUNE)


CASES: dict[str, Callable[[], Any]] = {
    case.__name__: case
    for case in (
        slow_map,
        no_prefetch,
        small_files,
        slow_decoder,
        interleave_one,
        map_before_batch,
        python_generator,
        tf_healthy,
    )
}


# A long step leaves time to prefetch in.
LAYERS = {"no_prefetch": 8, "tf_healthy": 24}


def build_step(layers: int) -> Any:
    """A compiled step of a millisecond or two a layer."""
    weights = tf.Variable(tf.random.normal([WIDTH, WIDTH], stddev=WIDTH**-0.5, seed=0))

    @tf.function(jit_compile=True)
    def train_step(batch: Any) -> Any:
        x = tf.tile(batch[:16], [32, 1])
        for _ in range(layers):
            x = tf.nn.tanh(x @ weights)
        loss = tf.reduce_mean(x**2)
        weights.assign_add(1e-6 * tf.ones_like(weights) * loss)
        return loss

    return train_step


def run(train_step: Any, batches: Any, steps: int) -> dict[str, dict[str, float]]:
    """Train; the wait for each batch and the time from step to step, in milliseconds."""
    waits, periods = [], []
    before = time.perf_counter()
    for step in range(steps):
        start = time.perf_counter()
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            batch = next(batches)
            loaded = time.perf_counter()
            train_step(batch).numpy()
        end = time.perf_counter()
        waits.append(1e3 * (loaded - start))
        periods.append(1e3 * (end - before))
        before = end
    numbered = {"wait_ms": waits, "period_ms": periods}
    return {name: {str(step): value for step, value in enumerate(values)} for name, values in numbered.items()}


def capture(case: str, out: Path) -> None:
    """Run one case and capture STEPS steps of it."""
    options = tf.data.Options()
    # Or tf.data repairs some faults on its own.
    options.experimental_optimization.inject_prefetch = False
    options.experimental_optimization.map_parallelization = case == "tf_healthy"
    options.experimental_optimization.map_and_batch_fusion = case == "tf_healthy"
    batches = iter(CASES[case]().with_options(options))
    train_step = build_step(LAYERS.get(case, 2))
    run(train_step, batches, WARM_UP)
    with tf.profiler.experimental.Profile(str(out)):
        measured = run(train_step, batches, STEPS)
    (out / "measured.json").write_text(json.dumps(measured))


def main() -> None:
    """Capture the named cases."""
    out = Path(sys.argv[1])
    for case in sys.argv[2:] or CASES:
        capture(case, out / case)


if __name__ == "__main__":
    main()
