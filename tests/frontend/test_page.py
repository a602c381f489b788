"""The page at `/` as readers use it, in a real Chromium."""

import re
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from app.index.run_history import tell_reading
from tests.app.routes.scripted import wait_for
from tests.app.routes.test_interface import own_brand
from tests.end_to_end.program import Program
from tests.end_to_end.program import finished as ran
from tests.fake_llm import FakeLLM, Reply
from tests.frontend.conftest import Start

QUESTION = "How do I create a volume?"
ANSWER = """To create a volume, write a file with the class `nfs-csi` and apply it [1]:

```yaml
kind: PersistentVolumeClaim # the volume
metadata:
  name: results
```

The volume is ready as soon as its state is `Bound`, usually within ten seconds [1].

- [x] write the file
- [ ] apply it

| class | speed |
|---|---|
| `nfs-csi` | 400 MB/s |

```
$ kubectl apply -f volume.yaml
```
"""


def ask(page: Page, question: str = QUESTION) -> None:
    page.get_by_role("textbox", name="Your question").fill(question)
    page.keyboard.press("Enter")


def says(llm: FakeLLM, text: str, rewritten: str = "", **how: object) -> None:
    """What the model answers, and how it rewrites questions; it rewrites none by default."""
    llm.reply = lambda body: Reply(text, **how) if body.get("stream") else Reply(rewritten)


def answers(page: Page) -> Locator:
    return page.locator(".da-answer")


def finished(page: Page, number: int = 1) -> Locator:
    """The last answer, once it and those before it are complete."""
    expect(page.locator(".da-answer[aria-busy=false]")).to_have_count(number)
    return answers(page).last


def chats(page: Page) -> Locator:
    return page.get_by_role("navigation", name="Your chats").get_by_role("listitem")


def test_a_first_question_is_answered_as_a_stream_with_status_and_sources(page: Page, service: Program, llm: FakeLLM):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    found, go_on = threading.Event(), threading.Event()
    says(llm, ANSWER, held={0: found, 48: go_on})
    page.goto(service.url)
    suggestion = page.get_by_role("button", name=QUESTION)
    expect(suggestion).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("Docs Assistant")  # whose documentation it is
    expect(page.get_by_text("A machine answers from the 8 pages")).to_be_visible()
    expect(page.get_by_role("region", name="Start here").get_by_role("link", name="Volumes")).to_be_visible()
    assert all(re.match("How|Which|What", text) for text in page.locator(".da-questions button").all_inner_texts())
    suggestion.click()
    expect(page.locator(".da-status")).to_have_text(re.compile("Reading sections: \\d"))
    early = page.get_by_role("region", name="Found so far")  # before the model has said a word
    expect(early.get_by_role("link").first).to_contain_text(f"Volumes › {QUESTION}")
    expect(early.get_by_role("link").first).to_contain_text("class nfs-csi")
    found.set()
    expect(page.get_by_role("status").filter(has_text="The answer is on its way.")).to_have_count(1)
    go_on.set()
    answer = finished(page)
    expect(page.locator("textarea")).to_be_focused()  # for the next question
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    expect(early).to_have_count(0)
    expect(page.get_by_role("status").filter(has_text="The answer is complete. Sources: 1.")).to_have_count(1)
    assert "docs.example.org" not in answer.locator(".da-markdown").first.inner_text()  # its sources are cards
    expect(answer.locator(".hl-comment")).to_have_text("# the volume")
    expect(answer.get_by_role("img", name="done")).to_have_count(1)

    following = answer.get_by_role("list", name="Continue with").get_by_role("button")
    assert 1 <= following.count() <= 3
    assert QUESTION not in following.all_inner_texts()

    answer.get_by_role("button", name="Source 1: Volumes").first.click()
    card = answer.locator(".da-card")
    expect(card.locator("> button")).to_be_focused()
    link = card.get_by_role("link")
    assert link.inner_text().split("\n") == [f"Volumes › {QUESTION}", "/en/volumes"]
    expect(card.locator(".da-tag")).to_have_count(0)  # all is in one language
    quoted = card.locator("mark").filter(has_text="The volume is ready as soon as its state is")
    expect(quoted).to_be_in_viewport()
    passage = card.locator(".da-passage")  # it ends with its section
    expect(passage.locator("h3, h4, h5, h6, .da-table")).to_have_count(0)
    assert card.locator(".da-passage").evaluate("one => one.scrollHeight === one.clientHeight")
    expect(link).to_have_attribute("href", re.compile("/en/volumes"))

    answer.get_by_role("button", name="Copy the code").first.click()
    assert page.evaluate("navigator.clipboard.readText()").startswith("kind: PersistentVolumeClaim")
    text = answer.locator("> .da-markdown")
    assert text.locator(".da-code-head").all_inner_texts() == ["yaml"]  # the session names no language
    expect(text.locator(".hl-prompt")).to_have_text("$ ")
    text.get_by_role("button", name="Copy the code").last.click()
    assert page.evaluate("navigator.clipboard.readText()") == "kubectl apply -f volume.yaml"
    answer.get_by_role("button", name="Copy the answer").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("To create a volume, write")
    assert "1. [Volumes – How do I create a volume?](<https://docs.example.org/en/volumes" in copied


