"""Mails through real servers: STARTTLS, implicit TLS and login; and every refusal in plain words."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reportgen.cli import main
from reportgen.document import to_json
from reportgen.errors import MailError, UsageError
from reportgen.mailing import PASSWORD as PASSWORD_VARIABLE
from reportgen.mailing import USER as USER_VARIABLE
from reportgen.mailing import Login, Server, login_of, send
from reportgen.renderers.envelope import Envelope, addresses
from reportgen.renderers.mail import render_mail
from tests.conftest import ROOT
from tests.mail.reading import part, read, shape
from tests.mail.servers import HOST, PASSWORD, USER, Authority, Box, dribble, server
from tests.renderers.documents import realistic

LOGIN = Login(USER, PASSWORD)
TO = "team@example.com"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def envelope(*to: str) -> Envelope:
    return Envelope(addresses([USER])[0], addresses(to or [TO]), date=datetime(2026, 1, 2, tzinfo=UTC), draft=False)


@pytest.fixture(scope="module")
def message() -> bytes:
    return render_mail(realistic(), envelope=envelope()).files["report.eml"]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.json"
    path.write_bytes(to_json(realistic()))
    return path


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(report: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in this process; gives its exit code, stdout and stderr."""

    def command(*arguments: str, **environment: str) -> tuple[int, str, str]:
        monkeypatch.chdir(report.parent)
        monkeypatch.setattr(sys, "argv", ["reportgen", "mail", report.name, *arguments])
        for name in (USER_VARIABLE, PASSWORD_VARIABLE):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return command


def test_the_command_sends_over_starttls_with_a_login(run: Run, report: Path, authority: Authority) -> None:
    box = Box()
    with server(box, authority, login=True) as port:
        code, out, err = run(
            "--to", f"Team <{TO}>, b@example.com", "--smtp", f"{HOST}:{port}", "--ca-file", str(authority.file),
            "--link", "https://ci.example.com/1", "-o", "sent.eml",
            **{USER_VARIABLE: USER, PASSWORD_VARIABLE: PASSWORD},
        )  # fmt: skip
    assert code == 0, err
    assert f"sent to {TO}, b@example.com" in err
    assert (box.taken[0].mail_from, box.taken[0].rcpt_tos) == (USER, [TO, "b@example.com"])
    assert box.sessions[0].authenticated
    assert box.sessions[0].ssl is not None
    content = box.taken[0].content
    assert isinstance(content, bytes)
    assert content == (report.parent / "sent.eml").read_bytes()
    mail = read(content)
    assert shape(mail)[-1] == "text/html"
    assert realistic().verdict in part(mail, "plain")
    assert mail["X-Unsent"] is None
    assert mail["Auto-Submitted"] == "auto-generated"
    assert abs((mail["Date"].datetime - datetime.now(UTC)).total_seconds()) < 100
    assert PASSWORD not in out + err + content.decode()


def test_a_refused_login_ends_the_command_with_4(run: Run, authority: Authority) -> None:
    box = Box()
    with server(box, authority, login=True) as port:
        code, _, err = run(
            "--to", TO, "--smtp", f"{HOST}:{port}", "--ca-file", str(authority.file),
            **{USER_VARIABLE: USER, PASSWORD_VARIABLE: "wrong-Pass"},
        )  # fmt: skip
    assert code == 4
    assert "the login was refused (535" in err
    assert USER_VARIABLE in err
    assert "wrong-Pass" not in err
    assert box.taken == []


def test_the_command_writes_the_same_file_for_the_same_date(run: Run) -> None:
    arguments = ("--to", TO, "--date", "2026-01-31T12:00:00+01:00", "-o", "-")
    first, second = run(*arguments), run(*arguments)
    assert first == second
    assert first[0] == 0
    assert "Date: Sat, 31 Jan 2026 12:00:00 +0100" in first[1]


