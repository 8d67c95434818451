"""Errors that a user can act on: each says what was expected, what was found and what to try."""

from __future__ import annotations


class ReportgenError(Exception):
    """A fault with a message for the user.

    Attributes:
        message: One sentence that names the file or address, what was expected and what was found.
        hint: What to try next; may be empty.
        exit_code: The process's exit code when the command line ends with this error.

    """

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class UsageError(ReportgenError):
    """The command line or the settings are contradictory or unknown."""

    exit_code = 2


class GateError(ReportgenError):
    """A budget failed."""

    exit_code = 3


class InputError(ReportgenError):
    """The input cannot be used: absent, empty, damaged, or of another kind."""

    exit_code = 4


class CaptureError(InputError):
    """No profile could be captured."""


class MailError(InputError):
    """A mail server cannot be reached or trusted, or refuses the mail."""
