"""The page on which people label relevance: opened from a file, clicked through, saved as a sheet that `eval agreement` reads."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from eval.questions.labels import Label, Pair, load_labels
from eval.reports.pages import sheet_page

PAIRS = [
    Pair('q "1"', "c1", "How <b>much</b>?", "https://docs.example.org/a#b", "A volume has 10 GB.\n\n    <script>alert(1)</script>"),
    Pair("q2", "c2", "How long?", "https://docs.example.org/b", "Until you delete it."),
    Pair("q2", "c3", "How long?", "https://docs.example.org/c", "Something else."),
]  # fmt: skip


def test_a_person_labels_in_the_browser(chromium: Browser, tmp_path: Path) -> None:
    """Without a server; texts of pages stay texts, and pairs without an answer are left out."""
    (tmp_path / "sheet.html").write_text(sheet_page(PAIRS), encoding="utf-8")
    page = chromium.new_page()
    page.goto((tmp_path / "sheet.html").as_uri())
    expect(page.locator("pre").first).to_contain_text("<script>alert(1)</script>")
    page.get_by_label("It helps").nth(0).check()
    page.get_by_label("It doesn't help").nth(2).check()
    page.get_by_role("button").click()  # without a name, nothing is saved
    page.get_by_label("Your name").fill("Eva")
    with page.expect_download() as saved:
        page.get_by_role("button").click()
    assert saved.value.suggested_filename == "Eva.csv"
    saved.value.save_as(tmp_path / "Eva.csv")
    page.close()
    assert load_labels(tmp_path / "Eva.csv") == (
        Label('q "1"', "c1", relevant=True, by="Eva"),
        Label("q2", "c3", relevant=False, by="Eva"),
    )
