"""A JAX script that traces itself: the folder for its trace."""
# ruff: noqa: T201

import sys

import jax
import jax.numpy as jnp

step = jax.jit(lambda x: jnp.tanh(x @ x).sum())
x = jnp.ones((128, 128))
for number in range(14):
    if number == 9:
        jax.profiler.start_trace(sys.argv[1])
    with jax.profiler.StepTraceAnnotation("train", step_num=number):
        step(x).block_until_ready()
jax.profiler.stop_trace()
print("done")
