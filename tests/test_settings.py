"""Settings refuse what would end in a fault or in figures without a meaning."""

from __future__ import annotations

from pathlib import Path

import pytest

from reportgen.cli.common import make_settings
from reportgen.errors import UsageError
from reportgen.settings import Settings


@pytest.mark.parametrize("value", [-5.0, 0.0, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["peak_flops", "hbm_bandwidth", "hbm_capacity"])
def test_a_peak_that_is_no_positive_number_is_refused(name: str, value: float) -> None:
    with pytest.raises(UsageError, match=name):
        make_settings(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "line",
    [
        'peak_flops = "fast"', "peak_flops = true", 'jobs = "two"', "jobs = -1", "jobs = 1.5", 'strict = "yes"',
        'only = "input-bound"', "skip = [1]", "run = 5", "thresholds = 3", "[thresholds.a]\nb = nan",
        "[thresholds]\na = true",
    ],
)  # fmt: skip
def test_a_setting_of_the_wrong_kind_in_a_file_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(line, encoding="utf-8")
    with pytest.raises(UsageError):
        Settings().with_file(path)


def test_a_threshold_that_is_no_finite_number_is_refused() -> None:
    with pytest.raises(UsageError, match=r"RULE[.]THRESHOLD=NUMBER"):
        Settings().with_thresholds(["input-bound.moderate=nan"])


def test_a_file_of_settings_holds_under_the_options(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text('peak_flops = 1e14\njobs = 2\nonly = ["input-bound"]\n[thresholds.a]\nb = 3\n', encoding="utf-8")
    settings = make_settings(file=path, peak_flops=2e14, thresholds=["a.c=4"])
    assert (settings.peak_flops, settings.jobs, settings.only) == (2e14, 2, ("input-bound",))
    assert settings.thresholds == {"a.b": 3.0, "a.c": 4.0}
