"""Compile the planted programs for TPU with no TPU present, and model their timelines.

    python tests/planted/make_tpu.py [NAME...]      # writes fixtures/NAME-{faulty,repaired}.xplane.pb.gz

Needs jax and libtpu (extra `peers`). The programs are real, their times are modelled; see sample_profiles/modelling.py.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "sample_profiles")]

DUMP = Path(tempfile.mkdtemp())
os.environ.pop("JAX_PLATFORMS", None)
os.environ |= {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": os.environ.get("TPU_ACCELERATOR_TYPE", "v5litepod-4"),
    "TPU_WORKER_HOSTNAMES": "localhost",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "XLA_FLAGS": f"--xla_dump_to={DUMP} --xla_dump_hlo_as_proto --xla_dump_hlo_as_text",
}

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax.experimental import topologies  # noqa: E402
from jax.experimental.layout import Format, Layout  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402
from modelling import modelled_xspace  # noqa: E402
from packing import write_gzip  # noqa: E402
from schedule import DeviceSpec, estimated_cycles  # noqa: E402

from reportgen.wire import hlo_pb2  # noqa: E402
from tests.planted.tpu_programs import HEALTHY, PAIRS, Argument, Program  # noqa: E402

STEPS = 4
TOPOLOGY = os.environ.get("TOPOLOGY", "v5e:2x2")
SCOPES = re.compile(r'^\s+(?:ROOT )?%(\S+) = .*"used_scoped_memory_configs":(\[[^\]]+\])', re.MULTILINE)


def compile_program(program: Program, chips: int) -> tuple[bytes, dict[str, int]]:
    """Compile for some chips of a v5e; return the HloProto with its buffer assignment, and the cycle estimates."""
    shutil.rmtree(DUMP, ignore_errors=True)
    devices = topologies.get_topology_desc(TOPOLOGY, platform="tpu").devices
    mesh = Mesh(np.array(devices[:chips]), ("data",))

    def spec(argument: Argument) -> jax.ShapeDtypeStruct:
        sharding = NamedSharding(mesh, PartitionSpec(*argument.axes))
        placed = Format(Layout(tuple(range(len(argument.shape)))), sharding) if argument.row_major else sharding
        return jax.ShapeDtypeStruct(argument.shape, argument.dtype, sharding=placed)

    arguments = jax.tree.map(spec, list(program.arguments), is_leaf=lambda leaf: isinstance(leaf, Argument))
    with jax.sharding.use_mesh(mesh) if hasattr(jax.sharding, "use_mesh") else jax.set_mesh(mesh):
        jax.jit(program.function, donate_argnums=program.donated).lower(*arguments).compile()
    (proto,) = DUMP.glob("*.after_optimizations.hlo.pb")
    (text,) = DUMP.glob("*.after_codegen.txt")
    return as_captured(proto.read_bytes(), text.read_text()), estimated_cycles(text)


def as_captured(proto: bytes, codegen: str) -> bytes:
    """Return the module with the VMEM that code generation gave to each op, as a capture holds it.

    Source files are named without their folders, and the code of kernels is left out.
    """
    module = hlo_pb2.HloProto.FromString(proto)
    scopes = {match[1]: json.loads(match[2]) for match in SCOPES.finditer(codegen)}
    index = module.hlo_module.stack_frame_index
    index.file_names[:] = [Path(name).name for name in index.file_names]
    for computation in module.hlo_module.computations:
        for instruction in computation.instructions:
            instruction.metadata.source_file = Path(instruction.metadata.source_file).name
            config = json.loads(instruction.backend_config or "{}")
            if scope := scopes.get(instruction.name):
                config["used_scoped_memory_configs"] = scope
            # A kernel's code names the source files of its operations.
            config.get("custom_call_config", {}).pop("body", None)
            instruction.backend_config = json.dumps(config).encode() if config else b""
    return module.SerializeToString(deterministic=True)


def write(name: str, program: Program, chips: int) -> None:
    """Compile a program and write its modelled profile."""
    proto, cycles = compile_program(program, chips)
    space = modelled_xspace(proto, cycles, DeviceSpec(chips=chips), STEPS)
    target = HERE / "fixtures" / f"{name}.xplane.pb.gz"
    write_gzip(target, space.SerializeToString(deterministic=True))
    sys.stdout.write(f"{target.name}: {target.stat().st_size} bytes\n")


def main() -> None:
    """Make the named programs, or all."""
    for name in sys.argv[1:] or [*PAIRS, *HEALTHY]:
        if name in HEALTHY:
            write(f"healthy-{name}", HEALTHY[name], 1)
        else:
            write(f"{name}-faulty", PAIRS[name].faulty, PAIRS[name].chips)
            write(f"{name}-repaired", PAIRS[name].repaired, PAIRS[name].chips)
    shutil.rmtree(DUMP, ignore_errors=True)


if __name__ == "__main__":
    main()
