"""Which pages are translations of each other: each arrangement of languages, proved by content, denied by traps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from app.core.types import Page
from app.text.marks import fingerprint
from ingestion.publish.translation_sets import Found, patterns, translation_sets
from ingestion.sources import NO_TRANSLATIONS

HOST = "https://docs.example.org"
WORDS = {
    "en": ("Set up", "Limits", "The value of", "is", "and", "changes that"),
    "cs": ("Nastavení", "Meze", "Hodnota", "činí", "a", "to mění"),
    "de": ("Einrichten", "Grenzen", "Der Wert von", "beträgt", "und", "ändert das"),
}
FORMS = {
    "folder": "{host}/{lang}/guide/{slug}",
    "inner folder": "{host}/docs/{lang}/{slug}",
    "ending": "{host}/guide/{slug}.{lang}",
    "ending before another": "{host}/guide/{slug}_{lang}.html",
    "host": "https://{lang}.example.org/{slug}",
    "parameter": "{host}/{slug}?page=1&lang={lang}",
}


def text(topic: int, language: str, sections: int = 2) -> str:
    """What a page says: its words are of the language, its commands, settings and values are not."""
    first, second, value, is_, and_, changes = WORDS[language]
    limits = f"\n\n## {second}\n\n{value} `limit_{topic}` {is_} {1000 + 37 * topic} MiB {and_} `set_{topic}` {changes}."
    return (
        f"# {first} {topic}\n\n## {first}\n\n```\ntool{topic} run --port {8000 + topic}\n```{limits * (sections > 1)}"
    )


def page(url: str, language: str, markdown: str, **more: object) -> Page:
    made = Page(url, "docs", "Title", language, "", url, fingerprint=fingerprint(markdown))
    return replace(made, **more)  # type: ignore[arg-type]


def site(form: str, languages: str = "en cs de", topics: int = 6, slugs: str = "same", **more: object) -> list[Page]:
    made = []
    for number, code in enumerate(languages.split()):
        for topic in range(topics):
            name = {"same": f"topic-{topic}", "other": f"{code}-{topic}", "shuffled": f"p{(topic + number) % topics}"}
            url = form.format(host=HOST, lang=code, slug=name[slugs])
            made.append(page(url, code, text(topic, code), title=str(topic), **more))
    return made


def found(pages: list[Page], rule: str = "") -> Found:
    reading = f"translations {rule}" if rule else ""
    return translation_sets([replace(page, fetch=replace(page.fetch, reading=reading)) for page in pages], "en")


def groups(of: Mapping[str, str]) -> set[frozenset[str]]:
    return {frozenset(url for url in of if of[url] == id_) for id_ in of.values()}


def truth(pages: list[Page]) -> set[frozenset[str]]:
    return {frozenset(one.url for one in pages if one.title == title) for title in {one.title for one in pages}}


WRITTEN = ("/{lang}/", "/{lang}/", ".{lang}", ".{lang}", "{lang}.", "?lang={lang}")
"""The forms as the operator writes them."""


@pytest.mark.parametrize(("form", "written"), [*zip(FORMS.values(), WRITTEN, strict=True)], ids=FORMS)
def test_versions_are_found_by_addresses(form: str, written: str) -> None:
    """Addresses are taken at their word only where the content agrees: translated slugs make no pair, and slugs that mislead don't."""
    pages = site(form)
    made = found(pages)
    assert groups(made.of) == truth(pages)
    assert patterns(pages)[0].spot.form == written
    assert found(pages[::-1]).of == made.of
    assert {pair.origin for pair in made.pairs} == {"address"}
    assert all(made.of[one.url] == one.url for one in pages if one.language == "en")  # named by the default language
    for slugs in ("other", "shuffled"):
        pages = site(form, slugs=slugs)
        assert found(pages).pairs == (), slugs
        assert found(pages).of == found(pages[::-1]).of


def test_the_first_language_may_have_no_token() -> None:
    for form, bare in (
        ("{host}/{lang}/{slug}", "{host}/{slug}"),
        ("https://{lang}.docs.example.org/{slug}", "{host}/{slug}"),
    ):
        pages = [*site(bare, "en"), *site(form, "cs de")]
        assert groups(found(pages).of) == truth(pages)


def test_each_language_may_have_a_host_of_its_own() -> None:
    """Hosts whose names tell no language: their pages tell it. Two hosts in one language, or with other contents, are apart."""
    hosts = {"en": "https://docs.example.org/{slug}", "cs": "https://napoveda.example.com/{slug}"}
    pages = [one for code, form in hosts.items() for one in site(form, code)]
    assert groups(found(pages).of) == truth(pages)
    assert groups(found(pages, "//{lang}/").of) == truth(pages)
    assert patterns(pages)[0].spot.form == "//{lang}/"
    misleading = [*site(hosts["en"], "en", slugs="shuffled"), *site(hosts["cs"], "en cs", slugs="shuffled")[6:]]
    assert found(misleading).pairs == ()
    assert found([*site(hosts["en"], "en"), *site(hosts["cs"], "en")]).pairs == ()