UNPROVEN = """A volume can't be made smaller [1]. The volume is ready as soon as its state is `Bound`, within 90 seconds [1]. Apply it again:

```sh
kubectl apply -f volume.yaml
kubectl freeze volume
```

To get a smaller one, create another volume and copy the data [1].
"""


def test_a_statement_that_no_passage_proves_is_underlined_and_says_why(page: Page, service: Program, llm: FakeLLM, axe):
    """From the moment it is written, and after a reload; what the reader copies has the words in place of the sign."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    go_on = threading.Event()
    says(llm, UNPROVEN, held={25: go_on})
    page.goto(service.url)
    ask(page)
    said = answers(page).locator(".da-markdown u")
    label = "Not found in the documentation"
    expect(said).to_have_text(["The volume is ready as soon as its state is ", "Bound", ", within 90 seconds."])
    expect(answers(page).get_by_role("button", name=label)).to_have_count(1)
    go_on.set()
    for _ in range(2):
        answer = finished(page)
        signs = answer.get_by_role("button", name=label)
        expect(signs).to_have_count(2)
        expect(answer.locator("u")).to_have_text(
            [re.compile("The volume"), "Bound", re.compile("90"), "kubectl freeze volume"]
        )
        assert "⚠" not in answer.inner_text()
        expect(answer.get_by_text("3 of 5 statements are word for word in the pages")).to_be_visible()
        reason = answer.get_by_role("tooltip")
        expect(reason).to_have_count(0)
        signs.first.hover()
        expect(reason).to_have_text(
            f"{label}. A number, name or code here is in no passage. Check it before you use it."
        )
        signs.last.click()
        expect(reason.last).to_contain_text("A number, name or code here")
        page.mouse.move(0, 0)
        page.keyboard.press("Escape")
        expect(reason).to_have_count(0)
        page.reload()
    answer.get_by_role("button", name="Copy the answer").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert "within 90 seconds. (⚠ not found in the documentation) Apply" in copied
    for scheme, width in (("light", 390), ("dark", 1280)):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": 844})
        signs.first.focus()
        expect(reason).to_be_in_viewport(ratio=1)
        axe(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_what_is_written_from_right_to_left_is_shown_so(page: Page, start: Start, llm: FakeLLM, axe, tmp_path: Path):
    """In a page that isn't: a question and its field, and of a page the text with its lists, but not its code."""
    service = start(DOCS_ADMIN_OPEN="true", DOCS_TOP_K="9")
    hebrew = "# כרך\n\nלכרך יש גודל.\n\n- כתבו את הקובץ\n\n```\nkubectl apply\n```\n"
    english = "Write the file as it is shown above, and apply it before you ask for another one.\n" * 4
    (tmp_path / "volume.md").write_text(
        f"{hebrew}\n{english}", "utf-8"
    )  # pages are in languages that the service knows
    sources = tmp_path / "sources.toml"
    sources.write_text(f'[[source]]\nurl = "https://rtl.example.org/"\ndirectory = "{tmp_path}"\n', "utf-8")
    done = ran(service.folder, "ingest", str(sources))
    assert done.returncode == 0, done.stderr
    page.goto(f"{service.url}/admin/page?url=https://rtl.example.org/volume")
    text, direction = page.locator(".da-markdown"), "one => getComputedStyle(one).direction"
    assert text.evaluate(direction) == "rtl"
    assert text.locator("pre").evaluate(direction) == "ltr"
    item, whole = text.locator("li").bounding_box(), text.bounding_box()
    assert item["x"] + item["width"] < whole["x"] + whole["width"] - 10  # the marker stands at the right
    axe(page)
    page.goto(service.url)
    field = page.get_by_role("textbox", name="Your question")
    field.fill("שלום")
    assert field.evaluate(direction) == "rtl"
    page.keyboard.press("Enter")
    finished(page)
    assert page.locator("h2 bdi").evaluate(direction) == "rtl"
    axe(page)


