"""Files for a repository: compressed without a clock, free of the host that made them."""

from __future__ import annotations

import gzip
from pathlib import Path

from reportgen.wire import xplane_pb2

HOST = "sample-host"


def pack(source: Path, target: Path) -> None:
    """Gzip `source` to `target`, same bytes each time (no name, no modification time)."""
    write_gzip(target, source.read_bytes())


def write_gzip(target: Path, data: bytes) -> None:
    """Write `data` gzipped, same bytes each time."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(data, 9, mtime=0))


def keep_capture(out: Path, target: Path) -> None:
    """Copy what a capture left under `out` to a sample: the XSpace as TensorBoard lays it, the measured waits beside it.

    The host's name, in the file's name and inside, becomes HOST; nothing else changes.
    """
    (source,) = out.glob("plugins/profile/*/*.xplane.pb")
    space = xplane_pb2.XSpace.FromString(source.read_bytes())
    space.hostnames[:] = [HOST] * len(space.hostnames)
    run = target / "plugins" / "profile" / "sample"
    run.mkdir(parents=True, exist_ok=True)
    (run / f"{HOST}.xplane.pb").write_bytes(space.SerializeToString(deterministic=True))
    (target / "measured.json").write_bytes((out / "measured.json").read_bytes())
