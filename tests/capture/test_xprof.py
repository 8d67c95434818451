"""XProf opens what was captured, and shows the step times that the marks have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reportgen.capture.client import capture_run
from reportgen.capture.options import CaptureOptions
from reportgen.wire import xplane_pb2
from tests.capture.conftest import need
from tests.capture.servers import Program

pytestmark = pytest.mark.peer


def marked_steps(profile: Path) -> dict[str, float]:
    """Return the duration of each marked step in milliseconds, by XProf's name for it."""
    found = {}
    for plane in xplane_pb2.XSpace.FromString(profile.read_bytes()).planes:
        for line in plane.lines:
            for event in line.events:
                stats = {plane.stat_metadata[stat.metadata_id].name: stat.int64_value for stat in event.stats}
                if b"step_num" in stats:
                    name = plane.event_metadata[event.metadata_id].name.decode()
                    found[f"{name} {stats[b'step_num']}"] = event.duration_ps / 1e9
    return found


def xprof_steps(profiles: list[Path]) -> dict[str, float]:
    """Return the duration of each step in milliseconds, as XProf's input pipeline analyser has it."""
    from xprof.convert import raw_to_tool_data

    paths = [str(profile) for profile in profiles]
    answer, _ = raw_to_tool_data.xspace_to_tool_data(paths, "input_pipeline_analyzer", {"use_saved_result": False})
    table = next(table for table in json.loads(answer) if table["cols"] and table["cols"][0]["label"] == "Step number")
    return {row["c"][0]["v"]: row["c"][-1]["v"] for row in table["rows"]}


@pytest.mark.parametrize("server", ["jax_server", "tensorflow_server"])
def test_step_times(server: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    need("xprof")
    program: Program = request.getfixturevalue(server)
    result = capture_run([program.address], tmp_path, CaptureOptions(duration_s=0.5, until_steps=10))
    marked = marked_steps(result.captured[0].path)
    shown = xprof_steps([result.captured[0].path])
    assert len(shown) == len(marked) - 2  # XProf leaves out the first and the last, which may be cut
    assert shown == pytest.approx({name: marked[name] for name in shown}, abs=1e-6)
    assert result.captured[0].steps == len(marked)
