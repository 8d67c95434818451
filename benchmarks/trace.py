"""Time and memory of writing a trace, beside XProf's own conversion for its trace viewer, in the same run.

    python benchmarks/trace.py [PROFILE.xplane.pb] [--events 1000000] [--runs 1] [--perfetto]

Without a profile one is generated. Each conversion runs in a process of its own, from the profile's bytes on disk to
the finished trace; the time to import the packages counts for neither. Exit code 1 where the trace takes more than a
fifth of XProf's time, more memory than XProf, or is refused by Perfetto.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from generate import write_profile

_SHARE = 0.2
_TIMED = """
import json, resource, sys, time
{imports}
start = time.perf_counter()
{work}
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print("\\n" + json.dumps({{"seconds": seconds, "peak_bytes": peak, "output_bytes": size}}))
"""
_OURS = _TIMED.format(
    imports="""
from reportgen.exporters.limits import TraceLimits
from reportgen.exporters.of_run import write_run_trace
from reportgen.settings import Settings
from reportgen.sources.locate import find_run""",
    work="""
with open(sys.argv[2], "wb") as stream:
    write_run_trace(find_run(sys.argv[1]), Settings(), stream, TraceLimits())
    size = stream.tell()""",
)
_XPROF = _TIMED.format(
    imports="from xprof.convert import raw_to_tool_data",
    work="""
data, _ = raw_to_tool_data.xspace_to_tool_data([sys.argv[1]], "trace_viewer", {"use_saved_result": False})
size = len(data)""",
)


def measure(script: str, profile: Path, output: Path) -> dict[str, float]:
    """Run a conversion in a process of its own and return its seconds, peak memory and size of output."""
    command = [sys.executable, "-c", script, str(profile), str(output)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def compare(profile: Path, folder: Path, runs: int) -> tuple[dict[str, float], dict[str, float]]:
    """Return the best of some runs of ours and of XProf's, taken in turns; XProf gets a fresh copy each time."""
    ours, xprof = [], []
    for run in range(runs):
        ours.append(measure(_OURS, profile, folder / "trace.json.gz"))
        copy = folder / f"copy{run}"
        copy.mkdir()
        xprof.append(measure(_XPROF, Path(shutil.copy(profile, copy / "host.xplane.pb")), copy / "unused"))
        shutil.rmtree(copy)
    return min(ours, key=lambda entry: entry["seconds"]), min(xprof, key=lambda entry: entry["seconds"])


def open_in_perfetto(trace: Path) -> tuple[int, list[list[object]]]:
    """Return the number of slices that Perfetto loads and the faults that it reports."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.exporters.perfetto_ui import perfetto_ui  # noqa: PLC0415 - needs playwright

    with perfetto_ui() as ui:
        ui.load(trace.read_bytes(), timeout=600)
        [[slices]] = ui.query("select count(*) from slice")
        return slices, ui.faults()


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("profile", type=Path, nargs="?")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--perfetto", action="store_true", help="also open the trace in the Perfetto UI")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        profile = args.profile or folder / "host.xplane.pb"
        if args.profile is None:
            write_profile(profile, args.events)
        ours, xprof = compare(profile, folder, args.runs)
        for title, entry in (("reportgen", ours), ("XProf", xprof)):
            peak, size = entry["peak_bytes"] / 2**20, entry["output_bytes"] / 1e6
            print(f"{title:10} {entry['seconds']:7.2f} s   peak {peak:6.0f} MiB   output {size:7.1f} MB")
        share, memory = ours["seconds"] / xprof["seconds"], ours["peak_bytes"] / xprof["peak_bytes"]
        print(f"share of XProf's time {share:.3f} (limit {_SHARE}), of its memory {memory:.3f} (limit 1)")
        failed = share > _SHARE or memory >= 1
        if args.perfetto:
            slices, faults = open_in_perfetto(folder / "trace.json.gz")
            print(f"Perfetto loads {slices:,} slices, faults: {faults or 'none'}")
            failed |= bool(faults) or not slices
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
