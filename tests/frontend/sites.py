"""Documentation sites as their generators build them, with the widget by the snippets of docs/en/widget.md.

MkDocs and Sphinx (pip) and Docusaurus (npm) are installed once, 530 MB, outside of the repository. There, what they build is
kept, too, as long as nothing that it is made from changes; the addresses of site and service are put in when it is served.
"""

import base64
import fcntl
import hashlib
import json
import mimetypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urljoin

import lxml.html
import pytest

from tests.ingestion.local_site import LocalSite

ROOT = Path(__file__).parents[2]
CACHE = Path.home() / ".cache/docs-assistant"
PIP = ("mkdocs==1.6.1", "mkdocs-material==9.8.1", "sphinx==9.0.4", "furo==2025.12.19", "myst-parser")
NPM = ("@docusaurus/core@3.10.2", "@docusaurus/preset-classic@3.10.2", "react@19", "react-dom@19")
SITE = "https://docs.example.org"
SERVICE = "https://assistant.example.org"  # as the snippets have it
HANDBOOK = Path(__file__).parent / "handbook"


def snippet(generator: str) -> str:
    """How docs/en/widget.md puts the widget into this generator's sites: the first code block below its heading."""
    text = (ROOT / "docs/en/widget.md").read_text("utf-8")
    section = text.split(f"{{#{generator}}}\n", 1)[1].split("\n## ")[0].split("\n### ")[0]
    return re.findall(r"```\w+\n(.*?)```", section, re.DOTALL)[0]


def built(generator: str, folder: Path) -> Path:
    """The files of a site of this generator, built in the empty `folder` unless they are kept from an earlier run."""
    sources = [Path(__file__), *sorted(HANDBOOK.rglob("*.md"))]
    made_from = b"".join(path.read_bytes() for path in sources) + snippet(generator).encode()
    kept = CACHE / f"site-{generator}-{hashlib.sha256(made_from).hexdigest()[:12]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{generator}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be building it
        if not kept.exists():
            files = GENERATORS[generator](folder)
            for old in CACHE.glob(f"site-{generator}-*"):
                shutil.rmtree(old, ignore_errors=True)
            shutil.copytree(files, copy := Path(tempfile.mkdtemp(dir=CACHE)) / "site")
            copy.rename(kept)
            copy.parent.rmdir()
    return kept


def tools(kind: str) -> Path:
    """Where the generators of pip or npm are. Skips the test where they can't be installed; in CI, that is a failure."""
    wanted, program = (PIP, sys.executable) if kind == "pip" else (NPM, shutil.which("npm"))
    name = hashlib.sha256(" ".join(wanted).encode()).hexdigest()[:12]
    folder = CACHE / f"sites-{kind}-{name}"
    if (folder / ".installed").exists():
        return folder
    try:
        assert program, "no npm"
        if kind == "pip":
            subprocess.run([program, "-m", "venv", folder], check=True, timeout=300)
            command = [str(folder / "bin/python"), "-m", "pip", "install", "-q", *wanted]
        else:
            folder.mkdir(parents=True, exist_ok=True)
            options = ("--no-audit", "--no-fund", "--loglevel=error")
            command = [program, "install", "--prefix", str(folder), *options, *wanted]
        subprocess.run(command, check=True, timeout=500)
    except (AssertionError, OSError, subprocess.SubprocessError) as error:
        message = f"the generators of {kind} can't be installed: {error}"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(message)
    (folder / ".installed").touch()
    return folder


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def mkdocs(folder: Path) -> Path:
    """A Czech site of MkDocs Material, with its instant navigation and its switch between light and dark."""
    config = f"""
site_name: Příručka
site_url: {SITE}/
use_directory_urls: true
theme:
  name: material
  language: cs
  font: false
  custom_dir: overrides
  features: [navigation.instant]
  palette:
    - {{scheme: default, toggle: {{icon: material/weather-night, name: dark}}}}
    - {{scheme: slate, toggle: {{icon: material/weather-sunny, name: light}}}}
"""
    shutil.copytree(HANDBOOK / "cs", folder / "docs")
    _write(folder, {"mkdocs.yml": config, "overrides/main.html": snippet("mkdocs")})
    _run([tools("pip") / "bin/mkdocs", "build", "-q"], folder)
    return folder / "site"


