"""The memory of a module against XLA's own account and against XProf's memory viewer."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reportgen.errors import InputError
from reportgen.memory.analysis import analyze_memory
from reportgen.memory.model import Buffer, SpaceMemory, by_padding, by_size, split_small
from reportgen.profile.hlo import HloModule

from .conftest import Compiled, compiled_program, program_names, reference_modules

MIB = 2**20
MODULES = ("jit__psum", "jit_broadcast_in_dim", "jit_convert_element_type", "jit_f")
HEAP_ALIGNMENT = 16384  # the TPU compiler rounds its heap up to this in memory_analysis()


def test_enough_kinds_of_program_are_held_against_xla() -> None:
    wanted = {"dense", "dense_donated", "conv", "attention", "scan_remat", "sharded", "oom"}
    assert wanted <= set(program_names())


def test_totals_are_those_of_the_usage_report(compiled: Compiled) -> None:
    memory = compiled.memory
    report = compiled.text("usage-report.txt")
    totals = {int(c): int(t) for c, t in re.findall(r"\(color=(\d+)\)\nTotal bytes: (\d+)", report)}
    assert len(totals) >= 2
    totals = {color: total for color, total in totals.items() if total}
    assert {color: space.allocated_bytes for color, space in memory.spaces.items()} == totals


def test_figures_are_those_of_memory_analysis(compiled: Compiled) -> None:
    space = main_space(compiled)
    if "error" in compiled.facts:
        assert compiled.facts["error"].startswith("RESOURCE_EXHAUSTED: E1000")
        return
    expected = compiled.facts["memory_analysis"]
    heap = -(-space.temporary_bytes // HEAP_ALIGNMENT) * HEAP_ALIGNMENT if space.curve is not None else 0
    assert space.argument_bytes == expected["argument_size_in_bytes"]
    assert space.aliased_bytes == expected["alias_size_in_bytes"]
    assert space.output_bytes == expected["output_size_in_bytes"]
    assert heap == expected["temp_size_in_bytes"]


def test_live_peak_is_the_peak_of_memory_analysis(compiled: Compiled) -> None:
    """Where HBM has no simulation XLA takes another space's, and a failed compile has no figure."""
    space = main_space(compiled)
    if space.curve is None or "error" in compiled.facts:
        return
    assert space.live_peak_bytes == compiled.facts["memory_analysis"]["peak_memory_in_bytes"]


def test_types_and_fragmentation_add_up(compiled: Compiled) -> None:
    for space in compiled.memory.spaces.values():
        assert sum(space.by_type.values()) == space.allocated_bytes
        assert 0 <= space.unpadded_peak_bytes <= space.live_peak_bytes <= space.allocated_bytes
        held = space.fragmentation_bytes + space.padding_bytes + space.unpadded_peak_bytes
        assert held + space.by_type["thread-local"] == space.allocated_bytes


def test_a_failing_program_is_accounted_for() -> None:
    """XLA's message calls all of it "HLO temporaries"."""
    space = main_space(compiled_program("oom"))
    assert space.allocated_bytes == 52_076_959_232
    assert space.by_type["parameter"] == 8 * 2**30 + 8 * 32 * MIB
    assert space.by_type["output"] == 8 * 32 * MIB + 512
    assert space.temporary_bytes == 42_950_148_608
    largest = by_size(space.peak_buffers)[:6]
    assert {buffer.size for buffer in largest} == {8 * 2**30}
    assert {buffer.source for buffer in largest if buffer.allocation_type == "temporary"} == {"programs.py:53"}


def test_the_shape_of_a_buffer_explains_its_padding() -> None:
    """Six columns lie on the eight sublanes of a tile; a quarter of the table's room is lost."""
    space = main_space(compiled_program("narrow"))
    table = by_padding(space.peak_buffers)[0]
    assert (table.name, table.shape) == ("data_0_.1", "f32[1048576,6]{0,1:T(8,128)}")
    assert (table.unpadded_size, table.size) == (6 * 4 * 2**20, 8 * 4 * 2**20)
    assert table.expansion == pytest.approx(8 / 6)


def test_a_buffer_without_metadata_is_traced_to_what_it_holds() -> None:
    space = main_space(compiled_program("scan"))
    stacked = next(buffer for buffer in space.peak_buffers if buffer.name == "custom-call.1")
    assert stacked.op_name.startswith("jit(scan)/jvp()/while/body")
    assert stacked.source.startswith("programs.py:")


