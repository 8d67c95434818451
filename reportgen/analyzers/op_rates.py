"""Rates of ops: FLOP/s, bandwidths, utilisations, operational intensity, what bounds them, wasted time.

Formulas as in XProf's op metrics and roofline: rates are over total (not self) time; an op is bound by the resource
that it uses most; what it wastes is its share of time that its better utilisation leaves unused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reportgen.profile.devices import Peak, Peaks
from reportgen.units import PS_PER_SECOND

Column = NDArray[np.float64]

BOUNDS = ("compute", "HBM", "on-chip read", "on-chip write")
UNKNOWN_BOUND = "unknown"


def with_rates(table: pd.DataFrame, peaks: Peaks | None, total_ps: int) -> pd.DataFrame:
    """Return an op table with columns added.

    Args:
        table: Columns of `OP_COLUMNS`, sums over cores.
        peaks: Peaks of one core; None on CPU, where utilisations are unknown.
        total_ps: Total time of all cores in picoseconds, idle included.

    Returns:
        The table with: time_share and self_share (of the total), flop_rate (FLOP/s), hbm_rate, onchip_read_rate,
        onchip_write_rate (bytes/s), flops_utilization, hbm_utilization, onchip_read_utilization,
        onchip_write_utilization, intensity and hbm_intensity (FLOP/byte), bound_by, efficiency (the best of the
        utilisations), wasted_share (of the total). NaN where there is no cost model or no peak; utilisations also
        for asynchronous starts, whose transfer runs on beside other ops.

    """
    found = table.copy()
    time = _floats(table["time_ps"]) / PS_PER_SECOND
    total = total_ps / PS_PER_SECOND
    found["time_share"] = _over(time, total)
    found["self_share"] = _over(_floats(table["self_ps"]) / PS_PER_SECOND, total)
    flops = _floats(table["flops"])
    known = ~np.isnan(flops)
    hbm = _floats(table["hbm_read"]) + _floats(table["hbm_write"])
    amounts = {
        "flop_rate": flops,
        "hbm_rate": np.where(known, hbm, np.nan),
        "onchip_read_rate": np.where(known, _floats(table["onchip_read"]), np.nan),
        "onchip_write_rate": np.where(known, _floats(table["onchip_write"]), np.nan),
    }
    for name, amount in amounts.items():
        found[name] = _over(amount, time)
    tops: tuple[Peak | None, ...] = (None,) * 4
    if peaks is not None:
        tops = (peaks.flops, peaks.hbm_bandwidth, peaks.onchip_read, peaks.onchip_write)
    names = ("flops_utilization", "hbm_utilization", "onchip_read_utilization", "onchip_write_utilization")
    for name, rate, peak in zip(names, amounts, tops, strict=True):
        found[name] = _over(_floats(found[rate]), peak.value if peak and peak.value else np.nan)
    if "category" in table:  # sums over programs and scopes have none
        found.loc[table["category"].astype(str).str.endswith("-start"), list(names)] = np.nan
    found["intensity"] = _over(flops, _floats(table["bytes"]))
    found["hbm_intensity"] = _over(flops, amounts["hbm_rate"])
    used = np.nan_to_num(np.stack([_floats(found[name]) for name in names]))
    best = used.max(axis=0)
    found["bound_by"] = np.where(best > 0, np.array(BOUNDS)[used.argmax(axis=0)], UNKNOWN_BOUND)
    has_peak = peaks is not None and peaks.flops.value is not None
    found["efficiency"] = np.where(known & has_peak, best, np.nan)
    top = np.minimum(1.0, np.maximum(used[0], used[1]))
    found["wasted_share"] = np.where(known & has_peak, found["self_share"] * (1 - top), np.nan)
    return found


def _floats(column: pd.Series[Any]) -> Column:
    return np.asarray(column.to_numpy(dtype=float, na_value=np.nan), dtype=np.float64)


def _over(amount: Column, base: Column | float) -> Column:
    """Divide; NaN where the base is 0 or unknown."""
    divisor = np.broadcast_to(np.asarray(base, dtype=float), amount.shape)
    found: Column = np.full(amount.shape, np.nan)
    np.divide(amount, divisor, out=found, where=divisor > 0)
    return found
