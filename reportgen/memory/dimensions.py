"""Which dimensions of a program go together: those that grow when the batch grows.

Every dimension of every value is a node. Operations tie nodes: an addition its operands' dimensions to those of the
result, a matrix product its contracting dimensions to each other, a reshape a dimension to the product of several. What
hangs together with the first dimension of the input data is the batch, whatever its size is called elsewhere.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence

from reportgen.profile.hlo import Computation, HloModule, Instruction
from reportgen.profile.shapes import Layout, Shape

_LINKED_CALLS = frozenset({"fusion", "call", "while", "conditional", "async-start"})
_DEEPEST = 32
Nodes = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Tree:
    """The nodes of a value: of its dimensions, or of the parts of a tuple."""

    nodes: Nodes = ()
    parts: tuple[Tree, ...] = ()


class Dimensions:
    """The dimensions of a module's values, tied together by its operations."""

    def __init__(self, module: HloModule) -> None:
        self.module = module
        self._parent: list[int] = []
        self._size: list[int] = []
        self._factors: dict[int, Nodes] = {}
        self._trees = {instruction.id: self._new(instruction.shape) for instruction in module}
        for instruction in module:
            self._tie_instruction(instruction)

    def of(self, instruction: Instruction, index: tuple[int, ...] = ()) -> Nodes:
        """The groups of a value's dimensions; an empty tuple for a tuple or an index outside it."""
        tree = self._trees[instruction.id]
        for position in index:
            if position >= len(tree.parts):
                return ()
            tree = tree.parts[position]
        return tuple(self.group(node) for node in tree.nodes)

    def group(self, node: int) -> int:
        """The representative of the dimensions that a node is tied to."""
        while self._parent[node] != node:
            self._parent[node] = self._parent[self._parent[node]]
            node = self._parent[node]
        return node

    def size(self, node: int) -> int:
        """The size of a dimension."""
        return self._size[node]

    def contains(self, node: int, group: int, depth: int = 0) -> bool:
        """Whether a dimension is of a group, or a product in which the group is a factor."""
        root = self.group(node)
        if root == self.group(group):
            return True
        factors = self._factors.get(root, ()) if depth < _DEEPEST else ()
        return any(self.contains(factor, group, depth + 1) for factor in factors)

    def scaled(self, shape: Shape, nodes: Nodes, group: int, factor: float) -> Shape:
        """The shape with the dimensions of a group scaled; each stays at least 1."""
        if len(nodes) != shape.rank:
            return shape
        sizes = (
            max(1, math.ceil(size * factor)) if self.contains(node, group) else size
            for size, node in zip(shape.dimensions, nodes, strict=True)
        )
        return dataclasses.replace(shape, dimensions=tuple(sizes))

    def _new(self, shape: Shape) -> Tree:
        if shape.is_tuple:
            return Tree(parts=tuple(self._new(part) for part in shape.elements))
        first = len(self._parent)
        self._parent.extend(range(first, first + shape.rank))
        self._size.extend(shape.dimensions)
        return Tree(nodes=tuple(range(first, first + shape.rank)))

    def _tie(self, one: int, other: int) -> None:
        """Put two dimensions of one size into one group."""
        first, second = self.group(one), self.group(other)
        if first == second or self._size[first] != self._size[second] or self._size[first] == 1:
            return
        self._parent[second] = first
        mine, theirs = self._factors.get(first), self._factors.pop(second, None)
        if theirs is None:
            return
        if mine is None:
            self._factors[first] = theirs
        elif [self._size[n] for n in mine] == [self._size[n] for n in theirs]:
            for left, right in zip(mine, theirs, strict=True):
                self._tie(left, right)

    def _tie_product(self, whole: int, factors: Nodes) -> None:
        """Make a dimension the product of others."""
        if len(factors) == 1:
            self._tie(whole, factors[0])
            return
        root = self.group(whole)
        known = self._factors.setdefault(root, factors)
        if [self._size[n] for n in known] == [self._size[n] for n in factors]:
            for left, right in zip(known, factors, strict=True):
                self._tie(left, right)

    def _tie_all(self, one: Tree, other: Tree) -> None:
        """Tie two values of the same shape, dimension by dimension."""
        if len(one.nodes) == len(other.nodes):
            for left, right in zip(one.nodes, other.nodes, strict=True):
                self._tie(left, right)
        for left_part, right_part in zip(one.parts, other.parts, strict=False):
            self._tie_all(left_part, right_part)

    def _tie_instruction(self, instruction: Instruction) -> None:
        result = self._trees[instruction.id]
        operands = [self._trees[operand.id] for operand in instruction.operands]
        opcode = instruction.opcode
        if opcode in _LINKED_CALLS:
            self._tie_call(instruction, result, operands)
        elif opcode in _RULES and operands:
            _RULES[opcode](self, instruction, result, operands)
        else:
            self._tie_like(result, operands)

    def _tie_like(self, result: Tree, operands: Sequence[Tree]) -> None:
        """Tie what has the same place and size in the result and an operand: right for elementwise operations."""
        for place, operand in enumerate(operands):
            part = result.parts[place] if place < len(result.parts) and not operand.parts else result
            self._tie_all(part, operand)

    def _tie_call(self, instruction: Instruction, result: Tree, operands: list[Tree]) -> None:
        for number, computation in enumerate(self.module.called_computations(instruction)):
            given = operands[number + 1 : number + 2] if instruction.opcode == "conditional" else operands
            for parameter, operand in zip(computation.parameters, given, strict=False):
                self._tie_all(self._trees[parameter.id], operand)
            root = self._trees[computation.root.id] if computation.root else Tree()
            returned = result.parts[1] if instruction.opcode == "async-start" and len(result.parts) > 1 else result
            self._tie_all(root, returned)
            if instruction.opcode == "while":
                self._tie_loop(computation, root, result, operands)

    def _tie_loop(self, computation: Computation, root: Tree, result: Tree, operands: list[Tree]) -> None:
        for tree in (*operands, *(self._trees[parameter.id] for parameter in computation.parameters)):
            self._tie_all(tree, result)
            self._tie_all(tree, root)

    def _tie_tuple(self, instruction: Instruction, result: Tree, operands: list[Tree]) -> None:
        del instruction
        for part, operand in zip(result.parts, operands, strict=False):
            self._tie_all(part, operand)

    def _tie_element(self, instruction: Instruction, result: Tree, operands: list[Tree]) -> None:
        place = instruction.proto.tuple_index if instruction.opcode == "get-tuple-element" else 0
        place = 1 if instruction.opcode == "async-done" else place
        if place < len(operands[0].parts):
            self._tie_all(result, operands[0].parts[place])

    def _tie_copy_start(self, instruction: Instruction, result: Tree, operands: list[Tree]) -> None:
        del instruction
        for part in result.parts[:2]:
            self._tie_all(part, operands[0])

    def _tie_broadcast(self, instruction: Instruction, result: Tree, operands: list[Tree]) -> None:
        for node, place in zip(operands[0].nodes, instruction.proto.dimensions, strict=False):
            if place < len(result.nodes):
                self._tie(node, result.nodes[place])

    def _tie_transpose(self, instruction: Instruction, result: Tree, operands: list[Tree]) -> None:
        for node, place in zip(result.nodes, instruction.proto.dimensions, strict=False):
            if place < len(operands[0].nodes):
                self._tie(node, operands[0].nodes[place])

    def _tie_reduce(self, instruction: Instruction, result: Tree, operands: list[Tree]) -> None:
        gone = set(instruction.proto.dimensions)
        kept = tuple(node for place, node in enumerate(operands[0].nodes) if place not in gone)
        for part in result.parts or (result,):
            self._tie_all(part, Tree(nodes=kept))

    def _tie_reshape(self, instruction: Instruction, result: Tree, operands: list[Tree]) -> None:
        """A reshape keeps the logical order; a bitcast the order in memory."""
        before, after = operands[0].nodes, result.nodes
        if instruction.opcode == "bitcast":
            before = _in_memory(instruction.operands[0].shape, before)
            after = _in_memory(instruction.shape, after)
        for left, right in _matched(self._size, before, after):
            if len(left) == 1:
                self._tie_product(left[0], right)
            elif len(right) == 1:
                self._tie_product(right[0], left)

    def _tie_dot(self, instruction: Instruction, result: Tree, operands: list[Tree]) -> None:
        numbers = instruction.proto.dot_dimension_numbers
        lhs, rhs = operands[0].nodes, operands[1].nodes
        batch = list(zip(numbers.lhs_batch_dimensions, numbers.rhs_batch_dimensions, strict=False))
        contracting = list(zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=False))
        for left, right in (*batch, *contracting):
            self._tie(lhs[left], rhs[right])
        taken_left = {left for left, _ in (*batch, *contracting)}
        taken_right = {right for _, right in (*batch, *contracting)}
        free = [lhs[left] for left, _ in batch]
        free += [node for place, node in enumerate(lhs) if place not in taken_left]
        free += [node for place, node in enumerate(rhs) if place not in taken_right]
        self._tie_all(result, Tree(nodes=tuple(free)))

    def _tie_convolution(self, instruction: Instruction, result: Tree, operands: list[Tree]) -> None:
        """Batch and features by their roles; of the spatial dimensions those of one size go together."""
        numbers = instruction.proto.convolution_dimension_numbers
        lhs, rhs, out = operands[0].nodes, operands[1].nodes, result.nodes
        self._tie(lhs[numbers.input_batch_dimension], out[numbers.output_batch_dimension])
        self._tie(rhs[numbers.kernel_output_feature_dimension], out[numbers.output_feature_dimension])
        self._tie(lhs[numbers.input_feature_dimension], rhs[numbers.kernel_input_feature_dimension])
        spatial = (
            numbers.input_spatial_dimensions,
            numbers.kernel_spatial_dimensions,
            numbers.output_spatial_dimensions,
        )
        for left, kernel, right in zip(*spatial, strict=False):
            self._tie(lhs[left], rhs[kernel])
            self._tie(lhs[left], out[right])
            self._tie(rhs[kernel], out[right])

    def _tie_concatenate(self, instruction: Instruction, result: Tree, operands: list[Tree]) -> None:
        along = set(instruction.proto.dimensions)
        for operand in operands:
            for place, (node, out) in enumerate(zip(operand.nodes, result.nodes, strict=False)):
                if place not in along:
                    self._tie(node, out)

    def _tie_gather(self, instruction: Instruction, result: Tree, operands: list[Tree]) -> None:
        """Tie a result's dimension to the only one of its size in the table or the indices."""
        del instruction
        sources = [node for operand in operands[:2] for node in operand.nodes]
        for node in result.nodes:
            same = [source for source in sources if self._size[source] == self._size[node]]
            if len(same) == 1:
                self._tie(node, same[0])


