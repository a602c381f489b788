"""The report of gaps: what the documentation lacks, from questions through the real pipeline into a real log."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from pydantic import TypeAdapter

from app.assistants.assembly import build
from app.conversations.opening import open_conversations
from app.conversations.question_log import Asked
from app.conversations.records import Found, KeptAnswer
from app.conversations.store import DAY
from app.core.errors import DatabaseUnavailable, RequestError
from app.core.settings import Settings
from app.core.turn import Source
from app.models import e5
from app.routes.server import create_app
from eval.questions.own_docs import logged_rows
from plugins.gaps.command import as_text
from plugins.gaps.making import gap_report
from plugins.gaps.question_clusters import average_linkage
from plugins.gaps.records import GapReport
from tests.app.routes.scripted import client_of
from tests.docs_assistant.cli.stored_index import page_with, stored
from tests.plugins.gaps.logged import ANSWERABLE, PAGES, planted, subjects, write
from tests.plugins.gaps.planted import UNANSWERABLE

NOW = time.time()
SITE = "https://docs.example.org/"


def within(since: str = "7d", until: str = "") -> Asked:
    return Asked.read(since, until, NOW + 1)


@pytest.fixture(scope="module")
def docs() -> Iterator[tuple[Settings, list[KeptAnswer]]]:
    """The settings of an index of pages of our documentation, and what is kept of 600 questions to it."""
    with planted(NOW) as (settings, kept):
        yield settings, list(kept)


def report_with(
    docs, folder: Path, subject_of: dict[str, str], name: str
) -> tuple[Settings, GapReport, list[Counter[str]]]:
    """The report of these questions and of others, 300 in all, and the subjects of its clusters by their examples."""
    given, kept = docs
    settings = given.model_copy(update={"database": f"sqlite:///{folder / name}.db"})
    others = kept[: min(300 - len(subject_of), ANSWERABLE)]
    asyncio.run(write(settings, folder, [*others, *(one for one in kept if one.question in subject_of)]))
    report = gap_report(settings, within())
    assert (report.totals.questions, report.pages, report.index_problem) == (300, 2 * len(PAGES), "")
    of_clusters = [Counter(subject_of.get(one.text, "") for one in cluster.examples) for cluster in report.clusters]
    return settings, report, of_clusters


def judged(of_clusters: list[Counter[str]], failed: Counter[str]) -> tuple[set[str], int]:
    """The subjects that come out, with half of their failures and at most a fifth of others; and how many clusters mix two."""
    out, mixed = set(), 0
    for found in of_clusters:
        mixed += sum(n > 1 for subject, n in found.items() if subject) > 1
        subject, most = found.most_common(1)[0]
        if subject and most >= max(3, failed[subject] / 2) and most >= 0.8 * found.total():
            out.add(subject)
    return out, mixed


@pytest.mark.slow
@pytest.mark.skipif(bool(e5.unusable()), reason="static vectors know no Czech")
def test_five_planted_subjects_are_the_first_five_in_both_languages_and_retention_leaves_nothing(docs, tmp_path):
    """100 of 300 questions are about them; the others are of our question set, of which some are refused, too."""
    settings, report, of_clusters = report_with(docs, tmp_path, subjects()["assistant"], "assistant")
    by_name = {}
    for cluster, (topic,) in zip(report.clusters[:5], of_clusters, strict=False):
        assert cluster.failed >= 9, cluster
        assert set(cluster.languages) == {"cs", "en"}, cluster
        by_name[topic] = cluster
    assert set(by_name) == set(UNANSWERABLE)
    assert report.clusters[5].failed < report.clusters[4].failed - 2
    assert "Teams" in by_name["teams"].name
    assert {one.to_do for one in by_name.values()} == {"write"}
    json.dumps(asdict(report))
    assert by_name["windows"].name in as_text(report)

    store = open_conversations(settings, tmp_path)
    store.clock = lambda: NOW + 31 * DAY
    assert asyncio.run(store.forget())
    asyncio.run(store.close())
    with pytest.raises(RequestError, match="The log is empty"):
        gap_report(settings, within("3650d"))


@pytest.mark.slow
@pytest.mark.skipif(bool(e5.unusable()), reason="static vectors know no Czech")
def test_of_twelve_planted_subjects_ten_come_out(docs, tmp_path):
    """In mixtures of nine wordings each, of all sets; two subjects may share a cluster only where they share their words."""
    sets, mixtures, counts, mixed = subjects(), [], [], 0
    wordings: dict[str, list[str]] = {}
    for name in ("assistant", "jobs", "login", "code"):
        for text, subject in sets[name].items():
            wordings.setdefault(subject, []).append(text)
    names = list(wordings)
    for first in range(0, len(names), 4):
        chosen = [*names, *names][first : first + 12]
        mixtures.append({text: subject for subject in chosen for text in wordings[subject][:18:2]})
    for number, subject_of in enumerate(mixtures):
        _, _, of_clusters = report_with(docs, tmp_path, subject_of, f"mixture-{number}")
        failed = sum(of_clusters, Counter[str]())
        out, of_two = judged(of_clusters, failed)
        assert len(out) >= 9, (set(failed) - out, of_clusters)
        counts.append(len(out))
        mixed += of_two
    assert sum(counts) >= 10 * len(counts), (
        counts
    )  # ten on average: a sentence of our documentation moves one to another cluster
    # of some 150 clusters in five reports: those that share a word, such as university, and others as the words of our own documentation change;
    # a processor with VNNI, on which vectors of 8 bits are others, mixes 8 where one without mixes 5
    assert mixed <= 8


@pytest.mark.slow
@pytest.mark.skipif(bool(e5.unusable()), reason="static vectors know no Czech")
def test_subjects_in_very_different_wordings_come_out_as_far_as_their_vectors_know_them(docs, tmp_path):
    """One word, three lines, typos, and no word in common in two languages; nothing was tuned with them."""
    _, report, of_clusters = report_with(docs, tmp_path, subjects()["platform"], "platform")
    out, mixed = judged(of_clusters, sum(of_clusters, Counter[str]()))
    assert len(out) >= 7, of_clusters
    assert mixed <= 1, of_clusters
    by_subject = {
        found.most_common(1)[0][0]: one.name
        for found, one in zip(reversed(of_clusters), reversed(report.clusters), strict=True)
    }
    assert (by_subject["kafka"], by_subject["terraform"]) == ("Kafka", "Terraform")
    assert by_subject["handover"] == "předání projektu novému vedoucímu"


def row(number: int, question: str, outcome: str = "refused", **values) -> KeptAnswer:
    """An answer of a day ago to a question; `nearest`, `evidence` and `vector` are what was found."""
    found = {name: values.pop(name) for name in ("nearest", "evidence", "vector") if name in values}
    fields = {"created": NOW - DAY + number, "assistant": "docs", "language": "en", **values}
    return KeptAnswer(
        id=f"a-{number}", owner="k", question=question, answer="", outcome=outcome,
        found=Found(found.get("evidence", 0.1), 0.4, found.get("nearest", {}), found.get("vector", b""), "e"), **fields,
    )  # fmt: skip


def near(name: str, language: str = "en") -> dict[str, str]:
    return {"url": f"{SITE}{name}", "title": name.title(), "section": f"{name.title()} > Use", "language": language}


async def logged(
    database: str,
    *kept: KeptAnswer,
    down: tuple[str, ...] = (),
    up: tuple[str, ...] = (),
    said: Mapping[str, str] = MappingProxyType({}),
    **options,
) -> Settings:
    """Settings of a log with these questions and ratings; its index doesn't exist unless `options` name one."""
    settings = Settings.load(None, **{"database": database, "store": "no-index", **options})
    store = open_conversations(settings, Path())
    await asyncio.gather(*(store.keep(one) for one in kept))
    for rating, ids in (("down", down), ("up", up)):
        for id_ in ids:
            assert await store.rate("k", id_, rating, said.get(id_))
    await store.close()
    return settings


