"""A JAX training loop with a profiler server: PORT, seconds to live, milliseconds a step sleeps (-1: no loop)."""
# ruff: noqa: T201

import sys
import time

import jax
import jax.numpy as jnp

port, lifetime_s, pause_ms = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
end = time.monotonic() + lifetime_s
jax.profiler.start_server(port)
step = jax.jit(lambda x: jnp.tanh(x @ x).sum())
x = jnp.ones((128, 128))
step(x).block_until_ready()
print("ready", flush=True)
number = 0
while time.monotonic() < end:
    if pause_ms < 0:
        time.sleep(0.1)
        continue
    with jax.profiler.StepTraceAnnotation("train", step_num=number):
        step(x).block_until_ready()
        time.sleep(pause_ms / 1000)
    number += 1
