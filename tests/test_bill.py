"""The bill of materials refuses what must not be shipped, and says where it differs."""

import json

import pytest

from tests.bill import BILL, bundled, differences, entry, refused

KEPT = json.loads(BILL.read_text("utf-8"))["components"]


def made(*licences: str) -> dict:
    return {"thing==1": entry("thing", "1", "pkg:pypi/thing@1", list(licences), "required")}


@pytest.mark.parametrize(
    "licences",
    [(), ("AGPL-3.0-only",), ("MIT AND AGPL-3.0-only",), ("Proprietary",), ("GPL-2.0-only",), ("LGPL-3.0-only",)],
)
def test_unknown_and_forbidden_licences_are_refused(licences: tuple[str, ...]):
    assert refused(made(*licences))


@pytest.mark.parametrize("licence", ["MIT", "MIT OR Apache-2.0", "MPL-2.0 AND (Apache-2.0 OR MIT)", "BSD License"])
def test_known_licences_are_accepted(licence: str):
    assert refused(made(licence)) == []


def test_the_committed_bill_has_no_refused_package():
    assert refused({one["purl"]: one for one in KEPT}) == []


def test_a_package_that_the_bill_lacks_or_has_otherwise_is_named():
    assert differences(made("MIT"), KEPT) == ["thing==1 isn't in sbom.cdx.json, or otherwise"]
    assert differences({}, [*KEPT, *made("MIT").values()]) == ["thing 1 of sbom.cdx.json isn't locked"]


def test_what_is_bundled_into_the_page_is_in_it():
    assert bundled()
    assert differences(bundled(), KEPT) == []
