"""The command that mails a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reportgen.cli import common, redaction

if TYPE_CHECKING:
    from reportgen.posting import Server


def mail(
    report: Annotated[str, typer.Argument(metavar="REPORT", help="A report.json (also .gz), or a profile.")],
    to: Annotated[list[str] | None, typer.Option(help="Receiver; may be repeated or joined by commas.")] = None,
    sender: Annotated[str, typer.Option("--from", help="Sender.")] = "",
    subject: Annotated[str, typer.Option(help="Title and verdict by default.")] = "",
    link: Annotated[str, typer.Option(help="Address where the whole report lies, such as the CI run's artifact.")] = "",
    attach: Annotated[str, typer.Option(help="The full report: html, zip or none.")] = "html",
    max_bytes: Annotated[
        int, typer.Option(min=10_000, help="Largest mail; what does not fit is left out.")
    ] = 10_000_000,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write (report.eml by default).")
    ] = None,
    smtp: Annotated[str | None, typer.Option(metavar="HOST[:PORT]", help="Send the mail through this server.")] = None,
    tls: Annotated[str, typer.Option(help="starttls, implicit, or none (never with a login).")] = "starttls",
    tls_ca: Annotated[Path | None, typer.Option(help="File of the authorities to trust.")] = None,
    login_file: Annotated[
        Path | None, typer.Option(help="TOML file of user and password, readable by its owner alone.")
    ] = None,
    redact: redaction.Redact = False,
    redact_key: redaction.RedactKey = None,
    redact_shapes: redaction.RedactShapes = False,
) -> None:
    """Write a report as a mail (.eml), and send it with --smtp.

    The login comes from REPORTGEN_SMTP_USER and REPORTGEN_SMTP_PASSWORD, or from --login-file.
    """
    from reportgen import delivery, posting  # noqa: PLC0415
    from reportgen.errors import UsageError  # noqa: PLC0415
    from reportgen.output import write_files  # noqa: PLC0415
    from reportgen.renderers import render  # noqa: PLC0415

    if attach not in ("html", "zip", "none"):
        raise UsageError(f"--attach {attach}: expected html, zip or none.")
    server = posting.Server.parse(smtp, tls, tls_ca) if smtp else None
    login = posting.find_login(login_file) if server else None
    redactor = redaction.redactor_of(redact, redact_key, redact_shapes)
    document = delivery.redacted(delivery.open_document(report), redactor)
    rendered = render(
        document, "mail", sender=sender, to=common.split(to), subject=subject, link=link, attach=attach,
        max_bytes=max_bytes,
    )  # fmt: skip
    redaction.refuse_leaks(rendered.files, redactor)
    for warning in rendered.warnings:
        common.warn(warning)
    (name, content), *_ = rendered.files.items()
    if server is None or output is not None:
        target = output or Path(name)
        write_files(target.parent, {target.name: content})
        typer.echo(f"wrote {target}", err=True)
    if server is not None:
        _send(content, server, login)


def _send(content: bytes, server: Server, login: object) -> None:
    from reportgen import posting  # noqa: PLC0415

    refused = posting.send(content, server, login if isinstance(login, posting.Login) else None)
    for address in refused:
        common.warn(f"{server.host} refused the receiver {address}.")
    typer.echo(f"sent through {server.host}", err=True)
