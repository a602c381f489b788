"""A site in eight languages, of which two are configured: no page passes for one of these, and none of these is lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.core.errors import RunRefused
from ingestion.convert import SourceText, convert
from ingestion.convert.language import Languages, page_language
from ingestion.report import Report
from ingestion.workers import Workers
from tests.ingestion.index import Index
from tests.ingestion.local_site import LocalSite

TEXTS = {
    "cs": "Svazek připojíte příkazem, který najdete v přehledu. Jeho velikost změníte později, aniž byste přišli o data."
    " Pokud příkaz skončí chybou, podívejte se do záznamu a ověřte, že má uživatel potřebná oprávnění k adresáři.",
    "en": "You attach a volume with the command that is shown in the overview. You can change its size later without losing"
    " data. If the command fails, look at the log and check that the user has the permissions which the folder needs.",
    "de": "Sie hängen ein Volume mit dem Befehl ein, der in der Übersicht steht. Die Größe können Sie später ändern, ohne"
    " Daten zu verlieren. Wenn der Befehl fehlschlägt, prüfen Sie das Protokoll und die Rechte des Benutzers am Ordner.",
    "fr": "Vous attachez un volume avec la commande indiquée dans la vue d'ensemble. Vous pouvez changer sa taille plus tard"
    " sans perdre de données. Si la commande échoue, consultez le journal et vérifiez les droits de l'utilisateur.",
    "pl": "Wolumin podłączysz poleceniem, które znajdziesz w przeglądzie. Jego rozmiar możesz zmienić później bez utraty"
    " danych. Jeśli polecenie zakończy się błędem, sprawdź dziennik oraz uprawnienia użytkownika do tego katalogu.",
    "sk": "Zväzok pripojíte príkazom, ktorý nájdete v prehľade. Jeho veľkosť zmeníte neskôr bez toho, aby ste prišli o dáta."
    " Ak sa príkaz skončí chybou, pozrite sa do záznamu a overte, či má používateľ potrebné oprávnenia k priečinku.",
    "vi": "Bạn gắn một ổ đĩa bằng lệnh được hiển thị trong phần tổng quan. Bạn có thể thay đổi kích thước của nó sau này mà"
    " không mất dữ liệu. Nếu lệnh thất bại, hãy xem nhật ký và kiểm tra quyền của người dùng đối với thư mục đó.",
    "zh": "您可以使用概览中显示的命令来挂载卷。稍后您可以更改其大小，而不会丢失数据。如果命令失败，请查看日志，并检查用户是否"
    "具有 Kubernetes namespace 和 PersistentVolumeClaim 目录所需的权限。",
}
SHORT = {
    "fr": "Cette page sera bientôt traduite par notre équipe de rédaction, merci.",
    "zh": "此页面即将翻译完成，敬请期待。",
}
BOTH = Languages(("cs", "en"), "en")
KEYWORDS = "\n\n".join(f"## `Client.{name}`\n\nReturns the {name}. Type: string. Default: none." for name in TEXTS)


def page(text: str, lang: str = "", head: str = "", main: str = "") -> str:
    return f"<html{f' lang={lang}' if lang else ''}><head>{head}</head><body><main{main}><h1>Volumes</h1><p>{text}</p></main></body></html>"


def found(html: str, url: str = "https://docs.example.org/volumes/") -> str:
    made = convert(SourceText(url, html))
    return page_language(made.markdown, url, made.languages, BOTH).code


def test_a_page_is_in_its_own_language_whether_its_lang_attribute_is_right_missing_or_wrong() -> None:
    """The address alone, the attribute alone and the text alone tell it; `<html lang=en>` of a theme doesn't hide it."""
    wrong = {}
    for code, text in TEXTS.items():
        for lang in (code, "", "en"):
            for url in ("https://docs.example.org/volumes/", f"https://docs.example.org/{code}/volumes/"):
                if (got := found(page(text, lang), url)) != code:
                    wrong[code, lang, url] = got
    assert wrong == {}
    assert {code: found(page(text, "en")) for code, text in SHORT.items()} == {"fr": "fr", "zh": "zh"}


def test_a_page_that_is_not_translated_keeps_the_language_of_its_text() -> None:
    """Generators show the English page below /fr/; Starlight also says so of the content."""
    url = "https://docs.example.org/fr/volumes/"
    assert found(page(TEXTS["en"], "fr"), url) == "en"
    assert found(page("See `kubectl`.", "fr", main=" lang=en"), "https://docs.example.org/volumes/") == "en"
    half = f"{TEXTS['en']}</p><p>{TEXTS['fr']}"
    assert found(page(half, "fr"), url) == "fr"
    assert found(page(half, "en")) == "en"


def test_pages_that_say_little_are_not_lost() -> None:
    """Stubs, code, keywords and folders that only look like a language stay what the site declares, or the default."""
    code = "<code>docker run --rm -it alpine sh</code>"
    for body in ("TBD", "word " * 50, code, "GPU, CPU, RAM, NVMe, InfiniBand, Slurm, MPI"):
        for folder in ("", "ml/", "it/", "no/"):
            assert found(page(body, "en"), f"https://docs.example.org/{folder}volumes/") == "en", (body, folder)
            assert found(page(body), f"https://docs.example.org/{folder}volumes/") == "en", (body, folder)
    assert page_language(KEYWORDS, "https://docs.example.org/api", {"html lang": "en"}, BOTH).code == "en"
    assert page_language(KEYWORDS, "https://docs.example.org/api", {}, BOTH).code == "en"


