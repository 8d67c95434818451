#!/usr/bin/env python3
"""Remake the sample profiles: python sample_profiles/make.py [NAME...] [-o DIR].

Captures run on this machine's CPU; the TPU samples are real compiles by libtpu and need no TPU. Each script runs in a
process of its own, copied to an empty folder as train.py, so that no path of this machine gets into a profile.
Needs the `peers` extra (jax, libtpu, tensorflow); PyTorch/XLA lives in an environment of its own (--torch-python).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from modelling import CYCLES, modelled_xspace
from packing import HOST, keep_capture, pack, write_gzip
from schedule import DeviceSpec, estimated_cycles

RUN = "import runpy, sys; sys.argv[0] = 'train.py'; runpy.run_path('train.py', run_name='__main__')"
NO_TPU = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "XLA_FLAGS": "--xla_dump_to=dump --xla_dump_hlo_as_proto --xla_dump_hlo_as_text",
}
STEPS = 6
ON_CPU = {"JAX_PLATFORMS": "cpu", "PJRT_DEVICE": "CPU", "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}


@dataclass(frozen=True)
class Sample:
    """How one sample is made.

    Attributes:
        script: The training script, beside this file.
        keep: Takes the folder where the script ran and the sample's folder; keeps what the sample needs.
        arguments: The script's arguments.
        environment: Variables set for the script.
        fails: The script is meant to end with an error.
        needs_torch: The script needs PyTorch/XLA, whose libraries do not share a process's environment with the others.

    """

    script: str
    keep: Callable[[Path, Path], None]
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    fails: bool = False
    needs_torch: bool = False


def capture(script: str, *arguments: str) -> Sample:
    """A training loop captured on CPU."""
    return Sample(script, lambda work, target: keep_capture(work / "out", target), ("out", *arguments), ON_CPU)


def keep_model(work: Path, target: Path) -> None:
    """Model the timeline of the program that the compiler dumped."""
    (proto,) = (work / "dump").glob("*.after_optimizations.hlo.pb")
    (text,) = (work / "dump").glob("*.after_codegen.txt")
    cycles = estimated_cycles(text)
    (target / CYCLES).write_text(json.dumps(cycles, indent=0, sort_keys=True) + "\n")
    space = modelled_xspace(proto.read_bytes(), cycles, DeviceSpec(), STEPS)
    write_gzip(target / f"{HOST}.xplane.pb.gz", space.SerializeToString(deterministic=True))


def keep_out_of_memory(work: Path, target: Path) -> None:
    """Keep the error's message and what the compiler dumped about memory before it gave up."""
    log = (work / "log.txt").read_text()
    (target / "message.txt").write_text(log[log.index("jax.errors.JaxRuntimeError") :])
    for kind in (".hlo.pb", ".txt", "-buffer-assignment.txt", "-memory-usage-report.txt"):
        (source,) = (work / "dump").glob(f"*.after_optimizations{kind}")
        pack(source, target / f"{source.name}.gz")


SAMPLES = {
    "jax_cpu": capture("jax_train.py"),
    "jax_cpu_input_bound": capture("jax_train.py", "--loader-ms", "20"),
    "tf_cpu": capture("tf_train.py"),
    "tf_cpu_healthy": capture("tf_train.py", "--healthy"),
    "torch_xla_cpu": replace(capture("torch_train.py"), needs_torch=True),
    "resnet50_tpu_v5e": Sample("resnet50_train.py", keep_model, environment=NO_TPU),
    "oom_tpu_v5e": Sample("transformer_train.py", keep_out_of_memory, environment=NO_TPU, fails=True),
}


def make(sample: Sample, target: Path, python: str) -> None:
    """Run the sample's script in an empty folder and keep its result in `target`."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        shutil.copy(HERE / sample.script, work / "train.py")
        environment = {k: v for k, v in os.environ.items() if k not in ("JAX_PLATFORMS", "XLA_FLAGS")}
        environment |= {"PYTHONHASHSEED": "0", **sample.environment}
        command = [python, "-c", RUN, *sample.arguments]
        with (work / "log.txt").open("wb") as log:
            done = subprocess.run(command, cwd=work, env=environment, stdout=log, stderr=log, check=False)
        if bool(done.returncode) != sample.fails:
            sys.exit((work / "log.txt").read_text(errors="replace")[-4000:])
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        sample.keep(work, target)


def main() -> None:
    """Make the samples that were named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SAMPLES))
    parser.add_argument("-o", "--out", type=Path, default=HERE, help="folder to write to (default: beside this file)")
    parser.add_argument("--torch-python", help="interpreter with torch and torch_xla, for torch_xla_cpu")
    args = parser.parse_args()
    if unknown := set(args.names) - set(SAMPLES):
        parser.error(f"no such sample: {', '.join(sorted(unknown))}")
    for name in args.names or SAMPLES:
        python = args.torch_python if SAMPLES[name].needs_torch else sys.executable
        print(f"making {name}" if python else f"skipping {name}: it needs --torch-python", flush=True)
        if python:
            make(SAMPLES[name], args.out / name, python)


if __name__ == "__main__":
    main()