def sphinx(folder: Path) -> Path:
    """An English site of Sphinx with the theme Furo."""
    config = f"project = 'Handbook'\nlanguage = 'en'\nextensions = ['myst_parser']\nhtml_theme = 'furo'\nhtml_baseurl = '{SITE}/'\n"
    shutil.copytree(HANDBOOK / "en", folder, dirs_exist_ok=True)
    index = (folder / "index.md").read_text("utf-8") + "\n```{toctree}\n:glob:\n*\n```\n"
    _write(folder, {"conf.py": config + snippet("sphinx"), "index.md": index})
    _run([tools("pip") / "bin/sphinx-build", "-q", "-b", "html", ".", "site"], folder)
    return folder / "site"


def docusaurus(folder: Path) -> Path:
    """An English site of Docusaurus, which changes pages without loading them."""
    modules = tools("npm") / "node_modules"
    own = {"title": "Handbook", "url": SITE, "baseUrl": "/", "trailingSlash": True}
    own["presets"] = [["classic", {"docs": {"routeBasePath": "/"}, "blog": False}]]
    head = json.dumps(own).strip("{}") + ","
    config = snippet("docusaurus").replace("export default {\n", f"export default {{\n{head}\n")
    shutil.copytree(HANDBOOK / "en", folder / "docs")
    index = "---\nslug: /\n---\n" + (folder / "docs/index.md").read_text("utf-8")
    _write(folder, {"docusaurus.config.js": config, "package.json": "{}", "docs/index.md": index})
    (folder / "node_modules").symlink_to(modules)
    _run([modules / ".bin/docusaurus", "build"], folder)
    return folder / "build"


GENERATORS: Mapping[str, Callable[[Path], Path]] = {"mkdocs": mkdocs, "sphinx": sphinx, "docusaurus": docusaurus}


def _run(command: list[str | Path], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def serve(site: LocalSite, files: Path, service: str) -> str:
    """Serve the built files under a strict policy, with these addresses; gives that of a sitemap of their pages."""
    paths, asked = [], set()
    for file in sorted(path for path in files.rglob("*") if path.is_file()):
        path = "/" + file.relative_to(files).as_posix().removesuffix("index.html")
        body = file.read_bytes().replace(SITE.encode(), site.url.encode()).replace(SERVICE.encode(), service.encode())
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        headers = {}
        if kind == "text/html":
            kind += "; charset=utf-8"
            html = body.decode()
            headers = {"content-security-policy": policy(html, service)}
            asked |= {urljoin(path, link) for link in re.findall(r'(?:href|src)="([^":]+\?[^"]+)"', html)}
            paths += [] if re.search(r"404|search|genindex", path) else [path]
        site.put(path, body, kind, headers=headers)
    for link in asked:  # the query is only for the cache of browsers
        site.answers[link] = site.answers[link.partition("?")[0]]
    return site.sitemap(*paths)


def policy(html: str, service: str) -> str:
    """The content security policy of docs/en/widget.md, and the hashes of what the generator itself wrote into the page."""
    page = lxml.html.document_fromstring(html.encode())
    scripts = [node.text or "" for node in page.iter("script") if not node.get("src") and not _is_data(node)]
    styles = [node.text or "" for node in page.iter("style")]
    attributes = [str(value) for value in page.xpath("//@style")]
    loose = " 'unsafe-hashes'" if attributes else ""
    return (
        f"default-src 'none'; script-src 'self' {service}{_hashes(scripts)}; connect-src 'self' {service}; "
        f"style-src 'self'{loose}{_hashes(styles + attributes)}; img-src 'self' {service} data:; font-src 'self'"
    )


def _is_data(script: lxml.html.HtmlElement) -> bool:
    return "json" in (script.get("type") or "")


def _hashes(texts: list[str]) -> str:
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in dict.fromkeys(texts))
    return "".join(f" 'sha256-{digest}'" for digest in digests)
