"""The documentation site: docs/<language>/*.md -> app/site/<language>/*.html, whenever the package is built or installed.

`python hatch_build.py` builds it alone, as `make docs` does.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from string import Template
from typing import Any

import yaml
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
SITE = ROOT / "app/site"


class SiteBuild(BuildHookInterface):  # type: ignore[type-arg]
    """Builds the site into the package, for an editable installation too."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002  # the hook's signature
        """Build it, and have it in the wheel though git ignores it. Raises `FileNotFoundError` where a package is missing."""
        require([Path(self.root, package) for package in self.build_config.packages])
        build_site(ROOT / "docs", SITE)
        build_data["artifacts"].append("app/site")


def require(packages: list[Path]) -> None:
    """Refuse to build without a package that pyproject.toml lists: hatchling would leave it out without a word."""
    if missing := [package.name for package in packages if not package.is_dir()]:
        raise FileNotFoundError(
            f"The package {missing[0]} of pyproject.toml isn't among the files that are built: add it to .dockerignore, or to the copy."
        )


def build_site(docs: Path, to: Path) -> None:
    """Build every language of `docs` into `to`, whose former content goes. Raises `CalledProcessError` for broken links."""
    words = {file.parent.name: tomllib.loads(file.read_text("utf-8")) for file in sorted(docs.glob("*/site.toml"))}
    languages = [{"code": code, "name": own.pop("language")} for code, own in words.items()]
    with tempfile.TemporaryDirectory() as temporary:
        for code, own in words.items():
            project = Path(temporary, code)
            shutil.copytree(ROOT / "website", project)
            shutil.copytree(docs / code, project / "docs", ignore=shutil.ignore_patterns("*.toml"))
            values = {**own, "language": code, "languages": languages, "nav": _listed(project / "docs")}
            config = project / "zensical.toml"
            filled = {name: _toml(value) for name, value in values.items()}
            config.write_text(Template(config.read_text("utf-8")).substitute(filled), "utf-8")
            subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=project, check=True)
        shutil.rmtree(to, ignore_errors=True)
        for code in words:
            shutil.copytree(Path(temporary, code, "site"), to / code)


def _listed(docs: Path) -> list[str]:
    """The pages of the navigation, by `order` of their front matter."""
    pages = {file.name: next(yaml.safe_load_all(file.read_text("utf-8"))) for file in docs.glob("*.md")}
    listed = [name for name, meta in pages.items() if meta.get("listed") is not False]
    return sorted(listed, key=lambda name: pages[name]["order"])


def _toml(value: Any) -> str:
    """The value as TOML has it; strings and lists are written as in JSON."""
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(item)}' for key, item in value.items())} }}"
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    build_site(ROOT / "docs", SITE)
