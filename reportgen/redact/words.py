"""Which words redaction keeps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# A name with its parts: words joined by "-" or ".", as instructions (all-reduce.3), files and hosts are named.
COMPOUND = r"[^\W\d_]?[\w$\u0080-\U0010ffff]+(?:[.\-][\w$\u0080-\U0010ffff]+)*"
_PARTS = re.compile(r"[._\-]+")
_NUMBER = re.compile(r"\d+(?:x\d+)*|0x[0-9a-f]{1,4}|\d+[KMGT]?i?B|\d+e\d+")
# A word of a sentence, or what stands between two blanks as one: a path, an address, a qualified name.
UNIT = re.compile(r"[~/\\]*[\w$]+(?:(?:[.\-'’+]|[/\\@:]+)[\w$]+)*")
_WHOLE = "Whole names only"
_LONGEST_NUMBER = 24
_SPLIT = re.compile(r"[._\-'’+/\\@:~]+")
_ORDINARY = 20  # times


@dataclass(frozen=True)
class Allowed:
    """The allow-list: words that may also be parts of a name, and those that are only kept as a whole."""

    parts: frozenset[str]
    whole: frozenset[str]

    def __contains__(self, name: str) -> bool:
        """Whether a name may stay as it is."""
        if name in self.whole or name in self.parts or len(name) == 1:
            return True
        return all(self._part(part) for part in _PARTS.split(name))

    def _part(self, part: str) -> bool:
        if part in self.parts or len(part) <= 1:
            return True
        return len(part) <= _LONGEST_NUMBER and _NUMBER.fullmatch(part) is not None


@cache
def allowed() -> Allowed:
    """Return the words of `allowed.txt`."""
    parts: set[str] = set()
    whole: set[str] = set()
    target = parts
    for line in (Path(__file__).parent / "allowed.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            target = whole if line[3:] == _WHOLE else parts
        elif not line.startswith("#"):
            target.update(line.split())
    return Allowed(frozenset(parts), frozenset(whole))


@cache
def vocabulary() -> Counter[str]:
    """Return the words of reportgen's own texts, in lower case, and how often they use each.

    Texts are its code, templates, rule pages and catalogues. They are public: finding such a word in a sentence of a
    report tells nothing.
    """
    package = Path(__file__).resolve().parent.parent
    folders = (package, package.parent / "templates", package.parent / "docs" / "rules")
    kinds = (".py", ".toml", ".j2", ".md", ".js")
    files = [path for folder in folders for path in sorted(folder.rglob("*")) if path.suffix in kinds]
    found: Counter[str] = Counter()
    for path in files:
        if not path.name.endswith("_pb2.py"):
            found.update(_words(path.read_text(encoding="utf-8", errors="replace").lower()))
    return found


def ordinary(word: str) -> bool:
    """Whether reportgen's own texts use a word all the time."""
    return vocabulary()[word.lower()] >= _ORDINARY


def _words(text: str) -> Iterator[str]:
    for word in UNIT.findall(text):
        yield word
        parts = _SPLIT.split(word)
        if len(parts) > 1:
            yield from filter(None, parts)
