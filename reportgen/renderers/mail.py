"""The report as a mail: text and HTML that say the same, charts by Content-ID, the full report attached.

The HTML has inline styles, tables for layout, no script and no SVG, and stays under the size at which Gmail cuts.
The same report, envelope and options give the same bytes: borders between parts and the Message-ID are hashes of the
content, and the archive bears no date.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.message import MIMEPart
from email.policy import SMTP
from functools import cached_property
from html import escape
from typing import Literal

from markupsafe import Markup

from reportgen.charts.text import visible
from reportgen.document import ReportDocument
from reportgen.errors import UsageError
from reportgen.renderers.base import Rendered, environment
from reportgen.renderers.envelope import Envelope, plain_line
from reportgen.renderers.html import NAME as REPORT
from reportgen.renderers.html import render_html
from reportgen.renderers.letter import EXTENTS, Letter, letter_of
from reportgen.units import binary, si

NAME = "report.eml"
MAX_HTML = 90_000  # bytes of the HTML part as it is sent; Gmail cuts at about 102 KB
MAX_BYTES = 20_000_000
LEAST_BYTES = 400_000  # the text and the HTML alone fit below that
_LONGEST_SUBJECT = 150
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)
_POLICY = SMTP.clone(cte_type="7bit")  # any server takes it

_PART_END = re.compile(r"(?<=[/_(.,])(?=[^\s/_(.,])")

Attach = Literal["html", "zip", "none"]


def render_mail(
    document: ReportDocument,
    *,
    envelope: Envelope | None = None,
    link: str = "",
    attach: Attach = "html",
    max_bytes: int = MAX_BYTES,
) -> Rendered:
    """Render `report.eml`.

    Args:
        document: The report.
        envelope: Sender, recipients, subject and date; a draft without them where it is None.
        link: Where the whole report lies, for the text: an http or https address.
        attach: The full report as HTML, as a zip archive, or not at all.
        max_bytes: Largest message as it is sent. A report that does not fit is zipped, then left out, and charts are
            left out last; the mail and the warnings say so.

    Raises:
        UsageError: The link is no web address, the subject has a line break, or `max_bytes` is too small for any mail.

    """
    if link and not plain_line(link, "an address").startswith(("http://", "https://")):
        raise UsageError(f"{link}: expected a link that starts with https:// or http://.")
    if max_bytes < LEAST_BYTES:
        raise UsageError(f"expected room for a mail of at least {_size(LEAST_BYTES)}, found {_size(max_bytes)}.")
    mail = _Mail(document, envelope or Envelope(), link)
    content, warning = b"", ""
    for plan in _plans(attach, max_bytes):
        content, warning = mail.content(plan), plan.warning
        if len(content) <= max_bytes:
            break
    return Rendered({NAME: content}, (f"{NAME}: {warning}",) if warning else ())


def _size(count: int) -> str:
    return si(count, "B")


@dataclass(frozen=True)
class _Plan:
    """What goes along with the text; `warning` says what was asked for and does not."""

    attach: Attach
    charts: bool = True
    warning: str = ""


def _plans(attach: Attach, max_bytes: int) -> Iterator[_Plan]:
    """Yield what to try until the mail is small enough: the least important goes first."""
    because = f"it would make this mail larger than {_size(max_bytes)}."
    yield _Plan(attach)
    if attach == "html":
        yield _Plan("zip", warning=f"The full report is zipped: as a page {because}")
    left_out = f"The full report is not attached: {because}" if attach != "none" else ""
    if left_out:
        yield _Plan("none", warning=left_out)
    charts = f"Charts are left out: with them the mail would be larger than {_size(max_bytes)}."
    yield _Plan("none", charts=False, warning=f"{left_out} {charts}".strip())


class _Mail:
    """The parts of one mail, each made once."""

    def __init__(self, document: ReportDocument, envelope: Envelope, link: str) -> None:
        self.document = document
        self.envelope = envelope
        self.link = link
        self._pictures: dict[str, bytes] = {}

    def content(self, plan: _Plan) -> bytes:
        """Return the message as it is sent."""
        attachment = None if plan.attach == "none" else self._page() if plan.attach == "html" else self._archive()
        notes = tuple(filter(None, (_told(attachment), plan.warning)))
        letter, html = self._fitted(notes, plan.charts)
        alternative = _multipart("alternative", [_text_part(_text(letter), "plain"), html])
        pictures = [_picture(one.cid, self._drawn(one.key)) for one in letter.charts] if plan.charts else []
        related = _multipart("related", [alternative, *pictures], type="multipart/alternative")
        return self._closed(_multipart("mixed", [related, *([attachment] if attachment else [])]))

    def _fitted(self, notes: tuple[str, ...], pictures: bool) -> tuple[Letter, MIMEPart]:
        """Return as much of the report as the HTML part has room for; charts without their pictures are told."""
        template = environment().get_template("mail/mail.html.j2")
        for extent in EXTENTS:
            letter = letter_of(self.document, extent, notes, self.link)
            part = _text_part(template.render(letter=letter, pictures=pictures, breakable=_breakable), "html")
            if len(str(part.get_payload())) <= MAX_HTML:
                break
        return letter, part

    @cached_property
    def _report(self) -> bytes:
        return render_html(self.document).files[REPORT]

    def _page(self) -> MIMEPart:
        return _attached(self._report, "text", "html", REPORT)

    def _archive(self) -> MIMEPart:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
            packed.writestr(zipfile.ZipInfo(REPORT, _ZIP_DATE), self._report, zipfile.ZIP_DEFLATED, 9)
        return _attached(stream.getvalue(), "application", "zip", f"{REPORT}.zip")

    def _drawn(self, key: str) -> bytes:
        from reportgen.charts.picture import png  # noqa: PLC0415 - imports matplotlib

        if key not in self._pictures:
            self._pictures[key] = png(self.document.charts[key])
        return self._pictures[key]

    def _closed(self, message: MIMEPart) -> bytes:
        """Write the head on a message and return its bytes."""
        envelope = self.envelope
        head = {
            "From": envelope.sender,
            "To": envelope.to,
            "Subject": self._subject(),
            "Date": envelope.date,
            "X-Unsent" if envelope.draft else "Auto-Submitted": "1" if envelope.draft else "auto-generated",
            "MIME-Version": "1.0",
        }
        for name, value in head.items():
            if value:
                message[name] = value
        if envelope.date:
            domain = envelope.sender.domain if envelope.sender else "reportgen.invalid"
            message["Message-ID"] = f"<{_digest(message.as_bytes())}@{domain}>"
        return message.as_bytes()

    def _subject(self) -> str:
        if given := self.envelope.subject:
            return plain_line(given, "a subject")
        text = " ".join(visible(f"{self.document.title}: {self.document.verdict}").split())
        return text if len(text) <= _LONGEST_SUBJECT else f"{text[: _LONGEST_SUBJECT - 1]}…"


def _breakable(text: str) -> Markup:
    """Return text that a narrow column may break where its parts end."""
    return Markup(_PART_END.sub("<wbr>", escape(text)))  # noqa: S704 - escaped here


def _text(letter: Letter) -> str:
    return environment().overlay(autoescape=False).get_template("mail/mail.txt.j2").render(letter=letter)


def _text_part(text: str, subtype: str) -> MIMEPart:
    part = MIMEPart(_POLICY)
    part.set_content(text, subtype=subtype)
    return part


def _picture(cid: str, data: bytes) -> MIMEPart:
    part = MIMEPart(_POLICY)
    name = f"{cid.partition('@')[0]}.png"
    part.set_content(data, "image", "png", cid=f"<{cid}>", disposition="inline", filename=name)
    return part


def _attached(data: bytes, kind: str, subtype: str, name: str) -> MIMEPart:
    part = MIMEPart(_POLICY)
    charset = {"charset": "utf-8"} if kind == "text" else None
    part.set_content(data, kind, subtype, disposition="attachment", filename=name, params=charset)
    return part


def _told(attachment: MIMEPart | None) -> str:
    if attachment is None:
        return ""
    size = binary(len(attachment.get_payload(decode=True)))
    return f"The full report is attached: {attachment.get_filename()} ({size}). Open it in a browser."


def _multipart(kind: str, parts: Sequence[MIMEPart], **parameters: str) -> MIMEPart:
    """Join parts; their border is named after the content, where the library would draw lots. One part stays alone."""
    if len(parts) == 1:
        return parts[0]
    whole = MIMEPart(_POLICY)
    border = f"=_{kind}_{_digest(*(part.as_bytes() for part in parts))}"
    given = "".join(f'; {name}="{value}"' for name, value in (parameters | {"boundary": border}).items())
    whole["Content-Type"] = f"multipart/{kind}{given}"
    for part in parts:
        whole.attach(part)
    return whole


def _digest(*contents: bytes) -> str:
    found = hashlib.sha256()
    for content in contents:
        found.update(content)
    return found.hexdigest()[:32]
