"""The part of `reportgen run` that lives in the script's process.

It needs nothing but the standard library, since the script may run in an environment without reportgen, and it runs on
Python 3.9 and newer. It waits until the script imports JAX, TensorFlow or Keras, counts steps or watches compilations,
and traces one window through the framework's own profiler.
"""

from __future__ import annotations

import json
import os

from .hooks import install
from .window import Settings, Window

SETTINGS_VARIABLE = "REPORTGEN_RUN"


def start() -> None:
    """Install the hooks that the settings in the environment ask for; does nothing without settings."""
    text = os.environ.get(SETTINGS_VARIABLE)
    if text is None:
        return
    settings = Settings(**json.loads(text))
    window = Window(settings)
    window.tell()
    install(window, on_import=lambda: _restore_environment(settings.pythonpath))
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=window.abandon)


def _restore_environment(pythonpath: str | None) -> None:
    """Take reportgen out of what the script's own child processes will inherit."""
    os.environ.pop(SETTINGS_VARIABLE, None)
    if pythonpath is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = pythonpath
