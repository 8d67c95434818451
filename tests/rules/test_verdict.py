"""The one sentence at the top of a report."""

from __future__ import annotations

import pytest

from reportgen.assembly.verdict import verdict_of
from tests.planted.cases import outcome


def verdict(name: str, kind: str) -> str:
    found = outcome(name, kind)  # type: ignore[arg-type]
    return verdict_of(found.analysis, found.verdicts.findings, found.verdicts.checks)


def test_it_names_the_main_limit_and_what_its_fix_brings() -> None:
    text = verdict("precision-dot-highest", "faulty")
    assert text.startswith("Extra passes for precision take 80.5 % of device time: 1 at highest precision.")
    assert "Fixing it would save about 3.50 ms a step, 80.5 % of the step (modelled)." in text
    assert text.endswith("A step takes 4.34 ms, FLOPS utilisation is 16.1 %, the device idles < 0.01 %.")


def test_memory_is_freed_in_bytes() -> None:
    assert "Fixing it would free about 192 MiB (modelled)." in verdict("donation-adam", "faulty")


def test_without_an_honest_number_none_is_given() -> None:
    assert "Fixing it" not in verdict("memory-bound-dot-batch", "faulty")


def test_a_healthy_program_that_computes_is_told_so() -> None:
    text = verdict("precision-dot-highest", "repaired")
    assert text.startswith("Nothing found that costs much: ")
    assert "Compute is the limit, as it should be." in text


@pytest.mark.parametrize("name", ["donation-adam", "garbage"])
def test_a_healthy_program_that_does_not_is_not(name: str) -> None:
    text = verdict(name, "repaired")
    assert text.startswith("Nothing found that costs much: ")
    assert "Compute is the limit" not in text
