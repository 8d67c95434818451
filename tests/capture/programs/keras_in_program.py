"""A Keras program with the callback: a folder. Prints what came of it as JSON."""
# ruff: noqa: T201

import json
import sys
from pathlib import Path

import keras
import numpy as np

from reportgen.capture.contents import look
from reportgen.capture.in_program import keras_callback

reports: list[int | None] = []


def report(run_folder: Path, _output: Path) -> None:
    (profile,) = run_folder.glob("*.xplane.pb")
    reports.append(look(profile.read_bytes()).steps)


model = keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)])
model.compile("sgd", "mse")
callback = keras_callback(sys.argv[1], (6, 10), report=report)
data = np.ones((40, 16)), np.ones((40, 1))
history = model.fit(*data, batch_size=8, epochs=3, verbose=0, callbacks=[callback])
print(json.dumps({"reports": reports, "epochs": len(history.epoch), "backend": keras.backend.backend()}))
