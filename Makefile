# Two commands: `make prove` checks the headline claim of every study and writes a report,
# `make test` runs the tests. Both set up what they need in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: prove test check lint format docs clean

prove: $(READY)
	$(BIN)/proving check --headline; verdict=$$?; \
	$(BIN)/proving report --headline --out report.html; exit $$verdict

test: $(READY)
	$(BIN)/pytest -n 2 --dist worksteal $(TESTS)

check: $(READY)
	$(BIN)/proving check

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)
	$(BIN)/python -m provingground.registry
	$(BIN)/python -m provingground.atlas.records README.md

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) report.html
