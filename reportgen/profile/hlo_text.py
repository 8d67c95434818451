"""HLO text, as XLA dumps it, into an `HloModule`: shapes, operands, called computations, metadata, aliasing.

Most users have only the text (`*.after_optimizations.txt`), which is XLA's default. Ids are not in the text, so they
are given by the order of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from reportgen.errors import InputError
from reportgen.profile.hlo import HloModule
from reportgen.profile.shapes import TYPE_NUMBERS, Shape, parse_prefix
from reportgen.wire import hlo_pb2

MAX_TEXT_BYTES = 2**29
_HEADER = re.compile(r"^HloModule\s+([^\s,]+)", re.MULTILINE)
_COMPUTATION = re.compile(r"^(ENTRY\s+)?%?([^\s(%]+)\s*(?:\(.*)?\{\s*$")
_INSTRUCTION = re.compile(r"^\s+(ROOT\s+)?%?([^\s=(]+)\s*=\s*(?=\S)")
_OPCODE = re.compile(r"\s*([a-z][\w\-]*)\(")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[(){}\[\],"]')
_FIELD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\{[^{}]*\}|[^\s,{}"]+)')
_CALLS = ("calls", "to_apply", "body", "condition", "select", "scatter", "branch_computations", "called_computations")
_CALLS_TRUE = ("true_computation", "false_computation", "async_computation")
_ALIAS = re.compile(r"\{([\d,\s]*)\}:\s*\((\d+),\s*\{([\d,\s]*)\}(?:,\s*([a-z-]+))?")
_COUNTS = re.compile(r"\b(replica_count|num_partitions)=(\d{1,9})\b")
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_TABLE_ROW = re.compile(r'^(\d+)\s+(?:"((?:[^"\\]|\\.)*)"|\{(.*)\})\s*$')
_OPERAND_DIMENSIONS = {
    "lhs_contracting_dims": "lhs_contracting_dimensions",
    "rhs_contracting_dims": "rhs_contracting_dimensions",
    "lhs_batch_dims": "lhs_batch_dimensions",
    "rhs_batch_dims": "rhs_batch_dimensions",
}


class _Parsed(NamedTuple):
    """One instruction with the names that can be looked up only when all are read."""

    proto: hlo_pb2.HloInstructionProto
    operands: list[str]
    called: list[str]


def parse_hlo_text(text: str, origin: str = "the HLO text") -> HloModule:
    """Read a module from HLO text.

    Args:
        text: The content of `*.after_optimizations.txt` or another dump of one module.
        origin: What to call the input in errors: a file's name.

    Raises:
        InputError: It is too large, or holds no module, no entry computation or a line that cannot be read.

    """
    if len(text) > MAX_TEXT_BYTES:
        raise InputError(f"{origin} has {len(text)} characters; HLO text may have {MAX_TEXT_BYTES}.")
    header = _HEADER.search(text)
    if header is None:
        raise InputError(f"{origin} holds no line that begins with HloModule.", "Give *.after_optimizations.txt.")
    reader = _ModuleReader(header[1])
    lines = text[header.end() :].split("\n")
    reader.read_header(lines[0])
    for number, line in enumerate(lines):
        try:
            reader.read(line)
        except InputError as error:
            raise InputError(
                f"Line {number + 1} after the header of {origin} cannot be read: {error.message}"
            ) from error
    return reader.finish(origin)


def shape_proto(shape: Shape) -> hlo_pb2.Shape:
    """Write a shape as the wire's message."""
    proto = hlo_pb2.Shape(element_type=TYPE_NUMBERS[shape.element_type], dimensions=shape.dimensions)
    proto.tuple_shapes.extend(shape_proto(part) for part in shape.elements)
    proto.is_dynamic_dimension.extend(shape.dynamic or [False] * shape.rank)
    if shape.layout is not None:
        layout = proto.layout
        layout.SetInParent()
        layout.minor_to_major.extend(shape.layout.minor_to_major)
        layout.tiles.extend(
            hlo_pb2.Tile(dimensions=(t if t > 0 else -(2**63) for t in tile)) for tile in shape.layout.tiles
        )
        layout.memory_space = shape.layout.memory_space
        layout.element_size_in_bits = shape.layout.element_size_in_bits
        layout.tail_padding_alignment_in_elements = shape.layout.tail_alignment
    return proto


