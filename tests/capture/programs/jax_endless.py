"""A JAX script that marks steps until it is interrupted; tells after 20 what its streams are, and ends with code 7."""
# ruff: noqa: T201

import sys
import time

import jax
import jax.numpy as jnp

step = jax.jit(lambda x: jnp.tanh(x @ x).sum())
x = jnp.ones((128, 128))
interrupts = 0
end = time.monotonic() + 120
number = 0
try:
    while time.monotonic() < end:
        with jax.profiler.StepTraceAnnotation("train", step_num=1):
            step(x).block_until_ready()
            time.sleep(0.01)
        number += 1
        if number == 20:
            print(sys.stdin.isatty(), sys.stdout.isatty(), sys.stderr.isatty(), flush=True)
except KeyboardInterrupt:
    interrupts += 1
try:
    time.sleep(0.5)
except KeyboardInterrupt:
    interrupts += 1
print("interrupts:", interrupts, flush=True)
sys.exit(7)
