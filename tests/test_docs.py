"""The documentation matches the code: settings, commands, links, messages, requests, deployment files."""

import json
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import SecretStr

from app.assistants.assembly import build
from app.core.hooks import VARIABLE
from app.core.language import OPTIONAL, REQUIRED
from app.core.prompts import placeholders
from app.core.settings import FILE_KEYS, NAMES, Settings
from app.http import errors as api_errors
from app.http.bodies import parse
from app.pipeline.registry import steps as known
from app.routes.feedback import FeedbackRequest
from app.routes.request_models import ChatRequest, SearchRequest
from ingestion.report import OUTCOMES
from tests.docs_assistant.cli.conftest import every_command, options_of
from tests.translations import FENCE, checked, lagging, languages

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
LANGUAGES = checked(DOCS)
PAGES = sorted(file for language in LANGUAGES for file in (DOCS / language).glob("*.md"))
DEPLOY = sorted(file for file in (ROOT / "deploy").rglob("*") if file.is_file() and file.suffix != ".pyc")
TEXTS = [*PAGES, *DEPLOY, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
SETTING_ROW = re.compile(r"^\| `(DOCS_[A-Z_]+)` \| `([a-z_.]+)` \| (.+?) \| .+ \|$", re.MULTILINE)
SETTING = re.compile(r"\bDOCS_(?!TEST_)[A-Z][A-Z_]*[A-Z]\b")
CODE_SPAN = re.compile(r"`([^`\n]+)`")
COMMAND = re.compile(r"docs-assistant(?: --debug)? ([a-z]+)( [^\n`|;&>]*)?")
WORD_FOR_EMPTY = {"cs": "prázdné", "en": "empty"}
OTHER_PROGRAMS = {"--profile", "--api-route=^/v1/", "--pass-basic-auth=false", "--pass-user-headers=false"}
"""Of docker compose and oauth2-proxy."""


def ids(file: Path) -> str:
    return str(file.relative_to(ROOT))


def read(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def front_matter(file: Path) -> tuple[dict[str, Any], str]:
    """The front matter of a page, and the text below it."""
    _, meta, body = read(file).split("---\n", 2)
    return yaml.safe_load(meta), body


def page(language: str, name: str) -> str:
    return read(DOCS / language / f"{name}.md")


def section(text: str, anchor: str) -> str:
    """The text below the heading with this id, up to the next one of the same level."""
    return re.split(r"^## ", text.split(f"{{#{anchor}}}\n")[1], flags=re.MULTILINE)[0]


def blocks(text: str, kind: str) -> list[str]:
    return [body for name, body in FENCE.findall(text) if name == kind]


def code(text: str) -> Iterator[str]:
    """Everything that is set as code."""
    for _, body in FENCE.findall(text):
        yield from body.splitlines()
    yield from CODE_SPAN.findall(FENCE.sub("", text))


def shown_default(value: Any, language: str) -> str:
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if isinstance(value, tuple):
        value = " ".join(map(str, value))
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float):
        value = f"{value:g}"
    return f"`{value}`" if value not in ("", {}) else WORD_FOR_EMPTY[language]


def test_there_are_english_and_czech_pages():
    """Otherwise, the tests below would check nothing. With RELEASE=1, they check all languages."""
    assert {"cs", "en"} <= set(languages(DOCS))
    assert "en" in LANGUAGES
    assert len(PAGES) >= 12


def test_every_setting_is_documented_once_with_its_default():
    """The tables of settings.md name each setting once, with its key in docs-assistant.toml and its default."""
    for language in LANGUAGES:
        true = [
            (
                f"DOCS_{name.upper()}",
                FILE_KEYS[name],
                shown_default(field.get_default(call_default_factory=True), language),
            )
            for name, field in Settings.model_fields.items()
            if name != "tuning"
        ]
        assert sorted(SETTING_ROW.findall(page(language, "settings"))) == sorted(true), language


def test_every_key_of_a_language_is_explained():
    """languages.md has a row for each required and each optional key."""
    for language in LANGUAGES:
        text = page(language, "languages")
        explained = {
            anchor: set(
                re.findall(r"`\[?(\w+)\]?`", "".join(re.findall(r"^\| (`.*?) \|", section(text, anchor), re.MULTILINE)))
            )
            for anchor in ("required", "optional")
        }
        assert explained["required"] == set(REQUIRED), language
        assert explained["optional"] == set(OPTIONAL), language


def test_no_setting_is_named_that_does_not_exist():
    """Whatever looks like a setting is one."""
    known = {*NAMES.variables(), VARIABLE}
    for file in TEXTS:
        assert set(SETTING.findall(read(file))) - known == set(), file


def test_pages_that_lag_are_named_with_what_they_lack(tmp_path: Path):
    """A page that is missing, that lacks a section or a row, and one that has no English page any more."""
    for language in ("cs", "en"):
        (tmp_path / language).mkdir()
        (tmp_path / language / "site.toml").touch()
        for name in ("same", "row", "section"):
            (tmp_path / language / f"{name}.md").write_text("# T\n\n## A {#a}\n\n| `x` | y |\n", "utf-8")
    for name, more in (("row", "| `new` | y |\n"), ("section", "## B {#b}\n")):
        with (tmp_path / "en" / f"{name}.md").open("a") as file:
            file.write(more)
    (tmp_path / "en/missing.md").write_text("# T\n", "utf-8")
    (tmp_path / "cs/gone.md").write_text("# T\n", "utf-8")
    assert {(lag.page, lag.lacks) for lag in lagging(tmp_path)} == {
        ("cs/row.md", "rows: `new`"),
        ("cs/section.md", "sections: b"),
        ("cs/missing.md", "it is missing"),
        ("cs/gone.md", "its English page is gone"),
    }


def test_no_page_lags_in_a_release():
    """Only a release needs none; `make translations` lists them."""
    if os.environ.get("RELEASE"):
        assert lagging(DOCS) == []


def test_every_decision_is_in_the_index():
    decisions = DOCS / "decisions"
    listed = re.findall(r"\]\(([^)]+)\)", read(decisions / "README.md"))
    assert listed == sorted(file.name for file in decisions.glob("[0-9]*.md"))


def test_what_left_is_on_no_page():
    """The words of each row of the list, as they stand there; a word doesn't count within a longer one."""
    rows = re.findall(
        r"^\| .+? \| (`.+?`) \| .+ \| \d{4}-\d\d \|$", read(DOCS / "decisions/072-what-left.md"), re.MULTILINE
    )
    words = [word for row in rows for word in CODE_SPAN.findall(row)]
    assert len(words) >= len(rows) > 3
    for file in (*PAGES, ROOT / "README.md"):
        left = [word for word in words if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", read(file))]
        assert left == [], file


def test_a_page_begins_with_its_front_matter_and_title():
    """Title, description and place in the navigation are there; the title is the only heading of the first level."""
    for file in PAGES:
        meta, body = front_matter(file)
        assert set(meta) - {"listed"} == {"title", "description", "order"}, file
        assert re.findall(r"^# (.*)$", FENCE.sub("", body), re.MULTILINE) == [meta["title"]], file
        assert meta["order"] == front_matter(DOCS / "en" / file.name)[0]["order"], file


def test_every_section_has_an_id():
    """Headings below the title say their id, so that the index knows it from the Markdown too."""
    for file in PAGES:
        headings = re.findall(r"^##+ .*$", FENCE.sub("", read(file)), re.MULTILINE)
        assert headings, file
        assert all(re.search(r" \{#[a-z][a-z-]*\}$", heading) for heading in headings), file


def test_links_between_pages_lead_to_sections():
    """Each link to a page, and to a section of a page, has its page and its section."""
    for language in LANGUAGES:
        texts = {file.stem: FENCE.sub("", read(file)) for file in (DOCS / language).glob("*.md")}
        for name, text in texts.items():
            for page_, anchor in re.findall(r"\]\((?:([a-z-]+)\.md)?(?:#([a-z-]+))?\)", text):
                link = f"{name}.md: {page_}.md#{anchor}"
                assert (page_ or name) in texts, link
                assert not anchor or f"{{#{anchor}}}" in texts[page_ or name], link


def test_both_ways_to_an_admin_key_are_named():
    """The setting alone isn't the only one: `docs-assistant key new` writes to the file of DOCS_KEYS."""
    admin = [ROOT / f"frontend/src/admin/texts/{language}.ts" for language in LANGUAGES]
    for file in (*DEPLOY, *admin):
        lines = file.read_text("utf-8", errors="ignore").splitlines()
        for number, line in enumerate(lines):
            if "DOCS_ADMIN_KEYS" in line:
                near = "\n".join(lines[max(0, number - 1) : number + 2])
                assert re.search("DOCS_KEYS|key new", near), f"{file}:{number + 1}"


@pytest.mark.plugins
def test_commands_exist_with_the_options_they_are_shown_with():
    """Every `docs-assistant COMMAND --option` can be typed."""
    known = every_command()
    for file in TEXTS:
        text = read(file)
        for line in code(text) if file.suffix == ".md" else text.splitlines():
            for command, rest in COMMAND.findall(line):
                words = (
                    tuple(re.findall(r"^ ([a-z]+(?:-[a-z]+)*)", rest)) if command in {"eval", "key", "prompts"} else ()
                )
                assert (command, *words) in known, line
                options = set(re.findall(r"(?<!\S)--[a-z-]+", rest))
                assert options <= options_of(known[command, *words]), line


def test_options_named_alone_exist_too():
    """An option in the running text belongs to some command; a variable of CSS, to the style sheets."""
    known = {option for command in every_command().values() for option in options_of(command)}
    known |= {name for file in ROOT.glob("frontend/src/*/*.css") for name in re.findall(r"--da-[a-z-]+", read(file))}
    for file in PAGES:
        spans = CODE_SPAN.findall(FENCE.sub("", read(file)))
        assert {span.split()[0] for span in spans if span.startswith("--")} <= known | OTHER_PROGRAMS, file


def test_make_words_and_files_exist():
    """Every `make WORD` is a target, and every file of deploy/ that is named is there."""
    targets = set(re.findall(r"^([a-z-]+):", read(ROOT / "Makefile"), re.MULTILINE))
    for file in [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        for line in code(read(file)):
            assert set(re.findall(r"(?:^|\s)make ([a-z-]+)", line)) <= targets, line
            for name in re.findall(r"\bdeploy/[\w./-]+", line):
                assert name == "deploy/.env" or (ROOT / name).exists(), line


def test_messages_in_the_trouble_table_are_the_real_ones():
    """The messages in the table are in the code."""
    source = read(ROOT / "Makefile") + "".join(
        read(f) for room in ("docs_assistant", "app", "ingestion", "plugins") for f in (ROOT / room).rglob("*.py")
    )
    for language in LANGUAGES:
        messages = [
            span
            for line in section(page(language, "start"), "trouble").splitlines()
            if line.startswith("|")
            for span in CODE_SPAN.findall(line.split(" | ")[0])
        ]
        parts = [part.strip() for message in messages for part in re.split(r"8000 on 127\.0\.0\.1|…|:", message)]
        shown = [part for part in parts if len(part) > 8]
        assert len(shown) >= 7, language
        assert [part for part in shown if part not in source] == [], language


def test_statuses_and_error_codes_are_those_of_the_api():
    """The table of errors lists every status that the API gives, and no code that it doesn't know."""
    for language in LANGUAGES:
        errors = section(page(language, "clients"), "errors")
        statuses = {int(status) for status in re.findall(r"^\| (\d{3}) \|", errors, re.MULTILINE)}
        given = {status for status, _, _ in api_errors.SERVER_ERRORS.values()} | set(api_errors.REQUEST_CODES.values())
        assert statuses == given | {400, 429}, language
        codes = {code for _, code, _ in api_errors.SERVER_ERRORS.values()} | set(api_errors.REQUEST_CODES)
        assert set(re.findall(r"\(`([a-z_]+)`\)", errors)) <= codes, language


def test_every_threat_has_a_test_that_exists():
    """Each row of docs/threats.md names its tests, and each of them is there."""
    _, _, table = read(DOCS / "threats.md").partition("\n## Threats")
    rows = [
        re.findall(r"`(tests/[^`\s]+\.py)::(?:\w+::)?(\w+)`", row)
        for row in re.findall(r"^\| .*", table, re.MULTILINE)[1:]
    ]
    assert len(rows) > 20
    assert all(rows)
    named = [test for row in rows for test in row]
    assert [f"{file}::{name}" for file, name in named if f"def {name}(" not in read(ROOT / file)] == []


def test_words_of_the_report_are_the_real_ones():
    """The table of the report has every outcome of a page, in the report's order."""
    for language in LANGUAGES:
        rows = re.findall(r"^\| ([a-z]+) \|", section(page(language, "indexing"), "report"), re.MULTILINE)
        assert tuple(row for row in rows if row not in {"word", "slovo"}) == OUTCOMES, language


@pytest.mark.plugins
def test_steps_are_the_real_ones():
    """Both lists of steps name all of them and nothing else."""
    for language in LANGUAGES:
        shipped, more = (
            re.findall(r"^\| `(\w+)` \|", section(page(language, "how-it-works"), part), re.MULTILINE)
            for part in ("steps", "more-steps")
        )
        assert sorted([*shipped, *more]) == sorted(known()), language
        listed = CODE_SPAN.findall(section(page(language, "settings"), "assistants"))
        assert set(known()) <= set(listed), language


def test_prompts_and_their_placeholders_are_the_real_ones():
    """The table of prompts names every file with its placeholders."""
    for language in LANGUAGES:
        rows = re.findall(
            r"^\| `en/(\w+)\.(?:md|toml)` \| (.*) \|$", section(page(language, "settings"), "prompts"), re.MULTILINE
        )
        shown = {name: frozenset(re.findall(r"`\$(\w+)`", listed)) for name, listed in rows}
        assert shown == {**placeholders(), **dict.fromkeys(("language", "dates", "exam", "figures"), frozenset())}, (
            language
        )


def test_the_example_of_an_assistant_can_be_started(tmp_path: Path):
    """The TOML in settings.md makes an assistant, with a language model and without."""
    file = tmp_path / "assistants.toml"
    for language in LANGUAGES:
        (example,) = blocks(section(page(language, "settings"), "assistants"), "toml")
        file.write_text(example, encoding="utf-8")
        for model in ({}, {"llm_url": "http://127.0.0.1:9/v1", "llm_model": "m"}):
            settings = Settings.load(env_file=None, assistants=str(file), store=str(tmp_path / "data"), **model)
            assert build(settings).get("handbook").limits.collections == ("handbook",), language


def test_the_examples_of_own_classes_can_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The step, the tables that name classes, and the variables that do."""
    pytest.importorskip("llama_index.llms.openai_like", reason="needs the extra llamaindex", exc_type=ImportError)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("DOCS_EMBEDDING_MODEL")  # that of all tests
    for language in LANGUAGES:
        text = page(language, "own-classes")
        example, *_ = blocks(text, "python")
        (tmp_path / "newest.py").write_text(example, encoding="utf-8")
        variables = re.findall(r"^export (DOCS_\w+_(?:CLASS|ARGS))=(\S.*)$", text, re.MULTILINE)
        assert len(variables) == 4, language
        for name, value in variables:
            monkeypatch.setenv(name, value.strip("'"))
        made = []
        for number, table in enumerate(one for one in blocks(text, "toml") if "[[assistant]]" in one):
            file = tmp_path / f"{number}.toml"
            file.write_text(table, encoding="utf-8")
            assistant = build(Settings.load(env_file=None, assistants=str(file), store=str(tmp_path / "data"))).get("")
            made += [step.name for group in assistant.plans.answer for step in group]
        assert {"similar", "newest:Newest"} <= set(made), language


def test_requests_in_curl_lines_are_valid():
    """The API accepts the bodies that the curl lines send."""
    read_bodies = 0
    for file in PAGES:
        for block in (block for block in blocks(read(file), "sh") if "/v1/" in block):
            for body in re.findall(r"-d '(.*?)'", block, re.DOTALL):
                read_bodies += 1
                if "/v1/search" in block:
                    assert parse(SearchRequest, body.encode()).query, file
                elif "/feedback" in block:
                    assert parse(FeedbackRequest, body.encode()).rating, file
                else:
                    assert parse(ChatRequest, body.encode()).model == "docs-assistant", file
    assert read_bodies > 5


def test_examples_in_json_and_python_can_be_read():
    """Examples to copy are valid JSON and Python."""
    examples = [
        (file, kind, example) for file in PAGES for kind in ("json", "python") for example in blocks(read(file), kind)
    ]
    assert {kind for _, kind, _ in examples} == {"json", "python"}
    for file, kind, example in examples:
        if kind == "json":
            json.loads(example)
        else:
            compile(example, ids(file), "exec")


def test_the_example_environment_can_be_loaded(tmp_path: Path):
    """Every setting in env.example, without the # before it, is accepted."""
    lines = re.findall(r"^#?([A-Z_]+=.*)$", read(ROOT / "deploy/env.example"), re.MULTILINE)
    file = tmp_path / "settings.env"
    file.write_text("\n".join(lines), encoding="utf-8")
    settings = Settings.load(env_file=file)
    assert settings.tuning.vector_weight == {"*": 0.5}
    assert len(settings.sites) == len(settings.api_keys) == 2


def test_compose_files_say_which_of_their_variables_can_be_set():
    """Variables of the compose files are in env.example, and the files are YAML that builds from our Dockerfile."""
    example = set(re.findall(r"^#?([A-Z_]+)=", read(ROOT / "deploy/env.example"), re.MULTILINE))
    files = {file.name: yaml.safe_load(read(file)) for file in DEPLOY if file.match("compose*.yaml")}
    assert set(files) == {"compose.yaml", "compose.opensearch.yaml", "compose.open-webui.yaml"}
    for name in files:
        assert set(re.findall(r"(?<!\$)\$\{([A-Z_]+)", read(ROOT / "deploy" / name))) <= example
    services = files["compose.yaml"]["services"]
    assert {
        (ROOT / "deploy" / s["build"]["context"] / s["build"]["dockerfile"]).resolve() for s in services.values()
    } == {ROOT.resolve() / "deploy/Dockerfile"}
    assert set(files["compose.opensearch.yaml"]["services"]) == {*services, "opensearch"}
    assert set(files["compose.open-webui.yaml"]["services"]) == {"open-webui"}


def test_the_image_is_built_from_files_that_exist():
    """The files that .dockerignore admits and the Dockerfile copies are in the repository."""
    let_through = re.findall(r"^!(\S+)$", read(ROOT / ".dockerignore"), re.MULTILINE)
    packages = tomllib.loads(read(ROOT / "pyproject.toml"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {*packages["packages"], *packages["force-include"]} <= set(let_through)
    copied = re.findall(r"^COPY ([^-\n.].*) \S+$", read(ROOT / "deploy/Dockerfile"), re.MULTILINE)
    named = [name for line in copied for name in line.split()]
    assert named
    assert set(named) <= set(let_through)
    assert [name for name in let_through if not (ROOT / name).exists()] == []
