"""Questions about two subjects: sections of both are quoted or offered, and a section of one of them alone is never sure."""

from pathlib import Path

import pytest

from app.core.prompts import load_prompts
from app.text.language import subjects
from tests.app.routes.indexed import indexed
from tests.app.routes.scripted import CHAT, chat, client_of

LANGUAGES = load_prompts(("cs", "en", "de")).languages
UNSURE = {code: language.texts.extractive_unsure for code, language in LANGUAGES.items()}
PAGES = {
    **{
        f"bucket-{n}": f"# Buckets {n}\n\nA bucket keeps objects. Bucket, bucket and bucket number {n}."
        for n in range(8)
    },
    "shares": "# Shares\n\nA share is a folder that several machines have.",
    "both": "# Queues and topics\n\nA queue gives a message to one reader, a topic gives it to all readers.",
    "cs-kyble": "# Kyblíky\n\nKyblík uchovává objekty.",
    "cs-slozky": "# Sdílené složky\n\nSložka je na několika strojích.",
}


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("What is the difference between a bucket and a share?", "en", ["bucket", "share"]),
        ("bucket vs. share", "en", ["bucket", "share"]),
        ("bucket or the network share?", "en", ["bucket", "network share"]),
        ("Jaký je rozdíl mezi kyblíkem a složkou?", "cs", ["kyblíkem", "složkou"]),
        ("kyblík nebo složka", "cs", ["kyblík", "složka"]),
        ("Was ist der Unterschied zwischen Eimer und Freigabe?", "de", ["Eimer", "Freigabe"]),
        ("And what is a bucket?", "en", []),
        ("Where is my bucket?", "en", []),
    ],
)
def test_what_is_joined_are_the_subjects(text: str, language: str, expected: list[str]) -> None:
    assert subjects(text, LANGUAGES[language]) == expected


async def test_sections_of_both_subjects_are_among_the_sources_and_none_alone_is_sure(tmp_path: Path) -> None:
    """Eight pages say more of the one; a single section about both is sure."""
    async with (
        indexed(tmp_path, with_model=False, more=PAGES, min_evidence=0.1) as service,
        client_of(service.app) as client,
    ):
        for question, language, wanted, is_sure in (
            ("What is the difference between a bucket and a share?", "en", {"bucket", "shares"}, False),
            ("bucket vs share", "en", {"bucket", "shares"}, False),
            ("Jaký je rozdíl mezi kyblíkem a složkou?", "cs", {"cs-kyble", "cs-slozky"}, False),
            ("queue or topic?", "en", {"both"}, True),
        ):
            answer = (await client.post(CHAT, json=chat(question))).json()
            sources = {
                one["url"].removeprefix("https://docs.example.org/").partition("#")[0] for one in answer["sources"]
            }
            assert {name.partition("-")[0] if name.startswith("bucket") else name for name in sources} >= wanted, (
                question
            )
            text = answer["choices"][0]["message"]["content"]
            assert text.startswith(UNSURE[language]) is not is_sure, question
