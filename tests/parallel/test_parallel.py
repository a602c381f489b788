"""The site made for tests is what its truth says: measures over it are worth nothing otherwise."""

import httpx
import pytest

from tests.parallel.content import LANGUAGES, MISSING, PARTLY, questions, topics
from tests.parallel.site import VARIANTS, ParallelSite, Variant


@pytest.mark.parametrize("variant", VARIANTS[2:7:2], ids=lambda v: v.name)
async def test_every_page_is_listed_and_served(variant: Variant) -> None:
    site = ParallelSite(variant)
    assert len(set(site.urls)) == len(site.urls)
    with site.served() as (sitemaps, transport):
        async with httpx.AsyncClient(transport=transport) as client:
            listed = "".join([(await client.get(url)).text for url in sitemaps])
            assert not [url for url in site.listed if f"<loc>{url}</loc>" not in listed]
            for url in site.listed[::23]:
                answer = await client.get(url)
                assert answer.status_code == 200, url
                assert ("hreflang" in answer.text) == (variant.hreflang == "head")
    assert ("hreflang" in listed) == (variant.hreflang == "sitemap")


def test_the_truth_has_each_translated_page_once_and_none_of_the_unrelated() -> None:
    for variant in VARIANTS:
        truth = ParallelSite(variant).truth
        grouped = [url for group in truth for url in group]
        assert len(grouped) == len(set(grouped))
        assert not [url for url in grouped if "news" in url or "team" in url]
        groups = 1 + sum(len(topic.languages) > 1 for topic in topics())
        old = 1 + sum(len(topic.languages) > 1 for topic in topics() if topic.number % 3 == 0)
        assert len(truth) == groups + (old if variant.versions else 0)


def test_addresses_of_shuffled_pages_mislead() -> None:
    """The page of the same name in another language is hardly ever the translation."""
    site = ParallelSite(Variant(slugs="shuffled"))
    pairs = {frozenset((url.replace("/en/", "/cs/"), url)) for url in site.urls if "/en/page" in url}
    right = [pair for pair in pairs if any(pair <= group for group in site.truth)]
    assert len(right) < 0.1 * len(pairs)


def test_every_question_has_a_page_and_all_languages_are_asked() -> None:
    asked = questions()
    own = [one for one in asked if not one.elsewhere]
    assert len(own) == 200
    assert {one.language for one in own} == set(LANGUAGES)
    assert len({(one.language, one.text) for one in asked}) == len(asked)
    site = ParallelSite(Variant())
    for one in asked:
        lacks = (one.topic, one.language) in MISSING or (one.topic, one.language) in PARTLY
        assert one.language in site.answer(one) or lacks