async def report_of(settings: Settings, wanted: Asked | None = None):
    return await asyncio.to_thread(gap_report, settings, wanted or within())


async def test_failures_are_counted_by_kind_and_compared_with_the_time_before(database):
    """A question that was also answered well counts with all its askings; other assistants and times don't count."""
    settings = await logged(
        database,
        row(1, "How do I use SharePoint?"),
        row(2, "how do i use sharepoint"),
        row(3, "How do I use SharePoint?", "written", evidence=0.9),
        row(4, "Jak zapojím SharePoint?", language="cs"),
        row(5, "How do I rotate logs?", "written", evidence=0.41, nearest=near("logs")),
        row(6, "Rotating logs weekly?", "extractive", evidence=0.9, nearest=near("logs")),
        row(7, "What is a volume?", "written", evidence=0.9),
        row(8, "Unknown?", "failed"),
        row(9, "Is SharePoint supported?", created=NOW - 8 * DAY),
        row(10, "Is SharePoint there?", assistant="other"),
        row(11, "The beginning of the log", "written", created=NOW - 20 * DAY),
        down=("a-6",),
    )
    report = await report_of(settings, replace(within(), assistant="docs"))
    totals = report.totals
    assert (totals.questions, totals.different, totals.failed) == (8, 6, 5)
    assert (totals.refused, totals.weak, totals.down) == (3, 1, 1)
    assert (totals.questions_before, totals.failed_before) == (1, 1)
    sharepoint, logs = report.clusters
    assert (sharepoint.count, sharepoint.failed, sharepoint.different, sharepoint.refused) == (4, 3, 2, 3)
    assert (sharepoint.languages, sharepoint.to_do) == ({"en": 2, "cs": 1}, "write")
    assert "SharePoint" in sharepoint.name
    assert {one.text for one in sharepoint.examples} == {"how do i use sharepoint", "Jak zapojím SharePoint?"}
    assert (logs.name, logs.to_do, logs.weak, logs.down, logs.nearest.clear) == ("rotate logs", "extend", 1, 1, True)
    assert (sharepoint.failed_before, logs.failed_before) == (1, 0)  # also in other words
    assert "Nothing has been indexed yet" in report.index_problem
    assert (await report_of(settings)).clusters[0].failed == 4
    assert (await report_of(settings, within("14d"))).totals.failed_before is None  # the log doesn't reach back so far


