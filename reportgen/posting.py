"""Sending a mail: over SMTP, encrypted, with a login that stands in no command line."""

from __future__ import annotations

import os
import smtplib
import ssl
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from pathlib import Path
from typing import Literal

from reportgen.errors import ReportgenError, UsageError

USER, PASSWORD = "REPORTGEN_SMTP_USER", "REPORTGEN_SMTP_PASSWORD"
Tls = Literal["starttls", "implicit", "none"]
_PORTS: dict[Tls, int] = {"starttls": 587, "implicit": 465, "none": 25}


@dataclass(frozen=True)
class Server:
    """Where mail is handed in.

    Attributes:
        host, port: Its address; port 0 for the usual one.
        tls: "starttls" or "implicit"; "none" sends in the clear, and never a login.
        ca_file: File of the authorities to trust, in place of the system's.
        timeout_s: How long the server may take to answer, in seconds.

    """

    host: str
    port: int = 0
    tls: Tls = "starttls"
    ca_file: Path | None = None
    timeout_s: float = 30.0

    @classmethod
    def parse(cls, address: str, tls: str = "starttls", ca_file: Path | None = None) -> Server:
        """Return the server at HOST or HOST:PORT.

        Raises:
            UsageError: It is no such address, or the kind of encryption is unknown.

        """
        host, colon, port = address.rpartition(":") if ":" in address else (address, "", "")
        kind = next((known for known in _PORTS if known == tls), None)
        if kind is None:
            raise UsageError(f"--tls {tls}: expected one of {', '.join(_PORTS)}.")
        if not host or (colon and not (port.isdigit() and 0 < int(port) < 1 << 16)):
            raise UsageError(f"--smtp {address}: expected HOST or HOST:PORT.")
        return cls(host, int(port or 0), kind, ca_file)


@dataclass(frozen=True)
class Login:
    """A user's name and password at a server; the password shows in no text."""

    user: str
    password: str = field(repr=False)


def find_login(file: Path | None, environment: Mapping[str, str] = os.environ) -> Login | None:
    """Return the login in a TOML file of `user` and `password`, else that of the environment; None where there is none.

    Raises:
        UsageError: The file cannot be read, lacks one of them, or others may read it; or the environment has only one.

    """
    if file is None:
        user, password = environment.get(USER), environment.get(PASSWORD)
        if bool(user) != bool(password):
            raise UsageError(f"of {USER} and {PASSWORD} only one is set.", "Set both, or neither.")
        return Login(user, password) if user and password else None
    try:
        mode = file.stat().st_mode
        content = tomllib.loads(file.read_text(encoding="utf-8"))
        login = Login(str(content["user"]), str(content["password"]))
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: expected a TOML file with user and password ({type(error).__name__}).") from None
    except KeyError as error:
        raise UsageError(f"{file}: expected user and password, found no {error.args[0]}.") from None
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UsageError(f"{file}: others may read this login.", f"chmod 600 {file}")
    return login


def send(content: bytes, server: Server, login: Login | None = None) -> tuple[str, ...]:
    """Send a mail to the addresses in its head; returns the addresses that the server refused.

    Args:
        content: The message.
        server: Where it is handed in.
        login: Who hands it in; None for a server that asks nobody.

    Raises:
        UsageError: The mail lacks a sender or a receiver, or a login would go in the clear.
        ReportgenError: The server cannot be reached, has no certificate to trust, or refuses.

    """
    message = message_from_bytes(content, policy=policy.SMTP)
    if not isinstance(message, EmailMessage) or not message["From"] or not message["To"]:
        raise UsageError("a mail that is sent needs a sender and a receiver.", "Give --from and --to.")
    if login is not None and server.tls == "none":
        raise UsageError("a login is not sent without encryption.", "Use --tls starttls or implicit.")
    del message["X-Unsent"]
    message["Date"] = formatdate(localtime=False, usegmt=True)
    message["Message-ID"] = make_msgid("reportgen", domain=_domain(message))
    try:
        with _connected(server) as connection:
            if login is not None:
                connection.login(login.user, login.password)
            refused = connection.send_message(message)
    except (OSError, smtplib.SMTPException) as error:
        raise ReportgenError(_said(server, error), _HINTS.get(type(error), "")) from None
    return tuple(sorted(refused))


def _domain(message: EmailMessage) -> str:
    return str(message["From"]).rpartition("@")[2].strip("> ") or "localhost"


def _connected(server: Server) -> smtplib.SMTP:
    port = server.port or _PORTS[server.tls]
    context = ssl.create_default_context(cafile=server.ca_file)
    if server.tls == "implicit":
        return smtplib.SMTP_SSL(server.host, port, timeout=server.timeout_s, context=context)
    connection = smtplib.SMTP(server.host, port, timeout=server.timeout_s)
    if server.tls == "starttls":
        try:
            connection.starttls(context=context)
        except Exception:
            connection.close()
            raise
    return connection


_HINTS = {
    ssl.SSLCertVerificationError: "Give the authority that signed its certificate with --tls-ca.",
    smtplib.SMTPNotSupportedError: "If it speaks TLS from the start, give --tls implicit.",
    smtplib.SMTPAuthenticationError: f"Check {USER} and {PASSWORD}, or the login file.",
    smtplib.SMTPSenderRefused: "Many servers want a login, and take mail of its own address alone.",
}


def _said(server: Server, error: Exception) -> str:
    reply = error.smtp_error if isinstance(error, smtplib.SMTPResponseException) else str(error) or type(error).__name__
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
    return f"{server.host}: expected the mail to be taken, found: {' '.join(str(text).split())[:300]}."
