"""Fixtures of the exporters' tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.exporters import perfetto_ui


@pytest.fixture(scope="module")
def perfetto() -> Iterator[perfetto_ui.PerfettoUI]:
    """One page of the Perfetto UI for all tests of a module."""
    if lacking := perfetto_ui.missing():
        pytest.skip(lacking)
    with perfetto_ui.perfetto_ui() as ui:
        yield ui
