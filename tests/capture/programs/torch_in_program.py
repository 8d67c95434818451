"""A PyTorch/XLA loop, which synchronises itself, with the step counter: a folder. Prints what came of it as JSON."""
# ruff: noqa: T201

import json
import sys
from pathlib import Path

import torch
import torch_xla

from reportgen.capture.in_program import StepProfiler

reports: list[int] = []
x = torch.ones(128, 128, device=torch_xla.device())
with StepProfiler(sys.argv[1], (2, 5), report=lambda run, _: reports.append(len(list(run.glob("*.pb"))))) as profiler:
    for _ in range(8):
        with profiler.step():
            torch.tanh(x @ x).sum()
            torch_xla.sync(wait=True)
(profile,) = Path(sys.argv[1]).glob("plugins/profile/*/*.xplane.pb")
print(json.dumps({"reports": reports, "marks": b"train" in profile.read_bytes()}))
