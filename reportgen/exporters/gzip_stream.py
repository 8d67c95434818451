"""Text to gzip while the next text is being made: compression runs in a thread of its own, bounded in memory."""

from __future__ import annotations

import zlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import BinaryIO, Self

# Traces repeat themselves so much that higher levels cost three times the time for a tenth of the size.
_LEVEL = 1
_PENDING = 4


class GzipStream:
    """Writes text as gzip; the same text in the same pieces gives the same bytes (no name, no time in the header)."""

    def __init__(self, stream: BinaryIO, level: int = _LEVEL) -> None:
        self._stream = stream
        self._deflate = zlib.compressobj(level, wbits=31)
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._pending: deque[Future[None]] = deque()

    def write(self, text: str) -> None:
        """Compress and write a piece of text.

        Raises:
            OSError: An earlier piece could not be written.

        """
        if len(self._pending) >= _PENDING:
            self._pending.popleft().result()
        self._pending.append(self._thread.submit(self._compress, text))

    def _compress(self, text: str) -> None:
        self._stream.write(self._deflate.compress(text.encode("utf-8", errors="replace")))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finish the stream; after an error it stays unfinished, so that nobody takes it for whole."""
        try:
            if error is None:
                while self._pending:
                    self._pending.popleft().result()
                self._stream.write(self._deflate.flush())
        finally:
            self._thread.shutdown(wait=True, cancel_futures=True)
