"""Lower small JAX programs and print XLA's cost analysis beside ours, as JSON. Run apart, with JAX on the CPU."""

from __future__ import annotations

import json
import sys
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from reportgen.profile.hlo import HloModule
from reportgen.profile.hlo_cost import bytes_accessed, cost

NHWC = ("NHWC", "HWIO", "NHWC")


def conv(x: Any, kernel: Any, strides: Any = (1, 1), padding: Any = "SAME", **options: Any) -> Any:
    return lax.conv_general_dilated(x, kernel, strides, padding, dimension_numbers=NHWC, **options)


def pool(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


def f32(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def s32(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, jnp.int32)


PROGRAMS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "dot": (lambda a, b: a @ b, (f32(64, 96), f32(96, 32))),
    "batched dot": (lambda a, b: jnp.einsum("bij,bjk->bik", a, b), (f32(4, 16, 8), f32(4, 8, 12))),
    "convolution": (conv, (f32(2, 9, 9, 5), f32(3, 3, 5, 7))),
    "strided": (lambda x, k: conv(x, k, (2, 3)), (f32(2, 9, 10, 5), f32(3, 3, 5, 7))),
    "dilated": (
        lambda x, k: conv(x, k, padding=((2, 1), (3, 0)), lhs_dilation=(2, 3), rhs_dilation=(2, 1)),
        (f32(2, 9, 10, 5), f32(3, 3, 5, 7)),
    ),
    "grouped": (lambda x, k: conv(x, k, feature_group_count=3), (f32(2, 9, 9, 6), f32(3, 3, 2, 9))),
    "elementwise": (lambda a, b: (a * b + 1) / (a - b), (f32(8, 9), f32(8, 9))),
    "transcendental": (lambda a: jnp.exp(a) + jnp.tanh(a) * jnp.sqrt(a), (f32(8, 9),)),
    "reduce": (lambda a: a.sum(1), (f32(8, 9),)),
    "softmax": (jax.nn.softmax, (f32(8, 9),)),
    "pool": (pool, (f32(2, 9, 9, 3),)),
    "pool gradient": (jax.grad(lambda a: pool(a).sum()), (f32(2, 9, 9, 3),)),
    "sort": (jnp.sort, (f32(100),)),
    "sum so far": (lambda a: jnp.cumsum(a, 1), (f32(8, 32),)),
    "scatter": (lambda a, i, u: a.at[i].add(u), (f32(100, 4), s32(7), f32(7, 4))),
    "gather": (lambda a, i: a[i], (f32(100, 4), s32(7))),
    "loop": (lambda a: lax.scan(lambda c, x: (c * x, c + x), a[0], a)[0], (f32(8, 9),)),
    "branches": (lambda a: lax.cond(a[0, 0] > 0, lambda x: x * 2 + 1, lambda x: x @ x.T @ x, a), (f32(8, 9),)),
    "updated slice": (lambda a, u: lax.dynamic_update_slice(a, u, (3, 0)), (f32(64, 9), f32(2, 9))),
}


def measured(function: Any, arguments: tuple[Any, ...]) -> dict[str, Any]:
    """XLA's figures and ours; bytes only where XLA adds them up the same way, without called computations."""
    lowered = jax.jit(function).lower(*arguments)
    xla = lowered.cost_analysis()
    module = HloModule.from_bytes(lowered.compiler_ir("hlo").as_serialized_hlo_module_proto())
    costs = [cost(module, instruction) for instruction in module.entry.instructions]
    sizes = [bytes_accessed(module, instruction) for instruction in module.entry.instructions]
    ours = [sum(c.flops or 0 for c in costs), sum(c.transcendentals or 0 for c in costs)]
    theirs = [xla.get("flops", 0.0), xla.get("transcendentals") or 0.0]
    if None not in sizes:
        ours.append(sum(size or 0 for size in sizes))
        theirs.append(xla["bytes accessed"])
    return {"xla": theirs, "ours": ours}


if __name__ == "__main__":
    sys.stdout.write(json.dumps({name: measured(*program) for name, program in PROGRAMS.items()}))
