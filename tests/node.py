"""Scripts for the official client for JavaScript, where Node.js and the package are (`make install-dev` with npm)."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MODULES = Path(sys.prefix) / "js" / "node_modules"


def run_node(script: str, folder: Path, stdin: str = "") -> str:
    """Standard output of the script, which may import openai; the test skips where that can't be."""
    if not shutil.which("node") or not (MODULES / "openai").is_dir():
        pytest.skip("needs Node.js and npm: install them, then `make install-dev` once more")
    (folder / "node_modules").symlink_to(MODULES)
    file = folder / "script.mjs"
    file.write_text(script, encoding="utf-8")
    done = subprocess.run(["node", str(file)], input=stdin, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
