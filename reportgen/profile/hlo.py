"""An optimised HLO module: its computations and instructions, their source lines, categories and short texts.

The module stands on `reportgen.wire.hlo_pb2.HloProto`, whether that was read from a profile or a dump or built from
HLO text (`reportgen.profile.hlo_text`). FLOPs and bytes are in `hlo_cost`, roles of dimensions in `hlo_roles`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from reportgen.errors import InputError
from reportgen.profile.shapes import Shape
from reportgen.wire import hlo_pb2

MAX_PROTO_BYTES = 2**30
_MAX_STACK = 64

_ELEMENTWISE = (
    "abs add and atan2 bitcast-convert cbrt ceil clamp compare complex convert copy cosine count-leading-zeros divide "
    "erf exponential exponential-minus-one floor imag is-finite log log-plus-one logistic maximum minimum multiply "
    "negate not or popcnt power real reduce-precision remainder rng round-nearest-afz round-nearest-even rsqrt select "
    "shift-left shift-right-arithmetic shift-right-logical sign sine sqrt stochastic-convert subtract tan tanh xor "
    "constant map"
)
ELEMENTWISE = frozenset(_ELEMENTWISE.split())
_DATA_FORMATTING = frozenset({"transpose", "copy", "reshape", "dynamic-reshape"})
_FUSION_KINDS = {"kLoop": "loop fusion", "kInput": "input fusion", "kOutput": "output fusion"}
# Operand counts after which HLO text adds a comment; short texts stop there.
_SHOWN_OPERANDS = 6


class SourceLocation(NamedTuple):
    """A place in the user's source; line and column count from 1, 0 where unknown."""

    file: str
    line: int
    column: int = 0
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclasses.dataclass(frozen=True, eq=False)
class Instruction:
    """One HLO instruction of a module; `proto` holds what is not named here."""

    proto: hlo_pb2.HloInstructionProto
    computation: str
    module: HloModule = dataclasses.field(repr=False)

    @property
    def id(self) -> int:
        """The id that is unique in the module."""
        return self.proto.id

    @property
    def name(self) -> str:
        """The name without `%`, unique in the module."""
        return self.proto.name

    @property
    def opcode(self) -> str:
        """The opcode as HLO text writes it: "fusion", "dynamic-slice"."""
        return self.proto.opcode

    @cached_property
    def shape(self) -> Shape:
        """The shape of the result."""
        return Shape.from_proto(self.proto.shape)

    @cached_property
    def operands(self) -> tuple[Instruction, ...]:
        """The operands in order; ids that the module does not have are left out."""
        known = self.module.by_id
        return tuple(known[i] for i in self.proto.operand_ids if i in known)

    @property
    def op_name(self) -> str:
        """The framework's name of the operation, such as `jit(f)/dot_general`; empty where not recorded."""
        return self.proto.metadata.op_name

    @property
    def is_fusion(self) -> bool:
        """Whether this is a fusion."""
        return self.opcode == "fusion"

    @cached_property
    def stack(self) -> tuple[SourceLocation, ...]:
        """The Python call stack, innermost frame first; empty where not recorded."""
        return self.module.stack(self.proto.metadata.stack_frame_id)

    @property
    def source(self) -> SourceLocation | None:
        """The source line: the innermost frame, or the line in the metadata; None where not recorded."""
        if self.stack:
            return self.stack[0]
        metadata = self.proto.metadata
        return SourceLocation(metadata.source_file, metadata.source_line) if metadata.source_file else None

    @property
    def called(self) -> tuple[str, ...]:
        """Names of the computations that this instruction calls."""
        known = self.module.computation_names
        return tuple(known[i] for i in self.proto.called_computation_ids if i in known)

    @cached_property
    def backend_config(self) -> dict[str, Any]:
        """The backend's settings where they are a JSON object, else empty."""
        try:
            config = json.loads(self.proto.backend_config)
        except (ValueError, RecursionError):
            return {}
        return config if isinstance(config, dict) else {}

    @property
    def scoped_vmem_bytes(self) -> int:
        """Bytes of VMEM that the instruction takes on its stack (TPU); 0 where it takes none."""
        configs = self.backend_config.get("used_scoped_memory_configs", [])
        sizes = [int(config.get("size", 0)) for config in configs if str(config.get("memory_space", "")) == "1"]
        return sum(sizes)

    def __str__(self) -> str:
        return expression(self)