def test_a_sign_that_an_answer_quotes_stays_as_it_is(page: Page, service: Program, llm: FakeLLM):
    """The documentation may speak of such signs."""
    says(llm, "A volume can't be made smaller [1]: (⚠ not found in the documentation).")
    page.goto(service.url)
    ask(page)
    expect(finished(page)).to_contain_text("smaller 1: (⚠ not found in the documentation).")
    expect(answers(page).locator("u")).to_have_count(0)


def test_a_reader_stops_goes_on_asks_again_and_edits(page: Page, service: Program, llm: FakeLLM):
    stopped = threading.Event()
    says(llm, "the word is " * 100 + "[1]", held={50: stopped})
    page.goto(service.url)
    ask(page)
    expect(answers(page)).to_contain_text("the word is the word")
    page.keyboard.press("Escape")
    expect(finished(page)).to_contain_text("You stopped this answer.")
    stopped.set()
    assert answers(page).inner_text().count("word") < 100

    says(llm, "A notebook gets 4 GB [1].")
    ask(page, "And how much memory does a notebook get?")
    expect(finished(page, 2)).to_contain_text("4 GB")
    sent = [message["content"] for message in llm.calls[-1]["messages"]]
    assert any(QUESTION in text for text in sent)
    assert llm.cancelled >= 1

    says(llm, "Another answer [1].")
    answers(page).last.get_by_role("button", name="Ask again").click()
    expect(finished(page, 2)).to_contain_text("Another answer")

    page.get_by_role("button", name="Edit the question").first.click()
    edited = page.get_by_role("textbox", name="Your question").first
    expect(edited).to_be_focused()  # which moves the caret to the end
    edited.fill("Which classes of storage are there?")
    page.keyboard.press("Enter")
    expect(finished(page)).to_contain_text("Another answer")  # the second exchange is gone
    expect(page.get_by_role("article").get_by_role("heading", level=2)).to_have_text(
        "You asked: Which classes of storage are there?"
    )


def test_a_reader_who_asks_again_gets_a_new_answer_and_another_reader_the_stored_one(
    page: Page, start: Start, llm: FakeLLM
):
    """What is asked again isn't repeated from DOCS_ANSWER_CACHE, and takes the place of the stored answer."""
    service = start(DOCS_ANSWER_CACHE="600")
    for text, again in (("The first answer [1].", False), ("The second answer [1].", True)):
        says(
            llm, text, rewritten='{"cs": "vytvořit svazek", "en": "create volume"}'
        )  # an answer for which a step failed isn't stored
        page.goto(service.url)
        ask(page)
        expect(finished(page)).to_contain_text("The first answer")
        if again:
            answers(page).last.get_by_role("button", name="Ask again").click()
            expect(answers(page).last).to_contain_text("The second answer")
    page.goto(service.url)
    ask(page)
    expect(finished(page)).to_contain_text("The second answer")


