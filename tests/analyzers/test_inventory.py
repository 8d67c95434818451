"""What a report tells of where the profile came from."""

from __future__ import annotations

from reportgen.analyzers.inventory import host_info
from tests.builders import Space


def test_versions_are_read_from_wherever_a_profiler_writes_them() -> None:
    space = Space()
    space.plane("/host:metadata", {"jax_version": "0.10.2", "jaxlib_version": "0.10.1", "process_id": 7})
    space.plane("Task Environment", {"tensorflow_version": b"2.21", "some_option": 3})
    info = host_info(space.view())
    assert info.versions == {"jax_version": "0.10.2", "jaxlib_version": "0.10.1", "tensorflow_version": "2.21"}
    assert info.options == {"some_option": "3"}
