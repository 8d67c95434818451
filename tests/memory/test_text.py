"""The text that XLA dumps by default gives the same memory as the HloProto."""

from __future__ import annotations

from collections import Counter

import pytest

from reportgen.errors import InputError
from reportgen.memory.analysis import analyze_memory
from reportgen.memory.assignment_text import parse_buffer_assignment
from reportgen.memory.model import ModuleMemory, SpaceMemory
from reportgen.memory.oom.sizes import parse_size
from reportgen.memory.usage_text import memory_from_usage_report, parse_usage_report
from reportgen.profile.hlo import HloModule
from reportgen.profile.hlo_text import parse_hlo_text

from .conftest import Compiled, compiled_program


def from_text(compiled: Compiled, *, module: bool = True, ranges: bool = True) -> ModuleMemory:
    parsed = parse_hlo_text(compiled.text("optimizations.txt")) if module else None
    range_text = compiled.text("live-range.txt") if ranges else None
    return analyze_memory(parse_buffer_assignment(compiled.text("buffer-assignment.txt"), parsed, range_text))


def test_every_allocation_and_value_is_the_same(compiled: Compiled) -> None:
    exact, text = compiled.memory, from_text(compiled)
    assert text.spaces.keys() == exact.spaces.keys()
    for color, space in exact.spaces.items():
        assert text.spaces[color].allocated_bytes == space.allocated_bytes
        assert text.spaces[color].by_type == space.by_type
        assert text.spaces[color].output_bytes == space.output_bytes
        assert text.spaces[color].aliased_bytes == space.aliased_bytes
        assert text.spaces[color].allocations == space.allocations
        assert [facts(b) for b in text.spaces[color].buffers] == [facts(b) for b in space.buffers]


def test_the_peak_of_main_memory_is_the_same(compiled: Compiled) -> None:
    exact, text = compiled.memory.main, from_text(compiled).main
    assert exact is not None
    assert text is not None
    assert text.live_peak_bytes == exact.live_peak_bytes
    assert text.unpadded_peak_bytes == exact.unpadded_peak_bytes


def test_lifetimes_are_worked_out_where_no_file_gives_them(compiled: Compiled) -> None:
    exact, text = compiled.memory.main, from_text(compiled, ranges=False).main
    assert exact is not None
    assert text is not None
    assert text.live_peak_bytes == pytest.approx(exact.live_peak_bytes, rel=1e-3)


def test_the_assignment_alone_gives_totals_and_shapes(compiled: Compiled) -> None:
    exact, text = compiled.memory, from_text(compiled, module=False)
    for color, space in exact.spaces.items():
        assert text.spaces[color].allocated_bytes == space.allocated_bytes
        assert text.spaces[color].by_type == space.by_type
        pairs = [(b.name, b.size, b.shape) for b in space.buffers]
        assert [(b.name, b.size, b.shape) for b in text.spaces[color].buffers] == pairs


def test_rows_of_the_usage_report_are_those_of_the_assignment(compiled: Compiled) -> None:
    """At the precision that XLA prints; a row is a place in an allocation, and some fifty are printed of each."""
    exact = compiled.memory
    printed = parse_usage_report(compiled.text("usage-report.txt"))
    assert sum(len(rows) for space in printed for rows in space.allocations) >= 3
    for space in printed:
        if space.total == 0:
            continue
        told = Counter((row.size, row.offset, row.values) for rows in space.allocations for row in rows)
        expected = places(exact.spaces[space.color])
        assert told <= expected
        assert told == expected or told.total() >= PRINTED_ROWS


PRINTED_ROWS = 50


def places(space: SpaceMemory) -> Counter[tuple[int, int, int]]:
    found: dict[tuple[int, int], list[int]] = {}
    for buffer in space.buffers:
        found.setdefault((buffer.allocation, buffer.offset), []).append(buffer.size)
    rows = ((parse_size(printed_size(max(sizes))) or 0, offset, len(sizes)) for (_, offset), sizes in found.items())
    return Counter(rows)


def printed_size(size: int) -> str:
    """The size as XLA prints it: bytes below 1 KiB, one digit of KiB, two digits above."""
    for power, unit, digits in ((30, "GiB", 2), (20, "MiB", 2), (10, "KiB", 1)):
        if size >= 1 << power:
            return f"{size / (1 << power):.{digits}f}{unit}"
    return f"{size}B"


def test_the_usage_report_alone_gives_totals(compiled: Compiled) -> None:
    exact = compiled.memory
    memory = memory_from_usage_report(compiled.text("usage-report.txt"), "jit_step")
    assert {color: s.allocated_bytes for color, s in memory.spaces.items()} == {
        color: s.allocated_bytes for color, s in exact.spaces.items()
    }
    assert memory.notes
    assert exact.main is not None
    assert memory.main is not None
    largest = max(buffer.size for buffer in exact.main.buffers)
    assert max(buffer.size for buffer in memory.main.buffers) == pytest.approx(largest, rel=5e-3)


def test_text_that_is_no_report_is_refused() -> None:
    with pytest.raises(InputError, match="Memory Space"):
        parse_usage_report("nothing of the kind")


def test_text_that_is_no_assignment_is_refused() -> None:
    with pytest.raises(InputError, match="allocation 0"):
        parse_buffer_assignment("nothing of the kind", compiled_program("narrow").module)


def test_a_graph_that_runs_in_circles_ends() -> None:
    """Two computations that call each other, as a damaged dump may hold, are followed to a depth only."""
    text = """HloModule loop

%a (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %call.1 = f32[8]{0} call(%p), to_apply=%b
}

%b (q: f32[8]) -> f32[8] {
  %q = f32[8]{0} parameter(0)
  ROOT %call.2 = f32[8]{0} call(%q), to_apply=%a
}

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  ROOT %call.3 = f32[8]{0} call(%x), to_apply=%a
}
"""
    assignment = "allocation 0: size 32, preallocated-temp:\n value: <1 call.3 @0> (size=32,offset=0): f32[8]{0}\n"
    memory = analyze_memory(parse_buffer_assignment(assignment, parse_hlo_text(text)))
    assert memory.main is not None
    assert memory.main.live_peak_bytes == 32


def facts(buffer: object) -> tuple[object, ...]:
    names = (
        "id name instruction category allocation_type size unpadded_size shape op_name source stack allocation offset"
    )
    return tuple(getattr(buffer, name) for name in names.split())


def test_hlo_text_is_read_whole(compiled: Compiled) -> None:
    """Every instruction has the opcode, shape, operands, calls and place in the source that the proto has."""
    text = parse_hlo_text(compiled.text("optimizations.txt"))
    assert len(text.by_name) == len(compiled.module.by_name) > 20
    assert [seen(i, text) for i in text] == [seen(text_name, compiled.module) for text_name in in_order(text, compiled)]


def in_order(text: HloModule, compiled: Compiled) -> list[object]:
    return [compiled.module.by_name[instruction.name] for instruction in text]


def seen(instruction: object, module: HloModule) -> tuple[object, ...]:
    found = module.by_name[instruction.name]  # type: ignore[attr-defined]
    operands = [operand.name for operand in found.operands]
    return found.name, found.opcode, str(found.shape), operands, found.called, found.op_name, found.stack
