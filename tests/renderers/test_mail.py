"""The mail as a file: its parts, sizes, bytes, words, and what no text can do to it."""

from __future__ import annotations

import io
import zipfile
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reportgen
from reportgen.charts.text import visible
from reportgen.document import ReportDocument
from reportgen.errors import UsageError
from reportgen.renderers import render
from reportgen.renderers.envelope import Envelope, addresses
from reportgen.renderers.letter import EXTENTS
from reportgen.renderers.mail import LEAST_BYTES, MAX_BYTES, MAX_HTML, render_mail
from tests.conftest import ROOT
from tests.mail.reading import Html, part, pictures, read, shape
from tests.renderers.documents import realistic
from tests.renderers.hostile import SAMPLES, poisoned

DATE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
WHOLE = ["multipart/mixed", "multipart/related", "multipart/alternative", "text/plain", "text/html"]


def envelope(*to: str, subject: str = "", sender: str = "ci@example.com") -> Envelope:
    return Envelope(addresses([sender])[0], addresses(to or ["team@example.com"]), subject, DATE)


def content(document: ReportDocument, **options: object) -> bytes:
    return render_mail(document, **({"envelope": envelope()} | options)).files["report.eml"]  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def largest() -> ReportDocument:
    """The largest sample."""
    return reportgen.analyze(ROOT / "sample_profiles" / "resnet50_tpu_v5e")


@pytest.fixture(scope="module")
def stuffed() -> ReportDocument:
    """A report of many findings whose every text is long and beyond ASCII, so that it is cut and costs more bytes."""
    base = realistic()
    unknown = tuple(one for one in base.checks if one.status == "cannot_tell") * 9
    many = msgspec.structs.replace(base, findings=base.findings[:2] * 9, checks=base.checks + unknown)
    return poisoned(many, lambda text: text + "Ω" * 3000 if len(text) > 3 else text)


def test_a_mail_holds_text_html_charts_and_the_report() -> None:
    document = realistic()
    message = read(content(document))
    images = pictures(message)
    assert shape(message) == [*WHOLE, *["image/png"] * len(images), "text/html"]
    assert 1 <= len(images) <= 3
    assert all(data.startswith(b"\x89PNG") for data in images.values())
    html = Html(part(message, "html"))
    assert [source for source, _ in html.images] == [f"cid:{cid}" for cid in images]
    assert all(alt in [chart.alt for chart in document.charts.values()] for _, alt in html.images)
    attached = list(message.iter_attachments())[-1]
    assert attached.get_filename() == "report.html"
    assert attached.get_content().encode() == render(document, "html").files["report.html"]


def test_the_parts_follow_the_order_of_the_report() -> None:
    document = realistic()
    message = read(content(document, link="https://ci.example.com/1"))
    for text in (part(message, "plain"), Html(part(message, "html")).text):
        marks = [
            document.verdict,
            document.profile.warnings[0],
            "Step time",
            f"Critical: {document.findings[0].title}",
            "33.0 ms per step",
            document.findings[0].actions[0].text,
            next(one.reason for one in document.checks if one.status == "cannot_tell"),
            "https://ci.example.com/1",
            "The full report is attached: report.html",
        ]
        places = [" ".join(text.split()).index(mark) for mark in marks]
        assert places == sorted(places)


def test_a_value_that_was_not_captured_says_why() -> None:
    message = read(content(realistic()))
    for text in (part(message, "plain"), Html(part(message, "html")).text):
        assert "not captured (The device plane holds no XLA Ops line." in text


def test_the_same_report_gives_the_same_bytes_and_each_mail_its_own_id() -> None:
    document = realistic()
    assert content(document) == content(document)
    ids = {
        str(read(content(document, envelope=one, attach="none"))["Message-ID"])
        for one in (envelope(), envelope("other@example.com"), envelope(subject="other"))
    }
    assert len(ids) == 3
    assert all(one.endswith("@example.com>") for one in ids)
    assert read(content(document))["Date"].datetime == DATE


def test_rendering_again_gives_a_draft_without_date_and_sender() -> None:
    document = realistic()
    data = render(document, "mail").files["report.eml"]
    assert data == render(document, "mail").files["report.eml"]
    message = read(data)
    assert message["X-Unsent"] == "1"
    assert [message[name] for name in ("From", "To", "Date", "Message-ID")] == [None] * 4
    assert document.title in str(message["Subject"])


def test_every_byte_is_ascii_and_every_line_short() -> None:
    data = content(poisoned(realistic(), lambda text: f"{text} Ω"))
    assert data.isascii()
    assert max(map(len, data.split(b"\r\n"))) <= 998
    assert b"\n" not in data.replace(b"\r\n", b"")


def test_the_archive_holds_the_report() -> None:
    document = realistic()
    attached = list(read(content(document, attach="zip")).iter_attachments())[-1]
    assert attached.get_filename() == "report.html.zip"
    with zipfile.ZipFile(io.BytesIO(attached.get_content())) as archive:
        assert archive.read("report.html") == render(document, "html").files["report.html"]


def test_the_largest_sample_keeps_the_caps(largest: ReportDocument) -> None:
    result = render_mail(largest)
    assert result.warnings == ()
    assert len(result.files["report.eml"]) <= MAX_BYTES
    assert_small_html(result.files["report.eml"])


def assert_small_html(data: bytes) -> None:
    body = read(data).get_body(("html",))
    assert body is not None
    assert len(str(body.get_payload())) <= MAX_HTML
    assert len(body.get_content().encode()) <= MAX_HTML


