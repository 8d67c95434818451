"""From names to pseudonyms: the same name gives the same pseudonym under the same key."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Collection, Iterable

from reportgen.redact.words import COMPOUND, UNIT, allowed, vocabulary

_LETTERS = 10
_TOKEN = re.compile(
    r"(?P<number>(?<![\w.])(?:\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)?|\d+(?:\.\d+)?[eE][-+]?\d+)(?![\w.]))"
    r"""|(?P<source>[^\s"'`(),;=<>{}\[\]$]+\.[A-Za-z]{1,4}:\d+(?::\d+)?)"""
    r"|(?P<line>source_(?:end_)?(?:line|column)=\d+)"
    r"|(?P<address>(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])"
    r"|(?<![\w:])(?:[0-9A-Fa-f]{1,4}:){4,7}[0-9A-Fa-f]{1,4}(?![\w:])"
    r"|(?<![\w:])(?=[0-9A-Fa-f:]*\d)[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{1,4})*::(?:[0-9A-Fa-f]{1,4}:)*[0-9A-Fa-f]{1,4}(?![\w:])"
    r"|0x[0-9A-Fa-f]{5,})"
    rf"|(?P<name>{COMPOUND})"
)
_NUMBERED = re.compile(r"(.+?)((?:\.\d{1,6}|\.clone|\.remat\d*)+)")
# What frameworks put before a user's name: it stays, for it tells what an event is.
_PROGRAM = re.compile(r"(?:jit|pjit|pmap|xmap)_(?=[^\W_])|(?:a|_)_inference_(?=[^\W_])|\$(?=\w)")
_STEP = re.compile(r"(?:train|test|step|eval)_(?=[^\W_])")
# Kernels of the Tensile library, whose names tell types and tiles.
_TENSILE = re.compile(r"Cijk(?:_[A-Z][a-z]{3}){2}(?:_[A-Z]{1,6}[a-z]?[\dx]*|_\d+)*")
_SHAPE = re.compile(r"(?<=\w)\[[\d,<=? ]*\](?:\{[^{}\"]*\})?")
_JOINED = re.compile(r"[-'’]")


class Redactor:
    """Replaces names; what it replaced stays in `replaced`, from each name to its pseudonym.

    Args:
        key: Makes the pseudonyms; without it nobody can test whether a name is behind one.
        hide_shapes: Whether shapes are replaced too.
        hosts: Names of hosts, which are replaced wherever they stand, even if they are ordinary words.

    """

    def __init__(self, key: bytes, *, hide_shapes: bool = False, hosts: Iterable[str] = ()) -> None:
        self._key = key
        self._known: dict[str, str] = {}
        self._made: set[str] = set()  # pseudonyms, which stay when they are met again
        self._hosts = set(filter(None, hosts))
        self.hide_shapes = hide_shapes
        self.replaced: dict[str, str] = {}

    def fresh(self) -> Redactor:
        """Return one with the same pseudonyms that has replaced nothing yet."""
        return Redactor(self._key, hide_shapes=self.hide_shapes, hosts=self._hosts)

    def add_hosts(self, names: Iterable[str]) -> None:
        """Tell names of hosts."""
        self._hosts.update(filter(None, names))

    def host(self, name: str) -> str:
        """Return the pseudonym of a host."""
        if name not in self._made:
            self.add_hosts([name])
        return self._pseudonym(name, "host") if name and name not in self._made else name

    def whole(self, text: str, kind: str = "id") -> str:
        """Return the pseudonym of a text as a whole, unless it may stay."""
        return text if not text or text in self._made or text in allowed() else self._pseudonym(text, kind)

    def name(self, text: str) -> str:
        """Return a text of names (an event's, a scope's, a path, an expression) with the unknown ones replaced."""
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = _TOKEN.sub(self._token, self.shapeless(text))
        return known

    def prose(self, text: str, deny: Collection[str] = ()) -> str:
        """Return a sentence of reportgen's or the profiler's with its names replaced.

        Words of reportgen's own texts stay, unless they are denied; what looks like a name or a path does not.
        """
        return UNIT.sub(lambda found: self._unit(found, deny), self.shapeless(text))

    def shapeless(self, text: str) -> str:
        """Return a text without sizes and layouts of arrays, where shapes are hidden."""
        return _SHAPE.sub("[_]", text) if self.hide_shapes else text

    def digest(self, text: str) -> str:
        """Return a keyed digest of a digest, of the same length."""
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()[: len(text)]

    def _unit(self, found: re.Match[str], deny: Collection[str]) -> str:
        """Return a word of a sentence, or what stands between two blanks as one, such as a path or an address."""
        text = found.group()
        if text in self._hosts:
            return self.host(text)
        words = vocabulary()
        if text not in deny and text.lower() in words:
            return text
        parts = _JOINED.split(text)
        plain = all(part not in self._hosts and part not in deny for part in parts)
        if plain and all(part.lower() in words or part in allowed() for part in parts):
            return text
        return self.name(text)

    def _token(self, found: re.Match[str]) -> str:
        text = found.group()
        if found.lastgroup == "number":
            return text
        if found.lastgroup == "source":
            return self._source(text)
        if found.lastgroup == "line":
            return f"{text.partition('=')[0]}=1"
        return self._pseudonym(text, "addr") if found.lastgroup == "address" else self._compound(text)

    def _source(self, text: str) -> str:
        file = text.partition(":")[0]
        known = file in allowed().whole or file.rpartition(".")[0] in self._made
        return text if known else f"{self.source(text)}:1"

    def source(self, text: str) -> str:
        """Return the pseudonym of a source line; it ends as the file's name does."""
        if text.partition(".")[0] in self._made:
            return text
        ending = re.search(r"\.[A-Za-z]{1,4}(?=:|$)", text)
        return self._pseudonym(text, "src") + (ending.group() if ending else "")

    def _compound(self, text: str) -> str:
        if text in self._hosts:
            return self.host(text)
        if text in self._made or text in allowed() or _TENSILE.fullmatch(text):
            return text
        if numbered := _NUMBERED.fullmatch(text):
            return self._compound(numbered[1]) + numbered[2]
        if program := _PROGRAM.match(text):
            return program.group() + self._compound(text[program.end() :])
        step = _STEP.match(text)
        return (step.group() if step else "") + self._pseudonym(text, "id")

    def _pseudonym(self, text: str, kind: str) -> str:
        digest = hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
        found = f"{kind}_{base64.b32encode(digest).decode().lower()[:_LETTERS]}"
        self.replaced[text] = found
        self._made.add(found)
        return found
