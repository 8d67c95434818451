"""Settings of a run: what the user may override, from the command line or a TOML file."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from reportgen.errors import UsageError

_PEAKS = ("peak_flops", "hbm_bandwidth", "hbm_capacity")
_LISTS = ("hosts", "only", "skip")


@dataclass(frozen=True)
class Settings:
    """What a run may override.

    Attributes:
        peak_flops: FLOP/s of one device (a TPU chip or a GPU), in place of the profile's or the catalogue's value.
        hbm_bandwidth: Bytes per second of one device.
        hbm_capacity: Bytes of one device.
        hosts: Names of the hosts to read; empty for all.
        run: Name of the run to read; None for the newest.
        jobs: Worker processes over hosts; 0 for as many as there are cores.
        strict: Whether an analysis that fails ends the run.
        only, skip: Ids of rules to run, or to leave out.
        thresholds: Overridden thresholds, by "rule.threshold".

    Raises:
        UsageError: A value is of the wrong kind, or a peak is no positive number.

    """

    peak_flops: float | None = None
    hbm_bandwidth: float | None = None
    hbm_capacity: float | None = None
    hosts: tuple[str, ...] = ()
    run: str | None = None
    jobs: int = 0
    strict: bool = False
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse values that would end in a fault, or in figures without a meaning."""
        for name in _PEAKS:
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and math.isfinite(value) and value > 0):
                raise UsageError(f"setting {name}: expected a number above 0, found {value!r}.")
        for name in _LISTS:
            value = getattr(self, name)
            if not isinstance(value, tuple) or not all(isinstance(entry, str) for entry in value):
                raise UsageError(f"setting {name}: expected a list of names, found {value!r}.")
        if not _is_number(self.jobs) or self.jobs < 0 or self.jobs != int(self.jobs):
            raise UsageError(f"setting jobs: expected a whole number from 0 up, found {self.jobs!r}.")
        if not isinstance(self.strict, bool):
            raise UsageError(f"setting strict: expected true or false, found {self.strict!r}.")
        if not (self.run is None or isinstance(self.run, str)):
            raise UsageError(f"setting run: expected a name, found {self.run!r}.")

    def with_file(self, path: Path) -> Settings:
        """Return the settings with those of a TOML file; its table `[thresholds]` may be nested by rule.

        Raises:
            UsageError: The file is no TOML, or names an unknown setting.

        """
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{path}: expected a TOML file of settings, found none that can be read ({error})."
            ) from None
        known = {entry.name for entry in fields(self)}
        if unknown := sorted(set(content) - known):
            raise UsageError(f"{path}: unknown setting {unknown[0]!r}.", f"Known settings: {', '.join(sorted(known))}.")
        content = {key: tuple(value) if isinstance(value, list) else value for key, value in content.items()}
        if "thresholds" in content:
            if not isinstance(content["thresholds"], Mapping):
                raise UsageError(f"{path}: expected a table [thresholds], found {content['thresholds']!r}.")
            content["thresholds"] = {**self.thresholds, **_flat(content["thresholds"])}
        return replace(self, **content)

    def with_thresholds(self, assignments: Sequence[str]) -> Settings:
        """Return the settings with thresholds given as "rule.threshold=value".

        Raises:
            UsageError: An assignment is not of that form.

        """
        found = dict(self.thresholds)
        for assignment in assignments:
            name, _, value = assignment.partition("=")
            try:
                found[name.strip()] = _finite(value)
            except ValueError:
                raise UsageError(
                    f"--set {assignment}: expected RULE.THRESHOLD=NUMBER.", "`reportgen rules` lists the thresholds."
                ) from None
        return replace(self, thresholds=found)


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    found: dict[str, float] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{key}.")
        elif _is_number(value) and math.isfinite(value):
            found[f"{prefix}{key}"] = float(value)
        else:
            raise UsageError(f"threshold {prefix}{key}: expected a number, found {value!r}.")
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value
