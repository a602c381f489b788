"""The same first steps with OpenSearch as the store."""

import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urldefrag

import pytest

from tests.end_to_end.asking import INTRO, QUESTIONS, ask, assert_links_lead_somewhere
from tests.end_to_end.program import Program, service

pytestmark = [pytest.mark.opensearch, pytest.mark.slow]
PATIENT = {"DOCS_TUNING__STORE_TIMEOUT": "120"}  # of a busy machine


@pytest.fixture(scope="module")
def running(opensearch_index: str, tmp_path_factory) -> Iterator[Program]:
    """`run` with this store, its own documentation indexed."""
    with service(tmp_path_factory.mktemp("opensearch"), "run", DOCS_STORE=opensearch_index, **PATIENT) as program:
        yield program


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("language", ["cs", "en"])
def test_a_question_is_answered_in_its_language_with_links_that_work(running: Program, language: str, stream: bool):
    """As on the embedded store."""
    answer = ask(running.url, QUESTIONS[language], stream=stream)
    assert answer.status == 200
    assert answer.text.startswith(INTRO[language])
    assert answer.links[0].startswith(f"{running.url}/docs/{language}/")
    assert_links_lead_somewhere(answer.links)
    assert not list((running.folder / "data").glob("*index*"))  # conversations are there


def test_other_sites_replace_what_was_indexed_and_both_stores_find_the_same_pages(
    newcomer: Program, opensearch_index: str, tmp_path: Path
):
    """The newcomer's site in this store instead: the best page of one store is among those of the other.

    Not the same place: the stores' BM25 rounds lengths differently, which turns near ties.
    """
    address = f"{opensearch_index}-other"
    with service(tmp_path, "run", DOCS_STORE=address, **PATIENT):
        pass
    with service(tmp_path, "run", f"{newcomer.url}/docs/sitemap.xml", DOCS_STORE=address, **PATIENT) as other:
        assert " removed; " in other.err
        deadline = time.monotonic() + 120  # the service notices a new generation within seconds
        while not ask(other.url, QUESTIONS["en"]).links[0].startswith(newcomer.url) and time.monotonic() < deadline:
            time.sleep(0.5)
        for question in QUESTIONS.values():
            here, there = (
                [urldefrag(link).url for link in ask(url, question).links] for url in (other.url, newcomer.url)
            )
            assert here[0] in there
            assert there[0] in here
