#!/usr/bin/env bash
# Installs the project of this directory and what it needs, as locked in requirements.lock, into a virtual environment:
# install.sh VENV [-e] '.[EXTRAS]'. With --no-deps it installs only the project, with --only-deps only what it needs.
# Each file must have a hash of the lock. uv takes half of pip's time or less, and goes again afterwards: 50 MB. It doesn't
# read pip's settings, so it gets pip's index and certificates from here. It copies files, because nltk refuses hard links
# to its cache. Where it fails, pip installs, and pip's message is the one to go by.
set -euo pipefail
python=$1/bin/python uv=("$1/bin/uv" pip); shift
pip=("$python" -m pip --disable-pip-version-check)
index=$("${pip[@]}" config list | sed -n "s/^[a-z:]*\.index-url='\(.*\)'$/\1/p" | tail -1)
[ -z "$index" ] || export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$index}"
[ -z "${PIP_CERT:-}" ] || export SSL_CERT_FILE="${SSL_CERT_FILE:-$PIP_CERT}"

was=$([ ! -x "${uv[0]}" ] || echo there) # among the tools for development
part=all
case " $* " in *" --no-deps "*) part=project ;; *" --only-deps "*) part=needed ;; esac
project=()
for word; do [[ $word == --*-deps ]] || project+=("$word"); done

locked=$(mktemp -d)
trap 'rm -rf "$locked"' EXIT
for one in uv build langdetect "${project[-1]}"; do
  "$python" deploy/lock.py "$one" > "$locked/${one%%[*}.txt"
done

# What builds lies beside the environment: nothing is fetched without a hash while a package is built. Only langdetect has no wheel
install() {
  "$@" --target "$locked/build" --require-hashes -r "$locked/build.txt" || return
  local building=(env PYTHONPATH="$locked/build" "$@" --no-build-isolation --no-deps)
  if [ $part != project ]; then
    "${building[@]}" --require-hashes -r "$locked/langdetect.txt" && "$@" --require-hashes -r "$locked/..txt" || return
  fi
  [ $part = needed ] || "${building[@]}" "${project[@]}"
}

if "${pip[@]}" install --quiet --require-hashes -r "$locked/uv.txt" &&
  install "${uv[@]}" install --quiet --link-mode copy --compile-bytecode --python "$python"; then
  [ -n "$was" ] || grep -q '^uv==' "$locked/..txt" || "${uv[@]}" uninstall --quiet --python "$python" uv
  exit
fi
rm -rf "$locked/build"
echo "uv couldn't install that; now pip tries it, which takes longer ..." >&2
install "${pip[@]}" install --quiet
