# ruff: noqa: E501 (HLO text has one instruction a line)
"""HLO modules: lookup, sources, categories, aliases, short texts, damaged input."""

from __future__ import annotations

import pytest

from reportgen.errors import InputError
from reportgen.profile.hlo import HloModule, category, expression
from reportgen.profile.hlo_roles import dimension_roles, matrix_instruction
from reportgen.profile.hlo_text import parse_hlo_text
from reportgen.wire import hlo_pb2

TEXT = """HloModule jit_step, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias), {1,2}: (1, {0}, must-alias) }

FileNames
1 "a/train.py"
2 "b/\\"odd\\".py"

FunctionNames
1 "main"
2 "layer"

FileLocations
1 {file_name_id=1 function_name_id=1 line=10 end_line=10 column=3 end_column=9}
2 {file_name_id=2 function_name_id=2 line=20 end_line=20 column=5 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

%fused (p0: bf16[10,32,32,5], p1: bf16[3,3,5,64]) -> bf16[10,32,32,64] {
  %p0 = bf16[10,32,32,5]{0,3,2,1:T(8,128)(2,1)} parameter(0)
  %p1 = bf16[3,3,5,64]{3,2,1,0:T(8,128)(2,1)} parameter(1)
  ROOT %convolution.1 = bf16[10,32,32,64]{0,3,2,1:T(8,128)(2,1)} convolution(%p0, %p1), window={size=3x3 pad=1_1x1_1 rhs_dilate=2x1}, dim_labels=b01f_01io->b01f, metadata={op_name="jit(step)/conv" stack_frame_id=2}
}

%body (carry: (s32[], f32[8])) -> (s32[], f32[8]) {
  %carry = (s32[], f32[8]{0}) parameter(0)
  ROOT %tuple.1 = (s32[], f32[8]{0}) tuple(%carry)
}

%condition (c: (s32[], f32[8])) -> pred[] {
  %c = (s32[], f32[8]{0}) parameter(0)
  ROOT %constant.1 = pred[] constant(true)
}

ENTRY %main (images: bf16[10,32,32,5], kernel: bf16[3,3,5,64]) -> bf16[10,32,32,64] {
  %kernel = bf16[3,3,5,64]{3,2,1,0:T(8,128)(2,1)} parameter(1), metadata={op_name="state[\\'k\\']"}
  %images = bf16[10,32,32,5]{0,3,2,1:T(8,128)(2,1)} parameter(0)
  %init = (s32[], f32[8]{0}) custom-call(), custom_call_target="AllocateBuffer", backend_config={"used_scoped_memory_configs":[{"memory_space":"1","offset":"0","size":"4096"},{"memory_space":"2","size":"9"}]}
  %while.1 = (s32[], f32[8]{0}) while(%init), condition=%condition, body=%body
  %a = f32[4,6,8]{2,1,0} iota(), iota_dimension=0
  %b = f32[4,8,2]{2,1,0} iota(), iota_dimension=0
  %dot.1 = f32[4,6,2]{2,1,0} dot(%a, %b), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}, metadata={op_name="jit(step)/dot" source_file="old.py" source_line=7}
  %copy.1 = f32[4,6,2]{1,2,0} copy(%dot.1)
  ROOT %fusion.1 = bf16[10,32,32,64]{0,3,2,1:T(8,128)(2,1)} fusion(%images, %kernel), kind=kOutput, calls=%fused
}
"""


@pytest.fixture(scope="module")
def module() -> HloModule:
    return parse_hlo_text(TEXT)


def test_lookup(module: HloModule) -> None:
    assert (module.name, module.entry.name) == ("jit_step", "main")
    assert [p.name for p in module.entry_parameters] == ["images", "kernel"]
    assert module.entry.root is module.by_name["fusion.1"]
    assert module.by_name["fusion.1"].operands == (module.by_name["images"], module.by_name["kernel"])
    assert [i.name for i in module.fused_instructions(module.by_name["fusion.1"])] == ["convolution.1"]
    assert module.fused_instructions(module.by_name["dot.1"]) == ()
    assert module.by_name["while.1"].called == ("body", "condition")
    assert [u.name for u in module.users[module.by_name["dot.1"].id]] == ["copy.1"]
    assert all(module.by_id[i.id] is i for i in module)


def test_sources(module: HloModule) -> None:
    """The innermost frame comes first; a module of an older compiler has the line in the metadata."""
    stack = module.by_name["convolution.1"].stack
    assert [(str(frame), frame.column, frame.function) for frame in stack] == [
        ('b/"odd".py:20', 5, "layer"),
        ("a/train.py:10", 3, "main"),
    ]
    assert module.by_name["convolution.1"].source == stack[0]
    assert str(module.by_name["dot.1"].source) == "old.py:7"
    assert module.by_name["copy.1"].source is None
    assert module.by_name["kernel"].op_name == "state['k']"


