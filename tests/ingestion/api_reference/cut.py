"""Cuts the pages that the generators built to their content: cut.py BUILT OUT. See make.sh."""

import re
import sys
from pathlib import Path

PAGES = {
    "sphinx": ("alabaster/api.html", r'<div class="body" role="main">.*?</section>\s*(?=</div>)'),
    "sphinx-furo": ("furo/api.html", r'<article role="main".*?</article>'),
    "sphinx-domains": ("alabaster/domains.html", r'<div class="body" role="main">.*?</section>\s*(?=</div>)'),
    "typedoc": ("typedoc/classes/Box.html", r'<div class="col-content">.*?(?=<div class="col-sidebar">)'),
    "typedoc-function": ("typedoc/functions/open.html", r'<div class="col-content">.*?(?=<div class="col-sidebar">)'),
    "typedoc-inherited": ("typedoc/classes/Lid.html", r'<div class="col-content">.*?(?=<div class="col-sidebar">)'),
    "jsdoc": ("jsdoc/Box.html", r'<div id="main">.*?</div>\s*(?=<nav>)'),
    "javadoc": ("javadoc/lumora/Box.html", r'<main role="main">.*?</main>'),
    "javadoc-enum": ("javadoc/lumora/Box.Colour.html", r'<main role="main">.*?</main>'),
    "doxygen": ("html/classlumora_1_1Box.html", r'<div class="header">.*?(?=<!-- start footer part -->)'),
    "doxygen-enum": ("html/box_8h.html", r'<div class="header">.*?(?=<!-- start footer part -->)'),
    "rustdoc": ("rust/target/doc/lumora/struct.Crate.html", r"<main>.*?</main>"),
    "rustdoc-enum": ("rust/target/doc/lumora/enum.Error.html", r"<main>.*?</main>"),
}

built, out = Path(sys.argv[1]), Path(sys.argv[2])
for name, (path, content) in PAGES.items():
    page = (built / path).read_text("utf-8")
    title = re.search(r"<title>.*?</title>", page, re.DOTALL)
    found = re.search(content, page, re.DOTALL)
    if not title or not found:
        raise SystemExit(f"{name}: no content found in {path}")
    body = re.sub(r"<svg.*?</svg>", "<svg></svg>", found[0], flags=re.DOTALL)
    body = re.sub(
        r'(<div id="blanket-implementations-list">.*?</details>).*?(?=</section></div></main>)', r"\1</div>", body
    )
    html = f'<!DOCTYPE html>\n<html lang="en"><head>{title[0]}</head><body>\n{body}\n</body></html>\n'
    (out / f"{name}.html").write_text(re.sub(r"[ \t]+\n", "\n", html), "utf-8")
