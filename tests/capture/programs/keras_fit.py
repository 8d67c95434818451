"""A Keras script: number of batches."""
# ruff: noqa: T201

import sys

import keras
import numpy as np

batches = int(sys.argv[1])
model = keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.ones((8 * batches, 16)), np.ones((8 * batches, 1)), batch_size=8, verbose=0)
print("fitted on", keras.backend.backend())
