"""What is shipped: the wheel has everything that a service needs, and runs without the checkout."""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from docker.utils.build import exclude_paths

from tests.end_to_end.asking import INTRO, QUESTIONS, ask
from tests.end_to_end.program import Program, environment, free_port, service

ROOT = Path(__file__).parents[1]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--no-input")
PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"][
    "packages"
]
pytestmark = [pytest.mark.server, pytest.mark.slow]

LOADS_EVERYTHING = """
import app, docs_assistant, eval, ingestion, prompts
from app.routes.html_pages import find_docs
from app.assistants.assembly import build
from app.core.prompts import load_prompts
from app.core.settings import Settings

prompts_of = load_prompts(("cs", "en"))
print(*(module.__file__ for module in (app, docs_assistant, eval, ingestion, prompts)))
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
    return wheel_of(ROOT, tmp_path_factory.mktemp("wheel"))


def wheel_of(tree: Path, folder: Path) -> Path:
    run(*PIP, "wheel", str(tree), "--no-deps", "--no-build-isolation", "--no-index", "-w", str(folder), cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def image_tree(tmp_path_factory) -> Path:
    """What `COPY . .` of the Dockerfile finds: the files that .dockerignore admits, as Docker's own library reads it."""
    tree = tmp_path_factory.mktemp("image")
    rules = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    for name in exclude_paths(str(ROOT), [rule for rule in rules if rule and not rule.startswith("#")]):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    return tree


@pytest.fixture(scope="module")
def sdist_tree(tmp_path_factory) -> Path:
    """The unpacked source archive."""
    folder = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder), cwd=ROOT)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


@pytest.fixture(scope="module", params=["image", "sdist"])
def shipped(request, tmp_path_factory) -> Path:
    """The wheel of the image's tree, and that of the source archive."""
    return wheel_of(request.getfixturevalue(f"{request.param}_tree"), tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def clean(image_tree: Path, tmp_path_factory) -> Path:
    """An environment with what the image installs and nothing else, of the files that `make install-dev` left in uv's cache."""
    folder = tmp_path_factory.mktemp("clean")
    extras = re.findall(r"--only-deps '(.+)'", (ROOT / "deploy/Dockerfile").read_text("utf-8"))
    (folder / "locked.txt").write_text(run(sys.executable, "deploy/lock.py", *extras, cwd=image_tree), "utf-8")
    run(sys.executable, "-m", "venv", "--without-pip", "env", cwd=folder)
    # the lock names all that is needed; resolving asks for metadata that installing leaves in no cache
    run(*into(folder / "env"), "--no-deps", "--require-hashes", "-r", "locked.txt", cwd=folder)
    return folder / "env"


def into(env: Path) -> list[str]:
    options = ["--offline", "--quiet", "--link-mode", "copy", "--python", str(env / "bin/python")]
    return [sys.executable, "-m", "uv", "pip", "install", *options]


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
    sources = files(*(f"{package}/**/*.py" for package in PACKAGES))
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
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PACKAGES)
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


def contents(built: Path) -> dict[str, int]:
    """The files with their checksums; those of pages and of the list of files, which other checkouts write in another way, without."""
    files_of = zipfile.ZipFile(built).infolist()
    return {file.filename: 0 if re.search(r"^app/site/|/RECORD$", file.filename) else file.CRC for file in files_of}


def test_image_and_source_archive_have_what_the_checkout_has(wheel: Path, shipped: Path):
    assert contents(shipped) == contents(wheel)


def test_nothing_is_built_without_a_listed_package(image_tree: Path, tmp_path: Path):
    """Hatchling would leave it out without a word."""
    shutil.copytree(image_tree, tmp_path / "tree", ignore=shutil.ignore_patterns("plugins"))
    command = [*PIP, "wheel", "./tree", "--no-deps", "--no-build-isolation", "--no-index", "-w", "built"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "The package plugins of pyproject.toml isn't among the files that are built" in done.stdout + done.stderr


def test_what_is_shipped_starts_in_a_clean_environment(shipped: Path, clean: Path, tmp_path: Path, record_property):
    """Its own command indexes a page and serves it over HTTP, with nothing of this checkout or of its environment."""
    run(*into(clean), "--no-deps", "--reinstall", str(shipped), cwd=tmp_path)
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "docs/en/kubernetes.md", tmp_path / "docs")
    (tmp_path / "sources.toml").write_text(
        '[[source]]\nurl = "https://docs.example.org/"\ndirectory = "docs"\n', "utf-8"
    )
    command, settings = [str(clean / "bin/docs-assistant")], {"DOCS_EMBEDDING_MODEL": "", "PYTHONPATH": ""}
    run(*command, "ingest", "sources.toml", cwd=tmp_path, **settings)
    port = free_port()
    running = Program(tmp_path, "serve", "--port", str(port), command=command, **settings)
    try:
        running.url = f"http://127.0.0.1:{port}"
        answer = ask(running.wait_until_served().url, "How do I install the chart?")
    finally:
        running.end(group=True)
    assert answer.links[0].startswith("https://docs.example.org/kubernetes")
    where = shipped.parent.name.rstrip("0123456789")
    record_property("log", f"the {where}'s tree started in a clean environment, and answered with {answer.links[0]}")
