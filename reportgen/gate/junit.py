"""A gate's result as JUnit XML, which every CI system shows as tests: one a limit."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from reportgen.charts.text import visible
from reportgen.gate.check import GateResult, Outcome
from reportgen.gate.texts import sentence


def as_junit(result: GateResult) -> bytes:
    """Return an XML document: a suite a kind of limit; a limit that only warned has passed and says so."""
    root = ET.Element("testsuites", {"name": "reportgen", **_counts(result.outcomes)})
    for kind in ("metric", "finding"):
        outcomes = [one for one in result.outcomes if one.kind == kind]
        suite = ET.SubElement(root, "testsuite", {"name": f"reportgen.{kind}s", **_counts(outcomes)})
        for one in outcomes:
            _case(suite, one)
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _counts(outcomes: Sequence[Outcome]) -> dict[str, str]:
    failed = sum(one.status == "failed" for one in outcomes)
    return {"tests": str(len(outcomes)), "failures": str(failed), "errors": "0", "time": "0"}


def _case(suite: ET.Element, outcome: Outcome) -> None:
    name = visible(f"{outcome.id}: {outcome.limit}")
    case = ET.SubElement(suite, "testcase", name=name, classname=f"reportgen.{outcome.kind}s", time="0")
    text = visible(sentence(outcome))
    if outcome.status == "failed":
        ET.SubElement(case, "failure", message=text, type="budget").text = text
    elif outcome.status == "warned":
        ET.SubElement(case, "system-out").text = f"warning: {text}"
