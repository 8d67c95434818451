"""A TensorFlow training loop with a profiler server: PORT, seconds to live, milliseconds a step sleeps."""
# ruff: noqa: T201

import sys
import time

import tensorflow as tf

port, lifetime_s, pause_ms = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
end = time.monotonic() + lifetime_s
tf.profiler.experimental.server.start(port)
step = tf.function(lambda x: tf.reduce_sum(tf.tanh(x @ x)))
x = tf.ones((128, 128))
step(x).numpy()
print("ready", flush=True)
number = 0
while time.monotonic() < end:
    with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
        step(x).numpy()
        time.sleep(pause_ms / 1000)
    number += 1
