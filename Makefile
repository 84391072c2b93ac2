# `make help` lists the targets. The virtual environment is made on demand with the machine's python3.
.DEFAULT_GOAL := help
PYTHON ?= python3
# What is installed into .venv: `make EXTRAS=dev,oracle test` adds the torch oracle.
EXTRAS ?= dev
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-$(EXTRAS)
WORKERS ?= auto

.PHONY: help install plan format check test report docs build clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

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

report: $(STAMP) ## Remake every committed report
	$(BIN)/rooflines report all

docs: $(STAMP) ## Regenerate the generated parts of the docs
	$(BIN)/cog -r README.md docs/*.md

build: $(STAMP) ## Build the wheel and the source distribution
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	$(BIN)/python -m build

clean: ## Remove the virtual environment and what was built
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
