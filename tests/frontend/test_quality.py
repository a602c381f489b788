"""Verdicts of editors on answers, and how good answers are, in /admin in a real browser on a real service."""

import re

import httpx
from playwright.sync_api import Page, expect

from tests.end_to_end.program import finished
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
    page.get_by_label("The answer is").select_option("wrong")
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
    page.get_by_label("Language", exact=True).select_option("cs")
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_label("žádná stránka neodpovídá").check()
    expect(page.get_by_label("Stránky, které na ni odpovídají")).to_have_count(0)
    page.get_by_role("button", name="Uložit posudek").click()
    expect(page.locator(".ad-facts").last).to_contain_text("Otázku odmítne.")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    axe(page, every=True)


def test_an_operator_sees_how_good_answers_are_and_takes_a_verdict_back(page: Page, start, axe):
    """Outcomes by day, how often sure answers are right, and the verdicts; an evaluation by run once there is one."""
    service = start(**KEY, DOCS_LLM_URL="", DOCS_TOP_K="4")
    answer = asked(service.url, "How do I create a volume?")
    asked(service.url, "Which wine goes with goulash?")
    admin = {"authorization": f"Bearer {KEY['DOCS_ADMIN_KEYS']}"}
    path = f"{service.url}/v1/admin/verdicts/{answer}"
    httpx.post(path, json={"verdict": "good"}, headers=admin, trust_env=False).raise_for_status()
    opened(page, service, "quality")
    expect(page.locator(".ad-figures div", has_text="refused")).to_contain_text("1")
    expect(page.locator(".ad-shares > div", has_text="Sure, by editors")).to_contain_text("100% (21%–100%), 1 / 1")
    expect(page.locator(".ad-shares > div", has_text="Sure, by readers")).to_contain_text("–")
    expect(page.get_by_text("No evaluation was kept")).to_be_visible()
    axe(page, every=True)
    done = finished(service.folder, "eval", "verdicts")
    assert done.returncode == 0, done.stderr
    assert "1 cases: 0 better, 0 worse, 1 same" in done.stdout
    page.reload()
    expect(page.get_by_role("slider", name="en, by run")).to_have_attribute("aria-valuetext", re.compile(": 1$"))
    page.get_by_label("Language", exact=True).select_option("cs")
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.get_by_role("heading", name="Jak často je jistá odpověď správná")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    axe(page, every=True)
    page.get_by_role("button", name="Vzít posudek zpět").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Vzít posudek zpět").click()
    expect(page.get_by_role("region", name="Posudky redaktorů")).to_have_count(0)
    expect(page.locator(".ad-shares > div", has_text="Jisté, podle redaktorů")).to_be_visible()
