#!/bin/bash
# Adds Docs Assistant to a copy of the benchmark: bench/install.sh BENCH [PYTHON]
# PYTHON is one that Docs Assistant is installed for, by default the repository's .venv/bin/python.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
bench="${1:?Which benchmark? Say bench/install.sh DIRECTORY.}"
python="${2:-$here/../.venv/bin/python}"
[ -f "$bench/bench.py" ] || { echo "$bench has no bench.py: name a copy of the benchmark's directory." >&2; exit 1; }
"$python" -c 'import docs_assistant.cli, aiohttp' || { echo "$python has no Docs Assistant: run make install, or name another one." >&2; exit 1; }
contestant="$bench/contestants/ours"
mkdir -p "$contestant"
for file in contestant.json assistants.toml run.sh index.py; do
  ln -sfn "$here/$file" "$contestant/$file"
done
# a wrapper and no link: a venv's python finds its packages by the path that it was started with
printf '#!/bin/sh\nexec "%s" "$@"\n' "$(cd "$(dirname "$python")" && pwd)/$(basename "$python")" > "$contestant/python"
chmod +x "$contestant/python"
echo "Docs Assistant is the contestant 'ours' in $bench."
