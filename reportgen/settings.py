"""Settings of a run: what the user may override, from the command line or a TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from reportgen.errors import UsageError


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
                found[name.strip()] = float(value)
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
        elif isinstance(value, int | float):
            found[f"{prefix}{key}"] = float(value)
        else:
            raise UsageError(f"threshold {prefix}{key}: expected a number, found {value!r}.")
    return found
