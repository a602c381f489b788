"""Nothing relevant is said when the best passage has too little of the question, on evidence of a real index."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from app.core.prompts import load_prompts
from app.core.turn import Message, Request, Search, Turn
from app.core.types import Chunk, Hit, Legs, LexicalText, Query
from app.index.embedded.store import EmbeddedStore
from app.pipeline.runner import run
from app.pipeline.steps.relevance import WITH_KEYWORDS, PassageTokens, Rarity, Relevance, Word, coverage, ends, names
from app.pipeline.steps.synthesize import Synthesize
from plugins.steps.choices import Helpful
from tests.app.pipeline.turns import SETTINGS, text_of, turn
from tests.app.published import publish
from tests.fakes import FakeEmbedder

STEP = Relevance(load_prompts(("cs", "en")), SETTINGS)
TEXTS = {
    "storage": ("en", "Each project has a storage quota of 5 TB. Ask support for a larger quota."),
    "gpu": ("en", "Notebooks can request one NVIDIA card."),
    "ulozeni": ("cs", "Každý projekt má kvótu úložiště 5 TB."),
}


@pytest.fixture
async def hits(tmp_path: Path):
    """The index's generation and a hit for each of its chunks."""
    chunks = [
        Chunk(name, "docs", f"https://docs.example.org/{name}", 0, text, language, "Guide")
        for name, (language, text) in TEXTS.items()
    ]
    async with published(tmp_path, chunks) as found:
        yield found


async def judge(hits: tuple, question: str, language: str = "en", **more: object) -> Turn:
    generation, found = hits
    return dict(await STEP(turn(question, language, hits=found, generation=generation, **more)))


NEEDED = SETTINGS.min_evidence
LESS = NEEDED - 0.001
JUDGED = [  # question, language, and between what its evidence is
    ("How large is the storage quota of a project?", "en", 0.7, 1.0),
    ("jaka je kvota uloziste", "cs", 1.0, 1.0),
    # words that only ask are on no page about what is asked, or on any
    ("What does NVIDIA mean?", "en", 1.0, 1.0),
    ("Which setting changes NVIDIA?", "en", 1.0, 1.0),
    ("Co znamená NVIDIA?", "cs", 1.0, 1.0),
    ("Jak zapnu NVIDIA?", "cs", 1.0, 1.0),
    ("How do I turn on the NVIDIA card?", "en", 1.0, 1.0),
    ("How do I turn on the lights?", "en", 0.0, 0.0),
    # what is said around the question doesn't count, for it or against it
    ("Hello, Novak here. I'm a student of Masaryk University in Brno. How large is the storage quota?", "en", 0.7, 1.0),
    ("In my Firefox on Fedora, how large is the storage quota?", "en", 0.7, 1.0),
    ("How large is the storage quota? Thanks, Novak of Masaryk University", "en", 0.7, 1.0),
    ("Dobrý den, tady Novák z Masarykovy univerzity. Jakou má projekt kvótu?", "cs", 0.7, 1.0),
    ("The storage quota of my project is 5 TB. Who won the football cup?", "en", 0.0, 0.6),
    ("Storage quota, project: who won the cup?", "en", 0.0, 0.6),
    # a name that no page has weighs most, other unknown words weigh much
    ("What storage quota has kafka?", "en", NEEDED, 1.0),
    ("What storage quota has Kafka?", "en", 0.0, LESS),
    ("Which card is NVIDIA?", "en", 1.0, 1.0),
    ("How do I restore a MongoDB replica set?", "en", 0.0, LESS),
    ("best sourdough recipe", "en", 0.0, LESS),
    ("kafka brokers quota", "en", 0.0, LESS),
    ("???", "en", 0.0, 0.0),
]


async def test_the_evidence_is_the_share_of_the_question_in_the_best_passage(hits: tuple) -> None:
    """With too little, the nearest pages are only related."""
    for question, language, least, most in JUDGED:
        changes = await judge(hits, question, language)
        assert least <= changes["evidence"].share <= most, question
        too_little = changes["evidence"].share < NEEDED
        assert (changes.get("hits"), changes.get("related")) == (((), hits[1]) if too_little else (None, None)), (
            question
        )


