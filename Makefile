# make demo: see real texts tagged with real labels.   make test: the whole suite.
PYTHON ?= python3
BIN := $(if $(filter Windows_NT,$(OS)),.venv/Scripts,.venv/bin)
SOURCES := pyproject.toml constraints.txt CMakeLists.txt $(wildcard src/longtail/native/*.cpp src/longtail/native/*.h)
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: demo test lint bench clean

demo: .venv/installed
	$(BIN)/longtail demo

test: .venv/installed-test
	$(BIN)/python -m pytest -n auto

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/installed-test
	$(BIN)/python -m benchmarks.compare $(BENCH)

clean:
	rm -rf .venv build dist

.venv/created:
	$(PYTHON) -m venv .venv
	@touch $@

.venv/installed: $(SOURCES) | .venv/created
	@echo "Installing longtail into .venv: pip fetches what it needs and compiles the kernels, about a minute"
	$(PIP) --editable .
	@touch $@

.venv/installed-%: $(SOURCES) | .venv/created
	@echo "Installing longtail[$*] into .venv"
	$(PIP) --editable ".[$*]"
	@touch $@ .venv/installed
