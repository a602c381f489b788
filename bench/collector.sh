#!/usr/bin/env bash
# Sends the trace of one answer to the real OpenTelemetry Collector, and prints the spans that it took.
# Builds the collector from the Go module proxy (needs Go; minutes, once). Usage: bench/collector.sh [DIRECTORY]
set -euo pipefail
cd "$(dirname "$0")/.."

VERSION=v0.150.0
OUT=${1:-$HOME/.cache/docs-assistant/otelcol-$VERSION}
PORT=${PORT:-14318}
mkdir -p "$OUT"
if [ ! -x "$OUT/otelcol" ]; then
  cat > "$OUT/builder.yaml" <<YAML
dist: {name: otelcol, output_path: $OUT}
receivers: [{gomod: go.opentelemetry.io/collector/receiver/otlpreceiver $VERSION}]
exporters: [{gomod: go.opentelemetry.io/collector/exporter/debugexporter $VERSION}]
conf_resolver: {default_uri_scheme: file}
providers: [{gomod: go.opentelemetry.io/collector/confmap/provider/fileprovider v1.56.0}]
YAML
  go run "go.opentelemetry.io/collector/cmd/builder@$VERSION" --config "$OUT/builder.yaml"
fi
cat > "$OUT/config.yaml" <<YAML
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:$PORT"}}}}
exporters: {debug: {verbosity: detailed}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [debug]}}
YAML
"$OUT/otelcol" --config "$OUT/config.yaml" > "$OUT/log" 2>&1 &
collector=$!
trap 'kill $collector' EXIT
until grep -q "Everything is ready" "$OUT/log"; do kill -0 $collector; sleep 0.2; done

OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:$PORT .venv/bin/python - <<'PYTHON'
import asyncio, tempfile
from pathlib import Path
from docs_assistant.cli import tracing
from tests.app.routes.indexed import indexed
from tests.app.routes.scripted import client_of


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder, tracing.tracing():
        async with indexed(Path(folder)) as service, client_of(service.app) as client:
            question = {"role": "user", "content": "How do I create a persistent volume?"}
            body = {"model": "docs-assistant", "messages": [question], "stream": True}
            assert (await client.post("/v1/chat/completions", json=body)).status_code == 200


asyncio.run(main())
PYTHON
sleep 1
grep -E "^ +Name +:|gen_ai\.|db\.|docs_assistant|service\.name|Status code" "$OUT/log"
