"""The key of a redaction, which makes its pseudonyms: whoever has it can test guesses, so it is its owner's alone."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from reportgen.errors import UsageError

_BYTES = 32
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def load_key(path: Path | None) -> bytes:
    """Return the key in a file, which is made where there is none, readable by its owner alone; else a new one.

    Raises:
        UsageError: The file holds no key, cannot be read or made, or others may read it.

    """
    if path is None:
        return secrets.token_bytes(_BYTES)
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return _read(path)
    except OSError as error:
        raise UsageError(f"{path}: the key cannot be written there ({error.strerror}).") from None
    with os.fdopen(handle, "w") as stream:
        stream.write(secrets.token_hex(_BYTES) + "\n")
    return _read(path)


def _read(path: Path) -> bytes:
    try:
        mode, text = path.stat().st_mode, path.read_text(encoding="ascii")
        key = bytes.fromhex(text)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: expected a key that --redact-key made, found none ({error}).") from None
    if os.name == "posix" and mode & _OTHERS:
        raise UsageError(f"{path}: others may read this key, and undo the redaction with it.", f"chmod 600 {path}")
    if len(key) < _BYTES:
        raise UsageError(f"{path}: expected a key of {_BYTES} bytes, found {len(key)}.", "Remove it to have one made.")
    return key