def test_aliases(module: HloModule) -> None:
    assert [tuple(alias) for alias in module.aliases] == [((0,), 0, (), True), ((1, 2), 1, (0,), False)]


def test_scoped_vmem_counts_only_vmem(module: HloModule) -> None:
    assert module.by_name["init"].scoped_vmem_bytes == 4096
    assert module.by_name["dot.1"].scoped_vmem_bytes == 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fusion.1", "output fusion"),
        ("convolution.1", "convolution window-dilated"),
        ("copy.1", "data formatting"),
        ("constant.1", "non-fusion elementwise"),
        ("while.1", "while"),
        ("init", "custom-call"),
    ],
)
def test_categories(module: HloModule, name: str, expected: str) -> None:
    assert category(module.by_name[name]) == expected


def test_short_text(module: HloModule) -> None:
    assert expression(module.by_name["fusion.1"]) == (
        "%fusion.1 = bf16[10,32,32,64]{0,3,2,1:T(8,128)(2,1)} fusion(%images, %kernel), kind=kOutput, calls=%fused"
    )
    assert str(module.by_name["images"]).endswith("parameter(0)")
    assert str(module.by_name["init"]).endswith('custom-call(), custom_call_target="AllocateBuffer"')


def test_roles(module: HloModule) -> None:
    convolution = matrix_instruction(module, module.by_name["fusion.1"])
    assert convolution is module.by_name["convolution.1"]
    assert dimension_roles(convolution) == (
        ("batch", "spatial", "spatial", "feature in"),
        ("spatial", "spatial", "feature in", "feature out"),
        ("batch", "spatial", "spatial", "feature out"),
    )
    assert dimension_roles(module.by_name["dot.1"]) == (
        ("batch", "free", "contracting"),
        ("batch", "contracting", "free"),
        ("batch", "free", "free"),
    )
    assert dimension_roles(module.by_name["copy.1"]) is None
    assert matrix_instruction(module, module.by_name["copy.1"]) is None


def test_a_module_without_its_envelope_is_read(module: HloModule) -> None:
    bare = module.proto.hlo_module.SerializeToString()
    assert HloModule.from_bytes(bare).by_name.keys() == module.by_name.keys()
    assert HloModule.from_bytes(module.proto.SerializeToString()).name == "jit_step"


@pytest.mark.parametrize("data", [b"", b"\xff" * 40, b"not a proto at all", b"\x0a\x04\x0a\x02hi"])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(InputError, match=r"step\.pb holds no HLO module"):
        HloModule.from_bytes(data, "step.pb")


def test_dangling_ids_do_no_harm() -> None:
    proto = hlo_pb2.HloProto()
    computation = proto.hlo_module.computations.add(name="main", id=1, root_id=9)
    computation.instructions.add(name="x", id=1, opcode="add", operand_ids=[77], called_computation_ids=[5])
    computation.instructions[0].metadata.stack_frame_id = 4
    module = HloModule(proto)
    assert module.by_name["x"].operands == ()
    assert module.by_name["x"].called == ()
    assert module.by_name["x"].stack == ()
    with pytest.raises(InputError, match="no entry computation"):
        _ = module.entry


def test_a_stack_that_runs_in_circles_ends() -> None:
    proto = hlo_pb2.HloProto()
    index = proto.hlo_module.stack_frame_index
    index.file_names.append("f.py")
    index.file_locations.add(file_name_id=1, line=3)
    index.stack_frames.add(file_location_id=1, parent_frame_id=1)
    assert len(HloModule(proto).stack(1)) == 64


def test_text_that_is_cut_off_is_refused() -> None:
    with pytest.raises(InputError, match="HloModule"):
        parse_hlo_text("%x = f32[] add(%a, %b)")
    with pytest.raises(InputError, match="ENTRY"):
        parse_hlo_text(TEXT[: TEXT.index("ENTRY")])
    with pytest.raises(InputError, match=r"Line 3 after the header of a\.txt"):
        parse_hlo_text("HloModule m\n%c (p: f32[2]) -> f32[2] {\n  %p = f33[2] parameter(0)\n}\n", "a.txt")


def test_operands_without_percent_signs_are_read() -> None:
    text = "HloModule m\n\nENTRY main {\n  a = f32[2]{0} parameter(0)\n  ROOT b = f32[2]{0} add(f32[2]{0} a, a)\n}\n"
    module = parse_hlo_text(text)
    assert module.by_name["b"].operands == (module.by_name["a"], module.by_name["a"])
