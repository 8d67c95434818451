"""Buffers by where they come from: the framework's scope (layer), the allocation type, the source line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from reportgen.memory.model import Buffer

_WRAPPED = re.compile(r"^(?:jvp|transpose|vmap|checkpoint|remat|custom_jvp|custom_vjp|shard_map|xmap)\((.*)\)$")
_PLUMBING = frozenset(
    {"", "while", "body", "cond", "closed_call", "checkpoint", "remat", "rematted_computation", "core_call", "main"}
    | {"custom_jvp_call", "custom_vjp_call", "scan", "pjit", "branch_0_fun", "branch_1_fun", "shard_map"}
)
_OPTIONS = re.compile(r"\[.*$", re.DOTALL)
_COMPILED = ("jit(", "pjit(", "pmap(")  # the program itself, and functions of JAX inside it
_NUMBERED = re.compile(r"(?:^|[_\-.])\d+$")


class Group(NamedTuple):
    """Buffers of one origin: their number, their bytes, and those of their elements alone."""

    name: str
    number: int
    size: int
    unpadded_size: int


def grouped(buffers: Iterable[Buffer], key: Callable[[Buffer], str]) -> list[Group]:
    """Add buffers up by a key, the largest group first; buffers with an empty key are left out."""
    found: dict[str, list[Buffer]] = {}
    for buffer in buffers:
        if name := key(buffer):
            found.setdefault(name, []).append(buffer)
    groups = [
        Group(name, len(members), sum(b.size for b in members), sum(b.unpadded_size for b in members))
        for name, members in found.items()
    ]
    return sorted(groups, key=lambda group: (-group.size, group.name))


def by_layer(buffers: Iterable[Buffer]) -> list[Group]:
    """Group buffers by layer."""
    return grouped(buffers, lambda buffer: layer_of(buffer.op_name))


def by_type(buffers: Iterable[Buffer]) -> list[Group]:
    """Group buffers by allocation type."""
    return grouped(buffers, lambda buffer: buffer.allocation_type)


def by_source(buffers: Iterable[Buffer]) -> list[Group]:
    """Group buffers by source line."""
    return grouped(buffers, lambda buffer: buffer.source)


def scopes(op_name: str) -> tuple[str, ...]:
    """The user's scopes of an operation, outermost first, without what transformations and loops add.

    `jit(step)/transpose(jvp(Model))/block_3/attention/dot_general` gives ("Model", "block_3", "attention"): forward and
    backward pass of a layer have the same scopes.
    """
    first = op_name.split(";", 1)[0].rstrip(":")
    named = [part for part in _OPTIONS.sub("", first).split("/")[:-1] if not part.startswith(_COMPILED)]
    return tuple(part for part in map(_inner, named) if part not in _PLUMBING)


def layer_of(op_name: str) -> str:
    """The layer of an operation: its scopes up to the first numbered one, else up to two; empty where it has none."""
    found = scopes(op_name)
    for number, part in enumerate(found):
        if part.isdigit() or _NUMBERED.search(part):
            return "/".join(found[: number + 1])
    return "/".join(found[:2])


def operation(op_name: str) -> str:
    """The operation alone: the last part of its name, without options."""
    return _OPTIONS.sub("", op_name.split(";", 1)[0].rstrip(":")).rsplit("/", 1)[-1]


def _inner(part: str) -> str:
    """What a transformation wraps: `transpose(jvp(Model))` gives Model."""
    for _ in range(8):
        match = _WRAPPED.match(part)
        if match is None:
            break
        part = match[1]
    return part
