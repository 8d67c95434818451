"""A child process that notices nothing: same streams, same signals, same exit code, while its error output is kept."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import termios
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType

_TAIL_LIMIT = 8 << 20
_CHUNK = 1 << 16
_PATIENCE_S = 1.0
_STDOUT, _STDERR = 1, 2
_FORWARDED = ("SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
_FROM_KEYBOARD = (signal.SIGINT, signal.SIGQUIT)


def run_through(command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, bytes]:
    """Run a command with this process's own streams.

    Error output goes through a pipe, or a terminal of its own where ours is one, so that it can be kept; standard
    output does so too where both lead to the same place, so that their order stays. Signals are passed on, but for
    those of the keyboard, which the terminal sends to the child itself.

    Returns:
        The exit code as a shell tells it (128 + n when killed by signal n), and the last 8 MiB of the error output.

    Raises:
        OSError: The command cannot be started.

    """
    tee = _Tee(_STDERR)
    together = os.path.sameopenfile(_STDOUT, _STDERR)
    with _forwarded_signals(tee) as forward_to:
        try:
            child = subprocess.Popen(  # noqa: S603 - running the user's command is the purpose
                command, env=environment, stdout=tee.entrance if together else None, stderr=tee.entrance
            )
        except OSError:
            tee.close()
            raise
        forward_to(child)
        tee.pump()
        code = child.wait()
    return (code if code >= 0 else 128 - code), tee.close()


class _Tee:
    """A pipe or terminal in front of one of our streams: what comes in goes out there, and its end is kept.

    Attributes:
        entrance: The file descriptor for the child.

    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._terminal = os.isatty(target)
        self._exit, self.entrance = pty.openpty() if self._terminal else os.pipe()
        if self._terminal:
            attributes = termios.tcgetattr(self.entrance)
            attributes[1] &= ~termios.OPOST  # the real terminal does the line ends
            termios.tcsetattr(self.entrance, termios.TCSANOW, attributes)
            self.resize()
        self._tail = bytearray()
        self._thread = threading.Thread(target=self._pass_on, name="tee", daemon=True)

    def resize(self) -> None:
        """Give the child's terminal the size of ours."""
        if self._terminal:
            with contextlib.suppress(termios.error):
                termios.tcsetwinsize(self.entrance, termios.tcgetwinsize(self._target))

    def pump(self) -> None:
        """Begin to pass on, now that the child has its end."""
        if not self._terminal:  # a terminal's entrance is needed for its size, and closed at the end
            os.close(self.entrance)
        self._thread.start()

    def close(self) -> bytes:
        """Return the end of what came through; a grandchild that still writes is not waited for."""
        if self._thread.ident is None or self._terminal:
            os.close(self.entrance)
        if self._thread.ident is None:
            os.close(self._exit)
        else:
            self._thread.join(_PATIENCE_S)
        return bytes(self._tail[-_TAIL_LIMIT:])

    def _pass_on(self) -> None:
        with contextlib.suppress(OSError):  # a terminal ends with an error, and our reader may have gone
            while chunk := os.read(self._exit, _CHUNK):
                self._tail += chunk
                if len(self._tail) > 2 * _TAIL_LIMIT:
                    del self._tail[:-_TAIL_LIMIT]
                while chunk:
                    chunk = chunk[os.write(self._target, chunk) :]
        os.close(self._exit)


@contextlib.contextmanager
def _forwarded_signals(tee: _Tee) -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Pass signals on instead of dying of them; yields what names the child, and those that came before then reach it.

    Python delivers signals to the main thread alone: in another one nothing is passed on.
    """
    children: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def forward(number: int, _frame: FrameType | None) -> None:
        if number in _FROM_KEYBOARD and _terminal_sends_signals():
            return
        if children:
            children[0].send_signal(number)
        else:
            early.append(number)

    def forward_to(child: subprocess.Popen[bytes]) -> None:
        children.append(child)
        for number in early:
            child.send_signal(number)

    if threading.current_thread() is not threading.main_thread():
        yield forward_to
        return
    handlers = {getattr(signal, name): forward for name in _FORWARDED}
    handlers = {number: handler for number, handler in handlers.items() if signal.getsignal(number) != signal.SIG_IGN}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    before[signal.SIGWINCH] = signal.signal(signal.SIGWINCH, lambda *_: tee.resize())
    try:
        yield forward_to
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _terminal_sends_signals() -> bool:
    """Tell whether we stand in a terminal's foreground, so that its keys reach the child without us."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
