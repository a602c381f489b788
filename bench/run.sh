#!/bin/bash
# What the benchmark starts: ./run.sh index PAGES BENCH | ./run.sh serve. Settings come from the benchmark's BENCH_* variables.
set -euo pipefail
python="$(dirname "$0")/python" # made by install.sh
store="${BENCH_OPENSEARCH/#http/opensearch}"
export DOCS_STORE="${store%/}/$BENCH_INDEX"
export DOCS_LLM_URL="$BENCH_LLM" DOCS_LLM_MODEL=fake
export DOCS_EMBEDDING_URL="$BENCH_LLM" DOCS_EMBEDDING_MODEL=fake-embed
export DOCS_LANGUAGES=en DOCS_ASSISTANTS=assistants.toml
export DOCS_LOG_LEVEL="${BENCH_LOG_LEVEL:-warning}" # as the other contestants are started

case "$1" in
  index) exec "$python" index.py "$2" "$3" ;;
  serve) exec "$python" -m docs_assistant.cli serve --port 8850 ;;
  *) echo "run.sh knows index and serve, not $1." >&2; exit 1 ;;
esac
