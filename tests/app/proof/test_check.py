"""Which statements of an answer its passages prove: literals, code and sentences."""

from __future__ import annotations

import pytest

from app.core.prompts import load_prompts
from app.proof.check import Checker
from app.proof.evidence import Evidence
from app.proof.wording import Wording

LANGUAGES = load_prompts(("cs", "en"), "").languages
WORDING = Wording(LANGUAGES)
BACKUPS = (
    "Backups run every night at 02:00 and are kept for 30 days. A user must not delete the folder `data/`. Set `DOCS_TOP_K` to change"
    " the number of passages (default 5). Use `docs-assistant ingest --all` to index all sites. Each project gets 3 replicas,"
    " 16 GB of memory and 1,500 files. Write to help@example.org."
)
ZALOHY = "Zálohy běží každou noc v 02:00 a uchovávají se třicet dní. Uživatel nesmí smazat složku se zálohami. Projekt dostane 40GB paměti."


def kinds(
    sentence: str, *, language: str = "en", passages: tuple[str, ...] = (BACKUPS,), languages: tuple[str, ...] = ()
) -> list[str]:
    evidence = Evidence(passages, languages or (language,) * len(passages), "How are backups kept?")
    return [fault.kind for fault in Checker(evidence, language, WORDING).sentence(sentence)]


@pytest.mark.parametrize(
    "sentence",
    [
        "Backups are kept for 30 days [1].",
        "They run nightly, at 02:00.",
        "Memory is 16 GB, and there may be 1500 files.",
        "Two projects get 2 × 16 GB = 32 GB.",
        "Set `DOCS_TOP_K=12` or `DOCS_TOP_K=<your-number>`.",
        "Run `docs-assistant ingest --all`.",
        "You must not delete `data/` [1].",
        "1. First, do this.",
        "Write to HELP@example.org.",
        "The documentation does not answer this question.",
    ],
)
def test_what_a_passage_says_in_other_words_is_proved(sentence: str) -> None:
    """Thousands separators, sums that are shown, placeholders and list numbers are no faults."""
    if "DOCS_TOP_K=12" in sentence:
        assert kinds(sentence) == ["code"]  # 12 is nobody's number
    else:
        assert kinds(sentence) == []


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("Backups are kept for 60 days [1].", "number"),
        ("Projects get 16 GiB.", "number"),
        ("Projects get 5 replicas.", "number"),
        ("Backups run at 03:00.", "number"),
        ("Run `docs-assistant ingest --everything`.", "code"),
        ("Use the option --everything.", "name"),
        ("Set DOCS_TOP_N.", "name"),
        ("Write to support@example.org.", "name"),
        ("The restore wizard recovers deleted indexes automatically after a confirmation by telephone.", "statement"),
    ],
)
def test_what_no_passage_says_is_a_fault(sentence: str, kind: str) -> None:
    assert kinds(sentence) == [kind]


WAITS = """## Timeouts

- `poll_interval` (5 minutes): a consumer that polls less often leaves its group.
- `session_timeout` (45 seconds): without a heartbeat, the broker removes the member.
- `linger` (250d): how long messages wait for others.

Earlier generations are lost with a repair. The old instances cannot be started again. Press `q` to leave.
"""


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("A consumer leaves its group if it doesn't poll within 5 minutes, its `poll_interval`.", []),
        ("A consumer leaves its group if it doesn't poll within 45 seconds.", ["number"]),
        ("A consumer with a long `poll_interval` leaves its group.", []),
        ("A consumer that polls less often than `session_timeout` leaves its group.", ["name"]),
        ("Messages wait for others for 250 days.", []),
        ("Messages wait for others for 5 × 9 = 45 days.", []),
        ("Earlier generations are removed with a repair.", []),
        ("Press `q` to leave it.", []),
        ("Press `w` to leave it.", ["code"]),
        ("Les instances quittent leur groupe quand elles ne demandent rien pendant 5 minutes.", ["statement"]),
    ],
)
def test_a_literal_counts_only_beside_the_words_that_it_belongs_to(sentence: str, expected: list[str]) -> None:
    """Another number or option stands beside these words then; one letter can be an option."""
    assert kinds(sentence, passages=(WAITS,)) == expected


LOGIN = "Log in with `ssh login@skirit.metacentrum.cz`, then load a module: `module add python/3.11.11-gcc-10.2.1`."


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Log in with `ssh username@skirit.metacentrum.cz`.", []),
        ("Log in with `ssh your_login@skirit.metacentrum.cz`.", []),
        ("Log in with `ssh your_login@tarkil.metacentrum.cz`.", ["code"]),
        ("Log in with `ssh toor@skirit.metacentrum.cz`.", ["code"]),
        ("There is a module for Python 3.11.", []),
        ("There is a module for Python 3.12.", ["number"]),
        ("There is a module for Python 3.1.", ["number"]),
    ],
)
def test_a_reader_fills_in_the_name_before_a_host_and_a_version_may_be_shorter(
    sentence: str, expected: list[str]
) -> None:
    """The host isn't the reader's, and another version isn't the beginning of the one on the page."""
    assert kinds(sentence, passages=(LOGIN,)) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Uživatel nesmí mazat složku se zálohami.", []),
        ("Projekt dostane 40 GB paměti.", []),
        ("Projekt dostane 64 GB paměti.", ["number"]),
        ("Zálohy běží ve 2 hodiny ráno.", []),
        ("Zálohy běží ve 3 hodiny ráno.", ["number"]),
    ],
)
def test_czech_forms(sentence: str, expected: list[str]) -> None:
    """Words are inflected, and numbers stand right before their units."""
    assert kinds(sentence, language="cs", passages=(ZALOHY,)) == expected


