"""What the rules about memory share."""

from __future__ import annotations

from reportgen.analyzers.program_memory import ProgramMemory, ProgramMemoryFacts
from reportgen.document import Action
from reportgen.memory.fixes.model import Fix
from reportgen.rules.base import Evidences, NotApplicable

REMEDY = (
    "Memory stands in the HLO modules: capture with HLO protos on (the default of JAX and TensorFlow), or give the "
    "compiler's dump: XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_proto'"
)


def main_program(evidence: Evidences) -> ProgramMemory | NotApplicable:
    """Return the program with the most device time; memory of the host's CPU is not scarce."""
    facts: ProgramMemoryFacts = evidence.facts("program-memory")
    if facts.device == "CPU":
        return NotApplicable("The program ran on the host's CPU, in its ordinary memory.")
    return facts.programs[0]


def largest_program(evidence: Evidences) -> ProgramMemory | NotApplicable:
    """Return the program that needs most memory of those that matter."""
    found = main_program(evidence)
    if isinstance(found, NotApplicable):
        return found
    programs: tuple[ProgramMemory, ...] = evidence.facts("program-memory").programs
    return max(programs, key=lambda program: program.allocated)


def actions_of(fix: Fix) -> tuple[Action, ...]:
    """Return what a fix asks to do."""
    return tuple(Action(text=step.text, framework=step.framework, code=step.code) for step in fix.steps)
