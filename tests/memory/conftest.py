"""Programs that the real TPU compiler compiled (see fixtures/make.py), read once per session."""

from __future__ import annotations

import dataclasses
import json
import os
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from reportgen.memory.analysis import analyze_memory
from reportgen.memory.model import ModuleMemory
from reportgen.profile.hlo import HloModule
from reportgen.wire import xplane_pb2

FIXTURES = Path(__file__).parent / "fixtures"
REFERENCE = Path(os.environ.get("REPORTGEN_REFERENCE") or Path(__file__).parents[2].parent / "shared")


@dataclasses.dataclass(frozen=True)
class Compiled:
    """One compiled program: its dump by file ending, and what was recorded at the compile."""

    name: str
    files: dict[str, bytes]
    facts: dict[str, Any]

    @property
    def module(self) -> HloModule:
        return _module(self.name)

    @property
    def memory(self) -> ModuleMemory:
        return _memory(self.name)

    def text(self, ending: str) -> str:
        return next(data for name, data in self.files.items() if name.endswith(ending)).decode()

    def unpack(self, folder: Path, *, only: str = "") -> Path:
        for name, data in self.files.items():
            if name.endswith(only):
                (folder / name).write_bytes(data)
        return folder


@cache
def compiled_program(name: str) -> Compiled:
    with zipfile.ZipFile(FIXTURES / f"{name}.zip") as archive:
        files = {entry: archive.read(entry) for entry in archive.namelist()}
    return Compiled(name, files, json.loads(files.pop("facts.json")))


@cache
def _module(name: str) -> HloModule:
    files = compiled_program(name).files
    return HloModule.from_bytes(next(data for file, data in files.items() if file.endswith(".hlo.pb")))


@cache
def _memory(name: str) -> ModuleMemory:
    return analyze_memory(_module(name))


def program_names() -> list[str]:
    return sorted(path.stem for path in FIXTURES.glob("*.zip"))


def figures() -> dict[str, Any]:
    return json.loads((FIXTURES / "figures.json").read_text())


@pytest.fixture(params=program_names())
def compiled(request: pytest.FixtureRequest) -> Compiled:
    """Each compiled program in turn."""
    return compiled_program(request.param)


@cache
def reference_modules() -> dict[str, HloModule]:
    """The modules inside the optional third-party TPU profile, by name."""
    path = REFERENCE / "profiles/tpu_v6e_4chip/host0.xplane.pb"
    space = xplane_pb2.XSpace.FromString(path.read_bytes())
    plane = next(plane for plane in space.planes if plane.name == "/host:metadata")
    protos = [s.bytes_value for m in plane.event_metadata.values() for s in m.stats if s.bytes_value]
    return {module.name: module for module in map(HloModule.from_bytes, protos)}


@pytest.fixture
def reference() -> Path:
    """The folder with the optional third-party profiles."""
    if not REFERENCE.is_dir():
        pytest.skip("the optional third-party profiles are absent (REPORTGEN_REFERENCE)")
    return REFERENCE