def test_sums_go_on_in_the_next_sentence() -> None:
    """The results of a sentence are known in the next one."""
    shown = (
        "15 days are 15 × 86,400 = 1,296,000 seconds of the 15 days.",
        "1,296,000 × 50 = 64,800,000 samples, which need 64,800,000 × 2 = 129,600,000 bytes.",
    )
    evidence = Evidence(
        ("Samples need 2 bytes, 50 each second for 15 days. At most 5% of 800MB may be unused.",), ("en",)
    )
    checker = Checker(evidence, "en", WORDING)
    assert [checker.sentence(sentence) for sentence in shown] == [[], []]
    rows = Evidence(
        ("The limit is 50 rows and 0.2 of all.",), ("en",), "When is the limit of one million rows reached?"
    )
    summing = Checker(rows, "en", WORDING)
    assert summing.sentence("The limit is 50 + 0.2 × 1,000,000 = 200,050 rows.") == []
    assert summing.sentence("With 0.2 of 1,000,000 and 50, the limit is 200,050 rows.") == []
    assert [fault.kind for fault in summing.sentence("The limit is 270,150 rows.")] == ["number"]
    assert [fault.kind for fault in checker.sentence("5% of 800MB is 0.06 × 800 = 48MB.")] == ["number"]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Backups are kept by the tool Veeam for 30 days.", ["name"]),
        ("Backups are kept for 30 days, Sundays too.", ["name"]),
        ("Users of Backups must not delete the folder.", []),
        ("Veeam keeps backups for 30 days.", []),
    ],
)
def test_a_name_within_a_sentence_that_no_passage_has(sentence: str, expected: list[str]) -> None:
    """A word that begins with a capital; at the beginning of a sentence, every word does."""
    assert kinds(sentence) == expected


def test_a_path_may_end_a_sentence() -> None:
    """Its stop is no part of it."""
    assert kinds("For help, ask the address /health.", passages=("The address /health helps.",)) == []


def test_across_languages_only_literals_decide() -> None:
    """The words of a Czech answer don't occur in English passages, but numbers and names do."""
    assert kinds("Zálohy se uchovávají 30 dní na vzdáleném úložišti.", language="cs", languages=("en",)) == []
    assert kinds("Zálohy se uchovávají 90 dní.", language="cs", languages=("en",)) == ["number"]


def test_code_is_proved_by_its_parts() -> None:
    """What a reader has to fill in, comments and texts in quotes are no part of a command."""
    checker = Checker(Evidence([BACKUPS], ["en"]), "en", WORDING)
    assert not checker.code("docs-assistant ingest --all <your-site>  # indexes everything anew")
    assert [fault.kind for fault in checker.code("docs-assistant reindex --fast")] == ["code"]


LIMITS = """| threat | control |
|---|---|
| guessed keys | after 10 wrong ones, one each 6 s |

| run | time (min) | heap (GB) |
|---|---|---|
| first | 25 | 16 |

A limit holds for each minute. Sizes in MB: 200, 400, 800.

| word | meaning |
|---|---|
| failed | could not be read; its earlier text stays |

Some pages or a reader of them failed."""


@pytest.mark.parametrize(
    ("sentence", "fault"),
    [
        ("The first run takes 25 minutes.", []),
        ("The heap is 16 GB, and sizes are 400 MB.", []),
        ("A key is blocked for 10 minutes.", ["number"]),
        ("The heap is 25 GB.", []),  # the wrong column of the right table
        ("A size is 16 MB.", ["number"]),
        ("A failed page couldn't be read.", []),
    ],
)
def test_a_unit_stands_with_its_number_or_above_it(sentence: str, fault: list[str]) -> None:
    """In the head of the table of the number, or in its paragraph; not just anywhere on the page."""
    assert kinds(sentence, passages=(LIMITS,)) == fault


