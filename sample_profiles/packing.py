"""Files for a repository: compressed without a clock, free of the machine that made them."""

from __future__ import annotations

import gzip
from pathlib import Path

from reportgen.wire import hlo_pb2, xplane_pb2

HOST = "sample-host"
PACKAGES = "site-packages/"


def pack(source: Path, target: Path) -> None:
    """Gzip `source` to `target`, same bytes each time."""
    write_gzip(target, source.read_bytes())


def write_gzip(target: Path, data: bytes) -> None:
    """Write `data` gzipped, same bytes each time (no name, no modification time)."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(data, 9, mtime=0))


def keep_capture(out: Path, target: Path) -> None:
    """Keep what a capture left under `out`: the XSpace as TensorBoard lays it, the measured waits beside it.

    The host's name becomes HOST, and paths into installed packages start at the package. Nothing else changes.
    """
    (source,) = out.glob("plugins/profile/*/*.xplane.pb")
    space = xplane_pb2.XSpace.FromString(source.read_bytes())
    space.hostnames[:] = [HOST] * len(space.hostnames)
    for plane in space.planes:
        for event in plane.event_metadata.values():
            for stat in event.stats:
                if PACKAGES.encode() in stat.bytes_value:
                    stat.bytes_value = _with_package_paths(stat.bytes_value)
    run = target / "plugins" / "profile" / "sample"
    run.mkdir(parents=True, exist_ok=True)
    (run / f"{HOST}.xplane.pb").write_bytes(space.SerializeToString(deterministic=True))
    (target / "measured.json").write_bytes((out / "measured.json").read_bytes())


def _with_package_paths(hlo_proto: bytes) -> bytes:
    proto = hlo_pb2.HloProto.FromString(hlo_proto)
    for computation in proto.hlo_module.computations:
        for instruction in computation.instructions:
            instruction.metadata.source_file = instruction.metadata.source_file.rpartition(PACKAGES)[2]
    return proto.SerializeToString(deterministic=True)
