"""What the bytes of a file are, and a clear refusal where they are no profile."""

from __future__ import annotations

import zlib

from reportgen.errors import InputError

# The largest file that is read, and the largest that a compressed file may grow to.
SIZE_LIMIT = 16 * 2**30

_GZIP = b"\x1f\x8b"
ZIP = b"PK\x03\x04"
_LFS = b"version https://git-lfs"
# The first block of a file of riegeli records.
_RIEGELI = bytes.fromhex("83af70d10d884a3f")
_REPLACEMENT = "\ufffd".encode()
_CHUNK = 1 << 24
_TEXT_SAMPLE = 1 << 12
_TEXT_CONTROLS = frozenset(b"\t\n\f\r\x1b")


def decompressed(content: bytes, name: str) -> bytes:
    """Return the content of a gzip file, of one or several members; other content as it is.

    Raises:
        InputError: The gzip data is damaged before anything could be read, or grows beyond the limit.

    """
    if not content.startswith(_GZIP):
        return content
    parts: list[bytes] = []
    size, rest = 0, content
    while rest.startswith(_GZIP):
        inflater = zlib.decompressobj(wbits=31)
        while not inflater.eof:
            try:
                part = inflater.decompress(inflater.unconsumed_tail or rest, _CHUNK)
            except zlib.error as error:
                if not parts:
                    raise InputError(
                        f"{name}: expected gzip data, found damaged data ({error}).", "Copy the file again."
                    ) from None
                return b"".join(parts)
            rest = b""
            size += len(part)
            if size > SIZE_LIMIT:
                raise InputError(f"{name}: grows beyond {SIZE_LIMIT >> 30} GiB when decompressed.")
            parts.append(part)
            if not part and not inflater.unconsumed_tail:
                break  # the file ends early: what was read is kept, and the reader says what is missing
        rest = inflater.unused_data
    return b"".join(parts)


def refuse_foreign(content: bytes, name: str) -> None:
    """Refuse what is known not to be an XSpace.

    Raises:
        InputError: The file is empty, a Git LFS pointer, a riegeli capture, an HloProto, JSON or text.

    """
    if not content:
        raise InputError(
            f"{name}: expected an XSpace profile, found an empty file.",
            "The capture may have been interrupted, or the copy failed: copy the file again or capture again.",
        )
    if content.startswith(_LFS):
        raise InputError(
            f"{name}: expected an XSpace profile, found a Git LFS pointer to it.",
            "Fetch the file itself with `git lfs pull`.",
        )
    if content.startswith(_RIEGELI) or name.endswith(".riegeli"):
        raise riegeli_refused(name)
    if _is_hlo_proto(content):
        raise InputError(
            f"{name}: expected an XSpace profile, found an HloProto (one compiled module).",
            f"`reportgen oom {name}` reports its memory.",
        )
    if _is_text(content[:_TEXT_SAMPLE]):
        raise InputError(
            f"{name}: expected an XSpace profile (protocol buffer), found text.",
            "Give the `.xplane.pb` file that lies beside it, or a `trace.json.gz`.",
        )


def riegeli_refused(name: str) -> InputError:
    """Return the error for a capture in riegeli records."""
    return InputError(
        f"{name}: expected an XSpace profile, found a riegeli capture (continuous profiling in chunks).",
        "Capture with a fixed duration: `reportgen capture HOST:PORT --duration 2s`.",
    )


def _is_text(start: bytes) -> bool:
    """Whether a file begins as text does: a profile begins with a plane's tag, a line feed, and its length.

    Text may begin with a line feed too, but has no other bytes below the space for long.
    """
    return all(byte >= ord(" ") or byte in _TEXT_CONTROLS for byte in start)


def damage(content: bytes, name: str, error: Exception) -> InputError:
    """Return the error for content that should be an XSpace and cannot be decoded."""
    replaced = content.count(_REPLACEMENT)
    if replaced > max(8, len(content) // 2000):
        return InputError(
            f"{name}: expected an XSpace profile, found one damaged by a lossy text decode: {replaced:,} places "
            "hold the UTF-8 replacement character where bytes were lost.",
            "The lost bytes cannot be restored. Copy the original again as binary (not through a text mode or str).",
        )
    return InputError(
        f"{name}: expected an XSpace profile, found data that cannot be decoded: {error}.",
        "Copy the file again as binary, or capture again.",
    )


def _is_hlo_proto(content: bytes) -> bool:
    """Whether field 1 begins with field 1 of length-delimited type (a module's name); a plane begins with its id."""
    if content[:1] != b"\x0a":
        return False
    at = 1
    while at < len(content) and content[at] >= 0x80:
        at += 1
    return content[at + 1 : at + 2] == b"\x0a"
