"""What to do for each way to fit, for each framework."""

from __future__ import annotations

from reportgen.memory.fixes.model import Step

DONATION = (
    Step(
        "jax",
        "Donate the arguments that the step replaces; do not use the old ones afterwards.",
        "step = jax.jit(step, donate_argnums=(0,))  # the position of the state",
    ),
    Step(
        "tensorflow",
        "Update variables in place inside the compiled step; what it returns is a new array.",
        "@tf.function(jit_compile=True)\ndef step(batch):\n    variable.assign(new_value)  # not: return new_value",
    ),
    Step(
        "pytorch_xla",
        "Let the step end at a barrier that donates the updated tensors' buffers.",
        "torch_xla.sync()  # after optimizer.step(), before the old tensors are read again",
    ),
)

BATCH = (
    Step("jax", "Give the step fewer examples.", "batch = next(loader_with_smaller_batch)"),
    Step(
        "tensorflow", "Give the step fewer examples.", "dataset = dataset.unbatch().batch(smaller, drop_remainder=True)"
    ),
    Step("pytorch_xla", "Give the step fewer examples.", "DataLoader(dataset, batch_size=smaller, drop_last=True)"),
)

MICROBATCHES = (
    Step(
        "jax",
        "Scan over slices of the batch and add up the gradients.",
        "def one(total, part):\n"
        "    return jax.tree.map(jnp.add, total, jax.grad(loss)(params, part)), None\n"
        "parts = jax.tree.map(lambda x: x.reshape(2, x.shape[0] // 2, *x.shape[1:]), batch)\n"
        "grads, _ = jax.lax.scan(one, jax.tree.map(jnp.zeros_like, params), parts)",
    ),
    Step(
        "tensorflow",
        "Add up gradients over parts of the batch before they are applied.",
        "optimizer = tf.keras.optimizers.Adam(gradient_accumulation_steps=2)",
    ),
    Step(
        "pytorch_xla",
        "Call backward for each part of the batch and step the optimizer once.",
        "for part in batch.chunk(2):\n    (loss(part) / 2).backward()\n    torch_xla.sync()\noptimizer.step()",
    ),
)

DTYPE = (
    Step(
        "jax",
        "Cast parameters and inputs, or set the model's compute type; keep sums and losses in float32.",
        "params = jax.tree.map(lambda x: x.astype(jnp.bfloat16), params)  # flax: dtype=jnp.bfloat16",
    ),
    Step("tensorflow", "Use a mixed precision policy.", "tf.keras.mixed_precision.set_global_policy('mixed_bfloat16')"),
    Step(
        "pytorch_xla",
        "Run the forward pass under autocast.",
        "with torch.autocast('xla', dtype=torch.bfloat16): loss = model(x)",
    ),
)

REMAT = (
    Step(
        "jax",
        "Checkpoint each layer; in a scan, checkpoint the body.",
        "layer = jax.checkpoint(layer)\n"
        "x, _ = jax.lax.scan(jax.checkpoint(body), x, params)  # one layer's code, one layer's values at a time",
    ),
    Step("jax", "Keep what is dear to compute.", "jax.checkpoint(layer, policy=jax.checkpoint_policies.dots_saveable)"),
    Step("tensorflow", "Compute a layer again in the backward pass.", "layer = tf.recompute_grad(layer)"),
    Step(
        "pytorch_xla",
        "Checkpoint each layer.",
        "from torch_xla.utils.checkpoint import checkpoint\nx = checkpoint(layer, x)",
    ),
)

OFFLOAD = (
    Step(
        "jax",
        "Name what the scanned layer keeps, and let the policy move it to the host between the passes.",
        "from jax.ad_checkpoint import checkpoint_name\n"
        "hidden = checkpoint_name(x @ up, 'hidden')\n"
        "policy = jax.checkpoint_policies.save_and_offload_only_these_names(\n"
        "    names_which_can_be_saved=[], names_which_can_be_offloaded=['hidden'],\n"
        "    offload_src='device', offload_dst='pinned_host')\n"
        "x, _ = jax.lax.scan(jax.checkpoint(layer, policy=policy), x, params)",
    ),
)

SHARDING = (
    Step(
        "jax",
        "Split the parameters over the devices instead of holding them whole on each.",
        "sharding = NamedSharding(mesh, PartitionSpec('data'))\nparams = jax.device_put(params, sharding)",
    ),
    Step(
        "tensorflow",
        "Lay the variables out over a mesh.",
        "layout = dtensor.Layout(['data', dtensor.UNSHARDED], mesh)\n"
        "variable = dtensor.DVariable(value, layout=layout)",
    ),
    Step(
        "pytorch_xla",
        "Split the parameters over the devices (FSDP).",
        "import torch_xla.distributed.spmd as xs\nxs.mark_sharding(weight, mesh, ('data', None))",
    ),
)

RESIDENTS = (
    Step(
        "jax",
        "See what is alive, and let go of it before this program runs: old parameters, a second model, cached batches.",
        "for x in sorted(jax.live_arrays(), key=lambda x: -x.nbytes)[:20]:\n    print(x.nbytes, x.shape, x.dtype)",
    ),
    Step(
        "jax",
        "Which line of Python made what is alive: `reportgen report memory.prof`.",
        "jax.profiler.save_device_memory_profile('memory.prof')",
    ),
    Step(
        "jax",
        "Donate what a step replaces, so that old and new are not alive together.",
        "jax.jit(step, donate_argnums=(0,))",
    ),
    Step(
        "tensorflow",
        "Delete what is no longer used, and let memory grow as needed.",
        "tf.config.experimental.set_memory_growth(gpu, True)",
    ),
    Step("pytorch_xla", "Delete old tensors and end the step before new ones are made.", "del old\ntorch_xla.sync()"),
)

FRAGMENTATION = (
    Step(
        "jax",
        "Compile and load the largest program first, before small arrays lie all over the memory.",
        "step.lower(*shapes).compile()  # before parameters are loaded",
    ),
    Step(
        "jax",
        "On GPU, let the driver hand out memory instead of one preallocated block.",
        "XLA_PYTHON_CLIENT_ALLOCATOR=platform  # slower, no fragmentation",
    ),
    Step("tensorflow", "On GPU, use the driver's own pool.", "TF_GPU_ALLOCATOR=cuda_malloc_async"),
    Step("pytorch_xla", "Compile the largest graph first.", "torch_xla.sync()"),
)
