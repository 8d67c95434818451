"""Sending a mail: the one place that talks to a mail server, encrypted unless asked otherwise, in bounded time."""

from __future__ import annotations

import os
import re
import smtplib
import socket
import ssl
import stat
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from reportgen.charts.text import shortened, visible
from reportgen.errors import MailError, UsageError
from reportgen.renderers.envelope import Envelope
from reportgen.units import si

USER, PASSWORD = "REPORTGEN_SMTP_USER", "REPORTGEN_SMTP_PASSWORD"
ANSWER_WITHIN = 30.0  # seconds for one answer of the server
WITHIN = 300.0  # seconds for all of it

Tls = Literal["starttls", "implicit", "none"]
_PORTS: dict[Tls, int] = {"starttls": 587, "implicit": 465, "none": 25}
_SERVER = re.compile(r"(?P<host>[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>\d{1,5}))?")


@dataclass(frozen=True)
class Server:
    """A mail server and how its connection is encrypted; `ca_file` holds authorities in place of the system's."""

    host: str
    port: int
    tls: Tls = "starttls"
    ca_file: Path | None = None

    @classmethod
    def of(cls, text: str, tls: str | None = None, ca_file: Path | None = None) -> Server:
        """Return the server of HOST[:PORT].

        The port is 587 for STARTTLS, the default, 465 for implicit TLS and 25 without any; port 465 implies implicit
        TLS.

        Raises:
            UsageError: The text is no host and port, there is no such kind of TLS, or no certificate in `ca_file`.

        """
        match = _SERVER.fullmatch(text)
        port = int(match["port"] or 0) if match else 0
        if not match or port > 65535:
            raise UsageError(f"{visible(text)!r}: expected a mail server as HOST or HOST:PORT.")
        kinds: dict[str, Tls] = {kind: kind for kind in get_args(Tls)}
        kind = tls or ("implicit" if port == 465 else "starttls")
        if kind not in kinds:
            raise UsageError(f"{kind!r}: expected a kind of TLS: {', '.join(kinds)}.")
        return cls(match["host"].strip("[]"), port or _PORTS[kinds[kind]], kinds[kind], ca_file)

    def __str__(self) -> str:
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def context(self) -> ssl.SSLContext:
        """Return what checks the server's certificate and name.

        Raises:
            UsageError: The file of authorities cannot be read.

        """
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except OSError as error:
            raise UsageError(
                f"{self.ca_file}: expected certificates in PEM form ({error.strerror or error})."
            ) from None


@dataclass(frozen=True)
class Login:
    """A user and a password, which is never shown."""

    user: str
    password: str = field(repr=False)


def login_of(environment: Mapping[str, str], file: Path | None = None) -> Login | None:
    """Return the login in a file (first line the user, second the password), or in the environment, or None.

    Raises:
        UsageError: The file cannot be read, is readable by others or has another form; or one of user and password is
            missing.

    """
    if file is not None:
        return _login_in(file)
    user, password = environment.get(USER, ""), environment.get(PASSWORD, "")
    if bool(user) != bool(password):
        raise UsageError(f"the environment has one of {USER} and {PASSWORD}: expected both, or neither.")
    return _login(user, password, "the environment") if user else None


def _login(user: str, password: str, place: str) -> Login:
    if not (user + password).isascii():
        raise UsageError(f"{place}: expected a user and a password in ASCII, which is all that mail servers agree on.")
    return Login(user, password)


