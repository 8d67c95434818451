"""A TensorFlow training loop on CPU fed by tf.data from TFRecord files, captured by tf.profiler.experimental.

    python tf_train.py OUT_FOLDER [--healthy]

The records hold sequences of different lengths. As written, a slow map runs on one thread, the batches are padded and
nothing is prefetched, so the step waits for its input. `--healthy` is the twin: little work per record, a parallel map,
and prefetch(AUTOTUNE). The waits that the loop measured itself go to OUT_FOLDER/measured.json.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

BATCH, LENGTH, FEATURES, WIDTH, STEPS, WARM_UP = 32, 64, 8, 3072, 12, 3
FILES, RECORDS = 4, 160


def write_records(folder: Path) -> list[str]:
    """Small TFRecord files of random sequences."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    names = [str(folder / f"part-{index}.tfrecord") for index in range(FILES)]
    for name in names:
        with tf.io.TFRecordWriter(name) as writer:
            for _ in range(RECORDS):
                values = rng.random(FEATURES * rng.integers(LENGTH // 2, LENGTH + 1), dtype=np.float32)
                feature = tf.train.Feature(float_list=tf.train.FloatList(value=values))
                example = tf.train.Example(features=tf.train.Features(feature={"sequence": feature}))
                writer.write(example.SerializeToString())
    return names


def parse(record: Any, draws: int) -> Any:
    """Decode one record and add noise, the mean of many draws: a stand-in for costly augmentation."""
    example = tf.io.parse_single_example(record, {"sequence": tf.io.VarLenFeature(tf.float32)})
    sequence = tf.reshape(tf.sparse.to_dense(example["sequence"]), [-1, FEATURES])
    noise = tf.random.normal([draws, tf.shape(sequence)[0], FEATURES], stddev=0.1)
    return sequence + tf.reduce_mean(noise, axis=0)


def dataset(names: list[str], healthy: bool) -> Any:
    """The input pipeline, slow or healthy."""
    data = tf.data.TFRecordDataset(names).repeat()
    draws, calls = (1, tf.data.AUTOTUNE) if healthy else (400, None)
    data = data.map(lambda record: parse(record, draws), num_parallel_calls=calls)
    data = data.padded_batch(BATCH, padded_shapes=[LENGTH, FEATURES])
    if healthy:
        return data.prefetch(tf.data.AUTOTUNE)
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False  # or tf.data adds a prefetch on its own
    return data.with_options(options)


def build_step() -> Any:
    """A compiled step that trains a small autoencoder."""
    size = LENGTH * FEATURES
    init = tf.random_normal_initializer(stddev=0.05, seed=0)
    weights = [tf.Variable(init(shape)) for shape in ((size, WIDTH), (WIDTH, WIDTH), (WIDTH, size))]

    @tf.function(jit_compile=True)
    def train_step(batch: Any) -> Any:
        target = tf.reshape(batch, [BATCH, size])
        with tf.GradientTape() as tape:
            x = target
            for w in weights:
                x = tf.nn.gelu(x @ w)
            loss = tf.reduce_mean((x - target) ** 2)
        for w, grad in zip(weights, tape.gradient(loss, weights), strict=True):
            w.assign_sub(0.01 * grad)
        return loss

    return train_step


def run(train_step: Any, batches: Any, steps: int) -> dict[str, list[float]]:
    """Train; return per step, in milliseconds, the wait for the batch and the whole step."""
    waits, times = [], []
    for step in range(steps):
        start = time.perf_counter()
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            batch = next(batches)
            loaded = time.perf_counter()
            train_step(batch).numpy()
        waits.append(1e3 * (loaded - start))
        times.append(1e3 * (time.perf_counter() - start))
    return {"input_wait_ms": waits, "step_ms": times}


def main() -> None:
    """Warm up, then capture STEPS steps."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    batches = iter(dataset(write_records(Path("records")), args.healthy))
    train_step = build_step()
    run(train_step, batches, WARM_UP)
    with tf.profiler.experimental.Profile(str(args.out)):
        measured = run(train_step, batches, STEPS)
    (args.out / "measured.json").write_text(json.dumps(measured, indent=1) + "\n")


if __name__ == "__main__":
    main()
