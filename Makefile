# make demo: the main job on real data.  make test: lint, types, tests.  Both make .venv and install what they need.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test lint types tests test-long test-browser overhead reproduce bench bench-full ablations docs figures clean

demo: .venv/demo
	$(BIN)/python examples/demo.py

test: lint types tests

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/dev
	$(BIN)/mypy

tests: .venv/dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --hypothesis-profile=ci

test-long: .venv/dev .venv/demo .venv/dask .venv/ray  ## minutes: thousands of kills, big runs, a local Dask, a local Ray
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m long

test-browser: .venv/dev .venv/demo .venv/browser  ## the HTML report in Chromium (Debian: chromium chromium-driver npm)
	$(BIN)/python -m pytest -s tests/test_browser.py

docs: .venv/docs  ## the documentation into out/site; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

figures: .venv/docs .venv/epanet .venv/mujoco .venv/browser  ## every number and figure of the documentation, anew
	OMP_NUM_THREADS=1 $(BIN)/python examples/readme_figure.py
	$(BIN)/python docs/generate.py

EXAMPLES := water softmax tanh ngspice mujoco
.PHONY: $(EXAMPLES:%=example-%)
example-water: .venv/epanet
	$(BIN)/python examples/water_network.py
example-softmax: .venv/demo
	$(BIN)/python examples/softmax.py
example-tanh: .venv/demo
	$(BIN)/python examples/tanh_network.py
example-ngspice: .venv/demo
	$(BIN)/python examples/ngspice_ladder.py
example-mujoco: .venv/mujoco
	$(BIN)/python examples/mujoco_policy.py

reproduce: .venv/demo  ## the paper's claims: tables, figures and verdicts into reproduce/
	@set -e; for script in reproduce/claim_*.py; do OMP_NUM_THREADS=1 $(BIN)/python $$script; done
	$(BIN)/python reproduce/table.py

bench: .venv/bench  ## ten minutes: a part of the benchmark against the peers, from scratch, into out/bench
	rm -rf out/bench
	$(BIN)/python -W ignore -m benchmarks.run --set quick --results out/bench
	$(BIN)/python -m benchmarks.report --results out/bench --page out/bench/README.md

bench-full: .venv/bench  ## all of it: runs what benchmarks/results lacks, writes benchmarks/README.md
	$(BIN)/python -W ignore -m benchmarks.run
	$(BIN)/python -m benchmarks.report
	$(BIN)/python -W ignore -m benchmarks.limits

ablations: .venv/bench  ## the default with one part changed, writes benchmarks/ablations.md
	$(BIN)/python -m benchmarks.ablations

overhead: .venv/dev  ## speed and memory as ratios, in one run
	$(BIN)/python benchmarks/overhead.py

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("fewdim needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv

EXTRAS := demo dev bench dask ray docs epanet mujoco browser
$(EXTRAS:%=.venv/%): .venv/%: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) --editable '.[$*]'
	@touch $@

clean:
	rm -rf .venv out .mypy_cache .ruff_cache .pytest_cache .hypothesis
