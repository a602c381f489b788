#!/bin/sh
# Makes the pages beside it anew from sources/: sh make.sh DIR, where DIR has a venv `v` (pip install sphinx furo) and
# `npm` (npm install typedoc typescript jsdoc). It needs javadoc (17), doxygen (1.9) and cargo (1.95) too.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=$(cd "$1" && pwd)
rm -rf "$dir/api" && mkdir -p "$dir/api/rust/src" "$dir/api/java/lumora" "$dir/api/ts" && cd "$dir/api"

cp "$here"/sources/*.rst . && cp "$here/sources/lumora.txt" lumora.py
printf 'API\n===\n\n.. toctree::\n\n   api\n   domains\n' > index.rst
cat > conf.py <<'CONF'
import sys
sys.path.insert(0, ".")
extensions = ["sphinx.ext.autodoc", "sphinx.ext.viewcode"]
maximum_signature_line_length = 125
CONF
for theme in alabaster furo; do "$dir/v/bin/sphinx-build" -q -D html_theme=$theme . $theme; done

cp "$here/sources/index.ts" ts && cd ts && ln -s "$dir/npm/node_modules" node_modules
echo '{"name":"lumora"}' > package.json && echo '# Lumora' > README.md
echo '{"compilerOptions":{"target":"es2022","strict":true,"skipLibCheck":true},"files":["index.ts"]}' > tsconfig.json
node_modules/.bin/typedoc --entryPoints index.ts --out ../typedoc --disableGit \
  --sourceLinkTemplate 'https://code.example/{path}' --gitRevision main && cd ..
"$dir/npm/node_modules/.bin/jsdoc" "$here/sources/box.js" -d jsdoc

cp "$here/sources/Box.java" java/lumora && (cd java && javadoc -quiet -d ../javadoc lumora/Box.java)
cp "$here/sources/box.h" . && printf 'PROJECT_NAME=Lumora\nINPUT=box.h\nEXTRACT_ALL=YES\nGENERATE_LATEX=NO\nQUIET=YES\n' > Doxyfile
doxygen
cp "$here/sources/lib.rs" rust/src
printf '[package]\nname = "lumora"\nversion = "0.1.0"\nedition = "2021"\n' > rust/Cargo.toml
(cd rust && CARGO_TARGET_DIR=target cargo doc --offline --no-deps)

"$dir/v/bin/python" "$here/cut.py" "$dir/api" "$here"