def test_the_command_writes_a_zipped_draft_by_default(run: Run, report: Path) -> None:
    code, _, err = run("--to", TO, "--zip", "--max-size", "500kB")
    assert code == 0, err
    mail = read((report.parent / "report.eml").read_bytes())
    assert mail["X-Unsent"] == "1"
    assert shape(mail)[-1] == "application/zip"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--to", "nobody"), "expected a mail address"),
        (("--to", TO, "--subject", "a\nBcc: b@example.com"), "expected a subject on one line"),
        (("--to", TO, "--max-size", "large"), "expected a size"),
        (("--to", TO, "--max-size", "10kB"), "expected room for a mail of at least 400 kB"),
        (("--to", TO, "--date", "yesterday"), "expected a date"),
        (("--to", TO, "--smtp", "localhost"), "expected a sender"),
        (("--to", TO, "--from", "a@example.com, b@example.com"), "expected one sender"),
        (("--to", TO, "--smtp", "a b", "--from", USER), "expected a mail server"),
    ],
)  # fmt: skip
def test_wrong_usage_ends_with_2(run: Run, arguments: tuple[str, ...], said: str) -> None:
    code, _, err = run(*arguments)
    assert code == 2
    assert said in err


def test_implicit_tls(message: bytes, authority: Authority) -> None:
    box = Box()
    with server(box, authority, implicit=True) as port:
        send(message, envelope(), Server(HOST, port, "implicit", authority.file))
    assert box.taken[0].content == message


def test_no_tls_only_when_asked(message: bytes) -> None:
    box = Box()
    with server(box) as port:
        with pytest.raises(MailError, match="offers no TLS"):
            send(message, envelope(), Server(HOST, port))
        with pytest.raises(UsageError, match="a login is not sent without TLS"):
            send(message, envelope(), Server(HOST, port, "none"), LOGIN)
        assert box.taken == []
        send(message, envelope(), Server(HOST, port, "none"))
    assert box.taken[0].content == message


def test_an_unknown_authority_is_not_trusted(message: bytes, authority: Authority) -> None:
    box = Box()
    with server(box, authority) as port, pytest.raises(MailError, match="certificate cannot be trusted") as told:
        send(message, envelope(), Server(HOST, port))
    assert "--ca-file" in told.value.hint
    assert box.taken == []


def test_a_certificate_of_another_name_is_not_trusted(message: bytes, tmp_path: Path) -> None:
    box, other = Box(), Authority(tmp_path, "mail.example.com")
    with server(box, other) as port, pytest.raises(MailError, match="certificate cannot be trusted"):
        send(message, envelope(), Server(HOST, port, ca_file=other.file))
    assert box.taken == []


def test_a_server_without_login_is_told(message: bytes, authority: Authority) -> None:
    with server(Box(), authority) as port, pytest.raises(MailError, match=r"offers no login|refused"):
        send(message, envelope(), Server(HOST, port, ca_file=authority.file), LOGIN)


def test_a_missing_login_is_told(message: bytes, authority: Authority) -> None:
    with server(Box(), authority, login=True) as port, pytest.raises(MailError, match=r"refused .*530"):
        send(message, envelope(), Server(HOST, port, ca_file=authority.file))


def test_a_refused_recipient_is_named_and_the_others_get_the_mail(message: bytes) -> None:
    box = Box(refused=("gone@example.com",))
    with server(box) as port:
        with pytest.raises(MailError, match=r"gone@example.com \(550 no such mailbox␛\[31m\)") as told:
            send(message, envelope(TO, "gone@example.com"), Server(HOST, port, "none"))
        assert "other recipients" in told.value.hint
        assert [one.rcpt_tos for one in box.taken] == [[TO]]
        with pytest.raises(MailError, match=r"refused as recipient: gone@example\.com") as told:
            send(message, envelope("gone@example.com"), Server(HOST, port, "none"))
    assert told.value.hint == ""
    assert len(box.taken) == 1


def test_a_mail_larger_than_the_server_takes_is_not_sent(message: bytes) -> None:
    box = Box()
    with server(box, limit=100_000) as port, pytest.raises(MailError, match="at most 100 kB") as told:
        send(message, envelope(), Server(HOST, port, "none"))
    assert "--max-size 100000" in told.value.hint
    assert box.taken == []


def test_no_server_is_told(message: bytes) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(MailError, match="no mail server answers there"):
            send(message, envelope(), Server("127.0.0.1", port))


