#!/usr/bin/env bash
# Installs packages of constraints.txt into a virtual environment: install.sh VENV ARGUMENTS, the arguments of pip install.
# uv takes half of pip's time or less, and goes again afterwards: 50 MB. It doesn't read pip's settings, so it gets pip's
# index and certificates from here. It copies files, because nltk refuses hard links to its cache. Where it fails, pip
# installs, and pip's message is the one to go by.
set -euo pipefail
venv=$1; shift
pip=("$venv/bin/python" -m pip --disable-pip-version-check)
index=$("${pip[@]}" config list | sed -n "s/^[a-z:]*\.index-url='\(.*\)'$/\1/p" | tail -1)
[ -z "$index" ] || export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$index}"
[ -z "${PIP_CERT:-}" ] || export SSL_CERT_FILE="${SSL_CERT_FILE:-$PIP_CERT}"
uv=("$venv/bin/uv" pip)
if "${pip[@]}" install --quiet -c constraints.txt uv &&
  "${uv[@]}" install --quiet --link-mode copy --compile-bytecode --python "$venv/bin/python" -c constraints.txt "$@"; then
  exec "${uv[@]}" uninstall --quiet --python "$venv/bin/python" uv
fi
echo "uv couldn't install that; now pip tries it, which takes longer ..." >&2
exec "${pip[@]}" install --quiet -c constraints.txt "$@"