def test_everything_by_which_sites_mark_a_language_is_read() -> None:
    """Meta tags, hosts, folders with a region and names of files; what is declared twice counts more than an address."""
    for mark in ('property="og:locale" content="fr_FR"', 'http-equiv="content-language" content="fr"'):
        assert found(page("TBD", head=f"<meta {mark}>")) == "fr", mark
    for address, lang, expected in (
        ("https://docs.example.org/zh-hans/a/", "zh-CN", "zh"),
        ("https://docs.example.org/pt_BR/a/", "pt-BR", "pt"),
        ("https://fr.example.org/a/", "fr", "fr"),
        ("https://docs.example.org/i18n/ja/a.md", "ja", "ja"),
        ("https://docs.example.org/a.zh-CN.md", "zh", "zh"),
        ("https://docs.example.org/cn/a/", "zh", "zh"),
        ("https://docs.example.org/fr/a/", "", "en"),
    ):
        assert found(page("TBD", lang), address) == expected, address


class Site(Index):
    """An index of a site that shows each page of English below a folder for each language."""

    def __init__(self, site: LocalSite, directory: Path) -> None:
        super().__init__(directory, site)
        self.paths = [f"/{name}" for name in "abc"]
        for path in self.paths:
            site.put(path, page(f"{TEXTS['en']} {path}", "en"))

    def translate(self, code: str, text: str, lang: str) -> None:
        for path in self.paths[:3]:
            self.site.put(f"/{code}{path}", page(f"{text} {path}", lang))
            self.paths.append(f"/{code}{path}")

    async def read(self, **more: object) -> Report:
        return await self.run(self.site.sitemap(*self.paths), **more)

    async def languages(self) -> list[str]:
        return sorted(page.language for page in await (await self.store.live()).pages())


@pytest.fixture
async def index(site: LocalSite, tmp_path: Path) -> AsyncIterator[Site]:
    """Not indexed yet."""
    async with Site(site, tmp_path) as made:
        yield made


async def test_pages_in_other_languages_are_counted_and_leave_the_index_only_when_that_is_meant(
    site: LocalSite, index: Site
) -> None:
    """They are left out with the setting that keeps them; a run that would take many away is refused with an explanation."""
    index.translate("fr", TEXTS["fr"], "en")
    index.translate("de", TEXTS["de"], "de")
    report = await index.read(languages="cs en de")
    assert await index.languages() == ["de"] * 3 + ["en"] * 3
    assert (report.languages, report.other_languages) == ({"en": 3, "de": 3}, {"fr": 3})
    assert "3 fr. They aren't indexed." in report.text
    assert 'DOCS_LANGUAGES="cs en de fr"' in report.text
    with pytest.raises(RunRefused, match=r"3 of 6 pages .* its language, de, isn't one of DOCS_LANGUAGES") as refused:
        await index.read()
    assert 'set DOCS_LANGUAGES="cs en' in str(refused.value)
    assert await index.languages() == ["de"] * 3 + ["en"] * 3
    assert (await index.read(force=True)).counts["removed"] == 3
    assert await index.languages() == ["en"] * 3


async def test_pages_that_were_left_out_are_read_again_only_when_they_or_the_settings_change(
    site: LocalSite, index: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run in which nothing changed starts no process that converts pages."""
    index.translate("de", TEXTS["de"], "en")
    first = await index.read()
    with monkeypatch.context() as context:
        context.setattr(Workers, "run", None)
        again = await index.read()
    assert again.other_languages == first.other_languages == {"de": 3}
    site.put("/de/b", page(TEXTS["en"], "en"))
    changed = await index.read()
    assert (changed.counts["new"], changed.other_languages) == (1, {"de": 2})
    assert (await index.read(languages="cs en de")).counts["new"] == 2


async def test_pages_that_are_not_translated_are_copies_of_the_original(site: LocalSite, index: Site) -> None:
    """Below /vi/ they are the English pages once more, and indexed once."""
    index.translate("vi", TEXTS["en"], "vi")
    report = await index.read()
    copies = {page.url: page.same_as for page in report.pages if page.same_as}
    assert copies == {f"{site.url}/vi{path}": site.url + path for path in ("/a", "/b", "/c")}
    assert (report.languages, report.other_languages) == ({"en": 6}, {})


async def test_stubs_below_a_folder_are_in_its_language_where_the_site_lists_the_same_page_without_it(
    site: LocalSite, index: Site
) -> None:
    """Nothing else tells /fr/ from a folder that means something else, such as /ml/."""
    index.translate("fr", "À faire.", "")
    site.put("/ml/d", page("TBD"))
    index.paths.append("/ml/d")
    report = await index.read()
    assert report.other_languages == {"fr": 3}
    assert await index.languages() == ["en"] * 4