@dataclasses.dataclass(frozen=True)
class Computation:
    """A named sequence of instructions.

    Attributes:
        name: Unique in the module.
        instructions: In the order of the schedule where the module has one, else in the file's order.
        root: The instruction whose value the computation returns; None where the file does not say.

    """

    name: str
    instructions: tuple[Instruction, ...]
    root: Instruction | None

    @property
    def parameters(self) -> tuple[Instruction, ...]:
        """The parameters by their number."""
        found = [instruction for instruction in self.instructions if instruction.opcode == "parameter"]
        return tuple(sorted(found, key=lambda instruction: instruction.proto.parameter_number))


class Alias(NamedTuple):
    """An output that shares its buffer with a parameter (a donated argument).

    `may_only` says that XLA may, but need not, share.
    """

    output_index: tuple[int, ...]
    parameter: int
    parameter_index: tuple[int, ...]
    may_only: bool


@dataclasses.dataclass(frozen=True, eq=False)
class HloModule:
    """An HLO module with its buffer assignment, if it has one.

    Attributes:
        proto: The `reportgen.wire.hlo_pb2.HloProto`.

    """

    proto: hlo_pb2.HloProto

    @classmethod
    def from_bytes(cls, data: bytes, origin: str = "the HLO proto") -> HloModule:
        """Parse a serialised HloProto.

        Args:
            data: The bytes.
            origin: What to call the input in errors: a file's name.

        Raises:
            InputError: It is too large, damaged, or holds no HLO module.

        """
        if len(data) > MAX_PROTO_BYTES:
            raise InputError(f"{origin} has {len(data)} bytes; an HLO module may have {MAX_PROTO_BYTES}.")
        for proto in _readings(data):
            if proto.hlo_module.computations:
                return cls(proto)
        raise InputError(
            f"{origin} holds no HLO module with instructions.",
            "Expected a serialised HloProto, such as *.after_optimizations.hlo.pb of an XLA dump.",
        )

    @property
    def name(self) -> str:
        """The module's name, such as `jit_step`."""
        return self.proto.hlo_module.name

    @property
    def id(self) -> int:
        """The program id."""
        return self.proto.hlo_module.id

    @cached_property
    def computation_names(self) -> dict[int, str]:
        """Names of computations by id."""
        return {c.id: c.name for c in self.proto.hlo_module.computations}

    @cached_property
    def computations(self) -> dict[str, Computation]:
        """Computations by name, in the file's order; their instructions in the order of the schedule."""
        result = {}
        sequences = self.proto.hlo_module.schedule.sequences
        for proto in self.proto.hlo_module.computations:
            order = (
                {i: place for place, i in enumerate(sequences[proto.id].instruction_ids)}
                if proto.id in sequences
                else {}
            )
            protos = sorted(proto.instructions, key=lambda p: order.get(p.id, -1)) if order else proto.instructions
            instructions = tuple(Instruction(p, proto.name, self) for p in protos)
            root = next((i for i in instructions if i.id == proto.root_id), None)
            result[proto.name] = Computation(proto.name, instructions, root)
        return result

    @property
    def entry(self) -> Computation:
        """The computation that the program starts in.

        Raises:
            InputError: The module names an entry that it does not have.

        """
        module = self.proto.hlo_module
        name = self.computation_names.get(module.entry_computation_id, module.entry_computation_name)
        found = self.computations.get(name) or self.computations.get(module.entry_computation_name)
        if found is None:
            raise InputError(f"The HLO module {self.name} has no entry computation {name!r}.")
        return found

    @cached_property
    def by_id(self) -> dict[int, Instruction]:
        """Instructions of all computations by id."""
        return {instruction.id: instruction for instruction in self}

    @cached_property
    def by_name(self) -> dict[str, Instruction]:
        """Instructions of all computations by name."""
        return {instruction.name: instruction for instruction in self}

    def __iter__(self) -> Iterator[Instruction]:
        """Go through the instructions of all computations."""
        for computation in self.computations.values():
            yield from computation.instructions

    @cached_property
    def users(self) -> dict[int, tuple[Instruction, ...]]:
        """Instructions that read an instruction's value, by its id."""
        found: dict[int, list[Instruction]] = {}
        for instruction in self:
            for operand in dict.fromkeys(instruction.proto.operand_ids):
                found.setdefault(operand, []).append(instruction)
        return {operand: tuple(users) for operand, users in found.items()}

    def called_computations(self, instruction: Instruction) -> tuple[Computation, ...]:
        """The computations that an instruction calls, in order."""
        return tuple(self.computations[name] for name in instruction.called)

    def fused_instructions(self, fusion: Instruction) -> tuple[Instruction, ...]:
        """The instructions inside a fusion, without its parameters; empty for any other instruction."""
        if not fusion.is_fusion:
            return ()
        inside = (i for computation in self.called_computations(fusion) for i in computation.instructions)
        return tuple(instruction for instruction in inside if instruction.opcode != "parameter")

    @property
    def entry_parameters(self) -> tuple[Instruction, ...]:
        """The program's arguments, in order."""
        return self.entry.parameters

    @property
    def device_count(self) -> int:
        """How many devices run the program together: replicas times partitions; 1 where not recorded."""
        assignment = self.proto.hlo_module.device_assignment
        return max(1, assignment.replica_count) * max(1, assignment.computation_count)

    @cached_property
    def aliases(self) -> tuple[Alias, ...]:
        """Outputs that share their buffer with a parameter."""
        return tuple(
            Alias(tuple(e.output_shape_index), e.parameter_number, tuple(e.parameter_shape_index), e.kind != 2)
            for e in self.proto.hlo_module.input_output_alias.entries
        )

    def stack(self, frame_id: int) -> tuple[SourceLocation, ...]:
        """The call stack of a frame id (counted from 1), innermost first; empty for 0 or an id out of range."""
        index = self.proto.hlo_module.stack_frame_index
        result: list[SourceLocation] = []
        while 0 < frame_id <= len(index.stack_frames) and len(result) < _MAX_STACK:
            frame = index.stack_frames[frame_id - 1]
            if not 0 < frame.file_location_id <= len(index.file_locations):
                break
            place = index.file_locations[frame.file_location_id - 1]
            result.append(
                SourceLocation(
                    _nth(index.file_names, place.file_name_id),
                    place.line,
                    place.column,
                    _nth(index.function_names, place.function_name_id),
                )
            )
            frame_id = frame.parent_frame_id
        return tuple(result)


