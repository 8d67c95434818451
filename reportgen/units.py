"""Numbers to text, in one place: three significant digits, unit always, thousands grouped.

Times are int64 picoseconds inside reportgen and seconds in reports; memory is bytes and shows in binary
units; rates show in SI units.
"""

from __future__ import annotations

import math

PS_PER_SECOND = 10**12
NOT_CAPTURED = "not captured"

_TIME_STEPS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"), (1e-12, "ps"))
_SI_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_BINARY_STEPS = ((2**50, "PiB"), (2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def significant(value: float, digits: int = 3) -> str:
    """Format with a number of significant digits, thousands grouped, never in exponent form: 1234.5 gives 1,230."""
    if not math.isfinite(value):
        return "not finite"
    if value == 0:
        return "0"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, decimals)
    if rounded == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:,.{decimals}f}"


def seconds(value: float) -> str:
    """Format a duration given in seconds: 0.0123 gives 12.3 ms."""
    for step, unit in _TIME_STEPS:
        if abs(value) >= step * 0.9995:
            return f"{significant(value / step)} {unit}"
    return "0 s" if value == 0 else f"{significant(value / 1e-12)} ps"


def picoseconds(value: float) -> str:
    """Format a duration given in picoseconds."""
    return seconds(value / PS_PER_SECOND)


def binary(value: float) -> str:
    """Format an amount of memory given in bytes: 1610612736 gives 1.50 GiB."""
    for step, unit in _BINARY_STEPS:
        if abs(value) >= step:
            return f"{significant(value / step)} {unit}"
    return f"{count(value)} B"


def si(value: float, unit: str) -> str:
    """Format a rate or a count with an SI prefix: 1.97e14 with "FLOP/s" gives 197 TFLOP/s."""
    for step, prefix in _SI_PREFIXES:
        if abs(value) >= step * 0.9995:
            return f"{significant(value / step)} {prefix}{unit}"
    return f"{significant(value)} {unit}"


def percent(fraction: float) -> str:
    """Format a fraction as a percentage: 0.1234 gives 12.3 %."""
    if 0 < abs(fraction) < 5e-5:
        return "< 0.01 %" if fraction > 0 else "> -0.01 %"
    return f"{significant(fraction * 100)} %"


def count(value: float) -> str:
    """Format a count with thousands grouped; whole numbers stay exact."""
    return f"{int(value):,}" if float(value).is_integer() else significant(value)


def quantity(value: float | None, unit: str) -> str:
    """Format a value by its unit as the document names it; None is "not captured".

    Args:
        value: The number, or None.
        unit: "seconds", "bytes", "fraction", "count", "flops", "flops/s", "bytes/s", "flops/byte", "tflops"...

    """
    if value is None:
        return NOT_CAPTURED
    formatters = {
        "seconds": seconds,
        "picoseconds": picoseconds,
        "bytes": binary,
        "fraction": percent,
        "count": count,
    }
    if unit in formatters:
        return formatters[unit](value)
    rates = {"flops": "FLOP", "flops/s": "FLOP/s", "bytes/s": "B/s", "flops/byte": "FLOP/B"}
    if unit.startswith("of "):  # a share of what the unit names
        return f"{percent(value)} {unit}"
    if unit == "":
        return significant(value)
    return si(value, rates[unit]) if unit in rates else f"{significant(value)} {unit}"