def test_chats_stay_in_the_browser_and_the_back_button_steps_through_them(page: Page, service: Program, llm: FakeLLM):
    page.goto(f"{service.url}/?q=How+do+I+create+a+volume%3F")
    finished(page)
    page.reload()
    finished(page)
    assert len([call for call in llm.calls if call.get("stream")]) == 1  # a reload shows the answer, and asks nothing
    page.get_by_role("link", name="New chat").first.click()
    ask(page, "How long may a job run?")
    finished(page)
    expect(chats(page)).to_have_count(2)
    page.go_back()  # to the empty chat
    expect(page.get_by_role("heading", name="Docs Assistant")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("article", name=QUESTION)).to_be_visible()
    page.go_forward()
    page.go_forward()
    expect(page.get_by_role("article", name="How long may a job run?")).to_be_visible()

    chats(page).get_by_role("button", name="Delete the chat “How long may a job run?”").click()
    expect(chats(page)).to_have_count(1)
    expect(page.get_by_role("heading", name="Docs Assistant")).to_be_visible()
    ask(page)
    finished(page)
    page.get_by_role("button", name="Delete all chats").click()
    page.get_by_role("button", name="Really delete all?").click()
    expect(chats(page)).to_have_count(0)
    assert page.evaluate("Object.keys(localStorage).filter(name => name.includes('chat:'))") == []


def test_a_chat_is_found_renamed_and_saved(page: Page, service: Program, llm: FakeLLM, axe, tmp_path: Path):
    """Each in this browser alone: the service hears of none of it."""
    page.goto(service.url)
    for number in range(6):
        page.get_by_role("link", name="New chat").first.click()
        ask(page, QUESTION if number == 2 else f"How long may job {number} run?")
        finished(page)
    page.get_by_role("searchbox", name="Search your chats").fill("VOLÚME create")
    expect(chats(page)).to_have_count(1)
    chats(page).get_by_role("link").click()
    finished(page)
    chats(page).get_by_role("button", name=f"Rename the chat “{QUESTION}”").click()
    name = chats(page).get_by_role("textbox")
    name.fill("Nothing")
    name.press("Escape")
    chats(page).get_by_role("button", name=f"Rename the chat “{QUESTION}”").click()
    name.fill("Storage of the group")
    axe(page)
    name.press("Enter")
    page.reload()
    expect(page).to_have_title("Storage of the group")
    current = chats(page).filter(has_text="Storage of the group")
    with page.expect_download() as download:
        current.get_by_role("button", name="Save the chat “Storage of the group” as Markdown").click()
    assert download.value.suggested_filename == "Storage-of-the-group.md"
    saved = Path(download.value.path()).read_text("utf-8")
    assert saved.startswith(f"# Storage of the group\n\n## {QUESTION}\n\n")
    assert "\n1. [" in saved
    chats(page).get_by_role("button", name="Delete the chat “Storage of the group”").click()
    expect(chats(page)).to_have_count(5)


def test_two_tabs_with_one_chat_lose_no_question(page: Page, service: Program, llm: FakeLLM):
    page.goto(service.url)
    ask(page)
    finished(page)
    other = page.context.new_page()
    other.goto(page.url)
    ask(other, "And how large may it be?")
    finished(other, 2)
    finished(page, 2)  # the first tab shows it, too
    ask(page, "Which classes of storage are there?")
    finished(page, 3)
    finished(other, 3)
    other.reload()
    finished(other, 3)


def test_the_page_ends_below_its_answer_and_a_long_question_leaves_it_in_sight(
    page: Page, service: Program, llm: FakeLLM, axe
):
    says(llm, "The volume is ready as soon as its state is `Bound` [1].")
    page.goto(service.url)
    ask(page, f"{QUESTION} " * 100)
    answer = finished(page)
    page.evaluate("scrollTo(0, 0)")
    expect(answer.get_by_text("The volume is ready")).to_be_in_viewport()
    axe(page)
    answer.locator(".da-card > button").first.click()
    expect(answer.locator(".da-passage mark").first).to_be_visible()
    below = "document.documentElement.scrollHeight - document.querySelector('.da-app').offsetHeight"
    assert page.evaluate(below) == 0


def test_a_page_that_is_opened_during_the_first_run_says_how_far_it_is(page: Page, start: Start, tmp_path: Path):
    """Before a question is asked, and again with other numbers, until there is an index."""
    store = tmp_path / "read"
    tell_reading(store, 45, 100, 2, began=time.time())
    page.goto(start(indexed=False, DOCS_STORE=str(store)).url)
    said = page.get_by_role("alert")
    expect(said).to_contain_text("Reading the documentation")
    expect(said).to_contain_text("45 of 100 pages, about 2 min left")
    tell_reading(store, 80, 100, 1, began=time.time())
    expect(said).to_contain_text("80 of 100 pages, about 1 min left")


