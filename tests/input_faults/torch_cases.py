"""PyTorch/XLA loops, one with a slow data set, each captured on CPU: python torch_cases.py OUT_FOLDER CASE...

A profile is asked for through the profiler's server while the loop trains, so that the profile's first and last step
are cut. What the loop measured itself goes to OUT_FOLDER/CASE/measured.json, by step number: the wait for each batch
and its transfer, and each step's period, in milliseconds.
"""

import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import torch
import torch_xla
import torch_xla.debug.profiler as xp
from torch.utils.data import DataLoader, Dataset

BATCH, WIDTH, WARM_UP, CAPTURE_MS, PORT = 16, 512, 4, 300, 9017


class Slow(Dataset[torch.Tensor]):
    """Samples that take their time."""

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.sort(torch.rand(1 << 12)).values[:WIDTH] + index


def slow_dataset() -> Iterator[torch.Tensor]:
    """A loader without workers."""
    yield from DataLoader(Slow(), batch_size=BATCH)


def healthy() -> Iterator[torch.Tensor]:
    """Batches that lie on the device."""
    batch = torch.rand(BATCH, WIDTH).to(torch_xla.device())
    while True:
        yield batch


CASES = {"slow_dataset": slow_dataset, "torch_healthy": healthy}


def capture(case: str, out: Path, server_port: int) -> None:
    """Train on one case's batches until the profile is there."""
    batches = CASES[case]()
    weights = torch.eye(WIDTH).to(torch_xla.device())
    options = {"duration_ms": CAPTURE_MS, "num_tracing_attempts": 1}
    profiler = threading.Thread(target=xp.trace, args=(f"localhost:{server_port}", str(out)), kwargs=options)
    measured: dict[str, dict[str, float]] = {"wait_ms": {}, "period_ms": {}}
    step, before = 0, time.perf_counter()
    while step < WARM_UP or profiler.is_alive():
        with xp.StepTrace("train", step_num=step):
            start = time.perf_counter()
            with xp.Trace("load_batch"):
                batch = next(batches).to(torch_xla.device())
            loaded = time.perf_counter()
            x = batch.tile(8, 1)
            for _ in range(4):
                x = torch.tanh(x @ weights)
            x.mean().item()
        torch_xla.sync(wait=True)  # or the rest of the step runs beside the next wait
        end = time.perf_counter()
        measured["wait_ms"][str(step)] = 1e3 * (loaded - start)
        measured["period_ms"][str(step)] = 1e3 * (end - before)
        before, step = end, step + 1
        if step == WARM_UP:
            profiler.start()
    (out / "measured.json").write_text(json.dumps(measured))


def main() -> None:
    """Capture the named cases."""
    out = Path(sys.argv[1])
    server = xp.start_server(PORT)
    for case in sys.argv[2:] or CASES:
        capture(case, out / case, PORT)
    del server


if __name__ == "__main__":
    main()