@pytest.mark.parametrize(
    ("limit", "parts", "said"),
    [
        (1_200_000, [*WHOLE, *["image/png"] * 3, "application/zip"], "The full report is zipped"),
        (LEAST_BYTES, [*WHOLE[1:], *["image/png"] * 3], "The full report is not attached"),
    ],
)
def test_a_cap_drops_the_attachment_first_and_says_so(
    largest: ReportDocument, limit: int, parts: list[str], said: str
) -> None:
    result = render_mail(largest, max_bytes=limit)
    data = result.files["report.eml"]
    assert len(data) <= limit
    assert shape(read(data)) == parts
    assert said in result.warnings[0]
    assert said in part(read(data), "plain")
    assert said in Html(part(read(data), "html")).text


def test_a_cap_drops_charts_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reportgen.charts.picture.png", lambda _: b"\x89PNG" + bytes(200_000))
    result = render_mail(realistic(), max_bytes=LEAST_BYTES)
    message = read(result.files["report.eml"])
    assert shape(message) == ["multipart/alternative", "text/plain", "text/html"]
    assert "Charts are left out" in result.warnings[0]
    assert "The full report is not attached" in part(message, "plain")
    html = Html(part(message, "html"))
    assert html.images == []
    assert realistic().charts["roofline"].alt in html.text


def test_text_alone_fits_into_the_least_size(stuffed: ReportDocument, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reportgen.charts.picture.png", lambda _: bytes(LEAST_BYTES))
    data = render_mail(stuffed, max_bytes=LEAST_BYTES).files["report.eml"]
    assert len(data) <= LEAST_BYTES
    assert_small_html(data)
    with pytest.raises(UsageError, match="at least 400 kB"):
        render_mail(stuffed, max_bytes=LEAST_BYTES - 1)


@pytest.mark.parametrize("sample", SAMPLES)
def test_hostile_text_stays_text(sample: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reportgen.charts.picture.png", lambda _: b"\x89PNG")  # drawn charts have tests of their own
    document = poisoned(realistic(), lambda text: f"{text} {sample}")
    message = read(content(document, attach="none"))
    html, plain = Html(part(message, "html")), part(message, "plain")
    wanted = " ".join(visible(f"34 % of every step waits for input {sample}").split())
    assert wanted in html.text
    assert wanted in " ".join(plain.split())
    assert html.links == []
    assert "\x00" not in plain
    assert set(message.keys()) == {
        "From", "To", "Subject", "Date", "Message-ID", "X-Unsent", "MIME-Version", "Content-Type",
    }  # fmt: skip


@pytest.mark.parametrize(
    "bad",
    ["a@b.example\r\nBcc: c@d.example", "a\n@b.example", "=?utf-8?q?x=0ABcc=3A?= <a@b.example>", "\udc80@b.example"],
)
def test_no_address_adds_a_line_to_the_head(bad: str) -> None:
    with pytest.raises(UsageError, match="address"):
        addresses([bad])


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "nobody",
        "@b.example",
        "a@",
        "friends: a@b.example;",
        "a@b.example, ",
        "jörg@b.example",
        "a@bücher.example",
        "a b@c.example",
    ],
)
def test_what_is_no_address_is_refused(bad: str) -> None:
    with pytest.raises(UsageError, match="expected"):
        addresses([bad])


def test_addresses_may_have_names_and_be_joined() -> None:
    found = addresses(["Jörg Ω <a@b.example>, c@d.example", '"x, y" <e@[127.0.0.1]>'])
    assert [one.addr_spec for one in found] == ["a@b.example", "c@d.example", "e@[127.0.0.1]"]
    message = read(content(realistic(), envelope=Envelope(to=found)))
    assert [one.display_name for one in message["To"].addresses] == ["Jörg Ω", "", "x, y"]


@pytest.mark.parametrize("bad", ["a\r\nBcc: c@d.example", "a\nb", "a\x00b", "a\u2028b"])
def test_no_subject_adds_a_line_to_the_head(bad: str) -> None:
    with pytest.raises(UsageError, match="a subject on one line"):
        content(realistic(), envelope=envelope(subject=bad))


@pytest.mark.parametrize(
    "bad", ["javascript:alert(1)", "ftp://a.example", "https://a.example/\nx", " https://a.example"]
)
def test_a_link_is_a_web_address(bad: str) -> None:
    with pytest.raises(UsageError, match="expected"):
        content(realistic(), link=bad)


def test_a_link_is_escaped() -> None:
    link = 'https://a.example/?a=1&b="><script>'
    message = read(content(realistic(), link=link))
    assert Html(part(message, "html")).links == [link]
    assert link in part(message, "plain")


_TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=80)


@settings(max_examples=25, deadline=None)
@given(verdict=_TEXT, titles=st.lists(_TEXT, max_size=EXTENTS[0].findings), subject_of=_TEXT)
def test_the_plain_part_holds_verdict_and_findings(verdict: str, titles: list[str], subject_of: str) -> None:
    base = realistic()
    findings = tuple(
        msgspec.structs.replace(base.findings[0], id=f"f-{place}", title=title) for place, title in enumerate(titles)
    )
    document = msgspec.structs.replace(base, verdict=verdict, title=subject_of, findings=findings, charts={})
    message = read(content(document, attach="none"))
    plain = " ".join(part(message, "plain").split())
    for text in (verdict, *titles):
        assert " ".join(visible(text).split()) in plain
    assert len(str(message["Subject"])) <= 150
    assert plain.count("Critical:") >= len(titles)
