# ruff: noqa: E501 (names as they come)
"""Scopes and layers of operations as JAX and TensorFlow name them."""

from __future__ import annotations

import pytest

from reportgen.memory.groups import by_layer, by_source, by_type, layer_of, operation, scopes

from .conftest import compiled_program


@pytest.mark.parametrize(
    ("op_name", "expected", "layer", "name"),
    [
        ("jit(step)/jit(main)/jvp(Model)/block_3/attention/dot_general", ("Model", "block_3", "attention"),
         "Model/block_3", "dot_general"),
        ("jit(step)/transpose(jvp(Model))/block_3/attention/dot_general", ("Model", "block_3", "attention"),
         "Model/block_3", "dot_general"),
        ("jit(step)/jvp(Flax)/transformer/h/0/self_attention/...qhd->...hqk/dot_general[dimension_numbers=((3,), (3,))]",
         ("Flax", "transformer", "h", "0", "self_attention", "...qhd->...hqk"), "Flax/transformer/h/0", "dot_general"),
        ("jit(f)/jvp()/dot_general", (), "", "dot_general"),
        ("jit(f)/jvp()/while/body/closed_call/checkpoint/mul", (), "", "mul"),
        ("model/dense_1/MatMul:", ("model", "dense_1"), "model/dense_1", "MatMul"),
        ("encoder/norm/add;encoder/norm/mul", ("encoder", "norm"), "encoder/norm", "add"),
        ("x", (), "", "x"),
        ("", (), "", ""),
    ],
)  # fmt: skip
def test_scopes(op_name: str, expected: tuple[str, ...], layer: str, name: str) -> None:
    assert (scopes(op_name), layer_of(op_name), operation(op_name)) == (expected, layer, name)


def test_groups_add_up() -> None:
    space = compiled_program("dense").memory.main
    assert space is not None
    types = by_type(space.peak_buffers)
    assert sum(group.size for group in types) == sum(buffer.size for buffer in space.peak_buffers)
    assert [group.size for group in types] == sorted((group.size for group in types), reverse=True)
    lines = by_source(space.peak_buffers)
    assert lines[0].name.startswith("programs.py:")
    assert by_layer(space.peak_buffers) == []