async def test_words_that_no_page_has_are_named_as_they_are_written(hits: tuple) -> None:
    """The question is near to the pages if they have another word of it; a word of another language is on a page, too."""
    for question, language, unknown, near in (
        ("Which Kafka quota?", "en", ("Kafka",), True),
        ("wifi, firmware?", "en", ("wifi", "firmware"), False),
        ("storage kvótu", "en", (), True),
        ("kde je „wifi“", "cs", ("wifi",), False),
    ):
        evidence = (await judge(hits, question, language))["evidence"]
        assert (evidence.unknown, evidence.near) == (unknown, near), question


async def test_words_that_only_ask_count_where_a_passage_has_them(tmp_path: Path) -> None:
    """A page about setting something has the word, and a question about it needn't have more."""
    texts = {"reset": "Heslo si nastavíte znovu na stránce hesla.", "disk": "Disk má 20 GB."}
    chunks = [
        Chunk(name, "docs", f"https://docs.example.org/{name}", 0, text, "cs", "") for name, text in texts.items()
    ]
    async with published(tmp_path, chunks) as found:
        has_it, lacks_it = [
            (await judge(found, f"Jak si {word} nové heslo?", "cs"))["evidence"].share
            for word in ("nastavím", "vyzvednu")
        ]
    assert has_it > lacks_it


async def test_in_a_conversation_the_question_is_judged_as_the_model_spelled_it_out(hits: tuple) -> None:
    """The words of the topic before say nothing of it; a first question is judged as it was asked."""
    spelled_out = {"refined": "How large is the storage quota of a project?"}
    asked, earlier = Message("user", "And how large?"), Message("user", "best sourdough recipe")
    request = Request((earlier, Message("assistant", "-"), asked))
    more = {"referred": earlier.content, "request": request}
    assert (await judge(hits, asked.content, **more))["hits"] == ()
    assert (await judge(hits, asked.content, **more, **spelled_out))["evidence"].share > 0.7
    assert (await judge(hits, "best sourdough recipe", **spelled_out))["hits"] == ()


async def test_keywords_say_what_the_question_means_but_need_more_evidence(hits: tuple) -> None:
    """Of several wordings the best has more by chance; without any evidence needed nothing is refused."""
    czech, english = "Kolik místa na disku dostanu?", {"en": "storage quota, disk space limit"}
    alone, with_keywords = await judge(hits, czech, "cs"), await judge(hits, czech, "cs", keywords=english)
    assert alone["evidence"].share < with_keywords["evidence"].share
    assert alone["evidence"].needed == SETTINGS.min_evidence < with_keywords["evidence"].needed
    off = replace(STEP, settings=SETTINGS.model_copy(update={"min_evidence": 0.0}))
    generation, found = hits
    asked = turn("sourdough", "en", hits=found, generation=generation, keywords={"en": "dough"})
    assert "related" not in await off(asked)


async def test_bad_keywords_refuse_nothing_that_the_question_alone_would_be_answered_from(hits: tuple) -> None:
    """Neither by the evidence that keywords ask for, nor by passages of theirs in the place of the question's own."""
    generation, found = hits
    question = "storage and pancakes"
    alone = await judge(hits, question)
    assert SETTINGS.min_evidence <= alone["evidence"].share < alone["evidence"].needed * WITH_KEYWORDS
    search = Query((LexicalText("en", question), LexicalText("en", "NVIDIA")), language="en", limit=1)
    displaced = tuple(hit for hit in found if hit.chunk.id == "gpu")
    judged = await judge((generation, displaced), question, keywords={"en": "banana"}, search=Search(search, Legs()))
    assert judged["evidence"].share == alone["evidence"].share
    assert [hit.chunk.id for hit in judged["hits"]] == ["storage"]
    nothing = Query((LexicalText("en", "sourdough"), LexicalText("en", "NVIDIA")), language="en", limit=1)
    assert (
        await judge((generation, displaced), "sourdough", keywords={"en": "banana"}, search=Search(nothing, Legs()))
    )["hits"] == ()


