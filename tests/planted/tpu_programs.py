"""Programs with one planted fault and their repaired twins, for the TPU compiler.

Each function returns the program and its arguments' shapes. `work` is how much more the repaired one does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec

BF16, F32 = jnp.bfloat16, jnp.float32


@dataclass(frozen=True)
class Argument:
    """Shape and type of an argument; `axes` name the mesh axis of each dimension.

    `row_major` fixes its layout to the order of its dimensions, as code outside XLA may need it.
    """

    shape: tuple[int, ...]
    dtype: Any = BF16
    axes: tuple[str | None, ...] = ()
    row_major: bool = False


@dataclass(frozen=True)
class Program:
    """What to compile: a function, its arguments (a tree of `Argument`), and which of them are donated."""

    function: Callable[..., Any]
    arguments: Sequence[Any]
    donated: tuple[int, ...] = ()


@dataclass(frozen=True)
class Pair:
    """A faulty program and its twin.

    Attributes:
        rule: The rule that has to find the fault.
        work: Work of the repaired program over that of the faulty one.
        chips: Chips that run it.

    """

    rule: str
    faulty: Program
    repaired: Program
    work: float = 1.0
    chips: int = 1


def convolution(batch: int, side: int, features_in: int, features_out: int, kernel: int = 3, **options: Any) -> Program:
    """One convolution followed by a ReLU."""
    dtype = options.pop("dtype", BF16)

    def apply(x: jax.Array, w: jax.Array) -> jax.Array:
        y = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), **options)
        return jax.nn.relu(y)

    shapes = (batch, side, side, features_in), (kernel, kernel, features_in, features_out)
    return Program(apply, [Argument(shape, dtype) for shape in shapes])


def dot(rows: int, contracted: int, columns: int, dtype: Any = BF16, **options: Any) -> Program:
    """One matrix product."""

    def multiply(x: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.dot(x, w, **options)

    return Program(multiply, [Argument((rows, contracted), dtype), Argument((contracted, columns), dtype)])


def layers(width: int, hidden: int, rows: int, checkpoint: bool = False, donate: bool = True) -> Program:
    """A training step of three residual layers in bfloat16 with SGD."""

    def layer(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
        return x + jax.nn.gelu(x @ up) @ down

    apply = jax.checkpoint(layer) if checkpoint else layer

    def loss(weights: list[Any], x: jax.Array) -> jax.Array:
        for up, down in weights:
            x = apply(x, up, down)
        return (x.astype(F32) ** 2).mean()

    def step(weights: list[Any], x: jax.Array) -> Any:
        gradients = jax.grad(loss)(weights, x)
        return jax.tree.map(lambda w, g: (w - 1e-3 * g).astype(w.dtype), weights, gradients)

    weights = [(Argument((width, hidden)), Argument((hidden, width)))] * 3
    return Program(step, [weights, Argument((rows, width))], donated=(0,) if donate else ())


def attention(checkpoint: bool) -> Program:
    """Gradient of two attention layers whose scores are computed again where checkpointed."""

    def layer(x: jax.Array, w: jax.Array) -> jax.Array:
        q, k, v = jnp.split(x @ w, 3, axis=-1)
        scores = jax.nn.softmax((jnp.einsum("bqd,bkd->bqk", q, k) / 16).astype(F32)).astype(x.dtype)
        return x + jnp.einsum("bqk,bkd->bqd", scores, v)

    apply = jax.checkpoint(layer) if checkpoint else layer

    def step(weights: list[jax.Array], x: jax.Array) -> Any:
        def loss(weights: list[jax.Array]) -> jax.Array:
            y = x
            for w in weights:
                y = apply(y, w)
            return (y.astype(F32) ** 2).mean()

        return jax.tree.map(lambda w, g: (w - 1e-3 * g).astype(w.dtype), weights, jax.grad(loss)(weights))

    return Program(step, [[Argument((1024, 3072))] * 2, Argument((8, 1024, 1024))], donated=(0,))


def adam(donate: bool) -> Program:
    """An update of Adam alone, in float32."""

    def step(state: Any, gradient: jax.Array) -> Any:
        w, m, v = state
        m, v = 0.9 * m + 0.1 * gradient, 0.99 * v + 0.01 * gradient**2
        return w - 1e-3 * m * jax.lax.rsqrt(v + 1e-8), m, v

    array = Argument((4096, 4096), F32)
    return Program(step, [(array, array, array), array], donated=(0,) if donate else ())


def cache_update(donate: bool) -> Program:
    """One token written into a key-value cache, and attention over it."""

    def step(cache: jax.Array, token: jax.Array, weights: jax.Array, position: jax.Array) -> Any:
        cache = jax.lax.dynamic_update_slice(cache, token[:, None], (0, position, 0))
        return cache, (cache * token[:, None]).sum(-1).astype(BF16) @ weights

    return Program(
        step,
        [Argument((64, 4096, 256)), Argument((64, 256)), Argument((4096, 4096)), Argument((), jnp.int32)],
        donated=(0,) if donate else (),
    )


def many_dots(apart: bool) -> Program:
    """Sixty-four products of small matrices, one after another, or the same number of FLOPs as one product."""
    if not apart:
        return dot(4096, 4096, 4096)

    def apply(x: jax.Array, w: jax.Array) -> jax.Array:
        for i in range(64):
            x = jax.lax.optimization_barrier(x @ w[i])
        return x

    return Program(apply, [Argument((256, 256)), Argument((64, 256, 256))])


def tall_dots(tall: bool) -> Program:
    """Products whose results are small and whose contraction is short, or wide ones."""
    return dot(2048, 128, 2048) if tall else dot(4096, 4096, 4096)


def sliding_sum(as_vector_work: bool) -> Program:
    """A sliding sum over 32 places: by shifted additions, or as a matrix product with a band of ones."""

    def shifted(x: jax.Array, w: jax.Array) -> jax.Array:
        wide = jnp.tanh(x.astype(F32))
        total = sum(jnp.sin(wide * i) * jnp.roll(wide, i, axis=1) for i in range(32))
        return total.astype(BF16) @ w

    def product(x: jax.Array, w: jax.Array) -> jax.Array:
        return (x @ w) @ w

    return Program(shifted if as_vector_work else product, [Argument((2048, 2048)), Argument((2048, 2048))])


def normalisation(heavy: bool) -> Program:
    """Softmax over a long row with little matrix work, or a large product with the same at its end."""

    def apply(x: jax.Array, w: jax.Array) -> jax.Array:
        y = x @ w
        for _ in range(6 if heavy else 1):
            y = jax.lax.optimization_barrier(jax.nn.softmax(y.astype(F32), axis=-1).astype(BF16))
        return y

    return Program(apply, [Argument((4096, 256 if heavy else 8192)), Argument((256 if heavy else 8192, 4096))])


def transposed(back_and_forth: bool) -> Program:
    """Products with a transposition of a large array between them that nothing needs."""

    def apply(x: jax.Array, w: jax.Array) -> jax.Array:
        for _ in range(2):
            y = (x.reshape(64, 64, 1024) @ w).astype(BF16)
            if back_and_forth:
                y = jax.lax.optimization_barrier(y.transpose(2, 0, 1))
                y = jax.lax.optimization_barrier((y * 2).transpose(1, 2, 0))
            x = y.reshape(4096, 1024)
        return x

    return Program(apply, [Argument((4096, 1024)), Argument((1024, 1024))])


def channels(first: bool) -> Program:
    """Convolutions that get and give their channels first, or last."""
    numbers = ("NCHW", "HWIO", "NCHW") if first else ("NHWC", "HWIO", "NHWC")

    def apply(x: jax.Array, w: jax.Array) -> jax.Array:
        for _ in range(2):
            x = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers)
            if first:
                x = jax.lax.optimization_barrier(x.reshape(128, -1)).reshape(x.shape)
        return x

    shape = (128, 256, 14, 14) if first else (128, 14, 14, 256)
    return Program(apply, [Argument(shape), Argument((3, 3, 256, 256))])


def summed(scattered: bool) -> Program:
    """Rows added up by segment: scattered one by one, or by a product with a one-hot operand."""

    def apply(ids: jax.Array, rows: jax.Array, w: jax.Array) -> jax.Array:
        if scattered:
            return jax.ops.segment_sum(rows, ids, num_segments=1024) @ w
        return (jax.nn.one_hot(ids, 1024, dtype=rows.dtype, axis=0) @ rows) @ w

    return Program(apply, [Argument((32768,), jnp.int32), Argument((32768, 512)), Argument((512, 512))])


def ordered(by_sorting: bool) -> Program:
    """The largest values of long rows by sorting all of them, or just some of them."""

    def apply(x: jax.Array, w: jax.Array) -> jax.Array:
        y = x @ w
        return jnp.sort(y, axis=-1) if by_sorting else y

    return Program(
        apply, [Argument((2048, 512 if by_sorting else 4096)), Argument((512 if by_sorting else 4096, 4096))]
    )


def widened(there_and_back: bool) -> Program:
    """Narrow projections of a wide activation that arrives in float32, or in the type that they compute in."""

    def apply(x: jax.Array, weights: list[jax.Array], out: jax.Array) -> jax.Array:
        narrow = jax.lax.optimization_barrier(x.astype(BF16)) if there_and_back else x
        total = sum(narrow @ w for w in weights)
        return total @ out

    dtype = F32 if there_and_back else BF16
    return Program(apply, [Argument((16384, 4096), dtype), [Argument((4096, 256))] * 3, Argument((256, 256))])


def data_parallel(rows: int) -> Program:
    """A gradient step with a batch per chip, whose all-reduce has that much computation beside it."""

    def step(w: jax.Array, x: jax.Array) -> Any:
        gradient = jax.grad(lambda w: ((x @ w).astype(F32) ** 2).mean())(w)
        return (w - 1e-3 * gradient).astype(w.dtype)

    return Program(step, [Argument((4096, 4096)), Argument((rows, 4096), BF16, ("data", None))], donated=(0,))


def tensor_parallel(split: bool) -> Program:
    """Layers split over chips so that every one ends in an all-reduce, or the batch split instead."""

    def apply(x: jax.Array, ups: Any, downs: Any) -> jax.Array:
        for up, down in zip(ups, downs, strict=True):
            x = jax.nn.gelu(x @ up) @ down
        return x

    column, row = ((None, "data"), ("data", None)) if split else ((), ())
    batch = () if split else ("data", None)
    ups, downs = [Argument((2048, 2048), BF16, column)] * 4, [Argument((2048, 2048), BF16, row)] * 4
    return Program(apply, [Argument((16384 if not split else 4096, 2048), BF16, batch), ups, downs])


def statistics(apart: bool) -> Program:
    """Sums of many small vectors over the chips: one collective each, or one for all."""

    def inside(x: jax.Array, w: jax.Array, small: jax.Array) -> Any:
        y = x @ w
        if apart:
            total = small[0]
            for i in range(48):
                total = jax.lax.psum(jax.lax.optimization_barrier(jnp.tanh(total) + small[i]), "data")
            return y, total
        return y, jax.lax.psum(small, "data").sum(0)

    def apply(x: jax.Array, w: jax.Array, small: jax.Array) -> Any:
        mesh = jax.sharding.get_abstract_mesh()
        specs = PartitionSpec("data"), PartitionSpec(), PartitionSpec()
        return jax.shard_map(
            inside, mesh=mesh, in_specs=specs, out_specs=(PartitionSpec("data"), PartitionSpec()), check_vma=False
        )(x, w, small)

    rows = 1024 if apart else 131072
    return Program(
        apply,
        [
            Argument((rows, 1024), BF16, ("data", None)),
            Argument((1024, 1024)),
            Argument((48, 65536 if apart else 1024), F32),
        ],
    )


def resharded(changes: bool) -> Program:
    """Elementwise work and products whose arrays are split by rows, or by rows and by columns in turn."""

    def apply(x: jax.Array, w: jax.Array) -> jax.Array:
        for _ in range(4):
            x = jax.nn.relu(x @ w)
            if changes:
                x = jnp.cumsum(jax.lax.with_sharding_constraint(x, PartitionSpec(None, "data")), axis=0)
                x = jax.lax.with_sharding_constraint(x, PartitionSpec("data", None))
        return x

    return Program(apply, [Argument((4096, 1024), BF16, ("data", None)), Argument((1024, 1024))])


def kernel(block: int, contracted: int = 2048, pallas: bool = True) -> Program:
    """A product by a Pallas kernel without a cost estimate and with blocks of some size, or by the compiler."""
    if not pallas:
        return dot(4096, contracted, 4096)

    def multiply(x_ref: Any, w_ref: Any, out_ref: Any) -> None:
        out_ref[...] = jnp.dot(x_ref[...], w_ref[...], preferred_element_type=F32).astype(BF16)

    def apply(x: jax.Array, w: jax.Array) -> jax.Array:
        return pl.pallas_call(
            multiply,
            grid=(x.shape[0] // block, w.shape[1] // block),
            in_specs=[
                pl.BlockSpec((block, x.shape[1]), lambda i, j: (i, 0)),
                pl.BlockSpec((x.shape[1], block), lambda i, j: (0, j)),
            ],
            out_specs=pl.BlockSpec((block, block), lambda i, j: (i, j)),
            out_shape=jax.ShapeDtypeStruct((x.shape[0], w.shape[1]), BF16),
            compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel")),
        )(x, w)

    return Program(apply, [Argument((4096, contracted)), Argument((contracted, 4096))])


def narrow_rows(narrow: bool) -> Program:
    """A table whose rows of six values lie on the 128 lanes, or the same values in long rows; and a large product."""

    def step(table: jax.Array, x: jax.Array, w: jax.Array) -> Any:
        return table[:8].astype(F32) * 2, x @ w

    shape = (1 << 20, 6) if narrow else (6 << 10, 1024)
    return Program(step, [Argument(shape, row_major=True), Argument((8192, 8192)), Argument((8192, 8192))])


def full_memory(full: bool) -> Program:
    """Weights that fill the device's memory, or an eighth of it, and a large product."""

    def step(weights: list[jax.Array], x: jax.Array, w: jax.Array) -> Any:
        return x @ w, sum(weight[:8, :128] for weight in weights)

    size = 7 if full else 1
    return Program(step, [[Argument((17 << 16, 1024))] * size, Argument((8192, 8192)), Argument((8192, 8192))])


