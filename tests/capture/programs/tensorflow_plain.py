"""A TensorFlow script that marks no steps: seconds to run."""
# ruff: noqa: T201

import sys
import time

import tensorflow as tf

step = tf.function(lambda x: tf.reduce_sum(tf.tanh(x @ x)))
x = tf.ones((128, 128))
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    step(x).numpy()
    time.sleep(0.002)
print("done")