async def test_what_the_model_rejected_stays_rejected_where_keywords_are_searched_too(hits: tuple) -> None:
    """All of it: nothing is searched again. A part of it: the search without the keywords doesn't bring it back."""
    generation, found = hits
    question, keywords = "storage and pancakes", {"en": "banana"}
    search = Query((LexicalText("en", question), LexicalText("en", "NVIDIA")), language="en", limit=3)
    more = {"keywords": keywords, "search": Search(search, Legs())}
    none = await judge((generation, ()), question, related=found, rejected=frozenset(TEXTS), **more)
    assert none["hits"] == ()
    gpu = tuple(hit for hit in found if hit.chunk.id == "gpu")
    part = await judge((generation, gpu), question, rejected=frozenset({"storage", "ulozeni"}), **more)
    assert part["hits"] == ()
    assert [hit.chunk.id for hit in (await judge((generation, gpu), question, **more))["hits"]] == ["storage"]


async def test_a_name_of_the_question_is_one_in_its_keywords_too(hits: tuple) -> None:
    """Else general words beside the name would speak for a page that doesn't mention it."""
    keywords = {"en": "kafka, storage, quota, project"}
    plain, named = [await judge(hits, f"How do I run {name} here?", keywords=keywords) for name in ("kafka", "Kafka")]
    assert named["evidence"].share < plain["evidence"].share


async def test_a_reference_to_the_question_before_is_judged_with_it(hits: tuple) -> None:
    """The end of a follow-up question alone would leave out what it is about."""
    follow_up = "Thanks. And the storage quota of it, of a project?"
    alone = (await judge(hits, follow_up))["evidence"].share
    assert alone == 1.0
    assert (await judge(hits, follow_up, referred="What is MongoDB?"))["evidence"].share < 0.6


def test_the_question_proper_is_the_sentence_with_the_question_mark() -> None:
    """Else the last one; and each of its ends from a clause on. A question of one clause has no other ends."""
    both = ["With Helm, how do I install it?", "how do I install it?"]
    assert ends("Hi. With Helm, how do I install it? Thanks.") == both
    assert ends("I run Helm. Tell me about quotas") == ["Tell me about quotas"]
    assert ends(" How large is it? ") == []
    assert ends("") == []


def test_names_are_words_with_a_capital_of_their_own() -> None:
    """Not the first of a sentence; a title or a shout tells nothing of names."""
    assert names("How do I use MongoDB with Kafka? Because redis is slow") == {"MongoDB", "Kafka?"}
    assert names("MongoDB for a project") == {"MongoDB"}
    assert names("How Do I Restore A Replica Set") == names("HOW LARGE IS IT") == names("") == frozenset()


async def test_keywords_in_the_page_s_language_are_evidence_too(hits: tuple) -> None:
    """A Czech question about an English page is answered when its English keywords are covered."""
    question = "Kolik grafických karet dostane sešit?"
    assert (await judge(hits, question, "cs"))["hits"] == ()
    assert "hits" not in await judge(hits, question, "cs", keywords={"en": "NVIDIA card, notebooks"})


async def test_the_surer_the_best_passage_the_fewer_others(hits: tuple) -> None:
    """Passages far behind the best are left out; where it has little of the question itself, they stay."""
    generation, (storage, gpu, ulozeni) = hits
    scored = (replace(storage, fused=1.0), replace(ulozeni, fused=0.6), replace(gpu, fused=0.3))
    sure = await judge((generation, scored), "How large is the storage quota of a project?")
    assert sure["hits"] == scored[:2]
    assert "hits" not in await judge((generation, scored), "storage quota of a mongodb")
    reranked = tuple(replace(hit, rerank=0.5) for hit in scored)
    assert "hits" not in await judge((generation, reranked), "How large is the storage quota of a project?")


