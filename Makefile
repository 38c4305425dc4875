# make demo    explain an embedded dataset, print the answer, write demo.png
# make test    lint, types and tests; the app in a browser where there is one (chromium)
# make app     open the app
# make lint    ruff and mypy
# make bench   speed, side by side with the alternatives
# make scale   files, Dask, many clusters and the app, beside what there is to compare them with
# make dice    the same rows answered by DiCE, in an environment of its own
# make sweep   judge a million random projections (COUNT=...)
# make paper   recompute the paper's tables and compare every cell

PYTHON ?= python3
VENV ?= .venv
RUN = $(VENV)/bin/python
COUNT ?= 1000000

.PHONY: demo app test lint bench scale dice sweep paper clean

demo: $(VENV)/demo
	$(RUN) examples/demo.py

app: $(VENV)/app
	$(RUN) -m voicecf app

test: $(VENV)/test
	$(RUN) -m ruff check src tests benchmarks examples
	$(RUN) -m ruff format --check src tests benchmarks examples
	$(RUN) -m mypy
	$(RUN) -m pytest --numprocesses 2 --dist loadfile

lint: $(VENV)/test
	$(RUN) -m ruff check --fix src tests benchmarks examples
	$(RUN) -m ruff format src tests benchmarks examples
	$(RUN) -m mypy

bench: $(VENV)/bench
	$(RUN) benchmarks/run.py

scale: $(VENV)/test
	$(RUN) benchmarks/bench_app.py
	$(RUN) benchmarks/bench_dask.py
	$(RUN) benchmarks/bench_neighbors.py
	$(RUN) benchmarks/bench_files.py

dice: $(VENV)/test
	$(RUN) benchmarks/bench_dice.py $(VENV)-dice

sweep: $(VENV)/test
	$(RUN) tests/sweep.py --count $(COUNT) --processes 2

paper: $(VENV)/test
	$(RUN) -m voicecf reproduce --check

$(VENV)/bin/pip:
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --upgrade pip

$(VENV)/demo: $(VENV)/bin/pip pyproject.toml
	$(VENV)/bin/pip install --quiet --editable ".[plot]" pandas
	touch $@

$(VENV)/app: $(VENV)/bin/pip pyproject.toml
	$(VENV)/bin/pip install --quiet --editable ".[app]"
	touch $@

$(VENV)/test: $(VENV)/bin/pip pyproject.toml
	$(VENV)/bin/pip install --quiet --editable ".[plot,app,test,judges,dev]"
	touch $@

# quadprog is GPL: measured against here, neither shipped nor required.
$(VENV)/bench: $(VENV)/test
	$(VENV)/bin/pip install --quiet quadprog
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-dice build dist demo.png
