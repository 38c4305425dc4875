# make demo    explain an embedded dataset, print the answer, write demo.png
# make test    lint, types and tests; the app in a browser where there is one (chromium)
# make app     open the app
# make lint    ruff and mypy
# make oldest  tables, pipelines and saving under the oldest versions that pyproject.toml allows
# make engines  the examples that run in Spark and Ray, which make test passes over (needs Java)
# make house   import cycles, layers, long and wide functions (tools/house.py)
# make bench   speed, side by side with the alternatives
# make scale   files, Dask, many clusters, the app and the service, beside what there is to compare them with
# make usual   how believable the default answers are, on ten tables
# make others  the same rows answered by DiCE, alibi and CFCLUST, in environments of their own
#              (VOICE=folder: also by the paper's software, of which folder is a checkout)
# make sweep   the tests that make test leaves out for their volume (marked slow), 20,000 random searches
#              among them; judge a million random projections (COUNT=...), and 200,000 answers of models
#              at extreme numbers
# make sanitize  the core's tests under address and undefined-behaviour sanitizers
# make portable  the kernels for ARM, Windows and macOS: no warning, and for ARM the same bits (needs qemu-user)
# make wheel   build a wheel, and test it in a fresh environment without a compiler
# make docs    build the documentation in build/docs; open index.html there
# make pictures  write the notebooks, and the pictures that are kept in docs (needs chromium)
# make paper   recompute the paper's tables and compare every cell

PYTHON ?= python3
VENV ?= .venv
RUN = $(VENV)/bin/python
COUNT ?= 1000000
# A browser that did not answer in time, on a busy machine, is asked once more; nothing else is.
AGAIN = --reruns 1 --only-rerun "^(Timeout)?Error: (Locator|Page)"
# What the core is compiled with: a compiler of this machine, else the one that PyPI has as ziglang.
COMPILER := $(shell command -v $${CXX:-c++} || command -v g++ || command -v clang++)

.PHONY: demo app test oldest engines lint house bench scale usual others sweep sanitize portable wheel paper docs pictures clean

demo: $(VENV)/demo
	$(RUN) examples/demo.py

app: $(VENV)/app
	$(RUN) -m voicecf app

test: $(VENV)/test
	$(RUN) -m ruff check src tests benchmarks examples tools
	$(RUN) -m ruff format --check src tests benchmarks examples tools
	$(RUN) -m mypy
	$(RUN) tools/house.py
	$(RUN) -m pytest --numprocesses 2 --dist worksteal $(AGAIN)

# What concerns tables, pipelines and saving: what other versions of pandas or scikit-learn change.
OLDEST = bad_input columns counterfactuals names_and_ids pipeline rules saved_pipelines saving space \
	streaming types what_comes_in
# The warnings are those of pandas 2.2 and of scikit-learn 1.7 about themselves; pictures are left out, as
# the oldest matplotlib does not go with the newest of what it needs.
oldest: $(VENV)-oldest/test
	$(VENV)-oldest/bin/pip list --format=freeze | grep -iE "^(numpy|scipy|scikit-learn|pandas|narwhals|polars|pyarrow)="
	$(VENV)-oldest/bin/python -m pytest --numprocesses 2 $(OLDEST:%=tests/test_%.py) -k "not picture" \
		-W "ignore:invalid value encountered in cast:RuntimeWarning" -W "ignore:Currently, when:FutureWarning" \
		-W "ignore:The current default behavior:FutureWarning"

engines: $(VENV)-engines/test
	@command -v java > /dev/null || { echo "Spark needs Java 17 or later: install openjdk-17-jre-headless (Debian), \
	java-17-openjdk-headless (Fedora) or openjdk@17 (Homebrew)." >&2; exit 1; }
	for engine in spark ray_batches; do \
		$(VENV)-engines/bin/python -W error examples/$$engine.py || exit 1; \
	done

lint: $(VENV)/test
	$(RUN) -m ruff check --fix src tests benchmarks examples tools
	$(RUN) -m ruff format src tests benchmarks examples tools
	$(RUN) -m mypy

house: $(VENV)/test
	$(RUN) tools/house.py

# A benchmark that fails is no result: the pipe fails with it.
bench scale usual: SHELL = bash
bench scale usual: .SHELLFLAGS = -o pipefail -ec

bench: $(VENV)/bench
	$(RUN) benchmarks/run.py | tee benchmarks/results/bench.txt

scale: $(VENV)/test
	for part in files dask neighbors app service; do \
		$(RUN) benchmarks/bench_$$part.py | tee benchmarks/results/$$part.txt; \
	done

# Tables of others: only their files are read.
usual: $(VENV)/test
	$(VENV)/bin/pip install --quiet --no-deps ISLP lifetimes
	$(RUN) benchmarks/bench_usual.py | tee benchmarks/results/usual.md

others: $(VENV)/test
	$(RUN) benchmarks/bench_others.py --environments $(VENV) $(if $(VOICE),--voice $(VOICE))

sweep: $(VENV)/test
	$(RUN) -m pytest -m slow --numprocesses 2 --dist worksteal $(AGAIN) tests
	$(RUN) tests/sweep.py --count $(COUNT) --processes 2
	$(RUN) tests/attack.py --count 200000 --processes 2