async def test_an_answer_that_its_passages_do_not_prove_is_told_from_a_refused_and_a_weak_one(database):
    """However much of the question they say; and one that they prove is none of them."""
    settings = await logged(
        database,
        row(1, "How do I rotate logs?", "marked", evidence=0.9, nearest=near("logs")),
        row(2, "How do I rotate logs by date?", "unproven", evidence=0.9, nearest=near("logs")),
        row(3, "How do I use SharePoint?", "written", evidence=0.51, nearest=near("sharepoint")),
        row(4, "How do I rotate logs by size?", "perhaps", evidence=0.9, nearest=near("logs")),
        row(5, "How do I rotate logs by age?", nearest=near("logs")),
    )
    report = await report_of(settings)
    (logs,) = report.clusters
    for one in (report.totals, logs):
        assert (one.failed, one.refused, one.unsupported, one.weak, one.down) == (4, 1, 2, 1, 0)
    assert "not supported 2" in as_text(report)


async def test_the_nearest_section_is_about_a_subject_only_if_answers_were_made_from_it(database):
    """Not that of refused questions, even if it is the same for all; what was rated down always has one."""
    kept = [
        row(n, f"Does SharePoint keep {name}?", nearest=near("cron"))
        for n, name in enumerate(("mail", "files", "tasks"))
    ]
    for n, name in enumerate(("locks", "pages", "swap", "timers"), 10):
        kept.append(row(n, f"How do I tune kernel {name}?", "written", evidence=0.9, nearest=near(name)))
    settings = await logged(database, *kept, down=tuple(f"a-{n}" for n in range(10, 14)))
    kernel, sharepoint = (await report_of(settings)).clusters
    assert (sharepoint.to_do, sharepoint.nearest.clear, sharepoint.nearest.url) == ("write", False, f"{SITE}cron")
    assert (kernel.to_do, kernel.nearest.clear, kernel.nearest.share) == ("correct", False, 0.25)


def test_words_of_most_pages_and_of_politeness_make_no_subject(tmp_path):
    """The product's name joined a price, a course and a comparison; and a greeting named a subject."""
    asked_for = {
        "price": (
            "Ok, what is the price of a Plumber licence?",
            "Plumber: price of a licence for schools",
            "ok price per licence in Plumber",
        ),
        "course": (
            "Is there a training course for Plumber?",
            "ok Plumber training course dates",
            "Thanks, which training course on Plumber do you run?",
        ),
        "compare": (
            "Compare volumes with buckets in Plumber",
            "Ok hello, volumes or buckets in Plumber?",
            "buckets compared with volumes, Plumber",
        ),
    }
    with stored("embedded", tmp_path) as index:
        index.publish(*(page_with(f"/{n}", f"Plumber keeps the part {n}.", title="Plumber") for n in range(20)))
        kept = [row(n, text) for n, text in enumerate(text for texts in asked_for.values() for text in texts)]
        settings = asyncio.run(logged(f"sqlite:///{tmp_path / 'log.db'}", *kept, store=index.address))
        clusters = gap_report(settings, within()).clusters
    assert {frozenset(one.text for one in cluster.examples) for cluster in clusters} == set(
        map(frozenset, asked_for.values())
    )
    assert {one.name for one in clusters} == {"price of a Plumber licence", "training course", "volumes with buckets"}


