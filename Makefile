# `make help` lists the targets. The first one that needs it makes .venv with the exact versions of constraints.txt.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.installed
SEEDS  ?=
seeds   = $(if $(SEEDS),seed=$(SEEDS))

.DEFAULT_GOAL := help
.PHONY: help install recipe-ablation norm-ablation plan test test-slow benchmark lint types check clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(READY)  ## make .venv and install into it

# pip, not another installer: torch's CPU build is what the pin is for. A failed install leaves no stamp and is repeated.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and f"Python 3.11 or newer is needed; $(PYTHON) is {v[0]}.{v[1]}. Name another: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

recipe-ablation: $(READY)  ## the main job: from the 2017 recipe to Llama's, 7 rows x 3 seeds (SEEDS=0,1,2,3,4 for more)
	@$(BIN)/python train.py -m sweeps=recipe $(seeds)

norm-ablation: $(READY)  ## LayerNorm against RMSNorm (SEEDS=...)
	@$(BIN)/python train.py -m sweeps=norm $(seeds)

plan: $(READY)  ## what recipe-ablation would train, and how long; starts nothing
	@$(BIN)/python train.py -m sweeps=recipe $(seeds) sweep.plan=true

test: $(READY)  ## the tests, in under 5 minutes
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile

test-slow: $(READY)  ## the tests that take minutes
	$(BIN)/python -m pytest -m slow

benchmark: $(READY)  ## a training step against peers, in ratios
	@$(BIN)/python -m lecture04.benchmark

lint: $(READY)  ## formatting and lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)  ## the type checker
	$(BIN)/basedpyright

check: lint types test  ## lint, types and tests

clean:  ## remove .venv and caches; outputs/ stays
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis src/*.egg-info
