"""The report as a mail: text and HTML that say the same, charts by Content-ID, the full report attached.

The HTML has inline styles, tables for layout, no script and no SVG, and stays under the size at which Gmail cuts.
The message bears no date and no id, so that the same report gives the same bytes; sending adds both.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from email.message import EmailMessage
from email.policy import SMTP
from typing import Literal

from reportgen.charts.text import visible
from reportgen.document import ReportDocument
from reportgen.renderers.base import Rendered, environment
from reportgen.renderers.html import NAME as REPORT
from reportgen.renderers.html import render_html
from reportgen.renderers.letter import EXTENTS, Letter, letter_of
from reportgen.units import binary

NAME = "report.eml"
MAX_HTML = 90_000
MAX_BYTES = 10_000_000
_LONGEST_SUBJECT = 150
_BASE64 = 1.37  # bytes of base64 with its line breaks, a byte
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)

Attach = Literal["html", "zip", "none"]


def render_mail(
    document: ReportDocument,
    *,
    sender: str = "",
    to: tuple[str, ...] = (),
    subject: str = "",
    link: str = "",
    attach: Attach = "html",
    max_bytes: int = MAX_BYTES,
) -> Rendered:
    """Render `report.eml`.

    Args:
        document: The report.
        sender: Address; may be empty, for whoever opens the file to fill in.
        to: Addresses; may be empty too.
        subject: The report's title and verdict where it is empty.
        link: Where the whole report lies, for the text.
        attach: The full report as HTML, as a zip archive, or not at all.
        max_bytes: Largest message. A report that does not fit is zipped, then left out, and the mail says so; charts
            are left out last.

    """
    attachment, notes = _attachment(document, attach, max_bytes)
    foot = tuple(notes)
    parts, html = _fitted(document, foot, link)
    pictures = _pictures(document, parts)
    size = (len(html) + len(attachment[1]) + sum(map(len, pictures.values()))) * _BASE64
    if size > max_bytes and attachment[0]:
        foot = (f"The full report is not attached: it would make this mail larger than {binary(max_bytes)}.",)
        attachment = "", b""
        parts, html = _fitted(document, foot, link)
    message = _message(parts, html, pictures, attachment)
    for name, value in (("From", sender), ("To", ", ".join(to)), ("Subject", _subject(document, subject))):
        if value:
            message[name] = value
    message["X-Unsent"] = "1"  # mail programs open it as a draft
    _fix_boundaries(message)
    content = message.as_bytes(policy=SMTP)
    warnings = tuple(f"{NAME}: {note}" for note in foot if "not attached" in note or "zip" in note)
    return Rendered({NAME: content}, warnings)


def _subject(document: ReportDocument, subject: str) -> str:
    text = " ".join(visible(subject or f"{document.title}: {document.verdict}").split())
    return text if len(text) <= _LONGEST_SUBJECT else f"{text[: _LONGEST_SUBJECT - 1]}…"


def _attachment(document: ReportDocument, attach: Attach, max_bytes: int) -> tuple[tuple[str, bytes], list[str]]:
    """Return the attachment's name and content, and the line that tells of it."""
    if attach == "none":
        return ("", b""), []
    content = render_html(document).files[REPORT]
    too_large = len(content) * _BASE64 > max_bytes * 0.9
    if attach == "html" and not too_large:
        return (REPORT, content), [
            f"The full report is attached: {REPORT}, {binary(len(content))}. Open it in a browser."
        ]
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        packed.writestr(zipfile.ZipInfo(REPORT, _ZIP_DATE), content, zipfile.ZIP_DEFLATED, 9)
    name = f"{REPORT}.zip"
    return (name, archive.getvalue()), [
        f"The full report is attached, zipped: {name}, {binary(len(archive.getvalue()))}."
    ]


def _fitted(document: ReportDocument, foot: tuple[str, ...], link: str) -> tuple[Letter, str]:
    """Return the largest extent of the mail whose HTML part is small enough."""
    template = environment().get_template("mail/mail.html.j2")
    for extent in EXTENTS:
        parts = letter_of(document, extent, foot, link)
        html = template.render(letter=parts)
        if len(html.encode()) <= MAX_HTML:
            break
    return parts, html


def _pictures(document: ReportDocument, parts: Letter) -> dict[str, bytes]:
    from reportgen.charts.picture import png  # noqa: PLC0415 - imports matplotlib

    return {chart.cid: png(document.charts[chart.key]) for chart in parts.charts}


def _message(parts: Letter, html: str, pictures: dict[str, bytes], attachment: tuple[str, bytes]) -> EmailMessage:
    message = EmailMessage(policy=SMTP)
    message.set_content(_text(parts))
    message.add_alternative(html, subtype="html")
    related = message.get_body(("html",))
    for cid, picture in pictures.items():
        file = f"{cid.partition('@')[0]}.png"
        if isinstance(related, EmailMessage):
            related.add_related(picture, "image", "png", cid=f"<{cid}>", filename=file, disposition="inline")
    name, content = attachment
    if name:
        kind = ("application", "zip") if name.endswith(".zip") else ("text", "html")
        message.add_attachment(content, *kind, filename=name)
    return message


def _text(parts: Letter) -> str:
    return environment().overlay(autoescape=False).get_template("mail/mail.txt.j2").render(letter=parts)


def _fix_boundaries(message: EmailMessage) -> None:
    """Name the borders between parts after the content, where the library would draw lots."""
    for number, part in enumerate(message.walk()):
        if part.is_multipart():
            inner = b"".join(bytes(leaf) for leaf in part.walk() if not leaf.is_multipart())
            part.set_boundary(f"=_reportgen_{number}_{hashlib.sha256(inner).hexdigest()[:24]}")
