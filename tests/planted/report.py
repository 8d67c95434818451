"""Run the planted-fault suite and print its report; it is kept in docs/planted-faults.md.

python tests/planted/report.py [--check]    # --check only compares with the kept report
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from reportgen.rules import RULES  # noqa: E402
from reportgen.units import binary, seconds  # noqa: E402
from tests.planted.cases import CASES, outcome  # noqa: E402
from tests.planted.savings import Prediction, predictions  # noqa: E402

KEPT = ROOT / "docs" / "planted-faults.md"
INTRODUCTION = """# Planted faults

Every case is a program with one known fault, and its repaired twin. Detected means that the right rule comes first on
the faulty one and says nothing on the twin. A false alarm is a finding above "info" on a twin, of any rule; the table
of cases names them, some of which are true: a twin repairs one fault. Written by `make planted`; the tests in
`tests/planted` hold the same.

What was compiled for TPU was compiled by libtpu with no TPU present; its programs are real, its times are modelled from
the compiler's own cycle estimates (`sample_profiles/modelling.py`). Versions: jax and jaxlib 0.10.2, libtpu 0.0.52,
TensorFlow 2.21.0, Python 3.11. `tests/planted/make_tpu.py` and `make_captures.py` make the fixtures again.
"""


def report() -> str:
    """Return the report as Markdown."""
    parts = [INTRODUCTION, *_rules(), *_savings(), *_cases()]
    return "\n".join(parts).rstrip() + "\n"


def detected(name: str) -> bool:
    """Whether the right rule comes first on the faulty profile and is silent on the twin."""
    rule = CASES[name].rule
    return outcome(name, "faulty").first == rule and outcome(name, "repaired").of(rule) is None


def alarms(name: str) -> list[str]:
    """Return the rules that find something above "info" on a case's twin."""
    findings = outcome(name, "repaired").verdicts.findings
    return [finding.rule for finding in findings if finding.severity != "info"]


def _rules() -> Iterator[str]:
    yield "\n## By rule\n\n| rule | cases | detected | missed | false alarms on twins |\n|---|--:|--:|--:|--:|"
    every = [alarm for name in CASES for alarm in alarms(name)]
    total = [0, 0]
    for rule in RULES:
        names = [name for name, case in CASES.items() if case.rule == rule.id]
        hits = sum(map(detected, names))
        total = [total[0] + len(names), total[1] + hits]
        yield f"| `{rule.id}` | {len(names)} | {hits} | {len(names) - hits} | {every.count(rule.id)} |"
    yield f"| all | {total[0]} | {total[1]} | {total[0] - total[1]} | {len(every)} |"


def _savings() -> Iterator[str]:
    yield "\n## Savings against the twin\n"
    yield "For cases whose twin tells what the repair brings; where it does more work, for the same work.\n"
    yield "| case | low | likely | high | twin | likely against twin | in the range |\n|---|--:|--:|--:|--:|--:|---|"
    found = list(predictions())
    for one in found:
        values = " | ".join(_value(one, value) for value in (one.low, one.likely, one.high, one.actual))
        yield f"| {one.case} | {values} | {one.error:+.0%} | {'yes' if one.inside else 'no'} |"
    near, inside = sum(abs(one.error) <= 0.25 for one in found), sum(one.inside for one in found)
    yield f"\nWithin 25 %: {near} of {len(found)}. In the range: {inside} of {len(found)}."


def _value(one: Prediction, value: float) -> str:
    return binary(value) if one.unit == "bytes" else seconds(value)


def _cases() -> Iterator[str]:
    yield "\n## Cases\n\n| case | rule | made how | detected | step of the faulty one | other findings on the twin |"
    yield "|---|---|---|---|--:|---|"
    for name, case in CASES.items():
        found = "yes" if detected(name) else f"no: {outcome(name, 'faulty').first or 'nothing'} comes first"
        others = ", ".join(f"`{rule}`" for rule in alarms(name))
        # What was captured or modelled has a time that means something; by hand it does not.
        step = seconds(outcome(name, "faulty").step) if case.origin != "written by hand" else ""
        yield f"| {name} | `{case.rule}` | {case.origin} | {found} | {step} | {others} |"


def main() -> int:
    """Print the report and keep it, or compare it."""
    text = report()
    if "--check" in sys.argv[1:]:
        return int(text != KEPT.read_text(encoding="utf-8"))
    KEPT.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    return 0 if all(map(detected, CASES)) else 1


if __name__ == "__main__":
    sys.exit(main())
