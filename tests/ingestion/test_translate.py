"""Pages that readers can't read are indexed in their language too: faithful, linked to the original, paid for once."""

import re
from pathlib import Path
from typing import Any

import pytest

from app.core.errors import SettingsError
from app.core.settings import Settings
from app.core.types import Chunk, Page
from ingestion.split.translate import Glossary, Translator, load_glossary, missing_parts, open_translator
from tests.fake_llm import FakeLLM, Reply
from tests.ingestion.llm_index import ModelIndex, empty
from tests.ingestion.local_site import LocalSite

SLOVAK = (
    "Úložisko pripojíte príkazom `mount -t nfs4 host:/data /mnt` a potom skontrolujete, či je dostupné všetkým používateľom, "
    "ktorí ste pozvali do projektu. Kvóta je 100 GB a 5.000 súborov, viac nájdete v [návode](https://docs.example.org/kvota). "
    "Ak ste prihlásený, môžete si vybrať priečinok, ktorý chcete zdieľať s ostatnými."
)
ENGLISH = (
    "You connect the storage with the command `mount -t nfs4 host:/data /mnt` and then check that it is available to all users "
    "whom you invited to the project. The quota is 100 GB and 5.000 files, see the [guide](https://docs.example.org/kvota). "
    "When you are logged in, you can choose the folder that you want to share with the others."
)
CODE = "```sh\n# komentár\nmount -t nfs4 host:/data /mnt\n```"
PAGE = f"# Úložisko\n\n{SLOVAK}\n\n## Príklad {{#priklad}}\n\n{CODE}\n\n{SLOVAK}\n"
WORDS = {SLOVAK: ENGLISH, "# Úložisko": "# Storage", "## Príklad {#priklad}": "## Example {#priklad}"}


def translated(text: str) -> str:
    for slovak, english in WORDS.items():
        text = text.replace(slovak, english)
    return text


class Index(ModelIndex):
    """With one Slovak page, which the model translates."""

    def __init__(self, site: LocalSite, llm: FakeLLM, directory: Path) -> None:
        folder = str(directory / "translations")
        super().__init__(site, llm, directory, translate="en", translations=folder, chunk_size=500)
        self.paths = ["/sk.md"]
        site.put("/sk.md", PAGE, "text/markdown")
        llm.reply = lambda body: Reply(translated(body["messages"][-1]["content"]))

    async def chunks(self, language: str, path: str = "/sk") -> list[Chunk]:
        page = (await self.pages())[path]
        return [c for c in await (await self.store.live()).fetch(page.derived.chunk_ids) if c.language == language]


index = empty(Index)


async def test_a_foreign_page_is_there_in_both_languages(index: Index) -> None:
    """The translation has its own title and text, the code as it was, and the link of the original; it says what it is."""
    report = await index.run()
    (page,) = report.pages
    assert (page.outcome, page.language, page.translated) == ("new", "sk", ("en",))
    assert "Translated pages: 1 into en." in report.text
    english, slovak = await index.chunks("en"), await index.chunks("sk")
    assert page.chunks == len(english) + len(slovak)
    assert {chunk.translated_from for chunk in english} == {"sk"}
    assert {chunk.translated_from for chunk in slovak} == {""}
    assert {chunk.title for chunk in english} == {"Storage"}
    assert "\n\n".join(chunk.text for chunk in english) == translated(PAGE).strip().replace(" {#priklad}", "")
    assert CODE in "\n".join(chunk.text for chunk in english)
    assert f"{index.site.url}/sk#priklad" in {chunk.link_to(s) for chunk in english for s in chunk.sections}
    assert not any("```" in call["messages"][-1]["content"] for call in index.llm.calls)


async def test_off_by_default(index: Index) -> None:
    """No model is asked, and turning it off again takes the page away, whose language isn't configured."""
    index.site.page("/en", "Storage", ENGLISH)
    index.paths.append("/en")
    await index.run()
    asked = len(index.llm.calls)
    report = await index.run(translate="")
    assert len(index.llm.calls) == asked
    removed = next(page for page in report.pages if page.outcome == "removed")
    assert (removed.language, removed.translated, report.other_languages) == ("sk", (), {"sk": 1})
    assert [page.language for page in await (await index.store.live()).pages()] == ["en"]


