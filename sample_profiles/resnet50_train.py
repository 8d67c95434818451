"""ResNet-50's training step for four chips of TPU v5e, compiled by libtpu with no TPU present.

    python resnet50_train.py      # XLA's dump goes where XLA_FLAGS=--xla_dump_to says

Plain JAX: bfloat16 compute, float32 parameters, batch normalisation, SGD with momentum, a global batch of 512 images
sharded over the chips. The parameters, statistics and momenta are donated.
"""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

BATCH, SIDE, CLASSES = 512, 224, 1000
BLOCKS, WIDTHS = (3, 4, 6, 3), (64, 128, 256, 512)
Tree = dict[str, Any]


class Conv:
    """A convolution without bias and the batch normalisation behind it."""

    def __init__(self, name: str, side: int, inputs: int, outputs: int, stride: int = 1) -> None:
        self.name, self.stride, self.kernel = name, stride, (side, side, inputs, outputs)

    def shapes(self) -> Tree:
        """Shapes of the parameters."""
        return {"kernel": self.kernel, "scale": self.kernel[-1:], "bias": self.kernel[-1:]}

    def __call__(self, params: Tree, stats: Tree, x: jax.Array) -> jax.Array:
        """Convolve and normalise; the batch's statistics replace those in `stats`."""
        with jax.named_scope(self.name):
            p = params[self.name]
            kernel = p["kernel"].astype(x.dtype)
            x = jax.lax.conv_general_dilated(
                x, kernel, (self.stride,) * 2, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            return batch_norm(p, stats[self.name], x)


def batch_norm(p: Tree, stats: Tree, x: jax.Array) -> jax.Array:
    """Normalise over batch and space in float32; move the running statistics."""
    wide = x.astype(jnp.float32)
    mean = wide.mean((0, 1, 2))
    variance = (wide**2).mean((0, 1, 2)) - mean**2
    for key, value in (("mean", mean), ("variance", variance)):
        stats[key] = 0.9 * stats[key] + 0.1 * jax.lax.stop_gradient(value)
    scale = p["scale"] * jax.lax.rsqrt(variance + 1e-5)
    return (wide * scale + (p["bias"] - mean * scale)).astype(x.dtype)


def bottleneck(name: str, inputs: int, width: int, stride: int) -> list[Conv]:
    """The convolutions of one block; a projection where the shape changes."""
    convs = [
        Conv(f"{name}_conv1", 1, inputs, width),
        Conv(f"{name}_conv2", 3, width, width, stride),
        Conv(f"{name}_conv3", 1, width, 4 * width),
    ]
    changes = stride > 1 or inputs != 4 * width
    return [*convs, Conv(f"{name}_projection", 1, inputs, 4 * width, stride)] if changes else convs


def blocks() -> Iterator[list[Conv]]:
    """All bottleneck blocks of ResNet-50, version 1.5 (the 3x3 convolution strides)."""
    inputs = WIDTHS[0]
    for stage, (count, width) in enumerate(zip(BLOCKS, WIDTHS, strict=True), 1):
        for index in range(count):
            yield bottleneck(f"stage{stage}_block{index}", inputs, width, 2 if stage > 1 and index == 0 else 1)
            inputs = 4 * width


STEM = Conv("stem", 7, 3, 64, 2)
TRUNK = list(blocks())
CONVS = [STEM, *(conv for block in TRUNK for conv in block)]


def forward(params: Tree, stats: Tree, images: jax.Array) -> jax.Array:
    """Logits, float32; `stats` is updated in place."""
    x = jax.nn.relu(STEM(params, stats, images))
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    for conv1, conv2, conv3, *projection in TRUNK:
        shortcut = projection[0](params, stats, x) if projection else x
        x = jax.nn.relu(conv1(params, stats, x))
        x = jax.nn.relu(conv2(params, stats, x))
        x = jax.nn.relu(conv3(params, stats, x) + shortcut)
    with jax.named_scope("classifier"):
        x = x.mean((1, 2))
        return (x @ params["classifier"]["kernel"].astype(x.dtype)).astype(jnp.float32) + params["classifier"]["bias"]


def loss(params: Tree, stats: Tree, images: jax.Array, labels: jax.Array) -> tuple[jax.Array, Tree]:
    """Mean cross entropy and the new running statistics."""
    stats = {name: dict(entry) for name, entry in stats.items()}
    logits = forward(params, stats, images)
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
    return -picked.mean(), stats


def train_step(params: Tree, momenta: Tree, stats: Tree, images: jax.Array, labels: jax.Array) -> tuple[Any, ...]:
    """One step of SGD with momentum."""
    (value, stats), grads = jax.value_and_grad(loss, has_aux=True)(params, stats, images, labels)
    with jax.named_scope("sgd"):
        momenta = jax.tree.map(lambda m, g: 0.9 * m + g, momenta, grads)
        params = jax.tree.map(lambda p, m: p - 0.1 * m, params, momenta)
    return params, momenta, stats, value


def main() -> None:
    """Compile for the topology; nothing runs."""
    topology = topologies.get_topology_desc("v5e:2x2", platform="tpu")
    mesh = Mesh(np.array(topology.devices).reshape(4), ("data",))

    def spec(shape: tuple[int, ...], dtype: Any = jnp.float32, *axes: str) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, PartitionSpec(*axes)))

    shapes = {conv.name: conv.shapes() for conv in CONVS}
    shapes["classifier"] = {"kernel": (4 * WIDTHS[-1], CLASSES), "bias": (CLASSES,)}
    params = jax.tree.map(spec, shapes, is_leaf=lambda leaf: isinstance(leaf, tuple))
    stats = {conv.name: {key: spec(conv.kernel[-1:]) for key in ("mean", "variance")} for conv in CONVS}
    images = spec((BATCH, SIDE, SIDE, 3), jnp.bfloat16, "data")
    labels = spec((BATCH,), jnp.int32, "data")
    step = jax.jit(train_step, donate_argnums=(0, 1, 2))
    print(step.lower(params, params, stats, images, labels).compile().memory_analysis())


if __name__ == "__main__":
    main()