def _login_in(file: Path) -> Login:
    try:
        with file.open("rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise UsageError(f"{file}: others than its owner can get at this login.", f"Run: chmod 600 {file}")
            lines = stream.read(4096).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise UsageError(f"{file}: the login cannot be read ({reason}).") from None
    if len(lines) != 2 or not all(lines):
        raise UsageError(f"{file}: expected two lines, the user and the password, found {len(lines)}.")
    return _login(lines[0], lines[1], str(file))


def send(
    message: bytes, envelope: Envelope, server: Server, login: Login | None = None, within: float = WITHIN
) -> None:
    """Send a message.

    Args:
        message: As it goes over the wire, with its head.
        envelope: Its sender and recipients.
        server: Where to.
        login: None to send without one.
        within: Seconds after which an unfinished transfer is given up.

    Raises:
        MailError: The server cannot be reached or trusted, offers no TLS, or refuses the login, the sender, the
            message or a recipient; where others have got it then, the error says so.
        UsageError: There is no sender, or a login would have to go over an unencrypted connection.

    """
    if envelope.sender is None:
        raise UsageError("expected a sender of the mail.", "Give --from ADDRESS.")
    if login and server.tls == "none":
        raise UsageError(
            f"{server}: a login is not sent without TLS.", f"Leave out --tls none, or unset {USER} and {PASSWORD}."
        )
    try:
        with _connected(server, within) as client:
            if login:
                client.login(login.user, login.password)
            _refuse_large(client, len(message), server)
            refused = client.sendmail(envelope.sender.addr_spec, [one.addr_spec for one in envelope.to], message)
    except (smtplib.SMTPException, OSError) as error:
        raise MailError(f"{server}: {_what(error)}.", _hint(error)) from None
    if refused:
        raise MailError(f"{server}: {_refusals(refused)}.", "The other recipients have got the mail.")


class _Client(smtplib.SMTP):
    """A client that gives up at a deadline: the library bounds each read, but neither an answer nor the whole."""

    def __init__(self, server: Server, within: float, **more: Any) -> None:
        self._within = within
        self._expired = False
        self._timer = threading.Timer(within, self._expire)
        self._timer.daemon = True
        self._timer.start()
        try:
            super().__init__(server.host, server.port, timeout=min(within, ANSWER_WITHIN), **more)
        except BaseException:
            self.close()
            raise

    def getreply(self) -> tuple[int, bytes]:
        try:
            if not self._expired:
                return super().getreply()
        except smtplib.SMTPServerDisconnected:
            if not self._expired:
                raise
        raise TimeoutError(f"given up after {self._within:g} s")

    def _expire(self) -> None:
        self._expired = True
        if self.sock:
            with suppress(OSError):
                socket.socket.shutdown(self.sock, socket.SHUT_RDWR)  # not TLS's own: it would go on in the clear

    def close(self) -> None:
        self._timer.cancel()
        super().close()


class _TlsClient(_Client, smtplib.SMTP_SSL):
    """The same with TLS from the first byte."""


@contextmanager
def _connected(server: Server, within: float) -> Iterator[smtplib.SMTP]:
    """Give a greeted server over a connection that is as safe as was asked for."""
    context = None if server.tls == "none" else server.context()
    client = _TlsClient(server, within, context=context) if server.tls == "implicit" else _Client(server, within)
    try:
        client.ehlo_or_helo_if_needed()
        if server.tls == "starttls":
            if not client.has_extn("starttls"):
                raise MailError(
                    f"{server}: this server offers no TLS (STARTTLS), so nothing was sent.",
                    "Try --tls implicit with its port; --tls none sends in the clear, for networks that you trust.",
                )
            client.starttls(context=context)
            client.ehlo_or_helo_if_needed()
        yield client
        with suppress(smtplib.SMTPException, OSError):  # the mail has been taken by now
            client.quit()
    finally:
        client.close()


def _refuse_large(client: smtplib.SMTP, size: int, server: Server) -> None:
    limit = client.esmtp_features.get("size", "")
    if limit.isdecimal() and 0 < int(limit) < size:
        raise MailError(
            f"{server}: takes mails of at most {si(int(limit), 'B')}, found {si(size, 'B')}.",
            f"Give --max-size {int(limit)}, or --zip.",
        )


def _what(error: Exception) -> str:
    """Return what went wrong, in words."""
    match error:
        case smtplib.SMTPAuthenticationError():
            return f"the login was refused ({_answer(error.smtp_code, error.smtp_error)})"
        case smtplib.SMTPRecipientsRefused():
            return _refusals(error.recipients)
        case smtplib.SMTPSenderRefused():
            return f"the sender {visible(error.sender)} was refused ({_answer(error.smtp_code, error.smtp_error)})"
        case smtplib.SMTPResponseException():
            return f"the server refused ({_answer(error.smtp_code, error.smtp_error)})"
        case smtplib.SMTPNotSupportedError():
            return "the server offers no login"
        case ssl.SSLCertVerificationError():
            return f"its certificate cannot be trusted ({error.verify_message})"
        case ssl.SSLError():
            return f"no TLS connection came about ({error.reason or error})"
        case socket.gaierror():
            return "there is no host of that name"
        case TimeoutError():
            return f"no answer in time ({error})"
        case smtplib.SMTPServerDisconnected() | smtplib.SMTPException():
            return f"the connection ended before the mail was taken ({_short(str(error))})"
    return f"no mail server answers there ({error.strerror if isinstance(error, OSError) else error})"


def _hint(error: Exception) -> str:
    match error:
        case smtplib.SMTPAuthenticationError():
            return f"Check {USER} and {PASSWORD}, or the file of --login; many providers want an app password."
        case ssl.SSLCertVerificationError():
            return "Give the authority that signed it with --ca-file, and the host as its certificate names it."
        case ssl.SSLError():
            return "Try --tls starttls (port 587) or --tls implicit (port 465), as the server expects."
        case smtplib.SMTPResponseException() | smtplib.SMTPRecipientsRefused():
            return ""
        case smtplib.SMTPNotSupportedError():
            return f"Unset {USER} and {PASSWORD} to send without."
    return "Check host and port, and that this machine may reach them."


def _refusals(refused: Mapping[str, tuple[int, bytes]]) -> str:
    shown = [f"{visible(name)} ({_answer(*answer)})" for name, answer in list(refused.items())[:5]]
    rest = f" and {len(refused) - len(shown)} more" if len(refused) > len(shown) else ""
    return f"refused as recipient: {', '.join(shown)}{rest}"


def _answer(code: int, text: bytes | str) -> str:
    return f"{code} {_short(text if isinstance(text, str) else text.decode(errors='replace'))}"


def _short(text: str) -> str:
    return visible(shortened(" ".join(text.split()), 200))
