#!/usr/bin/env python3
"""Capture the planted input faults: python tests/input_faults/make.py [CASE...] [-o DIR] [--torch-python PYTHON].

Each framework's cases run in one process, in an empty folder, so that no path of this machine gets into a profile.
Keeps DIR/CASE.xplane.pb.gz and, in DIR/measured.json, what the loops measured themselves. Needs the `peers` extra;
PyTorch/XLA lives in an environment of its own.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from reportgen.wire import xplane_pb2

HERE = Path(__file__).resolve().parent
CASES = {
    "jax": (
        "sleeping_loader", "decoding_loader", "loader_in_step", "file_loader", "threaded_loader", "device_put",
        "untraced_loader", "jax_healthy",
    ),
    "tf": (
        "slow_map", "no_prefetch", "small_files", "slow_decoder", "interleave_one", "map_before_batch",
        "python_generator", "tf_healthy",
    ),
    "torch": ("slow_dataset", "torch_healthy"),
}  # fmt: skip
ON_CPU = {"JAX_PLATFORMS": "cpu", "PJRT_DEVICE": "CPU", "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
_ELSEWHERE = ("TPU", "CUDA", "XLA", "JAX", "PJRT", "LIBTPU")

Measured = dict[str, dict[str, dict[str, float]]]


def capture(framework: str, cases: Sequence[str], target: Path, python: str = sys.executable) -> Measured:
    """Run the cases of one framework; keep their profiles in `target`, and return what they measured, by case.

    Raises:
        RuntimeError: The script failed.

    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_ELSEWHERE)} | ON_CPU
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        shutil.copy(HERE / f"{framework}_cases.py", work)
        command = [python, f"{framework}_cases.py", "out", *cases]
        done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr[-4000:])
        return {case: _keep(work / "out" / case, target / f"{case}.xplane.pb.gz") for case in cases}


def _keep(captured: Path, target: Path) -> Any:
    (profile,) = captured.glob("plugins/profile/*/*.xplane.pb")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(without_machine(profile.read_bytes()), 9, mtime=0))
    return json.loads((captured / "measured.json").read_text())


def without_machine(profile: bytes) -> bytes:
    """Return a profile without its HLO modules, which hold paths and are not needed here, and its host's name."""
    space = xplane_pb2.XSpace.FromString(profile)
    space.hostnames[:] = ["sample-host"] * len(space.hostnames)
    for plane in space.planes:
        if plane.name == "/host:metadata":
            for event in plane.event_metadata.values():
                del event.stats[:]
    return space.SerializeToString(deterministic=True)


def main() -> None:
    """Capture the named cases, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="CASE", help=", ".join(sum(CASES.values(), ())))
    parser.add_argument("-o", "--out", type=Path, default=HERE / "captured", help="folder to write to")
    parser.add_argument("--torch-python", help="interpreter with torch and torch_xla")
    args = parser.parse_args()
    record = args.out / "measured.json"
    measured: Measured = json.loads(record.read_text()) if record.exists() else {}
    for framework, cases in CASES.items():
        chosen = [case for case in cases if not args.names or case in args.names]
        python = args.torch_python if framework == "torch" else sys.executable
        if chosen and python:
            measured |= capture(framework, chosen, args.out, python)
    record.write_text(json.dumps(measured, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
