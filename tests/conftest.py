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


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where REPORTGEN_NO_SKIP is set, as in CI, a skipped test fails the run; only a missing torch_xla may skip."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not os.environ.get("REPORTGEN_NO_SKIP") or reporter is None:
        return
    reasons = [str(report.longrepr) for report in reporter.stats.get("skipped", [])]
    if forbidden := [reason for reason in reasons if "torch_xla" not in reason]:
        reporter.write_line(f"{len(forbidden)} tests were skipped and must not be: {forbidden[:5]}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