def test_what_goes_wrong_is_said_in_plain_words(page: Page, start: Start, llm: FakeLLM):
    page.goto(start(indexed=False).url)
    expect(page.get_by_role("alert")).to_contain_text("Nothing is indexed yet")
    ask(page)
    expect(finished(page).get_by_role("alert")).to_contain_text("Nothing is indexed yet")
    expect(page.get_by_role("alert")).to_have_count(1)  # it is said once
    expect(page.locator(".da-calm")).to_contain_text("Nothing is indexed yet")  # which is nobody's fault

    strict = start(DOCS_TUNING__ON_MODEL_FAILURE="error")
    page.goto(strict.url)
    for reply, said in (
        (Reply(status=500), "The language model doesn't answer"),
        (Reply("The volume is [1] " * 20, dies_after=6), "The language model doesn't answer"),
        (Reply(status=429, headers={"Retry-After": "2"}), "Too many questions"),
    ):
        llm.reply = lambda _, reply=reply: reply
        ask(page)
        expect(answers(page).last.get_by_role("alert")).to_contain_text(said)
    again = answers(page).last.get_by_role("button", name="Try again", exact=False)
    expect(again).to_be_disabled()
    expect(again).to_contain_text(re.compile(r"in \d s"))
    says(llm, "It works [1].", finish="length")
    expect(again).to_be_enabled()
    again.click()
    expect(answers(page).last).to_contain_text("It works")
    expect(answers(page).last).to_contain_text("reached the maximum length")

    page.context.set_offline(True)
    ask(page)
    expect(answers(page).last.get_by_role("alert")).to_contain_text("No connection")
    page.context.set_offline(False)
    answers(page).last.get_by_role("button", name="Try again").click()
    expect(answers(page).last).to_contain_text("It works")


INVENTED = "Send a signed form to the administrator, who prints the key of the volume on paper [1]. A volume can't be made smaller [1]."