async def test_what_readers_wrote_stands_at_the_subject(database):
    """All comments on its answers in the period, the newest first; in a terminal, too."""
    said = {"a-1": "The wrong SharePoint.", "a-2": "Nothing about\nscopes."}
    settings = await logged(
        database,
        row(1, "How do I use SharePoint?"),
        row(2, "how do i use sharepoint"),
        row(3, "Jak zapojím SharePoint?", language="cs"),
        row(4, "How do I rotate logs?"),
        down=("a-1", "a-2", "a-3"),
        said=said,
    )
    report = await report_of(settings)
    by_name = {"SharePoint" in one.name: one for one in report.clusters}
    assert sorted(by_name[True].comments) == sorted(said.values())
    assert by_name[False].comments == []
    assert "a reader wrote: Nothing about scopes." in as_text(report)


def test_chit_chat_and_random_keys_are_no_gap(tmp_path):
    """Also in another language than the question was taken for; short names that a page or another question has stay."""
    kept_words = ["gdpr", "gdpr a logy", "qsub", "Jak zapojím SharePoint?"]
    left_out = ["dekuji mockrat!", "Díky, to je vše", "haha", "ok thanks", "👍", "fghjkl", "hjkhjk jkl", "sdfsdf"]
    with stored("embedded", tmp_path) as index:
        index.publish(page_with("/jobs", "Submit a job by qsub."), page_with("/logs", "Rotate logs."))
        kept = [row(n, text, language="en") for n, text in enumerate((*kept_words, *left_out))]
        settings = asyncio.run(logged(f"sqlite:///{tmp_path / 'log.db'}", *kept, store=index.address))
        report = gap_report(settings, within())
    assert {example.text for one in report.clusters for example in one.examples} == set(kept_words)
    assert report.chit_chat == len(left_out)
    assert f"only greet, thank or say nothing: {len(left_out)}" in as_text(report)


async def test_with_digests_alone_questions_are_counted_by_their_nearest_section(database):
    settings = await logged(
        database,
        *(row(n, f"Question {n} of jan@example.org?", nearest=near("logs" if n < 6 else "volumes")) for n in range(9)),
        question_log="hashed",
    )
    logs, volumes = (await report_of(settings)).clusters
    assert [(one.failed, one.different, one.examples, one.nearest.url) for one in (logs, volumes)] == [
        (6, 6, [], f"{SITE}logs"),
        (3, 3, [], f"{SITE}volumes"),
    ]
    assert (logs.name, logs.to_do, logs.nearest.clear) == ("Use", "write", False)  # a refusal isn't about its nearest
    with pytest.raises(RequestError, match="the log has no texts"):
        await asyncio.to_thread(logged_rows, settings, within(), "all")


def test_a_page_that_answers_another_language_lacks_a_translation_and_one_that_answers_nothing_is_told(tmp_path):
    """A page with a translation lacks none; a refusal used no page, so its nearest one needs no translation."""
    with stored("embedded", tmp_path) as index:
        index.publish(
            page_with("/backup", "Back up the files.", title="Backup"),
            page_with("/volumes", "Create a volume.", title="Volumes", translation_set="v"),
            page_with("/cs/volumes", "Vytvořte svazek.", title="Svazky", language="cs", translation_set="v"),
            page_with("/quotas", "Each project has a quota.", title="Quotas"),
        )
        used = {"sources": (Source(1, "", f"{SITE}backup#part-1", "", "en", "", 0.9),)}
        czech = {"outcome": "written", "language": "cs", "evidence": 0.9}
        database = f"sqlite:///{tmp_path / 'log.db'}"
        settings = asyncio.run(
            logged(
                database,
                row(1, "Jak zálohuji?", **czech, **used, nearest=near("backup#part-1")),
                row(2, "Kde jsou zálohy?", **czech, **used, nearest=near("backup")),
                row(3, "Jak vytvořím svazek?", **czech, nearest=near("volumes")),
                row(4, "Máte kvóty?", "refused", language="cs", nearest=near("quotas")),
                store=index.address,
            )
        )
        report = gap_report(settings, within())
        assert (report.unused_count, report.answers, report.unused) == (
            None,
            3,
            [],
        )  # a question more may use another page
        assert "from 4 answers on, one for each page; there are 3" in as_text(report)
        asyncio.run(logged(database, row(5, "Jak zálohuji často?", **czech, **used, nearest=near("backup"))))
        report = gap_report(settings, within())
        assert [asdict(one) for one in report.untranslated] == [
            {"language": "cs", "url": f"{SITE}backup", "title": "Backup", "page_language": "en", "count": 3}
        ]
        assert [one.url for one in report.unused] == [f"{SITE}cs/volumes", f"{SITE}quotas", f"{SITE}volumes"]
        shown = as_text(report)
        assert "asked in cs, exists only in en: Backup" in shown
        assert "Used by no answer: 3 of 4 pages" in shown


