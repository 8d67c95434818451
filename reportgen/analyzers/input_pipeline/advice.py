"""What to change at the stage to blame, for each framework, with short code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reportgen.analyzers.input_pipeline.diagnosis import Cause
from reportgen.document import Action


@dataclass(frozen=True)
class Advice:
    """What a fault means and what to do.

    Attributes:
        fault: What is wrong, as the second half of a sentence that names the stage.
        why: Why it costs time.
        actions: What to do, the most promising first.

    """

    fault: str
    why: str
    actions: tuple[Action, ...]


_THREAD_AHEAD = (
    Action(
        framework="jax",
        text="Make the next batch, and put it on the device, while the device computes: with a prefetching loader "
        "such as grain, or a thread with a small queue.",
        code="loader = grain.MapDataset.source(source).map(decode).to_iter_dataset().batch(256).mp_prefetch(\n"
        "    grain.MultiprocessingOptions(num_workers=8))",
    ),
    Action(
        framework="pytorch_xla",
        text="Load in worker processes and transfer ahead.",
        code="loader = pl.MpDeviceLoader(\n"
        "    DataLoader(data, batch_size=128, num_workers=8, prefetch_factor=4, persistent_workers=True),\n"
        "    xm.xla_device(), loader_prefetch_size=8, device_prefetch_size=4)",
    ),
    Action(
        framework="tensorflow",
        text="Feed the step from tf.data, which works ahead on threads of its own.",
        code="data = data.map(fn, num_parallel_calls=tf.data.AUTOTUNE).batch(n).prefetch(tf.data.AUTOTUNE)",
    ),
)
_PREFETCH = Action(
    text="End the pipeline with a prefetch, so that it works while the device computes.",
    code="data = data.prefetch(tf.data.AUTOTUNE)",
)
_PARALLEL_MAP = Action(
    text="Call the map function for several samples at a time.",
    code="data = data.map(fn, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)",
)
_OFFLINE = Action(text="Do the work once: cache its result, or preprocess offline.", code="data = data.map(fn).cache()")
_SERVICE = Action(
    text="Where the host has no core left, spread the pipeline over more machines.",
    code="data = data.apply(tf.data.experimental.service.distribute(\n"
    "    processing_mode='parallel_epochs', service='grpc://dispatcher:5000'))",
)
_FEWER_FILES = Action(
    text="Pack the samples into fewer, larger files of 100 MB or more: TFRecord, ArrayRecord, WebDataset shards.",
    code="with tf.io.TFRecordWriter('part-00000.tfrecord') as writer:\n"
    "    for sample in samples:\n        writer.write(sample)",
)
_INTERLEAVE = Action(
    text="Read several files at a time.",
    code="data = files.interleave(tf.data.TFRecordDataset, cycle_length=16,\n"
    "    num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)",
)

ADVICE: Mapping[Cause, Advice] = {
    "no-prefetch": Advice(
        "runs between the steps, with nothing prefetched",
        "The host prepares the next batch only when the device asks for it. The work is short enough to hide "
        "completely behind the step.",
        (_PREFETCH,),
    ),
    "sequential-map": Advice(
        "calls its function for one sample at a time",
        "The map function keeps one core busy while the others idle.",
        (_PARALLEL_MAP, _PREFETCH, _OFFLINE),
    ),
    "slow-map": Advice(
        "cannot keep up although it calls its function in parallel",
        "The map function needs more processor time than the host has during a step.",
        (
            Action(
                text="Let tf.data choose the parallelism, or raise it to the host's number of cores.",
                code="data = data.map(fn, num_parallel_calls=tf.data.AUTOTUNE)",
            ),
            _OFFLINE,
            _SERVICE,
        ),
    ),
    "map-before-batch": Advice(
        "calls a cheap function once for every sample",
        "Calling the function costs more than what it does; one call a batch does the same work vectorised.",
        (
            Action(
                text="Batch first, then map over whole batches.",
                code="data = data.batch(n).map(fn_on_batches, num_parallel_calls=tf.data.AUTOTUNE)",
            ),
            _PREFETCH,
        ),
    ),
    "decoder": Advice(
        "spends its time decoding",
        "Decoding images, audio or records takes most of the map function's time.",
        (
            _PARALLEL_MAP,
            Action(
                text="Decode less: only the part that the crop needs, at the scale that it needs, or smaller images.",
                code="image = tf.image.decode_and_crop_jpeg(data, window, channels=3)",
            ),
            Action(
                text="Store the samples decoded, or as raw bytes of the final size.",
                code="data = data.map(decode).cache()",
            ),
            _SERVICE,
        ),
    ),
    "small-files": Advice(
        "opens a file for every few samples",
        "Opening a file and creating its iterator costs more than reading the few samples in it; "
        "on remote storage each file is a request of its own.",
        (_FEWER_FILES, _INTERLEAVE),
    ),
    "sequential-read": Advice(
        "reads one file at a time, on demand",
        "The time to read and decompress a file adds to every step instead of overlapping with other files.",
        (_INTERLEAVE, _PREFETCH),
    ),
    "slow-read": Advice(
        "cannot keep up although it reads ahead",
        "Storage or decompression gives fewer samples a second than the step takes.",
        (
            Action(
                text="Read more files at a time, with larger buffers.",
                code="data = files.interleave(\n"
                "    lambda f: tf.data.TFRecordDataset(f, buffer_size=16 << 20), cycle_length=64,\n"
                "    num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)",
            ),
            Action(text="Bring the data nearer: the same region, a local disk, or memory.", code="data = data.cache()"),
            _SERVICE,
        ),
    ),
    "python-generator": Advice(
        "makes its samples in Python",
        "Python code inside tf.data runs under the interpreter's lock, one sample at a time, beside the training loop.",
        (
            Action(
                text="Write the work as TensorFlow ops, and read from files instead of a generator.",
                code="data = tf.data.TFRecordDataset(files).map(parse, num_parallel_calls=tf.data.AUTOTUNE)",
            ),
            Action(
                text="Or run several generators at a time, each in a process of its own.",
                code="loader = grain.DataLoader(data_source=source, worker_count=8, sampler=sampler)",
            ),
            _PREFETCH,
        ),
    ),
    "data-service": Advice(
        "waits for the data service",
        "The workers of the data service give fewer samples a second than the step takes.",
        (Action(text="Add workers to the data service, or give each more cores.", code=""),),
    ),
    "pipeline-stage": Advice(
        "takes the time",
        "The stage runs on one thread, and the stages after it wait for it.",
        (_PREFETCH, _OFFLINE),
    ),
    "loader-sleep": Advice(
        "waits for something outside the program",
        "The loader waits (for a disk, the network, another process or a timer) while the device idles.",
        (
            *_THREAD_AHEAD,
            Action(
                text="Ask for several batches at a time, so that their waits overlap.",
                code="pool.map(fetch, next_keys)",
            ),
        ),
    ),
    "loader-read": Advice(
        "reads files while the step waits",
        "Opening and reading files in the training loop adds to every step.",
        (
            *_THREAD_AHEAD,
            Action(
                text="Keep many samples in one file and map it into memory.",
                code="data = np.load('train.npy', mmap_mode='r')",
            ),
        ),
    ),
    "loader-decode": Advice(
        "decodes while the step waits",
        "Decoding in the training loop adds to every step, and Python does it on one core.",
        (
            *_THREAD_AHEAD,
            Action(
                text="Store the samples decoded, in the type and size that the step takes.",
                code="np.save('train.npy', decoded)",
            ),
        ),
    ),
    "loader-compute": Advice(
        "computes the batch while the step waits",
        "NumPy and Python work in the training loop adds to every step.",
        (
            *_THREAD_AHEAD,
            Action(
                framework="jax",
                text="Move augmentation into the compiled step.",
                code="@jax.jit\ndef train_step(state, raw):\n    batch = augment(raw)",
            ),
        ),
    ),
    "loader-threads": Advice(
        "is too slow although it runs ahead on threads of its own",
        "The loop waits for the loader's queue: the loader makes fewer batches a second than the step takes. "
        "Python threads share one interpreter lock.",
        (
            Action(
                framework="jax",
                text="Load in several processes.",
                code="data = data.mp_prefetch(grain.MultiprocessingOptions(num_workers=8))",
            ),
            Action(
                framework="pytorch_xla",
                text="Raise the number of worker processes.",
                code="DataLoader(data, num_workers=16, prefetch_factor=4, persistent_workers=True)",
            ),
            Action(
                framework="tensorflow",
                text="Feed the step from tf.data.",
                code="data = data.map(fn, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)",
            ),
        ),
    ),
    "transfer": Advice(
        "runs while the device idles",
        "The step starts only when its batch has arrived on the device.",
        (
            Action(
                framework="jax",
                text="Put the next batch on the device while the present one is in use; `device_put` returns at once.",
                code="following = jax.device_put(next(batches))\n"
                "for step in range(steps):\n"
                "    batch, following = following, jax.device_put(next(batches))\n"
                "    state = train_step(state, batch)",
            ),
            Action(
                framework="pytorch_xla",
                text="Let the device loader transfer ahead.",
                code="loader = pl.MpDeviceLoader(loader, xm.xla_device(), device_prefetch_size=4)",
            ),
            Action(
                framework="tensorflow",
                text="Prefetch to the device.",
                code="data = data.apply(tf.data.experimental.prefetch_to_device('/GPU:0', 2))",
            ),
            Action(
                text="Send less: the smallest type that holds the data, only what the step reads; convert on device.",
                code="batch = images.astype(np.uint8)  # cast to bfloat16 inside the step",
            ),
        ),
    ),
    "infeed": Advice(
        "waits for data from the host, whose input work was not captured",
        "The device's infeed is empty when the step asks for it.",
        (
            Action(
                text="Capture the host too, to see which stage is late.",
                code="reportgen capture HOST:PORT --host-level 2 --python-level 1",
            ),
            _PREFETCH,
        ),
    ),
}