MANUAL = """RERUN(1): `--reruns` sets the number. With `append`, 2 + 4 = 6 runs. -u, --user NAME Only this user. -g GID The group. -q Quiet.

Reads reach 224MiB/s here and 755MiB/s there. A file ends with conversations.db-wal. The service looks once a minute, and waits an hour, at most two hours. A pod gets 4Gi or 4G.

It stops after 5m0s. Checks are `inter 3s fall 3`. `box exec image.sif CMD` runs a command. Register `"0` has a text."""


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The 1st and 2nd run count: 2 * 9 = 18 s.", []),
        ("It reaches 755MiB/s, not 224MiB/s, a factor of 3.4.", []),
        ("It reaches 755MiB/s, not 224MiB/s, a factor of 4.6.", ["number"]),
        ("It waits an hour, that is 3,600 seconds.", []),
        ("It waits 3,600 seconds.", ["number"]),
        ("It looks for two hours, which are 120 minutes.", []),
        ("It looks for two hours, which are 150 minutes.", ["number"]),
        ("It looks for three hours.", ["number"]),
        ("A pod gets 4 GiB or 4 GB.", []),
        ("A pod gets 5 GiB.", ["number"]),
        ("Remove the file with `-wal`.", []),
        ("Remove the file with `-shm`.", ["code"]),
        ("Run `rerun -u alice -g 1500`.", []),
        ("Run `rerun -q alice`.", ["code"]),
        ("It stops after 5 minutes.", []),
        ("It stops after 6 minutes.", ["number"]),
        ("It looks once a minute, 60times an hour.", []),
        ("It looks once a minute, 50times an hour.", ["number"]),
        ("With `inter 3s fall 3` this takes 9 seconds.", []),
        ("With `inter 3s fall 3` this takes 8 seconds.", ["number"]),
        ("Run `box exec image.sif ls`.", []),
        ("Run `box ls image.sif`.", ["code"]),
        ('Type `"0p`.', []),
        ('Type `"1p`.', ["code"]),
    ],
)
def test_what_follows_from_a_sentence_and_values_of_options_need_no_passage(sentence: str, expected: list[str]) -> None:
    """Ordinals, rounded ratios, times in words, sums of numbers in code, endings of files, values where the manual has a
    name for one, and keys that are typed after one of the manual.
    """
    assert kinds(sentence, passages=(MANUAL,)) == expected


PRICES = """An account has at most 100 checks.

A seat costs 20 dollars a month, a phone call 5 EUR, the setup $1,500 once.

| plan | price (CZK) |
|---|---|
| small | 450 |"""


@pytest.mark.parametrize(
    ("sentence", "language", "expected"),
    [
        ("An account costs $100 a month.", "en", ["number"]),
        ("An account costs 100 dollars a month.", "en", ["number"]),
        ("Účet stojí 100 Kč měsíčně.", "cs", ["number"]),
        ("A seat costs $20 a month.", "en", []),
        ("A phone call costs €5 or € 5 or 5 €.", "en", []),
        ("The setup costs 1500 USD once.", "en", []),
        ("The small plan has a price of 450 CZK.", "en", []),
        ("Malý tarif stojí 450 Kč.", "cs", []),
        ("An account has at most 100 checks.", "en", []),
    ],
)
def test_a_price_is_no_other_number(sentence: str, language: str, expected: list[str]) -> None:
    """Its sign stands before or behind it, or in its paragraph or the head of its table."""
    assert kinds(sentence, language=language, passages=(PRICES,), languages=("en",)) == expected


def test_the_meaning_decides_where_words_leave_doubt() -> None:
    """A paraphrase stays that is near to its pages, and a foreign sentence doesn't; across languages only one that is far away."""

    def kept(
        sentence: str, near: float | None, languages: tuple[str, ...] = ("en",), language: str = "en"
    ) -> list[str]:
        evidence = Evidence((BACKUPS,), languages, "How are backups kept?")
        checker = Checker(evidence, language, WORDING, compares=True, across=True)
        faults = checker.sentence(sentence)
        if not checker.undecided:
            return [fault.kind for fault in faults] or ["sure"]
        return [one.kind for fault in faults for one in checker.compared(fault, {} if near is None else {1: near})]

    paraphrase = "Copies of everything are made while everybody sleeps at night."
    assert kept(paraphrase, 0.5) == kept(paraphrase, 0.4) == []
    assert kept(paraphrase, 0.05) == kept(paraphrase, None) == ["statement"]
    assert kept("Backups run every night and are kept in the folder.", None) == ["sure"]
    wandering = "At night users wander with tapes to a folder of files beneath the mountain of the courier, "
    assert kept(wandering, -0.1) == ["statement"]
    assert kept(wandering * 4, -0.1) == ["statement"], "a long one, too"
    few = "Couriers carry the backups, tapes and disks weekly beneath a mountain."
    many = "Nightly backups of the folder, kept thirty days, are copied weekly beneath a mountain."
    assert (kept(few, 0.2), kept(many, 0.2)) == (["statement"], []), "with fewer words, a sentence has to be nearer"
    translated = "Kopie vznikají v noci a složku mazat nesmíte."
    assert kept(translated, 0.3, language="cs") == kept(translated, None, language="cs") == []
    assert kept(translated, 0.04, language="cs") == ["statement"]
    switched = "Zálohy se dělají každou noc, když nikdo nepracuje, a pak jsou ve složce."
    assert kept(switched, 0.5) == ["statement"], "in another language than the answer"
