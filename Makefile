.DEFAULT_GOAL := help
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SAMPLE ?= sample_profiles/resnet50_tpu_v5e
OUT ?= out

.PHONY: help install report test check lint type golden samples planted benchmark wire dist clean

help:  ## Show this help
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "%-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/reportgen: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml $(BIN)/reportgen
	$(BIN)/pip install --quiet --editable '.[dev,parquet]'
	@touch $@

$(VENV)/.peers: $(VENV)/.dev
	$(BIN)/pip install --quiet --editable '.[peers]'
	@touch $@

install: $(BIN)/reportgen  ## Install reportgen into .venv

report: $(BIN)/reportgen  ## Make the report of the sample (SAMPLE=PATH, OUT=FOLDER)
	$(BIN)/reportgen report $(SAMPLE) -o $(OUT)

test: $(VENV)/.dev  ## Check style and types, run all tests (peers that are missing skip with a reason)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n auto --dist loadfile

check: lint type  ## Style and types only

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

type: $(VENV)/.dev
	$(BIN)/mypy

peers: $(VENV)/.peers  ## Install the peers that some tests compare with (XProf, JAX, TensorFlow, libtpu, Perfetto)

golden: $(VENV)/.dev  ## Accept changed golden files
	REPORTGEN_ACCEPT_GOLDEN=1 $(BIN)/python -m pytest -q tests -k golden

samples: $(VENV)/.peers  ## Remake all sample profiles
	$(BIN)/python sample_profiles/make.py

planted: $(VENV)/.dev  ## Print the report of the planted-fault suite and write docs/planted-faults.md
	$(BIN)/python tests/planted/report.py

benchmark: $(VENV)/.peers  ## Measure times and memory against XProf in one run
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/trace.py --perfetto

wire:  ## Generate the protocol-buffer code anew (needs grpcio-tools 1.62, so that it runs on protobuf 4.25)
	$(PYTHON) -m grpc_tools.protoc -I. --python_out=. --pyi_out=. reportgen/wire/*.proto

dist: $(VENV)/.dev  ## Build the wheel
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .

clean:  ## Remove what was made here
	rm -rf $(VENV) $(OUT) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