PAIRS = {
    "padding-seed": Pair("padding-waste", convolution(10, 32, 5, 64), convolution(128, 32, 8, 64), 12.8 * 8 / 5),
    "padding-seed-three": Pair("padding-waste", convolution(10, 32, 3, 64), convolution(128, 32, 4, 64), 12.8 * 4 / 3),
    "padding-features-out-over": Pair(
        "padding-waste", convolution(64, 32, 128, 130), convolution(64, 32, 128, 128), 128 / 130
    ),
    "padding-features-out-under": Pair(
        "padding-waste", convolution(64, 32, 256, 100), convolution(64, 32, 256, 128), 1.28
    ),
    "padding-features-in": Pair("padding-waste", convolution(64, 32, 5, 128), convolution(64, 32, 8, 128), 8 / 5),
    "padding-features-in-over": Pair(
        "padding-waste", convolution(64, 16, 257, 256, 1), convolution(64, 16, 256, 256, 1), 256 / 257
    ),
    "padding-batch-over": Pair("padding-waste", convolution(130, 32, 64, 64), convolution(128, 32, 64, 64), 128 / 130),
    "padding-batch-under": Pair("padding-waste", convolution(100, 32, 64, 64), convolution(128, 32, 64, 64), 1.28),
    "padding-unaligned": Pair("padding-waste", convolution(256, 32, 100, 128), convolution(256, 32, 128, 128), 1.28),
    "padding-narrow": Pair("padding-waste", convolution(64, 32, 128, 64), convolution(64, 32, 128, 128), 2.0),
    "precision-dot-highest": Pair(
        "precision", dot(4096, 4096, 4096, F32, precision="highest"), dot(4096, 4096, 4096, F32)
    ),
    "precision-dot-high": Pair("precision", dot(4096, 4096, 4096, F32, precision="high"), dot(4096, 4096, 4096, F32)),
    "precision-dot-wide": Pair(
        "precision", dot(4096, 2048, 4096, F32, precision="highest"), dot(4096, 2048, 4096, F32)
    ),
    "precision-conv": Pair(
        "precision",
        convolution(128, 16, 128, 128, dtype=F32, precision="highest"),
        convolution(128, 16, 128, 128, dtype=F32),
    ),
    "precision-conversions": Pair("precision", widened(True), widened(False)),
    "memory-bound-conv-narrow": Pair(
        "memory-bound-conv", convolution(128, 56, 128, 128, 1), convolution(128, 28, 512, 512)
    ),
    "memory-bound-dot-batch": Pair("memory-bound-dot", dot(8, 8192, 8192), dot(4096, 8192, 8192)),
    "memory-bound-dot-thin": Pair("memory-bound-dot", dot(4096, 32, 8192), dot(4096, 4096, 8192)),
    "low-flops-small": Pair("low-flops", many_dots(True), many_dots(False)),
    "vector-bound-shifts": Pair("vector-bound", sliding_sum(True), sliding_sum(False)),
    "vector-bound-softmax": Pair("vector-bound", normalisation(True), normalisation(False)),
    "data-formatting-transpose": Pair("data-formatting", transposed(True), transposed(False)),
    "data-formatting-channels": Pair("data-formatting", channels(True), channels(False)),
    "data-shuffle-scatter": Pair("data-shuffle", summed(True), summed(False)),
    "data-shuffle-sort": Pair("data-shuffle", ordered(True), ordered(False)),
    "donation-sgd": Pair("missing-donation", layers(1024, 4096, 4096, donate=False), layers(1024, 4096, 4096)),
    "donation-adam": Pair("missing-donation", adam(False), adam(True)),
    "donation-cache": Pair("missing-donation", cache_update(False), cache_update(True)),
    "remat-layers": Pair("costly-remat", layers(1024, 4096, 4096, checkpoint=True), layers(1024, 4096, 4096)),
    "remat-attention": Pair("costly-remat", attention(True), attention(False)),
    "collectives-gradients": Pair("exposed-collectives", data_parallel(2048), data_parallel(262144), chips=4),
    "collectives-tensor": Pair("exposed-collectives", tensor_parallel(True), tensor_parallel(False), chips=4),
    "collectives-small": Pair("small-collectives", statistics(True), statistics(False), chips=4),
    "resharding": Pair("resharding", resharded(True), resharded(False), chips=4),
    "custom-call-kernel": Pair("custom-call", kernel(256), kernel(256, pallas=False)),
    "vmem-blocks": Pair("vmem-pressure", kernel(512, 2816), kernel(256, 2816)),
    "memory-padding-rows": Pair("memory-padding", narrow_rows(True), narrow_rows(False)),
    "memory-full": Pair("memory-near-capacity", full_memory(True), full_memory(False)),
}
# Programs without a fault that careless advice would blame.
HEALTHY = {
    "vocabulary": dot(4096, 4096, 50257),
    "batch-of-six": dot(6, 4096, 4096),
}
