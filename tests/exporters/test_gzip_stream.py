"""The compressing stream: whole, the same every time, and honest about a full disk."""

from __future__ import annotations

import gzip
import io

import pytest

from reportgen.exporters.gzip_stream import GzipStream


def compressed(pieces: list[str]) -> bytes:
    stream = io.BytesIO()
    with GzipStream(stream) as text:
        for piece in pieces:
            text.write(piece)
    return stream.getvalue()


def test_all_pieces_arrive_in_order() -> None:
    pieces = [f"{number}," * 1000 for number in range(200)]
    assert gzip.decompress(compressed(pieces)).decode() == "".join(pieces)


def test_same_text_same_bytes_without_a_time() -> None:
    first, second = compressed(["a" * 10_000, "b"]), compressed(["a" * 10_000, "b"])
    assert first == second
    assert first[4:8] == b"\0\0\0\0"


class FullDisk(io.BytesIO):
    def write(self, _: object) -> int:
        raise OSError(28, "No space left on device")


def test_an_error_of_the_stream_reaches_the_writer() -> None:
    def fill() -> None:
        with GzipStream(FullDisk()) as text:
            for _ in range(100):
                text.write("x" * 100_000)

    with pytest.raises(OSError, match="No space left"):
        fill()


def test_after_an_error_the_gzip_is_unfinished() -> None:
    stream = io.BytesIO()

    def fail() -> None:
        with GzipStream(stream) as text:
            text.write("x" * 100_000)
            raise KeyError("fault")

    with pytest.raises(KeyError):
        fail()
    with pytest.raises(EOFError):
        gzip.decompress(stream.getvalue() or b"\x1f\x8b\x08\0\0\0\0\0\0\x03")
