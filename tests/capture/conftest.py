"""Real profiler servers, started once for all tests of this folder."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.capture.servers import Program


def need(module: str) -> None:
    """Skip where a framework is absent."""
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")


@pytest.fixture(scope="session")
def jax_server() -> Iterator[Program]:
    """A JAX loop with about 100 marked steps per second."""
    need("jax")
    with Program("jax_server.py") as program:
        yield program.ready()


@pytest.fixture(scope="session")
def tensorflow_server() -> Iterator[Program]:
    """A TensorFlow loop with about 100 marked steps per second."""
    need("tensorflow")
    with Program("tensorflow_server.py") as program:
        yield program.ready()


@pytest.fixture(scope="module")
def eight_servers() -> Iterator[list[Program]]:
    """Eight JAX loops, as of eight hosts."""
    need("jax")
    with ExitStack() as stack:
        programs = [stack.enter_context(Program("jax_server.py", pause_ms=20)) for _ in range(8)]
        yield [program.ready() for program in programs]