async def test_only_changed_pages_are_translated(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second run asks nothing of model, embedder or site; a changed page is translated anew."""
    await index.run()
    asked, embedded = len(index.llm.calls), len(index.embedder.calls)
    assert (await index.run()).counts["unchanged"] == 1
    assert index.site.statuses("/sk.md") == [200, 304]
    assert (len(index.llm.calls), len(index.embedder.calls)) == (asked, embedded)
    index.site.put("/sk.md", PAGE.replace("100 GB", "200 GB"), "text/markdown")
    monkeypatch.setitem(WORDS, SLOVAK.replace("100", "200"), ENGLISH.replace("100", "200"))
    assert (await index.run()).pages[0].translated == ("en",)
    assert len(index.llm.calls) > asked
    assert any("200 GB" in chunk.text for chunk in await index.chunks("en"))


async def test_a_rebuilt_index_uses_the_translations_that_were_made(index: Index) -> None:
    """Another way of splitting builds everything anew, but asks the model nothing; so does another site's run."""
    await index.run()
    asked = len(index.llm.calls)
    await index.run(chunk_size=800)
    assert len(await index.chunks("en")) > 0
    index.paths = ["/other"]
    index.site.page("/other", "Other", "Words.")
    await index.run(at="/other.xml", chunk_size=900)
    assert len(await index.chunks("en")) > 0
    assert len(index.llm.calls) == asked


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda text: text.replace("mount -t nfs4 host:/data /mnt", "mount"), "mount -t nfs4"),
        (lambda text: text.replace("## ", "### "), "headings"),
        (lambda _: "Sorry, I can't help with that.", "mount"),
    ],
)
async def test_an_unfaithful_translation_is_not_used(index: Index, wrong: Any, told: str) -> None:
    """The model gets a second try with what it left out; then the original alone is kept, and the report says why."""
    index.llm.reply = lambda body: Reply(wrong(translated(body["messages"][-1]["content"])))
    report = await index.run()
    assert report.counts["new"] == 1
    assert "not translated into en" in report.pages[0].note
    assert told in report.pages[0].note
    assert told in index.llm.calls[-1]["messages"][0]["content"]
    assert await index.chunks("en") == []
    assert len(await index.chunks("sk")) > 1
    asked = len(index.llm.calls)
    assert (await index.run()).counts["unchanged"] == 1
    assert len(index.llm.calls) == asked


async def test_what_was_left_out_once_may_come_the_second_time(index: Index) -> None:
    """A model that is told what it forgot can still translate the page."""

    def reply(body: dict[str, Any]) -> Reply:
        text = translated(body["messages"][-1]["content"])
        return Reply(text if "100 = 100" in body["messages"][0]["content"] else text.replace("100 GB", "a lot"))

    index.llm.reply = reply
    assert (await index.run()).pages[0].translated == ("en",)


async def test_the_wrong_language_is_not_used(index: Index) -> None:
    """A model that gives the text back as it was has not translated it."""
    index.llm.reply = lambda body: Reply(body["messages"][-1]["content"])
    assert "the model wrote sk instead of en" in (await index.run()).pages[0].note
    assert await index.chunks("en") == []


async def test_without_the_model_pages_are_indexed_as_they_are_and_translated_later(index: Index) -> None:
    """An outage fails no run, and the next one makes up for it, though the page didn't change."""
    answers, index.llm.reply = index.llm.reply, lambda _: Reply("down", status=503)
    report = await index.run()
    assert report.counts["new"] == 1
    assert "503" in report.pages[0].note
    index.llm.reply = answers
    assert (await index.run()).pages[0].translated == ("en",)
    assert len(await index.chunks("en")) > 1


async def test_an_outage_takes_no_translation_away(index: Index, tmp_path: Path) -> None:
    """When the glossary asks for new translations and the model is down, the old ones stay."""
    await index.run()
    (tmp_path / "terms.csv").write_text("sk,en\nkvóta,quota\n", "utf-8")
    index.llm.reply = lambda _: Reply("down", status=503)
    report = await index.run(glossary=str(tmp_path / "terms.csv"))
    assert "503" in report.pages[0].note
    assert len(await index.chunks("en")) > 1


async def test_a_glossary_reaches_the_model_and_a_new_one_translates_anew(index: Index, tmp_path: Path) -> None:
    """Terms in the text, inflected too, are told with their translation; others aren't."""
    await index.run()
    asked = len(index.llm.calls)
    (tmp_path / "terms.toml").write_text(
        '[[term]]\nsk = "priečinok"\nen = "folder"\n[[term]]\nsk = "uzol"\nen = "node"\n'
    )
    await index.run(glossary=str(tmp_path / "terms.toml"))
    told = [call["messages"][0]["content"] for call in index.llm.calls[asked:]]
    assert any("priečinok = folder" in text for text in told)
    assert not any("uzol" in text for text in told)


