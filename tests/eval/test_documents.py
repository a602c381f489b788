"""Which page a document of a set is."""

import pytest

from eval.files import EvaluationError
from eval.questions.cases import load_cases
from eval.questions.documents import Documents, parse_rules

SITE = "https://docs.example.org"


ENDS = ("", ".mdx", "/", ".html", "/index.html")
PAGES = {
    "en/docs/a.mdx": ("/base/v2/en/docs/a", *(f"/en/docs/a{end}" for end in ENDS)),
    "en/docs/a/index.md": ("/en/docs/a",),
    "en/docs/a": ("/en/docs/a?version=2#part",),
    "příručka/úvod.md": ("/p%C5%99%C3%ADru%C4%8Dka/%C3%BAvod/",),
    "pr\u030ci\u0301ruc\u030cka.md": ("/p%C5%99%C3%ADru%C4%8Dka",),
    "v1.2/a.md": ("/v1.2/a",),
    "/en/docs/a": ("/en/docs/a/",),
    "index.md": ("/",),
    "/": ("/index.html",),
    f"{SITE}/en/docs/a/": ("/en/docs/a",),
}
OTHERS = {
    "docs/a.mdx": "/en/docs/aa",
    "a.mdx": "/extra",
    "s/a.mdx": "/docs/a",
    "/docs/a": "/en/docs/a",
    "en/docs/a.mdx": "/docs/a",
    "en/docs/a": "/cs/docs/a",
    "index.md": "/en/docs/a",
    "v1.2": "/v1",
    "https://elsewhere.example.org/en/docs/a/": "/en/docs/a",
}


def test_a_document_is_the_page_at_its_path_and_no_other() -> None:
    """Suffixes, slashes, index files, escapes and a site's base path make no difference. Whole segments count, a leading
    slash means the whole path, and an address its host.
    """
    for doc, path in [(doc, path) for doc, paths in PAGES.items() for path in paths]:
        documents = Documents([SITE + path])
        assert documents.fits(doc, SITE + path), (doc, path)
        assert documents.pages(doc) == (SITE + path,)
        assert documents.label(SITE + path, ["other", doc]) == doc
    for doc, path in OTHERS.items():
        documents = Documents([SITE + path])
        assert not documents.fits(doc, SITE + path), (doc, path)
        assert documents.pages(doc) == ()
        assert documents.label(SITE + path, [doc]) == SITE + path


def test_rules_rewrite_documents_and_the_first_that_matches_wins():
    """What one rule made isn't rewritten by the next."""
    rules = parse_rules(["^en/docs/=/", "^cs/docs/=/cs/", "^/=/wrong/", r"^(\w+)\.x=\1/y"])
    documents = Documents([f"{SITE}/a/", f"{SITE}/cs/a/", f"{SITE}/cs/docs/b"], rules)
    assert documents.pages("en/docs/a.mdx") == (f"{SITE}/a/",)
    assert documents.pages("cs/docs/a.mdx") == (f"{SITE}/cs/a/",)
    assert documents.pages("en/docs/b.mdx") == ()
    assert documents.fits("k.x", f"{SITE}/z/k/y")


def test_a_rule_is_divided_at_its_last_equals_sign():
    """A lookahead keeps its own."""
    (rule,) = parse_rules(["^en/(?=docs)=/"])
    assert (rule.pattern.pattern, rule.replacement) == ("^en/(?=docs)", "/")


@pytest.mark.parametrize("text", ["nothing", "=x", "(=x", r"a=\2", r"(?P<n>a)=\g<m>"])
def test_a_wrong_rule_is_named(text):
    """A bad expression, group or form is told before anything is asked."""
    with pytest.raises(EvaluationError) as raised:
        parse_rules([text])
    assert text in str(raised.value)


def test_the_shared_set_fits_both_forms_of_its_site(shared_eval):
    """Each document is exactly one page of the raw form and, with two rules, of the HTML build."""
    docs = {doc for case in load_cases(shared_eval / "questions.jsonl") for doc in case.relevant}
    raw = [
        f"{SITE}/{path.relative_to(shared_eval / 'corpus').with_suffix('').as_posix()}"
        for path in (shared_eval / "corpus").rglob("*.mdx")
    ]
    html = [
        f"{SITE}/{path.parent.relative_to(shared_eval / 'html_site').as_posix()}/"
        for path in (shared_eval / "html_site").rglob("index.html")
    ]
    rules = parse_rules(["^en/docs/=/", "^cs/docs/=/cs/"])
    assert {len(Documents(raw).pages(doc)) for doc in docs} == {1}
    assert {len(Documents(html, rules).pages(doc)) for doc in docs} == {1}
    assert not any(Documents(html).pages(doc) for doc in docs if doc.startswith("en/"))
