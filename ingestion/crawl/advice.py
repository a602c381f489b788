"""What to set when a site refuses the crawler: logins, certificates, TLS."""

from __future__ import annotations

import re

import httpx

from ingestion.errors import PageError

LOGIN = "set `headers` of its source, or give user and password in its address"
FORM = f"it is a page with a login form, so {LOGIN}"
CERTIFICATE = "set or check `certificate` and `certificate_key` of its source"
ADVICE = {401: f": the site wants a login, so {LOGIN}", 403: f": the site refuses it; if it wants a login, {LOGIN}"}
IGNORE = 'set noindex = "ignore" of its source, in a file of sources, to index them all the same'
REFUSED = (
    ", although the login of its source was sent: check that its user, password or `headers` are right and still valid"
)
NO_CERTIFICATE = re.compile(
    r"ALERT_(?:(?:[A-Z]{1,20}_){0,3}CERTIFICATE(?:_[A-Z]{1,20}){0,3}|HANDSHAKE_FAILURE|UNKNOWN_CA|DECRYPT_ERROR|ACCESS_DENIED)"
)
NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
"""How OpenSSL calls an answer in plain HTTP, before and since version 3.2."""


def cannot_be_read(what: str, error: PageError) -> str:
    """The error of a run that ends because this address can't be read."""
    # a site that wants a login has a right address
    advice = "" if error.status in ADVICE else "; check its address"
    return f"{what} can't be read: {error}. Nothing was changed{advice}."


def hint_of_closed(url: str, error: Exception) -> str:
    """What may be behind a connection that the server closed without an answer; empty for other errors."""
    # a server that wants a certificate may close the connection before its reason arrives
    is_closed = isinstance(error, httpx.ReadError | httpx.RemoteProtocolError) and url.startswith("https:")
    return f": if the server wants a client certificate, {CERTIFICATE}" if is_closed else ""


def tls_problem(error: BaseException | None) -> str:
    """What is wrong with a TLS connection; empty for errors that another try may solve."""
    sign = ""
    while error is not None:
        sign += f" {error}"
        error = error.__cause__ or error.__context__
    if any(one in sign for one in NO_TLS):
        return "the server doesn't speak TLS on this port: write http:// instead of https://"
    if "CERTIFICATE_VERIFY_FAILED" in sign:
        return "the server's certificate is of no known authority, or not valid for it: `ca` of its source names an authority of your own"
    if alert := NO_CERTIFICATE.search(sign):
        return f"the server wants a client certificate, or another one ({alert[0].lower().replace('_', ' ')}), so {CERTIFICATE}"
    return ""
