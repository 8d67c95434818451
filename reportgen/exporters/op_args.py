"""What an execution of an op adds to its slice: its step, how much of the peaks it used; and rates over time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from reportgen.exporters.args import ArgsOf
from reportgen.exporters.json_text import quoted
from reportgen.exporters.tracks import Counter
from reportgen.profile.devices import Peak, Peaks
from reportgen.profile.ops import OpInfo
from reportgen.units import PS_PER_SECOND

Times = NDArray[np.int64]
Rows = NDArray[np.int64]
Amounts = NDArray[np.float64]

_PER_MILLE = 1000
# A utilisation beyond twice the peak is a fault of the cost model; the text then says "> 200 %".
_MOST = 2 * _PER_MILLE
_RATE_BINS = 2000
_ASYNC_ENDS = ("-start", "-done")


def flops_of(infos: Sequence[OpInfo]) -> Amounts:
    """Return FLOPs of one execution by op; NaN where there is no cost model."""
    return _amounts(infos, lambda info: info.flops)


def hbm_bytes_of(infos: Sequence[OpInfo]) -> Amounts:
    """Return bytes read and written in HBM of one execution by op; NaN where there is no cost model."""
    return _amounts(infos, lambda info: None if info.bytes is None else info.hbm_read + info.hbm_write)


def _amounts(infos: Sequence[OpInfo], of: Callable[[OpInfo], float | None]) -> Amounts:
    """Return an amount by op; NaN also for the two ends of an asynchronous op, whose work is not done in their time."""
    found = [None if info.category.endswith(_ASYNC_ENDS) else of(info) for info in infos]
    return np.array([np.nan if amount is None else amount for amount in found], dtype=float)


class OpArgs:
    """Arguments of executions: their own statistics, step and utilisations."""

    def __init__(
        self,
        own: ArgsOf | None,
        infos: Sequence[OpInfo],
        ops: Rows,
        durations: Times,
        steps: Sequence[str],
        step_of: Rows,
        peaks: Peaks,
    ) -> None:
        """Keep what belongs to the rows of a track.

        Args:
            own: Arguments from the events' statistics.
            infos: What is known of each op.
            ops: Index in `infos` of each row, -1 for none.
            durations: Picoseconds of each row.
            steps: Labels of the steps.
            step_of: Index of the step of each row, -1 for none.
            peaks: What the core can do.

        """
        self._own = own
        self._ops, self._durations, self._step_of = ops, durations, step_of
        self._steps = [*(f',"step":{quoted(label)}' for label in steps), ""]
        self._flops = _shares(flops_of(infos), peaks.flops)
        self._bytes = _shares(hbm_bytes_of(infos), peaks.hbm_bandwidth)

    def __call__(self, rows: Rows) -> list[Iterable[str]]:
        """Return the arguments of rows."""
        ops, durations = self._ops[rows], self._durations[rows]
        return [
            *(self._own(rows) if self._own else []),
            map(self._steps.__getitem__, self._step_of[rows].tolist()),
            map(_FLOPS_TEXTS.__getitem__, _codes(self._flops[ops], durations)),
            map(_HBM_TEXTS.__getitem__, _codes(self._bytes[ops], durations)),
        ]


def _shares(amounts: Amounts, peak: Peak) -> Amounts:
    """Return each op's amount as picoseconds at the peak; NaN where one of them is not known. Ends in NaN, for -1."""
    rate = peak.value if peak.value else np.nan
    return np.append(amounts / rate * PS_PER_SECOND, np.nan)


def _codes(least: Amounts, durations: Times) -> list[int]:
    """Return utilisation in thousandths, rounded; -1 where there is none to tell."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = least / durations
    known = np.isfinite(share) & (least > 0)
    codes = np.where(known, np.minimum(np.where(known, share, 0) * _PER_MILLE + 0.5, _MOST + 1), -1)
    return codes.astype(np.int64).tolist()  # type: ignore[no-any-return]


def _texts(name: str) -> list[str]:
    """Return the text of each code: tenths of a percent below 10 %, else whole ones; the last, at -1, is for none."""
    values = [f"{code / 10:.1f} %" if code < _PER_MILLE // 10 else f"{code / 10:.0f} %" for code in range(_MOST + 1)]
    return [*(f',"{name}":"{value}"' for value in ["< 0.1 %", *values[1:], "> 200 %"]), ""]


_FLOPS_TEXTS = _texts("flops_utilisation")
_HBM_TEXTS = _texts("hbm_utilisation")


def rate_counter(title: str, unit: str, starts: Times, durations: Times, amounts: Amounts) -> Counter | None:
    """Return a rate over time from amounts spread evenly over each execution; None where no amount is known.

    Args:
        title: What is counted.
        unit: Amount per second.
        starts: Picoseconds of executions that do not hold each other, in order.
        durations: Picoseconds.
        amounts: Of each execution; NaN where not known.

    """
    known = np.isfinite(amounts)
    if not known.any():
        return None
    starts, ends, amounts = starts[known], (starts + durations)[known], amounts[known]
    bins = min(_RATE_BINS, len(starts))
    edges = np.linspace(int(starts.min()), max(int(ends.max()), int(starts.min()) + bins), bins + 1).astype(np.int64)
    knots = np.maximum.accumulate(np.stack([starts, ends], axis=1).reshape(-1))
    sums = np.cumsum(amounts)
    reached = np.stack([sums - amounts, sums], axis=1).reshape(-1)
    done = np.interp(edges, knots, reached, left=0.0)
    rates = np.append(np.diff(done) / np.diff(edges) * PS_PER_SECOND, 0.0)
    changed = np.concatenate([[True], rates[1:] != rates[:-1]])
    return Counter(title, unit, edges[changed], rates[changed])