def test_what_the_site_declares_comes_first() -> None:
    """Where both pages name each other, or one does and nothing speaks against it."""
    english, czech, other = (
        page(f"{HOST}/{name}", code, text(n, code))
        for n, (name, code) in enumerate((("a", "en"), ("b", "cs"), ("c", "cs")))
    )
    both = [
        replace(english, alternates={"cs": czech.url, "x-default": other.url}),
        replace(czech, alternates={"en": english.url}),
    ]
    made = found([*both, other])
    assert groups(made.of) == {frozenset((english.url, czech.url))}
    assert made.pairs[0].origin == "hreflang"
    same, named = replace(czech, fingerprint=fingerprint(text(0, "cs"))), replace(english, alternates={"cs": czech.url})
    others = site("{host}/x/{slug}", "en")
    assert found([named, same]).of
    # one-sided and of another content; naming one page everywhere; the other page naming a third one
    assert not found([named, czech, *others]).of
    assert not found([*(replace(one, alternates={"cs": same.url}) for one in others), same]).of
    assert not found([named, replace(czech, alternates={"en": f"{HOST}/x/topic-2"}), *others]).of


def test_addresses_alone_prove_nothing() -> None:
    """Pages of the same name with other content, and pages with nothing that any language would share, are apart."""
    pages = site("{host}/{lang}/{slug}")
    traps = [
        page(f"{HOST}/en/news", "en", "# News\n\nVersion 4.2 is 30 % faster.\n\n## Spring\n\nA region opened."),
        page(f"{HOST}/cs/news", "cs", "# Novinky\n\nKurz je 12. listopadu.\n\n## Jaro\n\nMíst je 25."),
        page(f"{HOST}/en/team", "en", "# Team\n\nEleven people build it."),
        page(f"{HOST}/cs/team", "cs", "# Tým\n\nHledáme kolegyni."),
    ]
    assert groups(found([*pages, *traps]).of) == truth(pages)


def test_a_page_may_be_missing_or_translated_in_part() -> None:
    pages = site("{host}/{lang}/{slug}")
    cut = replace(pages[7], fingerprint=fingerprint(text(1, "cs", sections=1)))
    pages = [*pages[:6], *pages[7:], cut]  # no Czech topic 0
    pages = list({one.url: one for one in pages}.values())
    assert groups(found(pages).of) == truth(pages)


def test_other_versions_and_collections_are_apart() -> None:
    pages = [one for version in ("v1", "v2") for one in site("{host}/" + version + "/{lang}/{slug}", "en cs")]
    made = found(pages)
    versions = {frozenset(url.split("/")[3] for url in group) for group in groups(made.of)}
    assert versions == {frozenset({"v1"}), frozenset({"v2"})}
    assert len(groups(made.of)) == 12
    czech = [replace(one, collection="other") if one.language == "cs" else one for one in site("{host}/{lang}/{slug}")]
    assert all("/cs/" not in url for group in groups(found(czech).of) for url in group)


def test_the_operator_may_say_the_form_or_deny_translations() -> None:
    """What is said holds for pages without anything to compare; another form than the said one isn't looked for."""
    bare = [page(f"{HOST}/{code}/about", code, f"# {WORDS[code][0]}") for code in ("en", "cs")]
    assert not found(bare).of
    assert groups(found(bare, "/{lang}/").of) == {frozenset(one.url for one in bare)}
    assert not found(site("{host}/{lang}/{slug}"), "?lang={lang}").of
    assert not found(site("{host}/{lang}/{slug}"), NO_TRANSLATIONS).of


def test_of_regional_variants_the_one_for_everybody_is_the_translation() -> None:
    """The other ones are pages of their own: they differ in prices, laws and units, and which is asked for isn't known."""
    for codes, everybody in (("en-us en-gb de", "en-us"), ("en en-gb de", ""), ("en-gb en de", "")):
        pages = []
        for topic in range(3):
            urls = {code: f"{HOST}/{code}/topic-{topic}" for code in codes.split()}
            named = urls | ({"x-default": urls[everybody]} if everybody else {})
            pages += [page(url, code[:2], text(topic, code[:2]), alternates=named) for code, url in urls.items()]
        expected = {frozenset(f"{HOST}/{code}/topic-{n}" for code in (everybody or "en", "de")) for n in range(3)}
        assert groups(found(pages).of) == groups(found(pages[::-1]).of) == expected, codes
