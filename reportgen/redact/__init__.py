"""Redaction: names of hosts, people, files, modules and scopes become stable pseudonyms, in a profile or a report.

What is known to be the compiler's, a framework's or a runtime's own stays (`allowed.txt`), and so do numbers and
shapes; all the rest is replaced. The same name gives the same pseudonym under the same key.
"""

from reportgen.redact.document import redact_document, redacted
from reportgen.redact.key import load_key
from reportgen.redact.leak_search import leaks, refuse_leaks
from reportgen.redact.redactor import Redactor
from reportgen.redact.run import clean_run, redacted_run
from reportgen.redact.space import redact_space

__all__ = [
    "Redactor", "clean_run", "leaks", "load_key", "redact_document", "redact_space", "redacted",
    "redacted_run", "refuse_leaks",
]  # fmt: skip