def test_below_an_answer_stands_what_was_counted_and_never_how_sure_it_is(
    page: Page, service: Program, llm: FakeLLM, axe
):
    """In the language of the page, after a reload too, and where there is little room."""
    says(llm, INVENTED)
    page.goto(service.url)
    ask(page)
    for _ in range(2):
        answer = finished(page)
        expect(answer.locator(".da-verbatim")).to_have_text("1 of 2 statements are word for word in the pages")
        assert not re.search("(?i)supported|confiden|sure", answer.inner_text())
        page.reload()
    page.set_viewport_size({"width": 390, "height": 844})
    expect(finished(page).locator(".da-verbatim")).to_be_visible()
    axe(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_our_own_documentation_has_the_widget(page: Page, service: Program, llm: FakeLLM):
    """From the service that serves the documentation; the panel lies over it."""
    says(llm, ANSWER)
    page.goto(f"{service.url}/docs/en/start")
    page.locator("docs-assistant .da-launch").click()
    page.locator("docs-assistant textarea").fill(QUESTION)
    page.keyboard.press("Enter")
    expect(page.locator("docs-assistant .da-answer")).to_contain_text(re.compile("answer|class"))


def test_without_a_model_the_page_says_that_it_quotes(page: Page, start: Start, service: Program, llm: FakeLLM):
    page.goto(start(DOCS_LLM_URL="").url)
    expect(page.get_by_text("it quotes the pages word for word")).to_be_visible()
    ask(page, "Can a volume be made smaller?")
    card = finished(page).locator(".da-card").first
    expect(card.get_by_role("link")).to_have_attribute("href", re.compile("/en/volumes#.*:~:text=[^,]+,"))
    card.get_by_role("button").click()
    expect(card.locator("mark").first).to_be_visible()
    page.goto(service.url)
    llm.reply = lambda _: Reply(status=500)
    ask(page, "Can a volume be made smaller?")
    answer = finished(page)
    expect(answer).to_contain_text("word for word:")
    caption, quotation = answer.locator("p:has(> em)"), answer.locator("blockquote")
    expect(caption).to_have_text(re.compile("^Volumes › How do I .* volume.*1\\s*$"))
    assert caption.evaluate("one => parseFloat(getComputedStyle(one).fontSize)") < 15
    expect(quotation.locator("mark").first).to_be_visible()
    ask(page, "How do I get more storage?")
    answer = finished(page, 2)
    linked = answer.locator(".da-actions ~ .da-markdown > ul a").all_inner_texts()
    assert linked[0].startswith("Handbook of the cluster")
    assert answer.locator(".da-card-title").all_inner_texts() == ["Volumes › How do I make a volume larger?"]
    expect(page.get_by_role("status").filter(has_text="The answer is complete. Sources: 1.")).to_have_count(1)
    texts = " ".join(answer.locator(".da-markdown").all_inner_texts())
    assert re.findall(r"\b\d\b", texts) == ["1"]  # the number of that
    expect(answer.locator(".da-verbatim")).to_have_count(0)  # what comes before the quotation says so


def test_a_service_with_keys_asks_for_one(page: Page, start: Start, llm: FakeLLM, axe, tmp_path: Path):
    """One that keeps nothing has no thumbs."""
    keys = "right-key-of-tests, klíč-třetího-čtenáře"
    brand = own_brand(tmp_path, name="Rocket Motors Handbook", color="#fd0", welcome="Ask us")
    service = start(DOCS_API_KEYS=keys, DOCS_RETENTION_DAYS="0", DOCS_ASSISTANTS=brand)
    page.goto(service.url)
    expect(page).to_have_title("Rocket Motors Handbook")
    page.goto(f"{service.url}/admin")
    expect(page.get_by_role("link", name="Rocket Motors Handbook Administration")).to_be_visible()
    expect(page).to_have_title("Rocket Motors Handbook")
    page.goto(service.url)
    key = page.get_by_label("Key", exact=True)
    key.fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("This key isn't valid")
    axe(page)
    key.fill("klíč-třetího-čtenáře")
    page.get_by_label("Remember it on this device").check()
    page.keyboard.press("Enter")
    ask(page)
    expect(finished(page).get_by_role("button", name="Copy the answer")).to_be_visible()
    expect(page.locator(".da-thumbs")).to_have_count(0)
    page.get_by_role("link", name="New chat").first.click()
    expect(page.get_by_role("heading", name="Ask us")).to_be_visible()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        axe(page)
    page.set_viewport_size({"width": 390, "height": 800})
    title = page.get_by_role("link", name="Rocket Motors Handbook")
    assert title.evaluate(
        "one => [one, ...one.children].every(part => part.scrollWidth <= part.clientWidth + 1 || !part.clientWidth)"
    )
    page.set_viewport_size({"width": 1280, "height": 800})
    page.context.new_page().goto(service.url)
    other = page.context.pages[-1]
    expect(other.get_by_role("button", name=QUESTION, exact=True)).to_be_visible()
    other.get_by_label("Settings").click()
    other.get_by_role("button", name="Forget the key").click()
    expect(other.get_by_label("Key", exact=True)).to_be_visible()


def test_a_person_is_asked_where_the_pages_have_no_answer_or_a_bad_one(
    page: Page, start: Start, llm: FakeLLM, axe, tmp_path
):
    """By a mail that says what was asked and answered, or at an address of the web."""
    service = start(DOCS_ASSISTANTS=own_brand(tmp_path, contact="help@acme.example"))
    says(llm, ANSWER)
    page.goto(service.url)
    ask(page, "Who won the football match in Prague yesterday?")
    person = finished(page).get_by_role("link", name="Ask a person")
    assert (person.get_attribute("href") or "").startswith(
        "mailto:help@acme.example?subject=Who%20won%20the%20football"
    )
    axe(page)
    finished(page).get_by_role("button", name="Search for these words").click()
    expect(page.get_by_role("combobox", name="Search", exact=True)).to_have_value(
        "Who won the football match in Prague yesterday?"
    )
    page.go_back()
    ask(page)
    answer = finished(page, 2)
    expect(answer.get_by_role("link", name="Ask a person")).to_have_count(0)
    expect(answer.get_by_role("button", name="Search for these words")).to_have_count(0)
    answer.get_by_role("button", name="Not helpful").click()
    href = answer.get_by_role("link", name="Ask a person").get_attribute("href") or ""
    told = parse_qs(urlsplit(href).query)["body"][0]
    assert told.startswith(f"{QUESTION}\n\nTo create a volume, write")
    assert "(<https://docs.example.org/en/volumes" in told


def test_language_appearance_and_tone_are_chosen_and_kept(page: Page, service: Program, llm: FakeLLM):
    page.goto(service.url)
    page.get_by_label("Settings").click()
    page.get_by_label("Tone").select_option("Matter-of-fact")
    page.get_by_label("Appearance").select_option("Dark")
    page.get_by_label("Language").select_option("Čeština")
    page.reload()
    expect(page.get_by_text("Odpovídá stroj, a to ze stránek dokumentace (je jich 8)")).to_be_visible()
    expect(page.locator("html")).to_have_attribute("lang", "cs")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 29)"
    page.get_by_role("button", name="Jak vytvořím svazek?").click()
    expect(page.get_by_role("heading", name="Zdroje")).to_be_visible()
    prompt = " ".join(message["content"] for message in llm.calls[-1]["messages"])
    assert "věcně" in prompt.lower()
    german = page.context.browser.new_context(locale="de-DE").new_page()
    german.goto(service.url)
    expect(german.get_by_text("Eine Maschine antwortet aus")).to_be_visible()
    german.context.close()


