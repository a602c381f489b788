"""Client certificates of a source, and the authority of its server: PEM in files or in the environment, never in the source itself."""

import os
import re
import ssl
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import certifi

from app.core.errors import SettingsError
from ingestion.sources import Source, read_secret

_VALIDITY = re.compile(rb"\x30[\x1e\x20\x22](?:\x17\x0d|\x18\x0f)(\d{12,14})Z(?:\x17\x0d|\x18\x0f)(\d{12,14})Z")
"""From when until when a certificate is valid, as RFC 5280 has it in DER: Python's ssl reads that only of other sides' certificates."""
_LOCKED = "ENCRYPTED"


def known_authorities() -> ssl.SSLContext:
    """A TLS context with the authorities of the environment (SSL_CERT_FILE, SSL_CERT_DIR), else those of Mozilla."""
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    return ssl.create_default_context(cafile=file or (None if folder else certifi.where()), capath=folder)


authorities = cache(known_authorities)
"""The same for all without a certificate of their own: reading them takes 20 ms."""


def tls_of(sources: Sequence[Source]) -> list[ssl.SSLContext | None]:
    """Returns the TLS context for each source, the same for the same settings; None without any.

    Raises `SettingsError` that names the source.
    """
    contexts: dict[tuple[str, ...], ssl.SSLContext | None] = {}
    keys = [(source.certificate, source.certificate_key, source.certificate_password, source.ca) for source in sources]
    for key, source in zip(keys, sources, strict=True):
        if key not in contexts:
            contexts[key] = _context(source)
    return [contexts[key] for key in keys]


def _context(source: Source) -> ssl.SSLContext | None:
    if not (source.certificate or source.ca):
        return None
    what = f"{source.without_login().url}: "
    if source.ca:
        try:
            context = ssl.create_default_context(cadata=read_secret(source.ca, f"{what}ca"))
        except ssl.SSLError as error:
            raise SettingsError(f"{what}ca: it has no certificate in PEM format.") from error
    else:
        context = known_authorities()
    if source.certificate:
        _check_dates(read_secret(source.certificate, f"{what}certificate"), f"{what}certificate")
        _load(context, source, what)
    return context


def _load(context: ssl.SSLContext, source: Source, what: str) -> None:
    written = source.certificate_password
    password = read_secret(written, f"{what}certificate_password").strip() if written else ""
    with ExitStack() as files:
        certificate = _file(source.certificate, f"{what}certificate", files)
        key = _file(source.certificate_key, f"{what}certificate_key", files) if source.certificate_key else None
        try:
            context.load_cert_chain(certificate, key, lambda: password)  # without it, OpenSSL asks on the terminal
        except (ssl.SSLError, ValueError, OSError) as error:
            raise SettingsError(f"{what}{_reason(error, Path(key or certificate), password)}.") from error


def _reason(error: Exception, key: Path, password: str) -> str:
    if getattr(error, "reason", "") == "KEY_VALUES_MISMATCH":
        return "certificate_key isn't the key of certificate"
    if _LOCKED in key.read_text("utf-8-sig"):
        told = "isn't that of the key" if password else "is missing: the key has one"
        return f"certificate_password {told}"
    return "certificate_key: it has no key in PEM format"


def _check_dates(pem: str, what: str) -> None:
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    first = pem[pem.find(begin) :].partition(end)[0] + end
    try:
        validity = _VALIDITY.search(ssl.PEM_cert_to_DER_cert(first))
    except ValueError as error:
        raise SettingsError(f"{what}: it has no certificate in PEM format.") from error
    if validity is None:
        return
    since, until = (_date(value.decode()) for value in validity.groups())
    if not since <= datetime.now(UTC) <= until:
        raise SettingsError(f"{what}: it is valid from {since:%Y-%m-%d} to {until:%Y-%m-%d} only: renew it.")


def _date(digits: str) -> datetime:
    if len(digits) == 12:  # RFC 5280: two digits from 50 on are of the last century
        digits = ("19" if digits >= "50" else "20") + digits
    return datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=UTC)


def _file(written: str, what: str, files: ExitStack) -> str:
    """The name of a file with this content, which OpenSSL needs; that of a variable is there only while `files` are."""
    kind, _, place = written.partition(":")
    text = read_secret(written, what)
    if kind == "file":
        return place
    file = files.enter_context(tempfile.NamedTemporaryFile("w"))  # noqa: SIM115  # only its owner may read it
    file.write(text)
    file.flush()
    return file.name
