"""A JAX script that marks no steps: seconds to run."""
# ruff: noqa: T201

import sys
import time

import jax
import jax.numpy as jnp

step = jax.jit(lambda x: jnp.tanh(x @ x).sum())
x = jnp.ones((128, 128))
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    step(x).block_until_ready()
    time.sleep(0.002)
print("done")