def test_a_long_answer_is_read_from_its_beginning_and_followed_only_at_its_end(page: Page, start: Start, llm: FakeLLM):
    service = start(DOCS_TUNING__UNPROVEN="off")  # which would end an answer that repeats itself
    paragraph = "A notebook gets four gigabytes of memory at first, and up to sixty-four on request [1].\n\n"
    words, go_on, end = paragraph.count(" "), threading.Event(), threading.Event()
    says(llm, paragraph * 45, held={15 * words: go_on, 30 * words: end})
    page.set_viewport_size({"width": 1280, "height": 400})
    page.goto(service.url)
    ask(page)
    question = page.get_by_role("article").get_by_role("heading", level=2)
    written(page, 12)
    rested(page)
    expect(question).to_be_in_viewport()
    page.mouse.move(700, 400)
    page.mouse.wheel(0, 99_999)
    wait_for(lambda: page.evaluate("scrollY + innerHeight > document.documentElement.scrollHeight - 5"))
    at = page.evaluate("scrollY")
    go_on.set()
    written(page, 25)
    wait_for(lambda: page.evaluate("scrollY") > at)  # it follows a reader who is at the end
    at = page.evaluate("scrollY")
    page.mouse.wheel(0, -900)
    wait_for(lambda: page.evaluate("scrollY") < at - 300)
    at = rested(page)
    end.set()
    finished(page)
    assert page.evaluate("scrollY") == at


def rested(page: Page) -> float:
    """How far the page is scrolled, once it has stopped to."""
    at: float = page.evaluate("""async () => {
        for (let at = -1; at !== scrollY; await new Promise((done) => setTimeout(done, 300))) at = scrollY
        return scrollY
    }""")
    return at


def written(page: Page, paragraphs: int) -> None:
    """Returns once the answer has more paragraphs than that, but isn't complete."""
    # not wait_for_function: where it has to ask twice, it needs eval, which the page's policy forbids
    wait_for(lambda: page.locator(".da-markdown p").count() > paragraphs)
    expect(page.locator(".da-answer[aria-busy=true]")).to_have_count(1)


