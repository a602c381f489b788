"""What the question log never holds."""

from __future__ import annotations

import pytest

from app.core.language import vocabulary
from app.text.redaction import redacted

WORDS = vocabulary().secrets
# each with what must not be left of it
PERSONAL = {
    "Why doesn't jan.novak@example.org get mail?": "novak",
    "mail for Jan.Novak+test@students.uni-example.ac.uk please": "students",
    "napište na jan (at) example (dot) org": "example",
    "napište na jan[zavináč]example[tečka]org": "example",
    "mailto:a@b.cz nefunguje": "b.cz",
    "přístup pro žížala@příklad.cz": "příklad",
    "o'brien@example.ie is locked": "brien",
    "user JAN@EXAMPLE.ORG cannot log in": "EXAMPLE",
    "call me at +420 777 123 456": "777",
    "call me at +420777123456": "777123",
    "zavolejte 777 123 456": "777",
    "zavolejte 777123456": "777123",
    "tel.: 00420 224 352 999": "224",
    "Telefon +49 30 1234567": "1234567",
    "phone (555) 123-4567 ext": "4567",
    "phone +1 (555) 123-4567": "4567",
    "my number is 0171/1234567": "1234567",
    "Tel +44 20 7946 0958": "7946",
    "rodné číslo 850101/1234 nejde zadat": "850101",
    "RČ 8501011234": "8501011234",
    "SSN 123-45-6789 was leaked": "6789",
    "Steuer-ID 12 345 678 901": "678",
    "občanka 123456789": "123456789",
    "card 4111 1111 1111 1111 refused": "1111",
    "card 4111-1111-1111-1111 refused": "1111",
    "karta 378282246310005": "378282",
    "účet 19-2000145399/0800": "2000145399",
    "IBAN CZ65 0800 0000 1920 0014 5399": "1920",
    "IBAN DE89370400440532013000": "0532013",
    "IBAN GB29 NWBK 6016 1331 9268 19": "NWBK",
    "key sk-proj-abcdEFGH1234567890abcd doesn't work": "abcdEFGH",
    "curl -H 'Authorization: Bearer abcDEF123456' fails": "abcDEF",
    "Authorization: Basic dXNlcjpwYXNz": "dXNlcj",
    "with bearer tokentoken I get 401": "tokentoken",
    "export OPENAI_API_KEY=abc123 then 401": "abc123",
    "api_key: 'qwertz' is invalid": "qwertz",
    'set "password": "hunter2" in yaml': "hunter2",
    "DB_PASSWORD=letmein in .env": "letmein",
    "?token=zzz999&x=1 gives 403": "zzz999",
    "postgres://app:s3cret@db/x refuses": "s3cret",
    "https://user:pa55@host/repo.git clone fails": "pa55",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a pushes": "16C7e42F",
    "github_pat_11ABCDEFG0abcdefghijkl_mnop clone": "11ABCDEF",
    "glpat-AbCdEf123456GhIjKl does not clone": "AbCdEf",
    "AKIAIOSFODNN7EXAMPLE is denied": "IOSFODNN",
    "xoxb-123456789012-abcdefghijkl posts": "abcdefghijkl",
    "AIzaSyA1234567890abcdefghijklmnopqrstu": "1234567890",
    "hf_AbCdEfGhIjKlMnOpQrSt downloads": "AbCdEf",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-DEF expired": "hbGci",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----": "b3Blbn",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAK": "MIIEow",
    "hash 5f4dcc3b5aa765d61d8327deb882cf99 what": "5f4dcc",
    "job of 550e8400-e29b-41d4-a716-446655440000": "446655",
    "moje heslo je Tajne123 a nejde": "Tajne123",
    "heslo: kocka#pes nefunguje": "kocka",
    "my password is Summer2026! and fails": "Summer2026",
    "Passwort lautet Geheim99": "Geheim99",
    "heslo „LetniRano7“ odmítá": "LetniRano7",
    "client_secret=aaaBBBccc is wrong": "aaaBBB",
    "PIN 4711! nejde zadat": "4711",
    "session key = 'abc def'": "'abc",
    "token 'a1b2c3d4e5f6g7h8i9j0k1' expired": "a1b2c3",
}
HARMLESS = [
    "How do I mount /dev/sdb1 at /mnt on node-07?",
    "What does error 421 mean on port 8443?",
    "Kubernetes 1.31.4 and OpenSearch 3.6.0: does it work?",
    "Why is 192.168.100.200/24 refused, and 10.0.0.1?",
    "Since 2026-11-22 10:15 the job fails.",
    "Od 22. 11. 2026 úloha padá.",
    "limit 4 GB, 64 CPU, 1 000 000 files",
    "How do I change my password? The page asks for the old password again.",
    "Jak si změním heslo k účtu a kde najdu token?",
    "Where do I set DOCS_API_KEYS and OPENAI_API_KEY=$KEY?",
    "How do I index https://docs.example.org/en/latest/index.html?",
    "What is sentence-transformers/all-MiniLM-L6-v2?",
    "kubectl get pods -n my-namespace --selector=app.kubernetes.io/name=x",
    "Proč funguje TensorFlow 2.16 jen s CUDA 12.3?",
    "docs_assistant_ingest_last_run_timestamp_seconds",
]


@pytest.mark.parametrize(("text", "secret"), PERSONAL.items())
def test_what_may_belong_to_a_person_is_removed(text: str, secret: str) -> None:
    assert secret in text
    assert secret not in redacted(text, WORDS)


def test_what_a_question_is_about_stays() -> None:
    assert [text for text in HARMLESS if redacted(text, WORDS) != text] == []


def test_of_a_long_text_the_beginning_is_read_without_half_a_word() -> None:
    secret = "x" * 1_990 + " jan.novak@example.org"
    assert redacted(secret, WORDS) == "x" * 1_990
    for piece in ("a.", "1 ", "password is ", "eyJ", "a@", "key", "-----BEGIN A-----"):
        assert len(redacted(piece * 20_000, WORDS)) <= 4_000
