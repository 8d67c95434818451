"""Capture the loops of host_faults.py on this machine's CPU.

    python tests/planted/make_captures.py [CASE...]    # writes fixtures/CASE-{faulty,repaired}.xplane.pb.gz

Needs jax and tensorflow (extra `peers`). Captures depend on the machine's mood: run it on a quiet one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[1] / "sample_profiles")]

from packing import HOST, PACKAGES, write_gzip  # noqa: E402

from reportgen.wire import hlo_pb2, xplane_pb2  # noqa: E402

CASES = {
    "recompile-shapes": "recompilation",
    "recompile-static": "recompilation",
    "retrace-tensorflow": "recompilation",
    "garbage": "host-bound",
    "debug-print": "host-bound",
    "python": "host-bound",
    "eager": "host-bound",
    "checkpoints": "unstable-steps",
    "growing": "unstable-steps",
}
PRIORITY = -15  # so that what else runs does not show in the steps; needs the right to set it
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "PYTHONHASHSEED": "0"}


def capture(case: str, repaired: bool) -> bytes:
    """Run a case in an empty folder, as train.py; return its profile without what names this machine."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(HERE / "host_faults.py", Path(folder) / "train.py")
        command = [sys.executable, "train.py", "out", case, *(["--repaired"] if repaired else [])]
        subprocess.run(command, cwd=folder, env=os.environ | QUIET, check=True, capture_output=True, preexec_fn=_hurry)
        (path,) = Path(folder).glob("out/plugins/profile/*/*.xplane.pb")
        return anonymous(path.read_bytes())


def _hurry() -> None:
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)


def anonymous(data: bytes) -> bytes:
    """Return a profile with the host's name and the folders of source files taken out."""
    space = xplane_pb2.XSpace.FromString(data)
    space.hostnames[:] = [HOST] * len(space.hostnames)
    for plane in space.planes:
        for event in plane.event_metadata.values():
            for stat in event.stats:
                if PACKAGES.encode() in stat.bytes_value or b".py" in stat.bytes_value:
                    stat.bytes_value = _without_folders(stat.bytes_value)
    return space.SerializeToString(deterministic=True)


def _without_folders(proto: bytes) -> bytes:
    module = hlo_pb2.HloProto.FromString(proto)
    index = module.hlo_module.stack_frame_index
    index.file_names[:] = [Path(name).name for name in index.file_names]
    for computation in module.hlo_module.computations:
        for instruction in computation.instructions:
            instruction.metadata.source_file = Path(instruction.metadata.source_file).name
    return module.SerializeToString(deterministic=True)


def main() -> None:
    """Make the named cases, or all."""
    for case in sys.argv[1:] or CASES:
        for kind in ("faulty", "repaired"):
            target = HERE / "fixtures" / f"{case}-{kind}.xplane.pb.gz"
            write_gzip(target, capture(case, kind == "repaired"))
            sys.stdout.write(f"{target.name}: {target.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
