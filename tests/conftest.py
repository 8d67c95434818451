"""Fixtures of all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
REFERENCE = Path(os.environ.get("REPORTGEN_REFERENCE") or ROOT.parent / "shared")


@pytest.fixture(scope="session")
def profiles() -> Path:
    """The folder of optional third-party profiles; skips where the machine has none."""
    folder = REFERENCE / "profiles"
    if not folder.is_dir():
        pytest.skip("optional third-party profiles are absent; REPORTGEN_REFERENCE names the folder that holds them")
    return folder
