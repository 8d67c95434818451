"""Addresses of profiler servers, and the names of their files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from reportgen.errors import UsageError

_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%\w]+\]|[^\s:/\[\]]+):(?P<port>\d{1,5})")
_HOSTS_LIMIT = 4096


def parse_addresses(texts: Iterable[str]) -> tuple[str, ...]:
    """Return HOST:PORT of every server that arguments such as "a:9012,b:9012" or "grpc://[::1]:9012" name.

    Raises:
        UsageError: There is none, one is malformed, or one is named twice.

    """
    addresses = tuple(_checked(part) for text in texts for part in text.removeprefix("grpc://").split(",") if part)
    if not addresses:
        raise UsageError("No server to capture from.", "Name at least one HOST:PORT.")
    if len(addresses) > _HOSTS_LIMIT:
        raise UsageError(f"{len(addresses):,} servers are more than the {_HOSTS_LIMIT:,} of one capture.")
    name, count = Counter(map(file_stem, addresses)).most_common(1)[0]
    if count > 1:
        raise UsageError(f"{name}: {count} servers would write the same file.", "Name every server once.")
    return addresses


def file_stem(address: str) -> str:
    """Return the name that a server's file carries before ".xplane.pb": "10.0.0.1_9012" for 10.0.0.1:9012."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", address)


def _checked(text: str) -> str:
    address = text.strip().removeprefix("grpc://")
    match = _ADDRESS.fullmatch(address)
    if match is None or not 1 <= int(match["port"]) <= 65535:
        raise UsageError(
            f"{text!r} is no address of a profiler server.",
            "Write HOST:PORT with the port that the program passed to start_server, as in localhost:9012.",
        )
    return address