@pytest.mark.parametrize("scores", [{"fused": 6.0, "boost": 15.0}, {"fused": 0.2}], ids=["boosted", "headed"])
async def test_what_was_put_first_stays_and_leaves_nothing_else_out(hits: tuple, scores: dict[str, float]) -> None:
    """A section that has the question for its heading, though it scored far behind another; and a boosted hit.

    The others are measured by the best without its boost; a weak one still goes.
    """
    generation, (storage, gpu, ulozeni) = hits
    first, best, weak = replace(ulozeni, **scores), replace(storage, fused=1.0), replace(gpu, fused=0.2)
    judged = await judge((generation, (first, best, weak)), "How large is the storage quota of a project?")
    assert judged["hits"] == (first, best)


async def test_without_hits_there_is_no_evidence(hits: tuple) -> None:
    """Nothing found is evidence of 0, not an error."""
    assert (await judge((hits[0], ()), "storage quota"))["evidence"].share == 0.0


def test_rare_words_weigh_more() -> None:
    """A shared beginning counts half."""
    rarity = Rarity({"quota": 1, "project": 90, "card": 1}, 100)
    words = [Word((name, f"{name[:5]}*"), "en") for name in ("quota", "project", "card")]
    rare, common = (covered(words, rarity, name, "card") for name in ("quota", "project"))
    assert rare > 0.9
    assert 0.4 < common < 0.6
    assert covered(words[:1], rarity, "quota*") == 0.5
    assert coverage([], [PassageTokens(frozenset(), "en")], rarity) == 0.0


def covered(words: Sequence[Word], rarity: Rarity, *tokens: str, language: str = "en") -> float:
    return coverage(words, [PassageTokens(frozenset(tokens), language)], rarity)


def test_of_several_words_only_the_rarest_counts_alone() -> None:
    """In its own language; one that the index doesn't have may be mistyped, so it takes nothing from the others."""
    rarity = Rarity({"licence": 2, "cost": 20}, 100)
    licence, cost, typo = (Word((name,), "en") for name in ("licence", "cost", "ollma"))
    assert covered([licence, cost], rarity, "licence") > 0.5
    assert covered([licence, cost], rarity, "licence", language="cs") == covered([licence, cost], rarity, "cost") == 0.0
    assert covered([licence, cost], rarity, "licence", "cost", language="cs") == 1.0
    assert covered([cost, typo], rarity, "cost") > 0.1


async def test_the_meaning_of_the_nearest_unit_counts_a_little(hits: tuple) -> None:
    """So that a paraphrase is answered, and words that only look alike aren't; never without passages."""
    search = Query((LexicalText("en", "storage and pancakes"),), language="en")
    far, unknown, near = [
        (await judge(hits, "storage and pancakes", search=Search(search, Legs(meaning=meaning))))["evidence"].share
        for meaning in (0.0, None, 0.42)
    ]
    assert far == pytest.approx(unknown - 0.1)
    assert near == pytest.approx(unknown + 0.05)
    none = await judge((hits[0], ()), "storage quota", search=Search(search, Legs(meaning=1.0)))
    assert none["evidence"].share == 0.0


async def test_a_reranker_s_score_is_evidence_too(hits: tuple) -> None:
    """It reads across languages where no word agrees; a low one takes nothing away."""
    generation, found = hits
    question = "Kolik grafických karet dostanu?"
    assert (await judge(hits, question, "cs"))["hits"] == ()
    for score, kept in ((0.95, True), (SETTINGS.min_evidence, True), (0.31, False)):
        scored = tuple(replace(hit, rerank=score / n) for n, hit in enumerate(found, start=1))
        for keywords in ({}, {"en": "kafka"}):  # keywords ask for more words, not for a better score
            changes = await judge((generation, scored), question, "cs", keywords=keywords)
            assert ("hits" not in changes) is kept
            assert changes["evidence"].share == score
    covered = await judge((generation, tuple(replace(hit, rerank=0.01) for hit in found)), "storage quota of a project")
    assert covered["evidence"].share > 0.7