def test_no_host_is_told(message: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(MailError, match="no host of that name"):
        send(message, envelope(), Server("mail.example.com", 587))


@pytest.mark.parametrize(
    ("first", "then"),
    [(b"", b""), (b"", b"220-wait\r\n"), (b"220 ready\r\n", b"250-wait\r\n"), (b"220 ready\r\n", b"2")],
    ids=["silent", "greets for ever", "answers for ever", "never ends a line"],
)
def test_a_server_that_does_not_come_to_an_end_is_given_up(message: bytes, first: bytes, then: bytes) -> None:
    started = time.monotonic()
    with dribble(first, then, 0.02) as port, pytest.raises(MailError):
        send(message, envelope(), Server("127.0.0.1", port, "none"), within=0.5)
    assert 0.3 < time.monotonic() - started < 4  # the server itself goes on for 5 seconds


def test_another_protocol_is_told(message: bytes) -> None:
    with dribble(b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", 0) as port, pytest.raises(MailError, match="refused"):
        send(message, envelope(), Server("127.0.0.1", port, "none"), within=2)
    with dribble(b"220 plain\r\n", b"", 0) as port, pytest.raises(MailError, match="no TLS connection came about"):
        send(message, envelope(), Server("127.0.0.1", port, "implicit"), within=2)


@pytest.mark.parametrize(
    ("text", "tls", "server_"),
    [
        ("mail.example.com", None, Server("mail.example.com", 587, "starttls")),
        ("mail.example.com:465", None, Server("mail.example.com", 465, "implicit")),
        ("mail.example.com", "implicit", Server("mail.example.com", 465, "implicit")),
        ("mail.example.com", "none", Server("mail.example.com", 25, "none")),
        ("[::1]:2525", "starttls", Server("::1", 2525, "starttls")),
    ],
)
def test_ports_follow_the_kind_of_tls(text: str, tls: str | None, server_: Server) -> None:
    assert Server.of(text, tls) == server_


@pytest.mark.parametrize("text", ["", ":25", "a b", "host:99999", "host:x", "host\n", "user@host", "http://host"])
def test_what_is_no_server_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected a mail server"):
        Server.of(text)


def test_an_unknown_kind_of_tls_and_a_bad_authority_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected a kind of TLS"):
        Server.of("host", "ssl3")
    (tmp_path / "ca.pem").write_text("nothing")
    for name in ("ca.pem", "absent.pem"):
        with pytest.raises(UsageError, match="expected certificates"):
            Server.of("host", None, tmp_path / name).context()


@pytest.fixture
def login_file(tmp_path: Path) -> Callable[..., Path]:
    def write(content: bytes, mode: int = 0o600) -> Path:
        path = tmp_path / "login"
        path.write_bytes(content)
        path.chmod(mode)
        return path

    return write


def test_a_login_comes_from_the_file_or_the_environment(login_file: Callable[..., Path]) -> None:
    environment = {USER_VARIABLE: "other", PASSWORD_VARIABLE: "pass"}
    assert login_of(environment) == Login("other", "pass")
    assert login_of(environment, login_file(f"{USER}\n{PASSWORD}\n".encode())) == LOGIN
    assert login_of({}) is None
    assert PASSWORD not in repr(LOGIN)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620])
def test_a_login_that_others_can_get_at_is_refused(login_file: Callable[..., Path], mode: int) -> None:
    with pytest.raises(UsageError, match="others than its owner") as told:
        login_of({}, login_file(f"{USER}\n{PASSWORD}\n".encode(), mode))
    assert "chmod 600" in told.value.hint


@pytest.mark.parametrize(
    "content", [b"", b"user\n", b"user\n\n", b"a\nb\nc\n", b"\xff\xfe\n\x00", "j\u00f6rg\npass\n".encode()]
)
def test_what_is_no_login_is_refused(login_file: Callable[..., Path], content: bytes) -> None:
    with pytest.raises(UsageError, match="login"):
        login_of({}, login_file(content))


def test_half_a_login_and_an_absent_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected both"):
        login_of({USER_VARIABLE: "user"})
    with pytest.raises(UsageError, match="cannot be read"):
        login_of({}, tmp_path / "absent")


def test_the_documented_program_sends(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "mail.md").read_text(encoding="utf-8").split("## From Python")[1]
    lines = [line[4:] for line in text.splitlines() if line.startswith("    ")]
    program = "import os\nfrom datetime import UTC, datetime\n" + "\n".join(lines)
    (report.parent / "out").mkdir()
    (report.parent / "out" / "report.json").write_bytes(report.read_bytes())
    monkeypatch.chdir(report.parent)
    box = Box()
    with server(box) as port:
        monkeypatch.setattr(Server, "of", lambda _: Server(HOST, port, "none"))
        exec(compile(program, "docs/mail.md", "exec"), {})
    assert box.taken[0].rcpt_tos == [TO]
