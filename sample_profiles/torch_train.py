"""A PyTorch/XLA training loop on CPU, captured through the profiler's server: a small MLP on synthetic images.

    python torch_train.py OUT_FOLDER

The loop starts a profiler server, a second thread asks it for a profile, and the loop trains until the profile is
there, so the first and the last step are cut. The times of the steps that the loop measured itself go to
OUT_FOLDER/measured.json; more steps ran than the profile holds.
"""

import argparse
import json
import threading
import time
from itertools import pairwise
from pathlib import Path

import torch
import torch_xla
import torch_xla.debug.profiler as xp

BATCH, PIXELS, WIDTH, CLASSES, WARM_UP, CAPTURE_MS, PORT = 128, 784, 512, 10, 5, 200, 9012


def build() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    """A model of four dense layers and its optimiser."""
    torch.manual_seed(0)
    sizes = [PIXELS, WIDTH, WIDTH, WIDTH]
    hidden = [torch.nn.Sequential(torch.nn.Linear(m, n), torch.nn.GELU()) for m, n in pairwise(sizes)]
    model = torch.nn.Sequential(*hidden, torch.nn.Linear(WIDTH, CLASSES)).to(torch_xla.device())
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def train_step(step: int, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> float:
    """One step on a new batch; returns its time in milliseconds."""
    start = time.perf_counter()
    with xp.StepTrace("train", step_num=step):
        with xp.Trace("load_batch"):
            images = torch.rand(BATCH, PIXELS).to(torch_xla.device())
            labels = torch.randint(0, CLASSES, (BATCH,)).to(torch_xla.device())
        optimizer.zero_grad()
        with xp.Trace("forward"):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        with xp.Trace("backward"):
            loss.backward()
        optimizer.step()
        loss.item()
    return 1e3 * (time.perf_counter() - start)


def main() -> None:
    """Warm up, then train while the server captures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    model, optimizer = build()
    server = xp.start_server(PORT)
    times = [train_step(step, model, optimizer) for step in range(WARM_UP)]
    options = {"duration_ms": CAPTURE_MS, "num_tracing_attempts": 1}
    capture = threading.Thread(target=xp.trace, args=(f"localhost:{PORT}", str(args.out)), kwargs=options)
    capture.start()
    while capture.is_alive():
        times.append(train_step(len(times), model, optimizer))
    del server
    (args.out / "measured.json").write_text(json.dumps({"step_ms": times}, indent=1) + "\n")


if __name__ == "__main__":
    main()
