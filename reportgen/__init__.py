"""One self-contained report from an XLA profile: what is slow, what filled the memory, why, and what to do.

import reportgen

reportgen.report("logs/", output="out/")    # writes the report
document = reportgen.analyze("logs/")       # the same as data
with reportgen.profiled("out/"):            # profiles a program from inside and reports
    train()
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reportgen.api import Written, analyze, load, report
    from reportgen.capture.in_program import StepProfiler, keras_callback, profiled
    from reportgen.delivery import check, compare, frame, open_document, redacted
    from reportgen.redact import Redactor
    from reportgen.settings import Settings

__version__ = "0.1.0"
__all__ = [
    "Redactor",
    "Settings",
    "StepProfiler",
    "Written",
    "__version__",
    "analyze",
    "check",
    "compare",
    "frame",
    "keras_callback",
    "load",
    "open_document",
    "profiled",
    "redacted",
    "report",
]

# Loaded when first used, so that `import reportgen` and `reportgen --help` stay fast.
_HOMES = {
    "Redactor": "reportgen.redact",
    "Settings": "reportgen.settings",
    "StepProfiler": "reportgen.capture.in_program",
    "Written": "reportgen.api",
    "analyze": "reportgen.api",
    "check": "reportgen.delivery",
    "compare": "reportgen.delivery",
    "frame": "reportgen.delivery",
    "keras_callback": "reportgen.capture.in_program",
    "load": "reportgen.api",
    "open_document": "reportgen.delivery",
    "profiled": "reportgen.capture.in_program",
    "redacted": "reportgen.delivery",
    "report": "reportgen.api",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'reportgen' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