docs: $(VENV)/docs
	NO_MKDOCS_2_WARNING=1 MPLBACKEND=Agg $(VENV)/bin/mkdocs build
	@echo "build/docs/index.html"

pictures: $(VENV)/test
	VOICECF_SCREENSHOTS=build/app $(RUN) -m pytest -q tests/test_app_browser.py -k "picture and 1400-light-3"
	$(RUN) tools/pages.py build/app

paper: $(VENV)/test
	$(RUN) -m voicecf reproduce --check

sanitize: $(VENV)/test
	$(VENV)/bin/pip install --quiet nanobind cmake ninja
	$(VENV)/bin/cmake -S . -B build/sanitize -G Ninja -DVOICECF_SANITIZE=ON \
		-DPython_EXECUTABLE=$(abspath $(RUN)) -DCMAKE_MAKE_PROGRAM=$(abspath $(VENV)/bin/ninja)
	$(VENV)/bin/cmake --build build/sanitize
	$(RUN) tests/sanitized.py build/sanitize

portable: $(VENV)/bin/pip
	$(VENV)/bin/pip install --quiet ziglang
	$(RUN) tools/portable.py build/portable

wheel: $(VENV)/test
	$(VENV)/bin/pip install --quiet build
	rm -rf dist
	$(COMPILING) $(RUN) -m build --wheel --outdir dist .
	rm -rf $(VENV)-wheel
	$(PYTHON) -m venv $(VENV)-wheel
	$(VENV)-wheel/bin/pip install --quiet "$$(ls dist/*.whl)[test]"
	cd tests && PATH=$(abspath $(VENV)-wheel)/bin CXX=/bin/false CC=/bin/false \
		$(abspath $(VENV)-wheel)/bin/python -m pytest -p no:cacheprovider -c /dev/null --rootdir=. \
		-q test_cells.py test_onepass.py test_region.py test_search.py test_cell.py

$(VENV)/bin/pip:
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --upgrade pip

# Without a compiler, PyPI has one: zig, in $(VENV). -I hides the build environment that pip sets up, and
# -mcpu=baseline asks for code that runs on any processor.
ifeq ($(COMPILER),)
ZIG = $(abspath $(VENV))/bin/zig
COMPILING = CC="$(ZIG)-cc" CXX="$(ZIG)-c++" CMAKE_ARGS="-DCMAKE_AR=$(ZIG)-ar -DCMAKE_RANLIB=$(ZIG)-ranlib"
$(VENV)/compiler: $(VENV)/bin/pip
	@echo "There is no C++ compiler: PyPI's ziglang is brought as one."
	$(VENV)/bin/pip install --quiet ziglang
	for tool in "cc -mcpu=baseline" "c++ -mcpu=baseline" ar ranlib; do \
		name="$(ZIG)-$${tool%% *}"; \
		printf '#!/bin/sh\nexec "%s" -I -m ziglang %s "$$@"\n' "$(abspath $(RUN))" "$$tool" > "$$name"; \
		chmod +x "$$name"; \
	done
	touch $@
else
COMPILING =
$(VENV)/compiler: $(VENV)/bin/pip
	touch $@
endif

# What the core is made from: the installed one is as old as the youngest of these.
NATIVE = CMakeLists.txt $(wildcard native/*)

$(VENV)/demo: $(VENV)/compiler pyproject.toml $(NATIVE)
	$(COMPILING) $(VENV)/bin/pip install --quiet --editable ".[plot]" pandas
	touch $@

$(VENV)/app: $(VENV)/compiler pyproject.toml $(NATIVE)
	$(COMPILING) $(VENV)/bin/pip install --quiet --editable ".[app]"
	touch $@

$(VENV)/test: $(VENV)/compiler pyproject.toml $(NATIVE)
	$(COMPILING) $(VENV)/bin/pip install --quiet --editable ".[plot,app,test,judges,dev]"
	touch $@

$(VENV)-oldest/test: $(VENV)/compiler pyproject.toml $(NATIVE) tools/oldest.py
	$(PYTHON) -m venv $(VENV)-oldest
	$(PYTHON) tools/oldest.py > $(VENV)-oldest/versions.txt
	$(COMPILING) $(VENV)-oldest/bin/pip install --quiet --constraint $(VENV)-oldest/versions.txt --editable ".[test]"
	touch $@

$(VENV)-engines/test: $(VENV)/compiler pyproject.toml $(NATIVE)
	$(PYTHON) -m venv $(VENV)-engines
	$(COMPILING) $(VENV)-engines/bin/pip install --quiet --editable ".[files]" pandas "pyspark>=4" "ray[data]"
	touch $@

$(VENV)/docs: $(VENV)/compiler pyproject.toml $(NATIVE)
	$(COMPILING) $(VENV)/bin/pip install --quiet --editable ".[plot,files,dask,docs]" pandas
	touch $@

# quadprog is GPL: measured against here, neither shipped nor required.
$(VENV)/bench: $(VENV)/test
	$(VENV)/bin/pip install --quiet quadprog
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-dice $(VENV)-alibi $(VENV)-wheel $(VENV)-oldest $(VENV)-engines build dist demo.png
