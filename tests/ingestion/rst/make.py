"""Lists the ids of the pages that Sphinx builds of `docs`: make.py BUILT OUT, after `sphinx-build docs BUILT` (with sphinx-design)."""

import json
import re
import sys
from pathlib import Path

built, out = Path(sys.argv[1]), Path(sys.argv[2])
pages = {name: (built / f"{name}.html").read_text("utf-8") for name in ("index", "guide/install", "api")}
ids = {name: sorted(set(re.findall(r'\bid="([^"]+)"', page))) for name, page in pages.items()}
out.write_text(json.dumps(ids, indent=1) + "\n", "utf-8")
