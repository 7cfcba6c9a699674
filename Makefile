# `make help` lists the targets. The first one that needs it makes .venv with the exact versions of constraints.txt.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.installed
SEEDS  ?=
seeds   = $(if $(SEEDS),seed=$(SEEDS))

ABLATIONS = recipe-ablation ffn-ablation norm-ablation placement-ablation attention-ablation posenc-ablation

.DEFAULT_GOAL := help
.PHONY: help install $(ABLATIONS) plan parts test test-slow benchmark lint types check clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-20s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(READY)  ## make .venv and install into it

# pip, not another installer: torch's CPU build is what the pin is for. A failed install leaves no stamp and is repeated.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and f"Python 3.11 or newer is needed; $(PYTHON) is {v[0]}.{v[1]}. Name another: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

recipe-ablation:     ## the main job: from the 2017 recipe to Llama's, 7 rows x 3 seeds (SEEDS=0,1,2,3,4 for more)
ffn-ablation:        ## feed-forward layers of equal size: ReLU, GELU, SiLU, SwiGLU (SEEDS=...)
norm-ablation:       ## LayerNorm against RMSNorm (SEEDS=...)
placement-ablation:  ## where the norms stand: pre, post, sandwich (SEEDS=...)
attention-ablation:  ## key and value heads: MHA, GQA, MQA (SEEDS=...)
posenc-ablation:     ## position encodings on whole documents (SEEDS=...)
$(ABLATIONS): %-ablation: $(READY)
	@$(BIN)/python train.py -m sweeps=$* $(seeds)

plan: $(READY)  ## what recipe-ablation would train, and how long; starts nothing
	@$(BIN)/python train.py -m sweeps=recipe $(seeds) sweep.plan=true

parts: $(READY)  ## every part with what it is and where it comes from
	@$(BIN)/python -m lecture04.shelf

test: $(READY)  ## the tests, in under 5 minutes
	$(BIN)/python -m pytest -m "not slow" -n logical --dist loadfile

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
