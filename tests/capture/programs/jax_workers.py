"""A JAX script with workers, which mark steps too, and a forked child."""
# ruff: noqa: T201

import multiprocessing
import os
import warnings


def work(number: int) -> int:
    import jax

    for step in range(20):
        with jax.profiler.StepTraceAnnotation("helper", step_num=step):
            pass
    return number


def main() -> None:
    import jax
    import jax.numpy as jnp

    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(work, [1, 2]))
    step = jax.jit(lambda x: jnp.tanh(x @ x).sum())
    x = jnp.ones((128, 128))
    for number in range(8):
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            step(x).block_until_ready()
    warnings.simplefilter("ignore")
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    print("done")


if __name__ == "__main__":
    main()