def test_everything_is_reached_by_keyboard_and_axe_finds_nothing_serious(
    page: Page, service: Program, llm: FakeLLM, axe
):
    wide = "| class | speed | backed up |\n|---|---|---|\n| `nfs-csi` | 400 MB/s | every night |\n"
    says(llm, f"{ANSWER}\n{wide}")
    page.goto(service.url)
    expect(page.get_by_role("textbox", name="Your question")).to_be_focused()
    page.get_by_role("link", name="Skip to the question").press("Enter")
    expect(page.get_by_role("textbox", name="Your question")).to_be_focused()
    page.keyboard.type("How do I create")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("a volume?")
    page.keyboard.press("Enter")
    finished(page).get_by_role("button", name="Source 1: Volumes").first.focus()
    page.keyboard.press("/")
    expect(page.get_by_role("textbox", name="Your question")).to_be_focused()
    answers(page).get_by_role("button", name="Source 1: Volumes").first.press("Enter")
    expect(page.locator("mark").first).to_be_visible()
    for scheme in ("light", "dark"):
        for width in (1280, 390):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            page.set_viewport_size({"width": width, "height": 844})
            page.wait_for_timeout(50)
            axe(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            cells = answers(page).get_by_role("table").last.get_by_role("cell")
            tops = cells.evaluate_all("all => all.map(one => one.offsetTop)")
            assert len(set(tops)) == (3 if width == 390 else 1)  # one below the other where there is no room
    page.get_by_role("button", name="Show your chats").click()
    expect(page.get_by_role("dialog").get_by_role("listitem")).to_have_count(1)
    axe(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.parametrize("width", [1280, 390])
def test_a_page_of_long_words_scrolls_down_only(page: Page, service: Program, llm: FakeLLM, width: int):
    long = "x" * 400
    says(llm, f"{long} [1]\n\n```sh\n{long}\n```\n\n| a | {long} |\n|---|---|\n| `{long}` | b |\n")
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(service.url)
    ask(page, f"How do I create a volume? {long}")
    finished(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_answers_thumbs_and_comments_are_stored_changed_and_taken_back(page: Page, service: Program, llm: FakeLLM):
    """Beside question, answer, sources and generation. The page sends what was said before, which isn't stored twice."""
    says(llm, ANSWER)
    page.goto(service.url)
    ask(page)
    finished(page)
    ask(page, "Which classes are there?")
    answer = finished(page, 2)
    assert stored(service) == []
    helpful = answer.get_by_role("button", name="Helpful", exact=True)
    helpful.click()
    expect(helpful).to_have_attribute("aria-pressed", "true")
    answer.get_by_role("textbox").fill("Short and right.")
    answer.get_by_role("button", name="Send").click()
    expect(answer.get_by_role("textbox")).to_have_count(0)
    expect(answer).to_contain_text("Thank you.")
    (given,) = stored(service)
    assert (given["rating"], given["comment"], given["question"]) == (
        "up",
        "Short and right.",
        "Which classes are there?",
    )
    assert given["text"].strip() == ANSWER.strip()
    assert given["sources"][0]["url"].startswith("https://docs.example.org/en/")
    assert (given["generation"], given["language"], given["outcome"]) == (1, "en", "written")

    page.reload()
    finished(page, 2)
    expect(helpful).to_have_attribute("aria-pressed", "true")
    answer.get_by_role("button", name="Not helpful").click()
    expect(helpful).to_have_attribute("aria-pressed", "false")
    assert [(one["rating"], one["comment"], one["answer"]) for one in stored(service)] == [
        ("down", "Short and right.", given["answer"])
    ]
    answer.get_by_role("textbox").fill("See the limits.")
    answer.get_by_role("button", name="Something is missing").click()
    expect(answer.get_by_role("textbox")).to_have_count(0)
    assert [one["comment"] for one in stored(service)] == ["Something is missing. See the limits."]
    answer.get_by_role("button", name="Not helpful").click()
    expect(answer.get_by_role("button", name="Not helpful")).to_have_attribute("aria-pressed", "false")
    assert stored(service) == []
    sent = next(call for call in reversed(llm.calls) if call.get("stream"))["messages"]
    assert [message["content"] for message in sent].count(QUESTION) == 1
    kept = sqlite3.connect(service.folder / "data/conversations.db")
    last = kept.execute("select question, conversation from answers order by number desc limit 3").fetchall()
    kept.close()
    assert last[:2] == [("Which classes are there?", None), (QUESTION, None)]
    assert last[2:] != [(QUESTION, None)]


def stored(service: Program) -> list[dict[str, Any]]:
    """The feedback as operators read it."""
    listed: list[dict[str, Any]] = httpx.get(f"{service.url}/v1/admin/feedback", trust_env=False).json()["data"]
    return listed