@pytest.mark.parametrize(
    ("language", "alternates", "settings", "languages"),
    [
        ("sk", {}, {}, ["en"]),
        ("sk", {}, {"translate": "en cs"}, ["en", "cs"]),
        ("sk", {"en": "/en/a"}, {"translate": "en cs"}, ["cs"]),
        ("sk", {"en-US": "/en/a", "sk": "/a"}, {}, []),
        ("sk", {"en": "/a"}, {}, ["en"]),
        ("cs", {}, {}, []),
        ("en", {}, {"translate": "cs", "translate_from": "en de"}, ["cs"]),
        ("sk", {}, {"translate": "cs", "translate_from": "en de"}, []),
    ],
)
async def test_which_pages_are_translated(
    index: Index, language: str, alternates: dict[str, str], settings: dict[str, str], languages: list[str]
) -> None:
    """Those in a language that no reader has, or in one that is named, into each language without a counterpart."""
    translator = open_translator(index.settings(**settings))
    assert isinstance(translator, Translator)
    page = Page("/a", "docs", "T", language, "text", "h", alternates=alternates)
    assert list(translator.wanted(page)) == languages
    await translator.writer.close()


async def test_long_pages_are_translated_in_parts_that_join(index: Index) -> None:
    """Each part ends between blocks; blank lines and order stay."""
    long = "# Úložisko\n\n" + "\n\n\n".join([SLOVAK] * 12) + f"\n\n{CODE}\n\n- {SLOVAK}\n- {SLOVAK}\n"
    translator = open_translator(index.settings())
    assert translator is not None
    made = await translator.translate(Page("/a", "docs", "Úložisko", "sk", long, "h"), "en")
    assert made.markdown == translated(long)
    assert (made.title, made.language, made.translated_from) == ("Storage", "en", "sk")
    assert len(index.llm.calls) > 2
    assert all(len(call["messages"][-1]["content"]) <= 2500 for call in index.llm.calls)
    await translator.writer.close()


async def test_a_fence_around_the_answer_is_taken_off(index: Index) -> None:
    """Models like to answer Markdown in a code block."""
    answers = index.llm.reply
    index.llm.reply = lambda body: Reply(f"```markdown\n{answers(body).text}\n```")
    assert (await index.run()).pages[0].translated == ("en",)
    assert not any(chunk.text.startswith("```markdown") for chunk in await index.chunks("en"))


@pytest.mark.parametrize(
    ("original", "translation", "missing"),
    [
        ("Run `ls -l` 3 times.", "Spusťte `ls -l` 3krát.", []),
        ("Run `ls -l`.", "Spusťte ls.", ["ls -l"]),
        ("See https://a.example.org/b.", "Viz https://a.example.org/b.", []),
        ("At 10:30 on 1.2.", "V 10:30 dne 2. 1.", ["1.2"]),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "| á | b |\n|---|---|\n| 1 | 2 |", []),
        ("| a | b |\n|---|---|\n| x | y |", "| a |\n|---|\n| x |", ["cells of a table"]),
        ("Use MetaCentrum.", "Použijte Metacentrum.", ["MetaCentrum"]),
    ],
)
def test_what_a_translation_must_have(original: str, translation: str, missing: list[str]) -> None:
    """Code, addresses, numbers, cells, and names that stay as they are."""
    assert missing_parts(original, translation, ["MetaCentrum"] if "MetaCentrum" in original else []) == missing


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("terms.csv", "sk,en,*\núložisko,storage,\n,,MetaCentrum\n"),
        ("terms.csv", "\ufeffsk;en;*\núložisko;storage;\n;;MetaCentrum\n"),
        ("terms.toml", '[[term]]\nsk = "úložisko"\nen = "storage"\n[[term]]\n"*" = "MetaCentrum"\n'),
    ],
)
def test_a_glossary_may_be_csv_or_toml(tmp_path: Path, name: str, text: str) -> None:
    """Both say the same, also as a spreadsheet saves it; terms are found inflected, names as they are."""
    (tmp_path / name).write_text(text, "utf-8")
    glossary = load_glossary(str(tmp_path / name))
    assert glossary.pairs("Do úložiska MetaCentrum", "sk", "en") == [
        ("úložisko", "storage"),
        ("MetaCentrum", "MetaCentrum"),
    ]
    assert glossary.pairs("Do úložiska", "sk", "cs") == []
    assert glossary.names("MetaCentrum") == ["MetaCentrum"]
    assert glossary.digest != Glossary().digest


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "Slovak,English\na,b\n"),
        ("a.csv", "sk,en\na,b,c\n"),
        ("a.toml", "[[term]\n"),
        ("a.toml", 'term = "x"\n'),
        ("missing.csv", None),
    ],
)
def test_a_wrong_glossary_is_an_error_that_names_it(tmp_path: Path, name: str, text: str | None) -> None:
    """A file that can't be understood stops the run before anything is translated."""
    if text is not None:
        (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(SettingsError, match=re.escape(name)):
        load_glossary(str(tmp_path / name))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"translate": "en"}, "DOCS_LLM_URL"),
        ({"translate": "de", "llm_url": "http://x", "llm_model": "m"}, "DOCS_LANGUAGES"),
    ],
)
def test_what_translating_needs(values: dict[str, str], said: str) -> None:
    """A language model, and readers of that language."""
    with pytest.raises(SettingsError, match=said):
        open_translator(Settings.load(None, **values))
