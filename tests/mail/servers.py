"""Real mail servers on this machine: aiosmtpd with a certificate of its own authority, and servers that misbehave."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

USER, PASSWORD = "ci@example.com", "s3cret-Pass"
HOST = "localhost"


class Authority:
    """An authority with a certificate for this machine; `file` holds what a client must trust."""

    def __init__(self, folder: Path, name: str = HOST) -> None:
        authority = trustme.CA()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(name).configure_cert(self.context)
        self.file = folder / f"authority-{name}.pem"
        authority.cert_pem.write_to_path(self.file)


class Box:
    """What a server took: envelopes, and whether each came over TLS with a login; it refuses some recipients."""

    def __init__(self, refused: tuple[str, ...] = ()) -> None:
        self.refused = refused
        self.taken: list[Envelope] = []
        self.sessions: list[Session] = []

    async def handle_RCPT(self, _: SMTP, __: Session, envelope: Envelope, address: str, options: list[str]) -> str:  # noqa: N802
        if address in self.refused:
            return "550 no such mailbox\x1b[31m"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        self.taken.append(envelope)
        self.sessions.append(session)
        return "250 taken"


def _authenticate(*arguments: Any) -> AuthResult:
    data = arguments[-1]
    assert isinstance(data, LoginPassword)
    good = data == LoginPassword(USER.encode(), PASSWORD.encode())
    return AuthResult(success=good, handled=False)


@contextmanager
def server(
    box: Box, authority: Authority | None = None, *, login: bool = False, implicit: bool = False, limit: int = 1 << 25
) -> Iterator[int]:
    """Run a server that offers STARTTLS, or speaks TLS from the start, and may want a login; gives its port."""
    starttls = authority is not None and not implicit
    options: dict[str, Any] = {
        "tls_context": authority.context if authority and starttls else None,
        "require_starttls": starttls,
        "auth_required": login,
        "authenticator": _authenticate if login else None,
        "auth_require_tls": starttls,
        "data_size_limit": limit,
    }
    context = authority.context if authority and implicit else None
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    controller = Controller(box, hostname="127.0.0.1", port=port, ssl_context=context, **options)
    controller.start()
    try:
        yield port
    finally:
        controller.stop(no_assert=True)


@contextmanager
def dribble(first: bytes, then: bytes, pause: float) -> Iterator[int]:
    """Run a server that says something, and then repeats itself for longer than anybody waits; gives its port."""
    done = threading.Event()
    end = time.monotonic() + 5
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                connection.sendall(first)
                while then and not done.is_set() and time.monotonic() < end:
                    connection.sendall(then)
                    time.sleep(pause)
                done.wait(5)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        done.set()
        listener.close()
        thread.join(5)