def category(instruction: Instruction) -> str:
    """The category of an instruction as XLA's `HloInstruction::ToCategory` names it.

    XProf uses these names where the device recorded none (GPU); a TPU's own names are in the stat `hlo_category`.
    """
    opcode = instruction.opcode
    if opcode in _DATA_FORMATTING:
        return "data formatting"
    if opcode == "fusion":
        return _FUSION_KINDS.get(instruction.proto.fusion_kind, "custom fusion")
    if opcode == "convolution":
        window = instruction.proto.window.dimensions
        base = " base-dilated" if any(d.base_dilation > 1 for d in window) else ""
        dilated = " window-dilated" if any(d.window_dilation > 1 for d in window) else ""
        return f"convolution{base}{dilated}"
    return "non-fusion elementwise" if opcode in ELEMENTWISE else opcode


def expression(instruction: Instruction) -> str:
    """The short text of an instruction: `%name = shape opcode(%operands), attributes`."""
    names = [f"%{operand.name}" for operand in instruction.operands[:_SHOWN_OPERANDS]]
    hidden = len(instruction.operands) - len(names)
    operands = ", ".join([*names, *([f"... {hidden} more"] if hidden else [])])
    if instruction.opcode == "parameter":
        operands = str(instruction.proto.parameter_number)
    attributes = "".join(f", {text}" for text in _attributes(instruction))
    return f"%{instruction.name} = {instruction.shape} {instruction.opcode}({operands}){attributes}"


def _attributes(instruction: Instruction) -> Iterator[str]:
    proto = instruction.proto
    if proto.fusion_kind:
        yield f"kind={proto.fusion_kind}"
    if instruction.opcode == "get-tuple-element":
        yield f"index={proto.tuple_index}"
    if instruction.called:
        yield f"calls={', '.join(f'%{name}' for name in instruction.called)}"
    if proto.dimensions:
        yield f"dimensions={{{','.join(map(str, proto.dimensions))}}}"
    if proto.custom_call_target:
        yield f'custom_call_target="{proto.custom_call_target}"'


def _nth(names: Sequence[str], number: int) -> str:
    """The name at a number that counts from 1."""
    return names[number - 1] if 0 < number <= len(names) else ""


def _readings(data: bytes) -> Iterator[hlo_pb2.HloProto]:
    """The bytes as an HloProto, and as the HloModuleProto alone that some tools write; damaged ones left out."""
    for field in (None, "hlo_module"):
        proto = hlo_pb2.HloProto()
        try:
            (proto if field is None else proto.hlo_module).ParseFromString(data)
        except (DecodeError, UnicodeDecodeError):
            continue
        yield proto
