"""Pages that ask for a login instead of showing a text: by the address of a redirect, or by the form on them."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from ingestion.urls import host

_WORD = re.compile(
    r"(?:^|[/._-])(?:log[-_]?in|log[-_]?on|sign[-_]?in|sso|oauth2?|oidc|openid|saml2?|auth|authorize|authenticate|idp|cas)(?:$|[/._-])",
    re.IGNORECASE,
)
_FORM = re.compile(rb"<input\b[^<>]*\btype\s*=\s*[\"']?password\b", re.IGNORECASE)


def has_login_form(body: bytes) -> bool:
    """True if the page has a field for a password."""
    return _FORM.search(body) is not None


def names_login(url: str) -> bool:
    """True if a word of the address's host or path is about signing in."""
    parts = urlsplit(url)
    return _WORD.search(f"{parts.hostname or ''}{parts.path}") is not None


def leads_to_login(url: str, target: str) -> bool:
    """True if a redirect from the first address leads to a login: on another host, or with a way back in its query."""
    return names_login(target) and not names_login(url) and (host(target) != host(url) or bool(urlsplit(target).query))
