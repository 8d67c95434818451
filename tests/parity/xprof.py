"""XProf's own answers for a profile, from one subprocess a profile, kept for the test session."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

_PROGRAM = """
import json, sys
from xprof.convert import raw_to_tool_data
paths, tools = json.loads(sys.argv[1]), json.loads(sys.argv[2])
raw_to_tool_data.xspace_to_tool_names(paths)
answers = {}
for tool, options in tools:
    data, _ = raw_to_tool_data.xspace_to_tool_data(paths, tool, {"use_saved_result": False, **options})
    answers[tool] = data.decode() if isinstance(data, bytes) else data
with open(sys.argv[3], "w") as stream:
    json.dump(answers, stream)
"""
TOOLS = (
    "overview_page", "op_profile", "hlo_stats", "framework_op_stats", "roofline_model", "input_pipeline_analyzer",
    "kernel_stats", "memory_profile",
)  # fmt: skip


def require_xprof() -> None:
    """Skip where XProf is not installed."""
    if importlib.util.find_spec("xprof") is None:
        pytest.skip("XProf is not installed: pip install reportgen[peers]")


@cache
def answers(*profiles: Path) -> dict[str, Any]:
    """Return the JSON of XProf's tools for the files of one run; it works on copies, since it writes beside them."""
    require_xprof()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = []
        for number, profile in enumerate(profiles):
            path = folder / f"host{number}.xplane.pb"
            path.write_bytes(_content(profile))
            paths.append(str(path))
        result = folder / "answers.json"
        # The memory profile takes one host alone.
        tools = json.dumps([(tool, {}) for tool in TOOLS if len(paths) == 1 or tool != "memory_profile"])
        command = [sys.executable, "-c", _PROGRAM, json.dumps(paths), tools, str(result)]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
        found = json.loads(result.read_text())
    return {tool: json.loads(text) for tool, text in found.items() if text}


def _content(profile: Path) -> bytes:
    if profile.suffix != ".gz":
        return profile.read_bytes()
    import gzip

    return gzip.decompress(profile.read_bytes())


def rows(table: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows of one of XProf's tables by column id."""
    names = [column["id"] for column in table["cols"]]
    for row in table["rows"]:
        yield dict(zip(names, [cell["v"] if cell else None for cell in row["c"]], strict=True))


def op_nodes(profile: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the metrics of the ops of an op profile by program and op name."""
    found: dict[tuple[str, str], dict[str, Any]] = {}

    def walk(node: dict[str, Any], program: str, depth: int) -> None:
        name = node["name"]
        if depth == 1:
            program = name
        if "xla" in node and not name.endswith("and its duplicate(s)"):
            found[(program, name)] = node["metrics"]
            return
        for child in node.get("children", []):
            walk(child, program, depth + 1)

    root = next(profile[key] for key in profile if key.startswith("by") and not key.endswith("ExcludeIdle"))
    walk(root, "", 0)
    return found
