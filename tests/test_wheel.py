"""What is shipped: the wheel has everything that a service needs, and runs without the checkout."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.end_to_end.asking import INTRO, QUESTIONS, ask
from tests.end_to_end.program import environment, service

ROOT = Path(__file__).parents[1]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--no-input")
pytestmark = [pytest.mark.server, pytest.mark.slow]

LOADS_EVERYTHING = """
import app, eval, ingestion, prompts
from app.api.html_pages import find_docs
from app.assistants.assembly import build
from app.core.prompts import load_prompts
from app.core.settings import Settings

prompts_of = load_prompts(("cs", "en"))
print(*(module.__file__ for module in (app, eval, ingestion, prompts)))
print(find_docs())
print(len(list(find_docs().glob("[a-z][a-z]/*.md"))), sorted(prompts_of.languages), list(build(Settings.load(None)).by_id))
"""


def run(*command: str, cwd: Path, **settings: str) -> str:
    done = subprocess.run(command, cwd=cwd, env=environment(settings), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from this checkout, without the network: the build backend is among the development packages."""
    folder = tmp_path_factory.mktemp("wheel")
    run(*PIP, "wheel", str(ROOT), "--no-deps", "--no-build-isolation", "--no-index", "-w", str(folder), cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory) -> Path:
    """The wheel alone in a directory; what it depends on comes from the environment of the tests."""
    folder = tmp_path_factory.mktemp("installed")
    run(*PIP, "install", "--no-deps", "--no-index", "--target", str(folder), str(wheel), cwd=folder)
    return folder


def files(*patterns: str) -> set[str]:
    return {str(file.relative_to(ROOT)) for pattern in patterns for file in ROOT.glob(pattern) if file.is_file()}


def test_everything_that_is_read_at_run_time_is_inside(wheel: Path):
    """All modules, prompts, assistants, documentation as Markdown and as HTML, and the licence."""
    inside = set(zipfile.ZipFile(wheel).namelist())
    sources = files("app/**/*.py", "ingestion/**/*.py", "eval/**/*.py", "prompts/**/*.py")
    texts = files(
        "prompts/[a-z]*/*",
        "app/static/**/*",
        "app/assistants.toml",
        "eval/reports/templates/*",
    )
    documentation = {f"app/{page}" for page in files("docs/[a-z][a-z]/*.md")}
    documentation |= {re.sub("^app/docs(.*)md$", r"app/site\1html", page) for page in documentation}
    assert min(map(len, (sources, texts, documentation))) > 5
    assert sources | texts | documentation <= inside
    assert any(name.endswith("licenses/LICENSE") for name in inside)


def test_nothing_else_is_inside(wheel: Path):
    """Neither tests nor deployment files, nor what lay about in the checkout."""
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"app", "ingestion", "eval", "plugins", "prompts"}
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if re.search(r"__pycache__|\.env$|/data/", name)]


def test_the_installed_package_loads_its_own_files(installed: Path, tmp_path: Path):
    """Modules, prompts, documentation and assistants come from the installation, not from a checkout."""
    out = run(sys.executable, "-P", "-c", LOADS_EVERYTHING, cwd=tmp_path, PYTHONPATH=str(installed)).splitlines()
    assert all(file.startswith(f"{installed}/") for file in out[0].split())
    assert out[1] == f"{installed}/app/docs"
    pages = len(files("docs/[a-z][a-z]/*.md"))
    assert out[2] == f"{pages} ['cs', 'en'] ['docs-assistant']"


def test_the_command_is_installed(installed: Path, tmp_path: Path):
    """`docs-assistant` starts from anywhere."""
    command = str(installed / "bin/docs-assistant")
    assert "ingest" in run(sys.executable, command, "--help", cwd=tmp_path, PYTHONPATH=str(installed))


def test_the_installed_service_answers_from_its_own_documentation(installed: Path, tmp_path: Path):
    """`docs-assistant run` without a checkout is what `make run` is."""
    with service(tmp_path, "run", PYTHONPATH=str(installed)) as running:
        answer = ask(running.url, QUESTIONS["cs"])
        assert answer.text.startswith(INTRO["cs"])
        assert answer.links[0].startswith(f"{running.url}/docs/cs/")
