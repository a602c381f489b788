"""Sign-in in a browser: the buttons of both pages lead to the provider and back, and out again."""

from pathlib import Path

from playwright.sync_api import Page, expect

from app.routes.sign_in import COOKIE
from tests.app.http.test_keys import write
from tests.app.routes.faulty_provider import faulty_provider
from tests.app.routes.test_sign_in import table
from tests.frontend.conftest import Start


def test_a_person_signs_in_and_out_on_both_pages(page: Page, start: Start, tmp_path: Path, axe):
    """Also where the provider breaks down: then a page says so in the language of the reader."""
    with faulty_provider() as provider:
        provider.claims = {"roles": ["docs-admins"], "name": "Olga Operator"}
        keys = write(tmp_path / "keys.toml", table(provider.address, roles_claim='"roles"'))
        service = start(DOCS_KEYS=keys)
        page.goto(f"{service.url}/admin/runs")
        page.get_by_role("link", name="Sign in").click()
        expect(page.get_by_role("heading", name="Runs", level=1)).to_be_visible()
        assert page.url == f"{service.url}/admin/runs"
        axe(page)
        page.get_by_role("button", name="Sign out: Olga Operator").click()
        expect(page.get_by_role("link", name="Sign in")).to_be_visible()
        assert page.url == f"{service.url}/"
        assert COOKIE not in {one["name"] for one in page.context.cookies()}
        page.get_by_role("link", name="Sign in").click()
        page.get_by_label("Settings").click()
        page.get_by_role("button", name="Sign out: Olga Operator").click()
        expect(page.get_by_role("link", name="Sign in")).to_be_visible()
        provider.bodies = {"/token": b"x"}
        page.get_by_role("link", name="Sign in").click()
        expect(page.get_by_text("Signing in failed: the sign-in provider")).to_be_visible()
        axe(page)
