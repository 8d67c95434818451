"""The command that mails a report, or writes the mail."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reportgen.cli import common, redaction

if TYPE_CHECKING:
    from reportgen.renderers.envelope import Envelope
    from reportgen.renderers.mail import Attach

_SIZE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*(|B|kB|KB|MB|KiB|MiB)")
_UNITS = {"": 1, "B": 1, "kB": 1000, "KB": 1000, "MB": 10**6, "KiB": 1 << 10, "MiB": 1 << 20}


def mail(
    report: Annotated[str, typer.Argument(metavar="REPORT", help="A report.json (also .gz), or a profile.")],
    to: Annotated[list[str], typer.Option("--to", metavar="ADDRESS", help="Recipients; may be repeated.")],
    sender: Annotated[
        str | None, typer.Option("--from", metavar="ADDRESS", help="Sender; needed to send, but for a login with an @.")
    ] = None,
    subject: Annotated[str, typer.Option(help="The report's title and verdict by default.")] = "",
    link: Annotated[str, typer.Option(metavar="URL", help="Where the whole report lies, such as the CI run.")] = "",
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="File; - for stdout. report.eml where nothing is sent.")
    ] = None,
    zipped: Annotated[bool, typer.Option("--zip", help="Attach the full report as a zip archive.")] = False,
    attachment: Annotated[bool, typer.Option("--attachment/--no-attachment", help="Attach the full report.")] = True,
    max_size: Annotated[str, typer.Option(help="Largest mail as it is sent: 500kB, 20MB.")] = "20MB",
    date: Annotated[
        str | None, typer.Option(help="Date of the mail, ISO 8601, UTC where it bears no zone; now by default.")
    ] = None,
    smtp: Annotated[str | None, typer.Option(metavar="HOST[:PORT]", help="Send it by this mail server.")] = None,
    tls: Annotated[str | None, typer.Option(help="starttls (default), implicit (default on port 465) or none.")] = None,
    login: Annotated[
        Path | None,
        typer.Option(
            help="File of two lines, user and password, readable by its owner alone; in its place the environment's "
            "REPORTGEN_SMTP_USER and REPORTGEN_SMTP_PASSWORD."
        ),
    ] = None,
    ca_file: Annotated[Path | None, typer.Option(help="Authorities (PEM) to trust in place of the system's.")] = None,
    redact: redaction.Redact = False,
    redact_key: redaction.RedactKey = None,
    redact_shapes: redaction.RedactShapes = False,
) -> None:
    """Write a report as a mail (.eml) and, with --smtp, send it."""
    from reportgen import delivery, mailing  # noqa: PLC0415
    from reportgen.errors import UsageError  # noqa: PLC0415
    from reportgen.redact import refuse_leaks  # noqa: PLC0415
    from reportgen.renderers.mail import NAME, render_mail  # noqa: PLC0415

    server = mailing.Server.of(smtp, tls, ca_file) if smtp else None
    known = mailing.login_of(os.environ, login) if server else None
    if not sender and known and "@" in known.user:
        sender = known.user
    if server and not sender:
        raise UsageError("expected a sender of the mail.", "Give --from ADDRESS.")
    envelope = _envelope(sender, to, subject, date, draft=server is None)
    attach: Attach = "none" if not attachment else "zip" if zipped else "html"
    limit = _bytes(max_size)
    redactor = redaction.redactor_of(redact, redact_key, redact_shapes)
    document = delivery.redacted(delivery.open_document(report), redactor)
    rendered = render_mail(document, envelope=envelope, link=link, attach=attach, max_bytes=limit)
    refuse_leaks(rendered.files, redactor)
    for warning in rendered.warnings:
        common.warn(warning)
    content = rendered.files[NAME]
    if output or not server:
        _write(content, output or NAME)
    if server:
        mailing.send(content, envelope, server, known)
        typer.echo(f"sent to {', '.join(one.addr_spec for one in envelope.to)}", err=True)


def _envelope(sender: str | None, to: list[str], subject: str, date: str | None, *, draft: bool) -> Envelope:
    from reportgen.errors import UsageError  # noqa: PLC0415
    from reportgen.renderers.envelope import Envelope, addresses  # noqa: PLC0415

    senders = addresses([sender] if sender else [])
    if len(senders) > 1:
        raise UsageError(f"expected one sender, found {len(senders)}.")
    return Envelope(senders[0] if senders else None, addresses(to), subject, _date(date), draft)


def _write(content: bytes, output: str) -> None:
    from reportgen.output import write_files, write_stdout  # noqa: PLC0415
    from reportgen.units import binary  # noqa: PLC0415

    if output == "-":
        write_stdout(content)
        return
    path = Path(output)
    write_files(path.parent, {path.name: content})
    typer.echo(f"wrote {path} ({binary(len(content))})", err=True)


def _date(text: str | None) -> datetime:
    from reportgen.errors import UsageError  # noqa: PLC0415

    if text is None:
        return datetime.now(UTC).replace(microsecond=0)
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--date {text!r}: expected a date such as 2026-01-31T12:00:00Z.") from None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _bytes(text: str) -> int:
    from reportgen.errors import UsageError  # noqa: PLC0415

    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise UsageError(f"--max-size {text!r}: expected a size such as 500kB, 20MB or 20000000.")
    return round(float(match[1]) * _UNITS[match[2]])
