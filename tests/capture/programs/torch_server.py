"""A PyTorch/XLA training loop with a profiler server: PORT, seconds to live, milliseconds a step sleeps."""
# ruff: noqa: T201

import sys
import time

import torch
import torch_xla
import torch_xla.debug.profiler as xp

port, lifetime_s, pause_ms = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
end = time.monotonic() + lifetime_s
server = xp.start_server(port)
x = torch.ones(128, 128, device=torch_xla.device())
print("ready", flush=True)
number = 0
while time.monotonic() < end:
    with xp.StepTrace("train", step_num=number):
        torch.tanh(x @ x).sum()
        time.sleep(pause_ms / 1000)
    number += 1