def test_memory_goes_through_pickle(compiled: Compiled) -> None:
    memory = compiled.memory
    copy = pickle.loads(pickle.dumps(memory))
    assert copy.main.peak_buffers == memory.main.peak_buffers if memory.main else False


def test_a_module_without_an_assignment_is_refused() -> None:
    module = compiled_program("narrow").module
    bare = HloModule(type(module.proto)(hlo_module=module.proto.hlo_module))
    with pytest.raises(InputError, match="no buffer assignment"):
        analyze_memory(bare)


@pytest.mark.parametrize("color", [0, 1])
@pytest.mark.parametrize("name", MODULES)
def test_xprof_shows_the_same(reference: Path, name: str, color: int) -> None:
    folder = reference / "peer-output/tpu_v6e_4chip"
    peer: dict[str, Any] = json.loads((folder / f"memory_viewer_{name}_ms{color}.json").read_text())
    memory = analyze_memory(reference_modules()[name])
    assert peer["moduleName"] == memory.name
    assert peer["entryComputationName"] == memory.entry
    if color == 1:
        assert peer.get("maxScopedVmemAllocationMib", 0) * MIB == (memory.scoped_vmem_bytes or 0)
        assert peer.get("maxScopedVmemInstructionName", "") == memory.scoped_vmem_instruction
    space = memory.spaces.get(color)
    if space is None:
        assert "peakHeapMib" not in peer
        return
    check_figures(peer, space)
    check_curve(peer, space)
    check_buffers(peer, space)


def check_figures(peer: dict[str, Any], space: SpaceMemory) -> None:
    assert peer["peakHeapMib"] * MIB == space.xprof_peak_bytes
    assert peer["peakUnpaddedHeapMib"] * MIB == space.xprof_unpadded_peak_bytes
    assert peer["totalBufferAllocationMib"] * MIB == space.allocated_bytes - space.by_type["thread-local"]
    assert peer.get("entryComputationParametersMib", 0) * MIB == space.argument_bytes
    assert peer.get("maybeLiveOutMib", 0) * MIB == space.output_bytes
    lasting = sum(size for kind, size in space.by_type.items() if kind not in {"temporary", "thread-local"})
    assert peer["indefiniteBufferAllocationMib"] * MIB == lasting


def check_curve(peer: dict[str, Any], space: SpaceMemory) -> None:
    assert ("heapSizes" in peer) == (space.curve is not None)
    if space.curve is None:
        return
    assert len(peer["heapSizes"]) > 2
    np.testing.assert_array_equal(np.array(peer["heapSizes"]) * MIB, space.curve.live)
    assert peer["hloInstructionNames"] == [*space.curve.instructions, ""]
    assert peer["peakHeapSizePosition"] == space.peak_event
    spans = {int(key): (span.get("start", 0), span["limit"]) for key, span in peer["logicalBufferSpans"].items()}
    assert spans == {b.id: (b.start, b.end) for b in space.buffers if b.start is not None}


def check_buffers(peer: dict[str, Any], space: SpaceMemory) -> None:
    """Large buffers one by one in XProf's order, the small ones as a sum."""
    large, small = split_small(space.peak_buffers)
    rows = [row for row in peer["maxHeap"] if row["logicalBufferId"] >= 0]
    assert [row_of(buffer) for buffer in large] == [peer_row(row) for row in rows]
    lumped = [row["logicalBufferSizeMib"] * MIB for row in peer["maxHeap"] if row["logicalBufferId"] < 0]
    assert sum(lumped) == small.size
    by_size_ids = [row["logicalBufferId"] for row in peer["maxHeapBySize"] if row["logicalBufferId"] >= 0]
    assert by_size_ids == [buffer.id for buffer in by_size(large)]
    assert small.unpadded_size > 0 or small.count == 0


def row_of(buffer: Buffer) -> tuple[object, ...]:
    kind = buffer.allocation_type.capitalize()
    return buffer.id, buffer.name, buffer.size, buffer.unpadded_size, buffer.shape, kind


def peer_row(row: dict[str, Any]) -> tuple[object, ...]:
    size, unpadded = row["logicalBufferSizeMib"] * MIB, row["unpaddedShapeMib"] * MIB
    return row["logicalBufferId"], row["instructionName"], size, unpadded, row["shapeString"], row["groupName"]


def main_space(compiled: Compiled) -> SpaceMemory:
    space = compiled.memory.main
    assert space is not None
    return space
