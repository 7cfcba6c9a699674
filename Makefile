# `make help` lists the targets. The first one that needs it makes .venv with the exact versions of constraints.txt.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.installed
SEEDS  ?=
seeds   = $(if $(SEEDS),'seed=$(SEEDS)')

ABLATIONS = $(patsubst sweeps/%.yaml,%-ablation,$(wildcard sweeps/*.yaml))

.DEFAULT_GOAL := help
.PHONY: help install $(ABLATIONS) worlds lecture report figures plan tables parts test test-slow benchmark aa docs wheel try-wheel lint types check clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z_-]+:.*## / {printf "  %-27s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

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
nope_by_document-ablation:  ## no position encoding against each of them, on whole documents (SEEDS=...)
extrapolation-ablation:     ## trained on blocks of 64 tokens, tested on blocks of 512 (SEEDS=...)
uptrain-ablation:           ## MHA's heads merged to GQA and MQA and trained on, and both from scratch (SEEDS=...)
uptrain_rates-ablation:     ## MHA's heads merged and trained on at other learning rates (SEEDS=...)
uptrain_direct-ablation:    ## MHA's heads merged and used as they are (SEEDS=...)
warmup-ablation:            ## placement x learning rate x warm-up, 6 layers (SEEDS=...)
stability-ablation:         ## the recipes of 2017 and Llama under stress, 6 layers (SEEDS=...)
collapse-ablation:          ## how often those recipes collapse, 4 rows x 10 seeds; make lecture reads it (SEEDS=...)
relu_high_lr-ablation:      ## do high learning rates kill ReLU's units? (SEEDS=...)
aa-ablation:                ## one configuration and twelve seeds, for the A/A test (then make aa)
text_parts-ablation:        ## from the 2017 recipe to Llama's on a real text, Tiny Shakespeare (SEEDS=...)
worlds-ablation:            ## the recipe's ends and its two loudest steps in three worlds (also make worlds) (SEEDS=...)
mqar-ablation:              ## recall of 4, 8 and 16 pairs by the width of the model, 9 rows (SEEDS=...)
length-ablation:            ## copying trained on up to 20 symbols, tested on 21 to 40, by position encoding (SEEDS=...)
$(ABLATIONS): %-ablation: $(READY)
	@$(BIN)/lecture04 train -m sweeps=$* $(seeds)

worlds: worlds-ablation

lecture: $(READY)  ## everything that the lecture computes, run, judged and written to outputs/lecture/ (SECTION=4 for one)
	@$(BIN)/lecture04 lecture $(SECTION)

report: $(READY)  ## a page for each table of outputs/sweeps, and their index (TABLE=recipe for one)
	@$(BIN)/lecture04 report --html $(TABLE)

figures: $(READY)  ## each table's figures as PNG, SVG and PDF (TABLE=recipe for one)
	@$(BIN)/lecture04 report --figures $(TABLE)

plan: $(READY)  ## what recipe-ablation would train, and how long; starts nothing
	@$(BIN)/lecture04 train -m sweeps=recipe $(seeds) sweep.plan=true

tables: $(READY)  ## every table of outputs/ again, all its files, from the records alone
	@$(BIN)/lecture04 report

parts: $(READY)  ## every part with what it is and where it comes from
	@$(BIN)/lecture04 parts

# A file at a time to each process, in their order: sorted by their number of tests, the long files of few would come last.
test: $(READY)  ## the tests, in under 4 minutes
	$(BIN)/python -m pytest -m "not slow" -n logical --dist loadfile --no-loadscope-reorder

test-slow: $(READY)  ## the tests that take minutes, and all cases of those that `make test` samples
	$(BIN)/python -m pytest -m slow -n logical --dist loadfile

benchmark: $(READY)  ## a training step against peers, in ratios
	@$(BIN)/python tools/benchmark.py

aa: $(READY)  ## the A/A test on the runs of aa-ablation: are rows told apart that differ in their seeds alone?
	@$(BIN)/python tools/aa.py

docs: $(READY)  ## every picture and figure of README.md and docs/ again (PART=screens for one; all takes an hour)
	@$(BIN)/python tools/docs.py $(PART)

wheel: $(READY)  ## the wheel, into dist/
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

try-wheel:  ## build the wheel, install it into an empty environment and use it from an empty folder
	@PYTHON=$(PYTHON) tools/try_wheel.sh

lint: $(READY)  ## formatting and lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)  ## the type checker
	$(BIN)/basedpyright

check: lint types test  ## lint, types and tests

clean:  ## remove .venv and caches; outputs/ stays
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis dist
