# Two commands: `make prove` checks the headline claims of every study and writes a report,
# `make test` runs the tests. `make check` judges all quick claims and runs the long tests,
# `make test-web` those that open pages in a browser (Chromium). All set up what they need in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: prove test check test-web lint format docs clean

prove: $(READY)
	$(BIN)/proving check --headline; verdict=$$?; \
	$(BIN)/proving report --headline --out report.html; exit $$verdict

test: $(READY)
	$(BIN)/pytest -n 2 --dist worksteal -m "not claims and not slow and not records and not web" $(TESTS)

# From scratch, in a store of its own; in $PROVING_TEST_STORE where that is set.
check: $(READY)
	own=$$(mktemp -d); store="$${PROVING_TEST_STORE:-$$own}"; trap 'rm -rf "$$own"' EXIT; \
	PROVING_STORE="$$store" $(BIN)/proving check && \
	PROVING_TEST_STORE="$$store" $(BIN)/pytest -n 2 --dist worksteal -m "(claims or slow or records) and not web"

test-web: $(READY)
	$(BIN)/pytest -n 2 --dist worksteal -m web

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
	$(BIN)/python -m provingground.atlas.coverage docs/coverage.md
	$(BIN)/python -m provingground.atlas.findings docs/findings.md

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) report.html