class _ModuleReader:
    """Takes the lines one by one and builds the proto."""

    def __init__(self, name: str) -> None:
        self.proto = hlo_pb2.HloProto()
        self.module = self.proto.hlo_module
        self.module.name = name
        self.current: hlo_pb2.HloComputationProto | None = None
        self.parsed: dict[str, list[_Parsed]] = {}
        self.table = ""
        self.next_id = 1

    def read_header(self, header: str) -> None:
        """Read `num_partitions=4` and `input_output_alias={ {0}: (0, {}, may-alias) }` of the header line."""
        counts = {name: int(number) for name, number in _COUNTS.findall(header)}
        self.module.device_assignment.replica_count = counts.get("replica_count", 1)
        self.module.device_assignment.computation_count = counts.get("num_partitions", 1)
        start = header.find("input_output_alias={")
        if start < 0:
            return
        end = _closing(header, start + len("input_output_alias="))
        for output, parameter, index, kind in _ALIAS.findall(header[start:end]):
            self.module.input_output_alias.entries.add(
                output_shape_index=_integers(output),
                parameter_number=int(parameter),
                parameter_shape_index=_integers(index),
                kind=2 if kind == "must-alias" else 1,
            )

    def read(self, line: str) -> None:
        """Take one line: a computation's start or end, an instruction, or a row of a table of source lines."""
        if line.startswith("}"):
            self.current = None
        elif self.current is not None:
            self._read_instruction(line)
        elif line in _TABLES:
            self.table = line
        elif self.table and (row := _TABLE_ROW.match(line)):
            self._read_row(row)
        elif match := _COMPUTATION.match(line):
            self.current = self.module.computations.add(name=match[2], id=self._new_id())
            self.parsed[match[2]] = []
            if match[1]:
                self.module.entry_computation_name = match[2]
                self.module.entry_computation_id = self.current.id

    def finish(self, origin: str) -> HloModule:
        """Look up operands and called computations by name, and give the module out."""
        if not self.module.entry_computation_name:
            raise InputError(f"{origin} holds no ENTRY computation.", "It may be cut off.")
        computation_ids = {computation.name: computation.id for computation in self.module.computations}
        for computation in self.module.computations:
            ids = {parsed.proto.name: parsed.proto.id for parsed in self.parsed[computation.name]}
            for parsed in self.parsed[computation.name]:
                parsed.proto.operand_ids.extend(ids[name] for name in parsed.operands if name in ids)
                called = (computation_ids[name] for name in parsed.called if name in computation_ids)
                parsed.proto.called_computation_ids.extend(called)
        _undo_parent_offset(self.module.stack_frame_index)
        return HloModule(self.proto)

    def _new_id(self) -> int:
        self.next_id += 1
        return self.next_id - 1

    def _read_row(self, row: re.Match[str]) -> None:
        index = self.module.stack_frame_index
        fields = {name: _integer(value) for name, value in _FIELD.findall(row[3] or "")}
        if self.table == "FileNames":
            index.file_names.append(_unquoted(row[2] or ""))
        elif self.table == "FunctionNames":
            index.function_names.append(_unquoted(row[2] or ""))
        elif self.table == "FileLocations":
            index.file_locations.add(
                **{k: fields.get(k, 0) for k in ("file_name_id", "function_name_id", "line", "column")}
            )
        else:
            index.stack_frames.add(**{k: fields.get(k, 0) for k in ("file_location_id", "parent_frame_id")})

    def _read_instruction(self, line: str) -> None:
        match = _INSTRUCTION.match(line)
        if match is None or self.current is None:
            return
        shape, place = parse_prefix(line, match.end())
        opcode = _OPCODE.match(line, place)
        if opcode is None:
            raise InputError(f"expected an opcode, found {line[place : place + 40]!r}.")
        proto = self.current.instructions.add(name=match[2], opcode=opcode[1], id=self._new_id())
        proto.shape.CopyFrom(shape_proto(shape))
        if match[1]:
            self.current.root_id = proto.id
        close = _closing(line, opcode.end() - 1)
        attributes = dict(_attributes(line, close + 1))
        inside = line[opcode.end() : close]
        operands = [] if opcode[1] in {"parameter", "constant"} else _operand_names(inside)
        if opcode[1] == "parameter" and inside.strip().isdigit():
            proto.parameter_number = int(inside)
        _set_attributes(proto, attributes)
        called = [name for key in (*_CALLS, *_CALLS_TRUE) if key in attributes for name in _names(attributes[key])]
        self.parsed[self.current.name].append(_Parsed(proto, operands, called))


def _closing(text: str, start: int) -> int:
    """The place of the bracket that closes the one at a place; the end of the text where none does."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        if token[0] in "([{":
            depth += 1
        elif token[0] in ")]}":
            depth -= 1
            if depth == 0:
                return token.start()
    return len(text)


def _attributes(line: str, start: int) -> Iterator[tuple[str, str]]:
    """The `name=value` parts after an instruction's operands."""
    depth, begin = 0, start
    ends = []
    for token in _TOKEN.finditer(line, start):
        if token[0] in "([{":
            depth += 1
        elif token[0] in ")]}":
            depth -= 1
        elif token[0] == "," and depth == 0:
            ends.append(token.start())
    for end in [*ends, len(line)]:
        name, separator, value = line[begin:end].strip(" ,").partition("=")
        if separator:
            yield name, value
        begin = end + 1


