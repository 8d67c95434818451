"""Addresses, durations, ranges of steps, levels: what is taken and what is refused."""

from __future__ import annotations

import pytest

from reportgen.capture.addresses import file_stem, parse_addresses
from reportgen.capture.options import CaptureOptions, TraceLevels, parse_duration, parse_steps
from reportgen.errors import UsageError


def test_addresses_come_apart_at_commas_and_lose_the_scheme() -> None:
    assert parse_addresses(["a:1,b.example:65535", "grpc://c-1:9012,d:2", "[::1]:8"]) == (
        "a:1",
        "b.example:65535",
        "c-1:9012",
        "d:2",
        "[::1]:8",
    )


@pytest.mark.parametrize("text", ["localhost", "a:0", "a:65536", ":9012", "http://a:1", "a b:1", "a:1/x", "::1:8"])
def test_malformed_addresses_are_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match="is no address"):
        parse_addresses([text])


def test_no_address_is_refused() -> None:
    with pytest.raises(UsageError, match="No server"):
        parse_addresses(["", ","])


def test_two_servers_of_one_file_name_are_refused() -> None:
    with pytest.raises(UsageError, match="a_1: 2 servers"):
        parse_addresses(["a:1", "b:1", "a:1"])


def test_file_names_hold_neither_colons_nor_slashes() -> None:
    assert file_stem("10.0.0.1:9012") == "10.0.0.1_9012"
    assert file_stem("[fe80::1%eth0]:8") == "_fe80__1_eth0__8"


@pytest.mark.parametrize(
    ("text", "seconds"), [("2s", 2), ("500ms", 0.5), ("1.5m", 90), ("3", 3), (".5", 0.5), ("1 h", 3600), ("2min", 120)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "-1s", "1x", "1e3", "1s2s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(UsageError, match="no duration"):
        parse_duration(text)


def test_ranges_of_steps() -> None:
    assert parse_steps("5:15") == (5, 15)


@pytest.mark.parametrize("text", ["5", "5:5", "6:5", ":5", "5:", "-1:5", "1:2:3", "a:b"])
def test_what_is_no_range_of_steps(text: str) -> None:
    with pytest.raises(UsageError, match="no range of steps"):
        parse_steps(text)


@pytest.mark.parametrize("levels", [(4, 1, 0), (-1, 1, 0), (2, 2, 0), (2, 1, 2)])
def test_levels_outside_their_range(levels: tuple[int, int, int]) -> None:
    with pytest.raises(UsageError, match="level is"):
        TraceLevels(*levels)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"duration_s": 0.0}, "The duration is 0 s"),
        ({"duration_s": 1e6}, "The duration is"),
        ({"delay_s": -1.0}, "The delay is -1 s"),
        ({"connect_timeout_s": 0.0}, "The connect timeout is 0 s"),
        ({"until_steps": 0}, "number of steps"),
    ],
)
def test_options_outside_their_range(changes: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        CaptureOptions(**changes)  # type: ignore[arg-type]