async def test_a_question_set_is_made_of_the_log_with_the_pages_of_liked_answers(database):
    source = Source(1, "", f"{SITE}logs#rotate", "", "en", "", 0.9)
    settings = await logged(
        database,
        row(1, "How do I rotate logs of jan@example.org?", "written", evidence=0.9, sources=(source,)),
        row(2, "how do i rotate logs of jan@example.org", "written", evidence=0.9),
        row(3, "Price?"),
        up=("a-1",),
    )
    liked, price = await asyncio.to_thread(logged_rows, settings, within(), "all")
    assert (liked["question"], liked["doc"], liked["lang"]) == ("how do i rotate logs of [e-mail]", f"{SITE}logs", "en")
    assert (price["question"], price["kind"], "doc" in price) == ("Price?", "from log", False)
    assert [one["question"] for one in await asyncio.to_thread(logged_rows, settings, within(), "refused")] == [
        "Price?"
    ]
    with pytest.raises(RequestError, match="of the kind 'down'"):
        await asyncio.to_thread(logged_rows, settings, within(), "down")


async def test_what_stands_in_the_way_of_a_report_is_said(tmp_path, database):
    empty = await logged(database)
    for settings, message in (
        (Settings.load(None, retention_days=0), "DOCS_RETENTION_DAYS is 0"),
        (Settings.load(None, database=f"sqlite:///{tmp_path}/none.db"), "doesn't exist"),
        (empty, "The log is empty"),
        (empty.model_copy(update={"question_log": "off"}), "DOCS_QUESTION_LOG is off"),
    ):
        with pytest.raises(RequestError, match=message):
            await report_of(settings)
    assert not (tmp_path / "none.db").exists()
    nowhere = Settings.load(None, database="postgresql://docs@127.0.0.1:9/docs")
    with pytest.raises(DatabaseUnavailable):
        await report_of(nowhere)
    for since, until in (("soon", ""), ("5d", "6d"), ("1d", "0d-"), ("99999w", "99999w")):
        with pytest.raises(RequestError):
            Asked.read(since, until, NOW)
    assert Asked.read("2026-11-01", "2026-11-02T00:00:00+00:00", NOW) == Asked(1793491200.0, 1793577600.0)


def test_average_linkage_joins_the_most_similar_first_and_gives_the_same_each_time():
    similar = np.array([[1, 0.9, 0.2, 0], [0.9, 1, 0.4, 0], [0.2, 0.4, 1, 0], [0, 0, 0, 1]], np.float32)
    assert average_linkage(similar.copy(), 0.3) == [[0, 1, 2], [3]]  # 0.3 is the mean of 0.2 and 0.4
    assert average_linkage(similar.copy(), 0.31) == [[0, 1], [2], [3]]
    assert average_linkage(np.zeros((0, 0), np.float32), 0.1) == []
    assert average_linkage(np.zeros((3, 3), np.float32), 0.1) == [[0], [1], [2]]


@pytest.mark.slow
async def test_operators_get_the_report_from_a_process_of_its_own(tmp_path):
    """It has the described form; without an admin key, an invalid time or a log, there is an error that says so."""
    settings = await logged(
        f"sqlite:///{tmp_path / 'log.db'}",
        row(1, "How do I use SharePoint?"),
        store=str(tmp_path / "index"),
        admin_keys="the-admin-key-of-tests",
    )
    assistants = build(settings)
    try:
        async with client_of(create_app(assistants, settings)) as client:
            assert (await client.get("/v1/admin/gaps")).status_code == 401
            client.headers["authorization"] = "Bearer the-admin-key-of-tests"
            response = await client.get("/v1/admin/gaps?since=7d", timeout=120)
            assert response.status_code == 200, response.text
            report = TypeAdapter(GapReport).validate_json(response.content, extra="forbid")
            assert [one.failed for one in report.clusters] == [1]
            wrong = await client.get("/v1/admin/gaps?since=soon")
            assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "since")
            nothing = await client.get("/v1/admin/gaps?since=90d&until=80d", timeout=120)
            assert (nothing.status_code, nothing.json()["error"]["code"]) == (404, "no_log")
    finally:
        await assistants.close()