def _operand_names(text: str) -> list[str]:
    """Names of operands: with `%` where the text prints it, else the last word of each part."""
    found = re.findall(r"%([^\s,()%]+)", text)
    if found or not text.strip():
        return found
    parts = re.sub(r"/\*.*?\*/", "", text).split(",")
    return [part.split()[-1] for part in parts if part.split()]


def _names(text: str) -> list[str]:
    return [part.strip().lstrip("%") for part in text.strip("{} ").split(",") if part.strip()]


def _integer(text: str) -> int:
    return int(text) if text.lstrip("-").isdigit() and len(text) < 20 else 0


def _integers(text: str) -> list[int]:
    return [int(part) for part in text.strip("{} ").split(",") if part.strip().isdigit()]


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text.strip('"'))


def _set_attributes(proto: hlo_pb2.HloInstructionProto, attributes: dict[str, str]) -> None:
    proto.fusion_kind = attributes.get("kind", "") if proto.opcode == "fusion" else ""
    proto.tuple_index = _integer(attributes.get("index", ""))
    proto.channel_id = _integer(attributes.get("channel_id", ""))
    proto.feature_group_count = _integer(attributes.get("feature_group_count", ""))
    proto.batch_group_count = _integer(attributes.get("batch_group_count", ""))
    proto.custom_call_target = _unquoted(attributes.get("custom_call_target", ""))
    proto.backend_config = attributes.get("backend_config", "").encode()
    proto.dimensions.extend(_integers(attributes.get("dimensions", "")))
    for name, field in _OPERAND_DIMENSIONS.items():
        getattr(proto.dot_dimension_numbers, field).extend(_integers(attributes.get(name, "")))
    if "sharding" in attributes:
        proto.sharding.type = 0 if "{replicated}" in attributes["sharding"] else 3
    if "metadata" in attributes:
        _set_metadata(proto.metadata, attributes["metadata"])
    if "window" in attributes:
        _set_window(proto.window, attributes["window"])
    if "dim_labels" in attributes:
        _set_convolution(proto.convolution_dimension_numbers, attributes["dim_labels"])


def _set_metadata(proto: hlo_pb2.OpMetadata, text: str) -> None:
    for name, value in _FIELD.findall(text):
        if name in {"op_type", "op_name", "source_file", "deduplicated_name"}:
            setattr(proto, name, _unquoted(value))
        elif name in {"source_line", "stack_frame_id"}:
            setattr(proto, name, _integer(value))


def _set_window(proto: hlo_pb2.Window, text: str) -> None:
    """Read `{size=3x3 pad=1_1x1_1 stride=2x2 lhs_dilate=1x1 rhs_dilate=1x1 rhs_reversal=0x0}`."""
    fields = {name: value.strip("{}").split("x") for name, value in _FIELD.findall(text.strip("{}"))}
    for place, size in enumerate(fields.get("size", [])):

        def at(name: str, default: str, place: int = place) -> str:
            values = fields.get(name, [])
            return values[place] if place < len(values) else default

        low, _, high = at("pad", "0_0").partition("_")
        proto.dimensions.add(
            size=_integer(size),
            stride=_integer(at("stride", "1")),
            padding_low=_integer(low),
            padding_high=_integer(high),
            window_dilation=_integer(at("rhs_dilate", "1")),
            base_dilation=_integer(at("lhs_dilate", "1")),
            window_reversal=at("rhs_reversal", "0") == "1",
        )


def _set_convolution(proto: hlo_pb2.ConvolutionDimensionNumbers, text: str) -> None:
    """Read `b01f_01io->b01f`: letters name the batch and features, digits the spatial dimensions."""
    match = re.fullmatch(r"(\w+)_(\w+)->(\w+)", text.strip())
    if match is None:
        return
    lhs, rhs, result = match.groups()
    proto.input_batch_dimension, proto.input_feature_dimension = lhs.find("b"), lhs.find("f")
    proto.kernel_input_feature_dimension, proto.kernel_output_feature_dimension = rhs.find("i"), rhs.find("o")
    proto.output_batch_dimension, proto.output_feature_dimension = result.find("b"), result.find("f")
    proto.input_spatial_dimensions.extend(_spatial(lhs))
    proto.kernel_spatial_dimensions.extend(_spatial(rhs))
    proto.output_spatial_dimensions.extend(_spatial(result))


def _spatial(labels: str) -> list[int]:
    return [labels.index(digit) for digit in sorted(filter(str.isdigit, labels))]


def _undo_parent_offset(index: hlo_pb2.StackFrameIndex) -> None:
    """Make parents as in the proto: XLA's text counts them from 1, so that the first frame seems its own parent."""
    counts_from_one = any(frame.parent_frame_id > number for number, frame in enumerate(index.stack_frames))
    for frame in index.stack_frames if counts_from_one else ():
        frame.parent_frame_id = max(0, frame.parent_frame_id - 1)
