"""From a host's file to its profile."""

from __future__ import annotations

import hashlib

from reportgen.document import SourceFile
from reportgen.errors import InputError
from reportgen.profile.model import HostProfile
from reportgen.sources.content import damage, refuse_foreign
from reportgen.sources.locate import HostFile
from reportgen.sources.trace_json import is_trace_json, xspace_of_trace_json
from reportgen.wire.varint import Buffer, WireError
from reportgen.wire.xspace import RawSpace, read_space


def load_host(file: HostFile) -> tuple[HostProfile, SourceFile]:
    """Read a host's profile.

    Returns:
        The profile and what it was read from.

    Raises:
        InputError: The file cannot be read or is no profile.

    """
    content = file.read()
    origin = SourceFile(name=file.name, size=len(content), sha256=hashlib.sha256(content).hexdigest())
    return host_from_bytes(content, file.name, file.host), origin


def host_from_bytes(content: bytes, name: str, host: str) -> HostProfile:
    """Read a host's profile from the content of a file.

    Args:
        content: Bytes of an XSpace or of a trace in JSON, decompressed.
        name: The file's name, for messages.
        host: The host's name where the profile itself holds none.

    Raises:
        InputError: It is no profile, or no plane of it is whole.

    """
    if is_trace_json(content):
        content = xspace_of_trace_json(content, name)
    refuse_foreign(content, name)
    try:
        space = read_space(Buffer(content))
        _read_outline(space, name)
    except WireError as error:
        raise damage(content, name, error) from None
    return HostProfile(space.hostnames[0] if space.hostnames and space.hostnames[0] else host, space)


def _read_outline(space: RawSpace, name: str) -> None:
    """Read every plane's outline now, so that damage is found here and named with the file."""
    if not space.planes:
        if space.missing:
            raise WireError(f"{name} ends before its first plane does")
        raise InputError(
            f"{name}: expected a profile with planes, found an XSpace without any.",
            "The profiler may have stopped before anything ran: capture for longer, while the program runs.",
        )
    for plane in space.planes:
        _ = plane.lines, plane.metadata
