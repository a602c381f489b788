"""A site that asks for client certificates, over real TLS: they open it, go to it alone, and are kept nowhere."""

from __future__ import annotations

import datetime as dt
import io
import logging
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from app.core.errors import AssistantError, SettingsError
from app.core.generation import SourceRecord
from ingestion.publish.recorded import sources_of
from ingestion.sources import Source, as_sources
from tests.ingestion.index import Index
from tests.ingestion.local_site import LocalSite, local_site
from tests.ingestion.test_headers import run

PASSWORD = "pa55-of-the-key"
NOW = dt.datetime.now(dt.UTC)


def write(directory: Path, name: str, authority: str = "", until: dt.datetime = NOW + dt.timedelta(days=9)) -> None:
    """A key and a certificate, signed by itself or by this authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = x509.CertificateBuilder().subject_name(subject).public_key(key.public_key())
    made = made.serial_number(x509.random_serial_number())
    made = made.not_valid_before(NOW - dt.timedelta(days=30)).not_valid_after(until)
    made = made.add_extension(x509.BasicConstraints(ca=not authority, path_length=None), critical=True)
    signer, issuer = key, subject
    if authority:
        pem = (directory / f"{authority}.key").read_bytes()
        signer = serialization.load_pem_private_key(pem, None)
        issuer = x509.load_pem_x509_certificate((directory / f"{authority}.pem").read_bytes()).subject
        names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
        made = made.add_extension(names, critical=False)
    signed = made.issuer_name(issuer).sign(signer, hashes.SHA256())
    (directory / f"{name}.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    for file, encryption in (
        (f"{name}.key", serialization.NoEncryption()),
        (f"{name}.locked", serialization.BestAvailableEncryption(PASSWORD.encode())),
    ):
        form = serialization.PrivateFormat.PKCS8
        (directory / file).write_bytes(key.private_bytes(serialization.Encoding.PEM, form, encryption))


def asking(directory: Path, mode: ssl.VerifyMode) -> ssl.SSLContext:
    """A server that asks for certificates of its authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "server.pem", directory / "server.key")
    context.load_verify_locations(directory / "ca.pem")
    context.verify_mode = mode
    return context


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[LocalSite]:
    """A site that answers only to clients with a certificate of its authority."""
    for name, authority in (("ca", ""), ("server", "ca"), ("client", "ca"), ("stranger", "")):
        write(tmp_path, name, authority)
    write(tmp_path, "expired", "ca", NOW - dt.timedelta(days=2))
    with local_site(asking(tmp_path, ssl.CERT_REQUIRED)) as site:
        site.page("/a", "Page a", "Some words about closed things.")
        yield site


def source(directory: Path, site: LocalSite, *lines: str) -> tuple[Source, ...]:
    """The site in a file of sources."""
    site.sitemap("/a", "/b")
    (directory / "sites.toml").write_text("\n".join(["[[source]]", f'url = "{site.url}/sitemap.xml"', *lines]))
    return as_sources([str(directory / "sites.toml")])


