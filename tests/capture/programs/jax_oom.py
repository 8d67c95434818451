"""A JAX script whose compilation for a TPU runs out of memory; needs libtpu, but no TPU."""

import os

os.environ.pop("JAX_PLATFORMS", None)
os.environ.update(
    TPU_SKIP_MDS_QUERY="1",
    TPU_ACCELERATOR_TYPE="v5litepod-4",
    TPU_WORKER_HOSTNAMES="localhost",
    ALLOW_MULTIPLE_LIBTPU_LOAD="1",
)

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

topology = topologies.get_topology_desc("v5e:2x2", platform="tpu")
mesh = Mesh(np.array(topology.devices).reshape(4), ("data",))


def shape(*sizes: int, axes: tuple[str, ...] = ()) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(sizes, jnp.bfloat16, sharding=NamedSharding(mesh, PartitionSpec(*axes)))


def step(weights: jax.Array, x: jax.Array) -> jax.Array:
    return jax.nn.gelu(jax.nn.gelu(x @ weights) @ weights)


jax.jit(step).lower(shape(4096, 4096), shape(1 << 23, 4096, axes=("data",))).compile()