async def test_what_helpful_put_aside_stays_related(hits: tuple) -> None:
    """Where it left no passage, the nearest pages are still named."""
    generation, found = hits
    scored = tuple(replace(hit, rerank=0.05) for hit in found)
    plan = ((Helpful(STEP.prompts, SETTINGS),), (STEP,))
    ended = await run(plan, turn("storage quota", hits=scored, generation=generation))
    assert (ended.evidence.share, ended.hits, ended.related) == (0.0, (), scored)
    said = [event async for event in (await Synthesize(STEP.prompts, SETTINGS)(ended))["events"]]
    assert "https://docs.example.org/storage" in text_of(said)


async def test_a_common_word_alone_is_evidence_only_in_a_heading(tmp_path: Path) -> None:
    """'How much does it cost' isn't answered by sentences in which something costs time."""
    texts = [f"Step {n} costs one call, and {n} seconds." for n in range(10)] + ["Run the installer, then install it."]
    async with indexed(tmp_path, texts, title="Install") as judged:
        found = {question: await judge(judged, question) for question in ("How much does it cost?", "How to install?")}
        assert (found["How much does it cost?"]["evidence"].share, found["How to install?"]["evidence"].share) == (
            0.0,
            1.0,
        )
        keywords = await judge(judged, "How much does it cost?", keywords={"en": "step costs one call"})
        assert keywords["evidence"].share > SETTINGS.min_evidence


async def test_a_common_name_and_a_heading_with_another_ending_are_no_passing_words(tmp_path: Path) -> None:
    """Readers ask for a product that many pages name, and for "klíč" where the heading is "Klíče", whose stems differ."""
    address = "https://docs.example.org"
    texts = {"en": "Step {} sends its numbers to Grafana.", "cs": "Krok {} ověří klíč, Grafana ne."}
    for language, text in texts.items():
        chunks = [Chunk(f"{n}", "docs", f"{address}/{n}", 0, text.format(n), language, "") for n in range(10)]
        async with published(tmp_path / language, [*chunks[1:], replace(chunks[0], title="Klíče")]) as judged:
            questions = {"en": ("What is Grafana?", "What is a step?"), "cs": ("klíč", "Co je Grafana?", "krok")}[
                language
            ]
            shares = [(await judge(judged, question, language))["evidence"].share for question in questions]
        assert min(shares[:-1]) > SETTINGS.min_evidence
        assert shares[-1] == 0.0


async def test_an_identifier_that_one_page_has_is_evidence_though_its_parts_are_everywhere(tmp_path: Path) -> None:
    """Of an error code that no page has, the parts say as little as before."""
    texts = [f"Error LUM-{number} is reported as soon as the limit is exceeded." for number in range(1001, 1021)]
    async with indexed(tmp_path, texts) as (generation, hits):
        known, elsewhere, unknown = [
            (await judge((generation, hits[:2]), f"What does error {code} mean?"))["evidence"].share
            for code in ("LUM-1001", "LUM-1011", "LUM-2001")
        ]
        alone = (await judge((generation, hits[:2]), "What is LUM-1001 for?"))["evidence"].share
    assert unknown < elsewhere < SETTINGS.min_evidence < known == alone == 1.0


@asynccontextmanager
async def indexed(folder: Path, texts: Sequence[str], *, title: str = "") -> AsyncIterator[tuple]:
    """The generation of an index of these texts, the last one with this title, and a hit for each."""
    address = "https://docs.example.org"
    chunks = [Chunk(f"{n}", "docs", f"{address}/{n}", 0, text, "en", "") for n, text in enumerate(texts)]
    chunks[-1] = replace(chunks[-1], title=title)
    async with published(folder, chunks) as found:
        yield found


@asynccontextmanager
async def published(folder: Path, chunks: Sequence[Chunk]) -> AsyncIterator[tuple]:
    """The generation of an index of these chunks, each on a page of its own, and a hit for each."""
    store = EmbeddedStore(folder / "index")
    await publish(store, FakeEmbedder(), *chunks)
    yield await store.live(), tuple(Hit(chunk) for chunk in chunks)
    await store.close()
