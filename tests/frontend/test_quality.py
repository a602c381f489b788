"""Verdicts of editors on answers in /admin, in a real browser on a real service."""

import httpx
from playwright.sync_api import Page, expect

from tests.frontend.test_admin import KEY, opened


def asked(url: str, question: str) -> str:
    """The id of the answer to the question."""
    body = {"model": "docs-assistant", "messages": [{"role": "user", "content": question}]}
    response = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=60, trust_env=False)
    return str(response.raise_for_status().json()["id"])


def test_an_editor_says_that_an_answer_is_wrong_and_takes_it_back(page: Page, start, axe):
    """The verdict says what a later answer is measured by; by keyboard and in Czech on a phone, too."""
    service = start(**KEY, DOCS_LLM_URL="")
    answer = asked(service.url, "How do I create a volume?")
    opened(page, service, f"questions/{answer}")
    page.get_by_role("radio", name="wrong").check()
    page.get_by_label("Because").fill("It is the old way.")
    page.get_by_label("Pages that answer it").fill("https://docs.example.org/quotas")
    axe(page, every=True)
    page.get_by_role("button", name="Save the verdict").click()
    expect(page.locator(".ad-facts").last).to_contain_text("It is the old way.")
    expect(page.locator(".ad-facts").last).to_contain_text(
        "It uses one of these pages: https://docs.example.org/quotas"
    )
    page.reload()
    expect(page.locator(".ad-badge", has_text="wrong")).to_be_visible()
    axe(page, every=True)
    page.get_by_role("button", name="Take the verdict back").click()
    page.get_by_label("Language").select_option("cs")
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_label("žádná stránka neodpovídá").check()
    expect(page.get_by_label("Stránky, které na ni odpovídají")).to_have_count(0)
    page.get_by_role("button", name="Uložit posudek").click()
    expect(page.locator(".ad-facts").last).to_contain_text("Otázku odmítne.")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    axe(page, every=True)
