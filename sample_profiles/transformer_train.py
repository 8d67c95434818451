"""A transformer's training step that is too big for four chips of TPU v5e: a real out-of-memory at compile time.

    python transformer_train.py      # fails; XLA's dump goes where XLA_FLAGS=--xla_dump_to says

The attention keeps its scores for the backward pass, one square of 2048 by 2048 per head, sequence and layer, and the
logits are float32. Nothing is donated and nothing is rematerialised.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

BATCH, LENGTH, LAYERS, WIDTH, HEADS, VOCABULARY = 64, 2048, 8, 1024, 16, 32_000
Tree = dict[str, Any]


def attention(layer: Tree, x: jax.Array) -> jax.Array:
    """Causal self-attention, written out."""
    batch, length, width = x.shape
    queries, keys, values = jnp.split(x @ layer["qkv"], 3, axis=-1)
    heads = [part.reshape(batch, length, HEADS, width // HEADS) for part in (queries, keys, values)]
    scores = jnp.einsum("bqhd,bkhd->bhqk", heads[0], heads[1]) / (width // HEADS) ** 0.5
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    weights = jax.nn.softmax(scores.astype(jnp.float32), axis=-1).astype(x.dtype)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, heads[2])
    return mixed.reshape(batch, length, width) @ layer["out"]


def normalise(x: jax.Array) -> jax.Array:
    """Root mean square normalisation."""
    return x * jax.lax.rsqrt(jnp.mean(x.astype(jnp.float32) ** 2, axis=-1, keepdims=True) + 1e-6).astype(x.dtype)


def loss(params: Tree, tokens: jax.Array) -> jax.Array:
    """Mean cross entropy of the next token."""
    x = params["embedding"][tokens]
    for index, layer in enumerate(params["layers"]):
        with jax.named_scope(f"layer_{index}"):
            x = x + attention(layer, normalise(x))
            x = x + jax.nn.gelu(normalise(x) @ layer["up"]) @ layer["down"]
    with jax.named_scope("logits"):
        logits = (normalise(x) @ params["embedding"].T).astype(jnp.float32)
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits[:, :-1]), tokens[:, 1:, None], axis=-1)
    return -picked.mean()


def train_step(params: Tree, tokens: jax.Array) -> tuple[Tree, jax.Array]:
    """One step of gradient descent."""
    value, grads = jax.value_and_grad(loss)(params, tokens)
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), value


def main() -> None:
    """Compile for the topology, which fails."""
    topology = topologies.get_topology_desc("v5e:2x2", platform="tpu")
    mesh = Mesh(np.array(topology.devices).reshape(4), ("data",))

    def spec(shape: tuple[int, ...], dtype: Any = jnp.bfloat16, *axes: str) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, PartitionSpec(*axes)))

    shapes = {"qkv": (WIDTH, 3 * WIDTH), "out": (WIDTH, WIDTH), "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
    layers = [{name: spec(shape) for name, shape in shapes.items()} for _ in range(LAYERS)]
    params = {"embedding": spec((VOCABULARY, WIDTH)), "layers": layers}
    tokens = spec((BATCH, LENGTH), jnp.int32, "data")
    print(jax.jit(train_step).lower(params, tokens).compile().memory_analysis())


if __name__ == "__main__":
    main()
