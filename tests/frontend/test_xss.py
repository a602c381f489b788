"""No text that people see runs a script, loads something from another host or leads to a script: page, widget and admin.

The `page` fixture fails on each request to another host and on each violation of the CSP, which says that something was tried.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.end_to_end.program import finished
from tests.end_to_end.program import service as served
from tests.fake_llm import FakeLLM, Reply
from tests.frontend.payloads import PAYLOADS
from tests.ingestion.local_site import LocalSite, local_site

# elements and addresses that none of our pages has of itself; in shadow trees too
HARMFUL = """() => {
  const trees = [document], all = (css) => trees.flatMap((tree) => [...tree.querySelectorAll(css)]);
  for (const tree of trees) for (const e of tree.querySelectorAll('*')) if (e.shadowRoot) trees.push(e.shadowRoot);
  return [
    ...all('body script, img:not([src="brand/icon"], .da-head > img), iframe, object, embed, video, audio, link:not([rel=icon]):not([href^="static/"]):not([href="brand.css"]), style, base ~ base, \
meta[http-equiv], [style*=url], [srcdoc], svg script, svg image, [src^="http://evil"], [action], [formaction]').map((e) => e.outerHTML),
    ...all('a[href]').map((a) => a.href).filter((href) => !/^(https?|mailto):/.test(href)),
    ...all('*').flatMap((e) => e.getAttributeNames().filter((name) => name.startsWith('on'))),
  ];
}"""
OPEN = "document.querySelectorAll('main .tr-row, main summary').forEach((one) => one.click())"
STRICT = "default-src 'none'; script-src {0}; connect-src {0}; img-src {0}; require-trusted-types-for 'script'"
PARTS = [PAYLOADS[i : i + 12] for i in range(0, len(PAYLOADS), 12)]
STEPS = '["detect", ["refine", "keywords", "probe"], "retrieve", "relevance", "overview", "synthesize", "cite"]'
ASKED = "How do I create a volume?"


@dataclass
class Hostile:
    """A service, open to operators on this machine, in whose index every title, heading and text is hostile."""

    url: str
    site: LocalSite

    @property
    def everything(self) -> str:
        """The address of the page with all texts."""
        return f"{self.site.url}/everything"


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory, running_llm: FakeLLM) -> Iterator[Hostile]:
    """A page for each payload, with it as title, headings and text; one of Markdown with all; an assistant named by them."""
    folder = tmp_path_factory.mktemp("hostile")
    with local_site() as site:
        for number, text in enumerate(PAYLOADS):
            site.put(f"/page-{number}", _page(escape("".join(one for one in text if one.isprintable())), number))
        site.put("/everything.md", f"# Everything about a volume\n\n{_paragraphs(PAYLOADS)}\n", "text/markdown")
        sources = folder / "sources.toml"
        listed = site.sitemap(*site.answers)
        sources.write_text(f'[[source]]\nurl = "{listed}"\ncollection = "{PAYLOADS[12]}"\n', "utf-8")
        done = finished(folder, "ingest", str(sources))
        assert done.returncode == 0, done.stderr + done.stdout
        with served(folder, "serve", **_settings(folder, site.url), DOCS_LLM_URL=running_llm.url) as running:
            script = f'<script src="{running.url}/static/widget.js" async></script>'
            site.put(
                "/",
                f'<!doctype html><html lang="en"><head><title>A page</title>{script}</head></html>',
                headers={"content-security-policy": STRICT.format(running.url)},
            )
            yield Hostile(running.url, site)


def _page(text: str, number: int) -> str:
    steps = f"<h2>Volume {text}</h2><p>Create a volume with claim {number}. {text}</p><pre><code>{text}</code></pre>"
    main = f"<main><h1>{text}</h1><p>{text}</p>{steps}</main>"
    return f"<html lang=en><head><title>{text}</title></head><body>{main}</body>"


def _settings(folder: Path, origin: str) -> dict[str, str]:
    named = json.dumps(" ".join(text for text in PAYLOADS if text.isprintable()))
    (folder / "assistants.toml").write_text(
        f'[[assistant]]\nid = "docs"\nnames = {{ en = {named} }}\ndescriptions = {{ en = {named} }}\nsteps = {STEPS}\n',
        "utf-8",
    )
    opened = {"DOCS_ADMIN_OPEN": "true", "DOCS_ORIGINS": origin, "DOCS_ASSISTANTS": str(folder / "assistants.toml")}
    return opened | {"DOCS_LLM_MODEL": "scripted", "DOCS_TUNING__ON_MODEL_FAILURE": "error"}


def harmless(page: Page) -> None:
    assert page.evaluate("window.hacked") is None
    assert page.evaluate(HARMFUL) == []


def _paragraphs(texts: Sequence[str]) -> str:
    return "\n\n".join(f"{text}\n\nCreate a volume with claim {number}." for number, text in enumerate(texts))


def writes(llm: FakeLLM, texts: Sequence[str]) -> None:
    """The model writes these, as helpers too, between what makes it an answer with links."""
    written = "How to create a volume [1].\n\n" + "\n\n".join(texts) + "\n\nEnd [1] [2] [3]."
    llm.reply = lambda body: Reply(written if body.get("stream") else " ".join(texts))


def test_no_question_answer_source_or_chat_title_runs_anything_in_the_page(page: Page, attacked: Hostile, llm: FakeLLM):
    """Nor what the search finds: breadcrumbs, titles and marked words."""
    page.goto(attacked.url)
    for texts in PARTS:
        writes(llm, texts)
        page.get_by_role("link", name="New chat").first.click()
        page.get_by_role("textbox", name="Your question").fill(f"{texts[0]} {ASKED} " + "\n".join(texts[1:]))
        page.keyboard.press("Enter")
        expect(page.locator(".da-answer[aria-busy=false] .da-card").first).to_be_visible()
        for card in page.locator(".da-card > button").all():
            card.click()
        expect(page.locator(".da-passage .da-markdown").first).to_be_visible()
        harmless(page)
    page.reload()
    expect(page.locator(".da-card").first).to_be_visible()
    harmless(page)
    page.goto(f"{attacked.url}/?search=volume")
    _searches(page)


def _searches(page: Page) -> None:
    field = page.get_by_role("combobox", name="Search", exact=True)
    for query in ("volume onerror", "window hacked", "evil example", "<script>", PAYLOADS[0]):
        with page.expect_response(lambda one: one.url.endswith("/v1/search")):
            field.fill(query)
        expect(page.get_by_role("row").first).to_be_visible()
        harmless(page)


KEPT: dict[str, Any] = {"id": "x", "state": "done", "status": "", "extractive": True, "cut": False}


def kept_answer() -> dict[str, Any]:
    """As a browser keeps it, but without what the service does to texts of a model or page."""
    sources = [
        {"number": n, "title": text, "section": text, "url": f"javascript:window.hacked={n}//{text}", "language": text, "snippet": text,
         "score": 1, "translated_from": text, "chunk": text}
        for n, text in enumerate(PAYLOADS, 1)
    ]  # fmt: skip
    text = "\n\n".join(f"{payload} [{n}]" for n, payload in enumerate(PAYLOADS, 1))
    return KEPT | {"text": text, "sources": sources}


def test_what_the_browser_kept_runs_nothing_even_if_no_service_made_it_safe(page: Page, attacked: Hostile):
    exchange = {"id": "e", "answer": kept_answer()}
    entries = {}
    for n, title in enumerate(PAYLOADS[:20], 1):
        chat = {"id": str(n), "title": title, "at": n, "exchanges": [exchange | {"question": title}]}
        entries[f"da:/:chat:{n}"] = json.dumps(chat)
    page.goto(attacked.url)
    keep = "entries => Object.entries(entries).forEach(([name, value]) => localStorage.setItem(name, value))"
    page.evaluate(keep, entries)
    page.goto(f"{attacked.url}/?chat=20")
    expect(page.locator(".da-card")).to_have_count(len(PAYLOADS))
    harmless(page)
    opened(page)


def opened(page: Page) -> None:
    for n in range(0, len(PAYLOADS), 8):
        page.locator(".da-card > button").nth(n).click()
        expect(page.locator(".da-passage")).to_have_count(1)
        harmless(page)


def test_no_question_answer_source_or_search_result_runs_anything_in_the_widget(
    page: Page, attacked: Hostile, llm: FakeLLM
):
    """On a site with a CSP and Trusted Types of its own. Then the same with what the tab kept."""
    page.goto(attacked.site.url)
    page.locator("docs-assistant .da-launch").click()
    panel = page.locator("docs-assistant dialog")
    for count, texts in enumerate(PARTS, 1):
        writes(llm, texts)
        panel.get_by_role("textbox").fill(f"{texts[0]} {ASKED} " + "\n".join(texts[1:]))
        page.keyboard.press("Enter")
        expect(panel.locator(".da-answer[aria-busy=false]")).to_have_count(count)
        harmless(page)
    for card in panel.locator(".da-answer").last.locator(".da-card > button").all():
        card.click()
    expect(panel.locator(".da-passage .da-markdown").first).to_be_visible()
    harmless(page)
    panel.get_by_role("button", name="Search").click()
    _searches(page)

    (name,) = page.evaluate("Object.keys(sessionStorage)")
    exchanges = [{"id": str(n), "question": title, "answer": kept_answer()} for n, title in enumerate(PAYLOADS[:1])]
    page.evaluate("([name, value]) => sessionStorage.setItem(name, value)", [name, json.dumps(exchanges)])
    page.reload()
    page.locator("docs-assistant .da-launch").click()
    expect(panel.locator(".da-card")).to_have_count(len(PAYLOADS))
    opened(page)


def go(page: Page, path: str, query: dict[str, str] | None = None) -> None:
    """Another view of /admin, as a link leads there; waits until it is loaded."""
    address = f"admin/{path}?{urlencode(query or {})}"
    page.evaluate(
        "to => { history.pushState(null, '', new URL(to, document.baseURI)); dispatchEvent(new PopStateEvent('popstate')) }",
        address,
    )
    expect(page.locator("main .da-spinner")).to_have_count(0)


def test_no_page_or_chunk_runs_anything_in_admin(page: Page, attacked: Hostile):
    """Titles and collections in lists and filters; the text of a page, its Markdown, chunks, what is embedded, neighbours."""
    page.goto(f"{attacked.url}/admin/pages")
    expect(page.locator("tbody tr").first).to_be_visible()
    harmless(page)
    for query in PAYLOADS:
        go(page, "pages", {"q": query, "source": query, "collection": query, "language": query})
        harmless(page)
    go(page, "pages")
    listed = httpx.get(f"{attacked.url}/v1/admin/pages", params={"limit": 500}, trust_env=False).json()["data"]
    assert len(listed) == len(PAYLOADS) + 1
    for one in listed:
        go(page, "page", {"url": one["url"]})
        expect(page.locator(".ad-title")).to_have_text(" ".join(one["title"].split()))
        harmless(page)
    everything = attacked.everything
    for view in ({}, {"view": "markdown"}):
        go(page, "page", {"url": everything, **view})
        expect(page.locator(".ad-chunk").nth(1)).to_be_visible()
        page.evaluate(OPEN)
        harmless(page)
    whole = httpx.get(f"{attacked.url}/v1/admin/page", params={"url": everything}, trust_env=False).json()
    for chunk in whole["chunks"]:
        go(page, f"chunk/{quote(chunk['id'], safe='')}")
        expect(page.get_by_role("region", name="Nearest chunks").locator("tbody tr").first).to_be_visible()
        page.evaluate(OPEN)
        harmless(page)
    hacked = "chunk/%3Cimg%20src%3Dx%20onerror%3Dwindow.hacked%3D1%3E"
    for view in ("", "questions", "generations", "runs", "settings", hacked, PAYLOADS[0]):
        go(page, view)
        harmless(page)


def test_no_question_or_answer_runs_anything_in_the_list_of_questions(page: Page, attacked: Hostile, llm: FakeLLM):
    """What anybody asked is shown to operators: in the list, and with its answer."""
    for texts in PARTS:
        writes(llm, texts)
        asked = {"model": "docs", "messages": [{"role": "user", "content": f"{ASKED} " + "\n".join(texts)}]}
        httpx.post(f"{attacked.url}/v1/chat/completions", json=asked, timeout=60, trust_env=False).raise_for_status()
    page.goto(f"{attacked.url}/admin/questions")
    expect(page.get_by_role("region", name="Questions").locator("tbody tr").nth(len(PARTS) - 1)).to_be_visible()
    harmless(page)
    found = httpx.get(f"{attacked.url}/v1/admin/question-log?limit={len(PARTS)}", trust_env=False).json()["data"]
    for one in found:
        go(page, f"questions/{one['id']}")
        expect(page.locator("article").last).to_be_visible()
        harmless(page)
    for query in PAYLOADS[:5]:
        go(page, "questions", dict.fromkeys(("q", "outcome", "language", "assistant"), query))
        harmless(page)


def test_no_question_prompt_or_reply_runs_anything_in_a_trace(page: Page, attacked: Hostile, llm: FakeLLM):
    """Steps, prompts as sent, raw replies, candidates, links, and both sides of a comparison."""
    for texts in PARTS:
        writes(llm, texts)
        question = {"q": f"{ASKED} " + "\n".join(texts), "top_k": "9", "again.top_k": "3", "again.assistant": texts[0]}
        page.goto(f"{attacked.url}/admin/ask?{urlencode(question)}")
        expect(page.locator(".tr-row").first).to_be_visible()
        harmless(page)
        page.goto(f"{attacked.url}/admin/ask?{urlencode({k: v for k, v in question.items() if 'again' not in k})}")
        expect(page.locator(".tr-row").first).to_be_visible()
        page.evaluate(OPEN)
        expect(page.get_by_role("group", name="Reply as it came").last).to_be_visible()
        harmless(page)


def test_no_message_of_a_model_runs_anything_among_the_errors(page: Page, attacked: Hostile, llm: FakeLLM):
    """Nor in the page and the trace that tell of it."""
    body = {"model": "docs", "messages": [{"role": "user", "content": ASKED}], "stream": True}
    for text in PAYLOADS:
        llm.reply = lambda _, text=text: Reply(json.dumps({"error": {"message": text}}), status=400)
        httpx.post(f"{attacked.url}/v1/chat/completions", json=body, timeout=60, trust_env=False)
    page.goto(f"{attacked.url}/admin/errors")
    expect(page.locator(".ad-problems")).to_contain_text("window.hacked")
    harmless(page)
    for address in ("?" + urlencode({"q": PAYLOADS[12]}), "admin/ask?" + urlencode({"q": ASKED})):
        page.goto(f"{attacked.url}/{address}")
        expect(page.get_by_role("alert").or_(page.locator(".tr-problem")).first).to_be_visible()
        harmless(page)


def test_stored_comments_titles_and_answers_are_shown_by_a_browser_as_text(page: Page, attacked: Hostile, llm: FakeLLM):
    """An operator may open the JSON in a tab: conversations, their answers, feedback, pages, and what a search finds."""
    writes(llm, PAYLOADS)
    with httpx.Client(base_url=attacked.url, trust_env=False, timeout=60) as client:
        conversation = client.post("/v1/conversations").json()["id"]
        for text in PAYLOADS:  # each is the title of a conversation
            own = client.post("/v1/conversations").json()["id"]
            asked = {"model": "docs", "messages": [{"role": "user", "content": text}], "conversation": own}
            client.post("/v1/chat/completions", json=asked).raise_for_status()
        question = {"model": "docs", "messages": [{"role": "user", "content": ASKED}], "conversation": conversation}
        answer = client.post("/v1/chat/completions", json=question).json()["id"]
        for text in PAYLOADS:
            given = client.post(f"/v1/answers/{answer}/feedback", json={"rating": "down", "comment": text})
            assert given.is_success, given.text
            listed = client.get("/v1/admin/feedback").json()["data"]
            assert listed[0]["comment"] == text
    for path in (
        "v1/conversations?limit=100",
        f"v1/conversations/{conversation}/answers",
        "v1/admin/feedback",
        "v1/admin/errors",
        f"v1/admin/page?url={quote(attacked.everything)}",
        "v1/admin/pages?limit=500",
        "v1/search?q=volume+onerror&limit=20",
        f"v1/search?q=volume&limit={quote(PAYLOADS[0])}",
        f"v1/conversations/{quote(PAYLOADS[0], safe='')}",
    ):
        response = page.goto(f"{attacked.url}/{path}")
        assert response.header_value("content-type") == "application/json"
        assert response.header_value("x-content-type-options") == "nosniff"
        harmless(page)
