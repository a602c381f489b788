"""What the question log never holds."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

import pytest

from app.core.language import vocabulary
from app.text.redaction import redacted

ROOT = Path(__file__).parents[3]
WORDS = vocabulary()
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
    "zavolejte 777 123 456": "777",
    "tel.: 00420 224 352 999": "224",
    "Telefon +49 30 1234567": "1234567",
    "phone (555) 123-4567 ext": "4567",
    "rodné číslo 850101/1234 nejde zadat": "850101",
    "RČ 8501011234": "8501011234",
    "SSN 123-45-6789 was leaked": "6789",
    "Steuer-ID 12 345 678 901": "678",
    "občanka 123456789": "123456789",
    "card 4111 1111 1111 1111 refused": "1111",
    "karta 378282246310005": "378282",
    "účet 19-2000145399/0800": "2000145399",
    "IBAN CZ65 0800 0000 1920 0014 5399": "1920",
    "IBAN DE89370400440532013000": "0532013",
    "key sk-proj-abcdEFGH1234567890abcd doesn't work": "abcdEFGH",
    "curl -H 'Authorization: Bearer abcDEF123456' fails": "abcDEF",
    "Authorization: Basic dXNlcjpwYXNz": "dXNlcj",
    "with bearer tokentoken I get 401": "tokentoken",
    "export OPENAI_API_KEY=abc123 then 401": "abc123",
    "api_key: 'qwertz' is invalid": "qwertz",
    'set "password": "hunter2" in yaml': "hunter2",
    "?token=zzz999&x=1 gives 403": "zzz999",
    "postgres://app:s3cret@db/x refuses": "s3cret",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a pushes": "16C7e42F",
    "github_pat_11ABCDEFG0abcdefghijkl_mnop clone": "11ABCDEF",
    "glpat-AbCdEf123456GhIjKl does not clone": "AbCdEf",
    "AKIAIOSFODNN7EXAMPLE is denied": "IOSFODNN",
    "xoxb-123456789012-abcdefghijkl posts": "abcdefghijkl",
    "AIzaSyA1234567890abcdefghijklmnopqrstu": "1234567890",
    "hf_AbCdEfGhIjKlMnOpQrSt downloads": "AbCdEf",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-DEF expired": "hbGci",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----": "b3Blbn",
    "hash 5f4dcc3b5aa765d61d8327deb882cf99 what": "5f4dcc",
    "job of 550e8400-e29b-41d4-a716-446655440000": "446655",
    "moje heslo je Tajne123 a nejde": "Tajne123",
    "Passwort lautet Geheim99": "Geheim99",
    "heslo „LetniRano7“ odmítá": "LetniRano7",
    "client_secret=aaaBBBccc is wrong": "aaaBBB",
    "session key = 'abc def'": "'abc",
    "token 'a1b2c3d4e5f6g7h8i9j0k1' expired": "a1b2c3",
    # e-mail addresses in other letters and in words
    "napište na jan zavináč example tečka cz": "example",
    "mail na jan.novak zavinac firma tecka cz nechodí": "novak",
    "mail jan AT example DOT cz bounces": "example",
    "jan at example dot org gets no mail": "example",
    "schreiben Sie an jan ät example punkt de": "example",
    "jan{at}example{dot}org": "example",
    "jan(zavináč)example.cz": "example",
    "?user=jan.novak%40example.org is refused": "novak",
    "mailto:jan%40example.org?subject=x": "example",
    "jan&#64;example.org": "example",
    "jan&#x40;example.org": "example",
    "jan＠example.org": "example",
    "ｊａｎ＠ｅｘａｍｐｌｅ．ｏｒｇ": "example",
    "jan\u200b@\u200bexample.org": "example",
    "jan@exam\u00adple.org": "exam",
    '"Jan Novák" <jan@example.cz>': "jan@",
    "ssh jan.novak@login.example.cz: permission denied": "novak",
    "příjmení+úkol@univerzita-příklad.cz": "univerzita",
    # numbers of phones, people, cards and accounts
    "zavolejte 777–123–456": "123",
    "zavolejte 777‑123‑456": "123",
    "zavolejte 777 / 123 / 456": "123",
    "zavolejte 777.123.456": "123",
    "zavolejte 777\u200b123\u200b456": "123",
    "zavolejte 777\u2009123\u2009456": "123",
    "zavolejte ７７７１２３４５６": "123",
    "tel. (+420) 777 123 456": "123",
    "Handy 0171 – 123 45 67": "123",
    "+44 (0)20 7946 0958": "7946",
    "RČ 850101 / 1234": "850101",
    "rodné číslo 855101–1234": "855101",
    "karta 4111–1111–1111–1111": "1111",
    "číslo účtu 123456789/0100": "123456789",
    "účet 670100-2213456789 / 6210": "2213456789",
    "IBAN: CZ6508000000192000145399": "1920",
    "IBAN CZ65-0800-0000-1920-0014-5399": "1920",
    "studentské číslo 123456789012": "123456789",
    "DIČ CZ 8501011234": "8501011234",
    # keys of services
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY": "wJalr",
    "secret wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY does not work": "wJalr",
    "je2/7X+q9Zk1Ls0vYp3RtBwHcNf8mGd4JxKa6QeU ends with 403": "je2/7X",
    "ASIAIOSFODNN7EXAMPLE expired": "IOSFODNN",
    "SG.ngeVfQFYQlKU0ufo8x5d1A.TwL2iGABf9DHoTf09kqeF8tAmbihYzrnopKc1s5cr gives 401": "TwL2iG",
    "send with SG.abcdefghijkl.mnopqrstuvwx": "mnopqr",
    "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX": "XXXXXX",
    "https://hooks.slack.com/workflows/T016/A017/352/AbCd posts nothing": "AbCd",
    "https://discord.com/api/webhooks/123456789012345678/abcDEF_ghi": "abcDEF",
    "https://firma.webhook.office.com/webhookb2/abc-def@ghi/IncomingWebhook/xyz": "xyz",
    "bot 123456789:AAExampleExampleExampleExampleExamp": "AAExample",
    "https://api.telegram.org/bot123456:ABC-DEF/sendMessage": "ABC-DEF",
    "xapp-1-A0123456-0123456789-abcdef": "abcdef",
    "glrt-AbCdEf123456GhIjKl runner": "AbCdEf",
    "sk_live_abcdEFGHijkl1234 charges": "abcdEFGH",
    "whsec_abcdEFGHijkl1234mnop": "abcdEFGH",
    "npm_abcdEFGHijkl1234mnopQRST5678": "abcdEFGH",
    "pypi-AgEIcHlwaS5vcmcCJDU3": "AgEIcH",
    "dapi1234567890abcdef1234567890abcdef": "1234567890abcdef",
    "da_AbCdEfGhIjKlMnOpQrStUvWx opens /admin": "AbCdEf",
    "AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQ": "1QQQQ",
    "gsk_abcdEFGHijkl1234mnopQRST": "abcdEFGH",
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq==": "Eby8vd",
    "SharedAccessSignature sig=abcDEF%2B123%3D": "abcDEF",
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgk": "MIIEvQ",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQOYBF": "lQOYBF",
    # commands and addresses with a password
    "curl -u jan:tajne https://x.example/": "tajne",
    "curl -u 'jan:tajne heslo' https://x.example/": "tajne",
    "curl --user jan:Secret1 https://x.example/": "Secret1",
    "curl --proxy-user jan:Secret1 https://x.example/": "Secret1",
    "curl -H 'X-API-Key: abcdefgh' https://x.example/": "abcdefgh",
    "curl -H 'Authorization: Token abcdefgh' fails": "abcdefgh",
    "wget --password tajneheslo ftp://x.example": "tajneheslo",
    "mysql -u root -pTajne mydb": "Tajne",
    "sshpass -p tajne ssh login": "tajne",
    "docker login -u jan -p tajne registry.example": "tajne",
    "PGPASSWORD=tajne psql -h db": "tajne",
    "mongodb+srv://app:tajne@cluster.example/db": "tajne",
    "scp jan:tajne@login:/home": "tajne",
    "https://x.example/?access_token=abcdef": "abcdef",
    # passwords in words
    "heslo: kocicka": "kocicka",
    "moje heslo „kocicka“ nejde": "kocicka",
    "password: letmein": "letmein",
    'my password "letmein" fails': "letmein",
    "Passwort: geheim": "geheim",
    "heslo k VPN je Jaro2026": "Jaro2026",
    "my passphrase is correct-horse-9": "correct-horse",
    "token: abcdefghij": "abcdefghij",
    "kennwort=Geheimnis": "Geheimnis",
    "private_key: abcdef": "abcdef",
    "credentials = jan/tajne": "tajne",
    "X-Auth-Token: abcdefgh": "abcdefgh",
}
HARMLESS = [
    "How do I mount /dev/sdb1 at /mnt on node-07?",
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
    "git clone git@github.com:org/repo.git ends with permission denied",
    "npm install react@18.2.0 lodash@4.17.21 @angular/core@17.0.1",
    "pip install docs-assistant[mcp,postgres]==0.1.0",
    "docker run -p 8000:8000 -v ./data:/data docs-assistant",
    "kubectl port-forward svc/web 8080:80",
    "curl -u name -X POST http://localhost:8000/v1/ingest",
    "mysql -u root -p mydb asks for a password",
    "How do I read the log at example.org?",
    "Look at docs.example.org or at kubernetes.io",
    "How do database-connections and a keyboard-interactive login work?",
    "pkg-config-wrapper, skeleton-project, key-value-storage, npm-run-all-parallel, rkhunter-installation",
    "sbatch --array=0-15 --time=01:30:00 --mem=64G job.sh",
    "srun --gres=gpu:a100:2 --partition=qgpu --nodes=2",
    "module load CUDA/12.4.0 GCC/13.2.0 OpenMPI/4.1.6-GCC-13.2.0",
    "Where is /scratch/project/open-12-34/data.tar.gz?",
    "Open 10.0.0.0/8 and 2001:db8::/32 in the firewall",
    "3.14159265 or 2.718281828 as a weight?",
    "Error 0x80070005 and exit code 137",
    "What is the difference between RWO, ROX and RWX?",
    "Is there a policy of passwords, and how long must they be?",
    "Heslo se mi nedaří změnit, co s tím?",
    "Wie ändere ich mein Passwort?",
    "std::vector<int> v = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};",
    "nvidia-smi says 550.54.15, nvcc 12.4",
    "DOCS_RETENTION_DAYS=0 DOCS_TOP_K=8 make run",
    "intfloat/multilingual-e5-small or BAAI/bge-m3?",
    "https://docs.example.org/en/latest/user_guide/installation.html#requirements",
]


@pytest.mark.parametrize(("text", "secret"), PERSONAL.items())
def test_what_may_belong_to_a_person_is_removed(text: str, secret: str) -> None:
    assert secret in unicodedata.normalize("NFKC", text)
    assert secret not in redacted(text, WORDS)


def test_what_a_question_is_about_stays() -> None:
    assert [text for text in HARMLESS if redacted(text, WORDS) != text] == []


def ordinary() -> list[str]:
    """Questions about our documentation, and its headings, which people type as keywords."""
    lines = (line for file in (ROOT / "eval/sets").glob("docs*.jsonl") for line in file.read_text("utf-8").splitlines())
    headings = (
        heading
        for file in sorted((ROOT / "docs").glob("[ce][sn]/*.md"))
        for heading in re.findall(r"^##+ (.*?)(?: \{#.*)?$", file.read_text("utf-8"), re.MULTILINE)
    )
    return [*HARMLESS, *(json.loads(line)["question"] for line in lines), *headings]


def test_ordinary_questions_stay_as_they_are() -> None:
    """At most one in a hundred loses a word."""
    texts = ordinary()
    assert len(texts) >= 500
    changed = [text for text in texts if redacted(text, WORDS) != unicodedata.normalize("NFKC", text)]
    assert len(changed) <= len(texts) / 100, changed


def test_of_a_long_text_the_beginning_is_read_without_half_a_word() -> None:
    secret = "x" * 1_990 + " jan.novak@example.org"
    assert redacted(secret, WORDS) == "x" * 1_990
    for piece in ("a.", "1 ", "password is ", "eyJ", "a@", "key", "-----BEGIN A-----"):
        assert len(redacted(piece * 20_000, WORDS)) <= 4_000