async def test_a_certificate_opens_its_site_and_is_in_no_log_report_index_or_request_to_another_host(
    closed: LocalSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """From files or from the environment, with a password or without; a page moved to a host that also asks for one fails."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("KEY", (tmp_path / "client.locked").read_text())
    monkeypatch.setenv("KEY_PASSWORD", PASSWORD)
    with local_site(asking(tmp_path, ssl.CERT_OPTIONAL)) as other:
        closed.put("/b", "", status=302, headers={"Location": f"{other.url}/b"})
        for lines in (
            ('certificate = "client.pem"', 'certificate_key = "file:client.key"', 'ca = "ca.pem"'),
            (
                'certificate = "client.pem"',
                'certificate_key = "env:KEY"',
                'certificate_password = "env:KEY_PASSWORD"',
                'ca = "ca.pem"',
                f'hosts = ["{other.url.removeprefix("https://")}"]',
            ),
        ):
            given, stream = source(tmp_path, closed, *lines), io.StringIO()
            report = await run(given, tmp_path / "data", stream)
            assert {page.url: page.outcome for page in report.pages if page.read} in (
                {f"{closed.url}/a": "new"},
                {f"{closed.url}/a": "unchanged"},
            )
        assert (
            "the server's certificate is of no known authority" in report.text
        )  # `ca` is of the source's own host alone
        assert not other.log
    async with Index(tmp_path / "data") as index:
        record = (await index.store.live()).info.sources[0]
    assert not {"certificate", "certificate_key", "certificate_password", "ca"} & record.options.keys()
    assert "certificates" in record.unreadable
    key = (tmp_path / "client.key").read_text().splitlines()[1]
    told = [report.text, report.to_json(), stream.getvalue(), repr(report), repr(given), caplog.text]
    told += [path.read_bytes().decode("latin-1") for path in (tmp_path / "data").rglob("*") if path.is_file()]
    for secret in (PASSWORD, key, "client.pem"):
        assert not [text for text in told if secret in text and text != repr(given)]


async def test_what_is_wrong_with_a_certificate_is_told_before_anything_is_read(
    closed: LocalSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the source and the key; no page is requested and no value shown."""
    monkeypatch.setenv("WRONG", "not the password")
    pem, key, ca = 'certificate = "client.pem"', 'certificate_key = "client.key"', 'ca = "ca.pem"'
    for lines, told in (
        (
            ('certificate = "expired.pem"', 'certificate_key = "expired.key"'),
            r"certificate: it is valid from \S+ to \S+ only",
        ),
        ((pem, 'certificate_key = "server.key"'), "certificate_key isn't the key of certificate"),
        ((pem, 'certificate_key = "client.locked"'), "certificate_password is missing"),
        (
            (pem, 'certificate_key = "client.locked"', 'certificate_password = "env:WRONG"'),
            "certificate_password isn't that of the key",
        ),
        ((pem, 'certificate_key = "gone.key"'), "certificate_key: the file .*gone.key can't be read: No such file"),
        ((pem, 'certificate_key = "env:GONE"'), "the environment variable GONE is not set"),
        ((pem, key, 'ca = "client.key"'), "ca: it has no certificate in PEM format"),
        (('certificate = "client.key"',), "certificate: it has no certificate in PEM format"),
    ):
        with pytest.raises(SettingsError, match=told) as caught:
            await run(source(tmp_path, closed, *lines), tmp_path / "data")
        assert f"{closed.url}/sitemap.xml" in str(caught.value)
        assert "not the password" not in str(caught.value)
    for line, told in (('certificate_key = "-----BEGIN s3cret"', "must name where it is"), (key, "need a certificate")):
        with pytest.raises(SettingsError, match=told) as caught:
            source(tmp_path, closed, line)
        assert "s3cret" not in str(caught.value)
    with pytest.raises(SettingsError, match="are for a site at https:// only"):
        as_sources([_insecure(tmp_path)])
    assert not closed.log
    for lines, told in (
        ((), "of no known authority, or not valid for it: `ca` of its source"),
        ((ca,), "wants a client certificate, .*set or check `certificate`"),
        (
            ('certificate = "stranger.pem"', 'certificate_key = "stranger.key"', ca),
            "wants a client certificate, .*set or check `certificate`",
        ),
    ):
        with pytest.raises(AssistantError, match=told):
            await run(source(tmp_path, closed, *lines), tmp_path / "data")


def test_a_recorded_source_names_no_secret_of_this_machine() -> None:
    """Who writes into an index on a server doesn't choose what is sent to a site from here."""
    url, secrets = (
        "https://evil.example/",
        {"headers": '{"X": "env:KEY"}', "certificate": "file:/etc/key", "ca": "env:X"},
    )
    assert sources_of([SourceRecord({"url": url, **secrets}, (url,))]) == (Source(url=url),)


def _insecure(directory: Path) -> str:
    file = directory / "insecure.toml"
    file.write_text('[[source]]\nurl = "http://docs.example.org/"\nca = "ca.pem"')
    return str(file)