def _in_memory(shape: Shape, nodes: Nodes) -> Nodes:
    """A value's nodes from the major-most to the minor-most dimension."""
    layout = shape.layout or Layout()
    order = layout.minor_to_major if len(layout.minor_to_major) == len(nodes) else shape.minor_to_major
    return tuple(nodes[dimension] for dimension in reversed(order))


def _matched(sizes: Sequence[int], before: Nodes, after: Nodes) -> Iterator[tuple[Nodes, Nodes]]:
    """Runs of dimensions with the same product on both sides of a reshape; dimensions of size 1 are left out."""
    left = [node for node in before if sizes[node] != 1]
    right = [node for node in after if sizes[node] != 1]
    while left and right:
        mine, theirs = [left.pop(0)], [right.pop(0)]
        while (a := _product(sizes, mine)) != (b := _product(sizes, theirs)):
            shorter, rest = (mine, left) if a < b else (theirs, right)
            if not rest:
                return
            shorter.append(rest.pop(0))
        yield tuple(mine), tuple(theirs)


def _product(sizes: Sequence[int], nodes: list[int]) -> int:
    return math.prod(sizes[node] for node in nodes)


_RULES = {
    "tuple": Dimensions._tie_tuple,
    "get-tuple-element": Dimensions._tie_element,
    "copy-done": Dimensions._tie_element,
    "async-done": Dimensions._tie_element,
    "copy-start": Dimensions._tie_copy_start,
    "broadcast": Dimensions._tie_broadcast,
    "transpose": Dimensions._tie_transpose,
    "reduce": Dimensions._tie_reduce,
    "reshape": Dimensions._tie_reshape,
    "bitcast": Dimensions._tie_reshape,
    "dot": Dimensions._tie_dot,
    "convolution": Dimensions._tie_convolution,
    "concatenate": Dimensions._tie_concatenate,
    "gather": Dimensions._tie_gather,
}
