"""Mistakes that people make, and what they are told."""

import fcntl
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.end_to_end.program import Program
from tests.fake_llm import Reply
from tests.fakes import WORDS
from tests.ingestion.local_site import Answer
from tests.mistakes.world import Mistake, World

MODEL = {"DOCS_LLM_URL": "{llm}", "DOCS_LLM_MODEL": "fake"}
KEYS = {"DOCS_API_KEYS": "right-key-of-tests"}
ASKED = '{"model": "docs-assistant", "messages": [{"role": "user", "content": "Gauge 1?"}]}'
EMBEDDER = {"DOCS_EMBEDDING_URL": "{llm}", "DOCS_EMBEDDING_MODEL": "fake"}
INTERNAL = '[[source]]\nurl = "{site}/internal.xml"\nhosts = ["localhost:*"]\n'
STEPS = "[[assistant]]\nid = 'docs'\nsteps = ['detect', 'retreive']\n"
TOML = "docs-assistant.toml"
INGEST = "ingest {site}/sitemap.xml"
CHAT = "http|POST|/v1/chat/completions"


def unknown_model(_: object) -> Reply:
    """As vLLM answers."""
    return Reply('{"error": {"message": "The model `fake` does not exist.", "code": 404}}', 404)


def wrong_key(_: object) -> Reply:
    """As the OpenAI API answers."""
    return Reply('{"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}', 401)


@contextmanager
def another_run(_: World) -> Iterator[None]:
    """A run that is writing into data/."""
    with Path("data/write.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def read_only(_: World) -> Iterator[None]:
    """A directory that nobody may write to."""
    Path("fixed").mkdir(mode=0o555)
    yield


@contextmanager
def killed_run(world: World) -> Iterator[None]:
    """A run that was killed while it read the second of two pages."""
    world.site.page("/half", "Half", "A page that takes its time.")
    page = world.site.answers["/half"]
    assert isinstance(page, Answer)
    page.delay = 60.0
    sitemap = world.site.sitemap("/gauge-0", "/half", at="/half.xml")
    run = Program(Path("first"), "ingest", sitemap, DOCS_STORE=str(Path("data").absolute()))
    while not any(path == "/gauge-0" and status == 200 for path, status, _ in world.site.log[-3:]):
        assert run.process.poll() is None, run.err
        time.sleep(0.05)
    run.end(signal.SIGKILL, group=True)
    page.delay = 0.0
    yield


COMMANDS = (
    Mistake("a mistyped command", "ingset", "there is no command 'ingset'. Did you mean ingest?", 2),
    Mistake("a mistyped command of eval", "eval retreival", "there is no command 'retreival'. Did you mean retrieval?", 2),
    Mistake("a mistyped option", "ingest --rebiuld", "there is no option --rebiuld. Did you mean --rebuild?", 2),
    Mistake("an option before its command", "--port 8001 serve", "--port is an option of init, run, serve: write it after", 2),
    Mistake("no command", "", "a command is missing. The commands are init, run,", 2),
    Mistake("a port that isn't a number", "serve --port eight", "'--port': 'eight' is not a valid integer.", 2),
    Mistake("no question", "ask", "No question: pass it as an argument or on standard input."),
    Mistake("a port out of range, given to init", "init --port 70000", "DOCS_PORT"),
)  # fmt: skip
SETTINGS = (
    Mistake("DOCS_API_KEY for DOCS_API_KEYS", "serve", "Did you mean DOCS_API_KEYS?", settings={"DOCS_API_KEY": "secret"}),
    Mistake("DOCS_LLM_MODLE", "check", "Did you mean DOCS_LLM_MODEL?", settings={"DOCS_LLM_MODLE": "m"}),
    Mistake("values of the wrong kind", "check", "DOCS_TOP_K has value 'five': it must be a whole number from 1 to 50.",
            settings={"DOCS_TOP_K": "five", "DOCS_TUNING__FUSION": "best"}),
    Mistake("a port out of range", "serve --port 99999", "99999: it must be a whole number from 1 to 65535."),
    Mistake("JSON that isn't valid", "check", "DOCS_LLM_EXTRA_BODY: it must be a JSON object such as", settings={"DOCS_LLM_EXTRA_BODY": "{top_p: 1}"}),
    Mistake("an empty key", "serve", "DOCS_API_KEYS is empty: write a value, or remove the setting.", settings={"DOCS_API_KEYS": ""}),
    Mistake("a mistyped name in .env", "check", ".env, line 1: there is no setting DOCS_LLM_ULR. Did you mean DOCS_LLM_URL?",
            files={".env": "DOCS_LLM_ULR=http://127.0.0.1:1/v1\n"}),
    Mistake("a line without = in .env", "check", ".env, line 1 isn't a setting: write NAME=value.", files={".env": "DOCS_PORT 8001\n"}),
    Mistake("a wrong table in docs-assistant.toml", "check", "there is no setting model.url. Did you mean embedding.url, llm.url or rerank.url?", files={TOML: "[model]\nurl = 'http://x/v1'\n"}),
    Mistake("a mistyped key in a table", "check", "there is no setting llm.modle. Did you mean llm.model?", files={TOML: "[llm]\nmodle = 'x'\n"}),
    Mistake("a syntax error in docs-assistant.toml", "check", "docs-assistant.toml isn't valid TOML: Invalid value (at line 2, column 7)",
            files={TOML: "[llm]\nurl = http://x/v1\n"}),
    Mistake("an unknown language", "ask|x", "DOCS_LANGUAGES has xx, but there are no prompts for it: the package has cs, de, en.", settings={"DOCS_LANGUAGES": "en xx"}),
    Mistake("a default language that isn't one of the languages", "ask|x", "DOCS_DEFAULT_LANGUAGE is 'de', but", settings={"DOCS_DEFAULT_LANGUAGE": "de"}),
    Mistake("a prompts folder that isn't there", "ask|x", "DOCS_PROMPTS is 'promts', but there is no such directory.", settings={"DOCS_PROMPTS": "promts"}),
    Mistake("a prompts folder without languages", "ask|x", "own/synthesize.md isn't used there: put it into the folder of its language", settings={"DOCS_PROMPTS": "own"}, files={"own/synthesize.md": "Hi"}),
    Mistake("a misspelt prompt file", "ask|x", "own/en/synthesise.md isn't used: there is no file of this name. Did you mean synthesize.md?", settings={"DOCS_PROMPTS": "own"}, files={"own/en/synthesise.md": "Hi"}),
    Mistake("an assistants.toml that isn't there", "ask|x", "DOCS_ASSISTANTS=assistents.toml can't be read: No such file", settings={"DOCS_ASSISTANTS": "assistents.toml"}),
    Mistake("a mistyped step in assistants.toml", "ask|x", "a.toml: assistant 'docs': Unknown step 'retreive'.",
            settings={"DOCS_ASSISTANTS": "a.toml"}, files={"a.toml": STEPS}),
)  # fmt: skip
SITES = (
    Mistake("ingest without a site", "ingest", "No site to index: name a sitemap"),
    Mistake("an address without a scheme", "ingest docs.example.org", "'docs.example.org' isn't a web address: give one like https://"),
    Mistake("a sources file that isn't there", "ingest site.toml", "The sources file site.toml can't be read: No such file"),
    Mistake("https on an HTTP port", "ingest https://{host}/sitemap.xml", "doesn't speak TLS on this port: write http:// instead of https://"),
    Mistake("a sitemap that isn't there", "ingest {site}/sitmap.xml", "/sitmap.xml can't be read: answered 404; check its address. Nothing was changed."),
    Mistake("a page instead of a sitemap", "ingest {site}/home", "/home is an HTML page, not a sitemap; give the address of a sitemap. Nothing was changed."),
    Mistake("an empty sitemap", "ingest {site}/empty.xml", "lists no page; check the site's build. Nothing was changed."),
    Mistake("a site that wants a password", "ingest http://{search}/", "answered 401: the site wants a login, so set `headers` of its source, or give user and password in its address."),
    Mistake("robots.txt forbids all pages", "ingest {shy}/sitemap.xml", "No page could be read: robots.txt forbids it (3)."),
    Mistake("pages on another host", "ingest {site}/internal.xml", "isn't one of the given sites (DOCS_CRAWL_ALLOW adds hosts)"),
    Mistake("pages on an internal address", "ingest sites.toml", "which is not a public address: add the host or its network to DOCS_CRAWL_ALLOW",
            files={"sites.toml": INTERNAL}),
    Mistake("the site is down", "ingest http://127.0.0.1:{closed}/sitemap.xml", "can't be read: no connection"),
    Mistake("a host name that isn't known", "ingest http://docs.invalid/sitemap.xml", "the name docs.invalid is not known"),
)  # fmt: skip
HASH = "sha256:" + 64 * "0"
KEY = f'[[key]]\nname = "web"\nhash = "{HASH}"\n'
KEY_FILE = {"DOCS_KEYS": "keys.toml"}
ACCESS = (
    Mistake("a file of keys that isn't there", "key list", "DOCS_KEYS=keys.toml can't be read: No such file or directory. docs-assistant key new NAME makes it.", settings=KEY_FILE),
    Mistake("key list without a file", "key list", "There is no file of keys: set DOCS_KEYS to the path of one."),
    Mistake("a key itself in place of its hash", "key list", "key 'web': hash must be \"sha256:\" and 64 hexadecimal digits, as key new prints it.", settings=KEY_FILE,
            files={"keys.toml": KEY.replace(HASH, "da_secret") + 'role = "reader"\n'}),
    Mistake("an unknown role", "key new ci --role admn", "key 'ci': role = \"admn\" must be one of reader, widget, admin. Did you mean admin?"),
    Mistake("a widget's key without origins", "check", "key 'web': a widget key is public: it needs origins, the sites whose pages may use it.", settings=KEY_FILE,
            files={"keys.toml": KEY + 'role = "widget"\n'}),
    Mistake("a page in place of an origin", "key new web --role widget --origin https://docs.example.org/docs", "'https://docs.example.org/docs' is no origin: write a scheme and a host without a path"),
    Mistake("a mistyped assistant of a key", "key new a --assistant docs-asistant", "there is no assistant 'docs-asistant'. Did you mean docs-assistant?"),
    Mistake("a rate in words", "key new|a|--rate|60 a minute", "key 'a': rate: it must be a rate, such as \"60/minute\""),
    Mistake("a mistyped DOCS_RATE_LIMIT", "check", "DOCS_RATE_LIMIT has value '60/minut': it must be a rate, such as \"60/minute\"", settings={"DOCS_RATE_LIMIT": "60/minut"}),
    Mistake("the name of a key that is there", "key new web", "key 'web': another key has the same name.", settings=KEY_FILE, files={"keys.toml": KEY + 'role = "reader"\n'}),
    Mistake("admin routes open to other machines", "serve --host 0.0.0.0", "DOCS_ADMIN_OPEN=true is for this machine only, but DOCS_HOST=0.0.0.0", settings={**KEYS, "DOCS_ADMIN_OPEN": "true"}),
    Mistake("a limits store without a scheme", "check", "it must be memory, or the address of a Redis server", settings={"DOCS_LIMITS_STORE": "localhost:6379"}),
)  # fmt: skip
STORES = (
    Mistake("the store is a file", INGEST, "notes.txt is a file, not a directory: name another place", settings={"DOCS_STORE": "notes.txt"}, files={"notes.txt": "x"}),
    Mistake("the store can't be written to", INGEST, "fixed/data can't be written: Permission denied. Give this user the right",
            settings={"DOCS_STORE": "fixed/data"}, before=read_only, nobody=True),
    Mistake("OpenSearch isn't there", INGEST, "can't be reached", settings={"DOCS_STORE": "opensearch://127.0.0.1:{closed}/docs"}),
    Mistake("a wrong password of OpenSearch", INGEST, "(401: Unauthorized). Check user, password and rights in DOCS_STORE.",
            settings={"DOCS_STORE": "opensearch://admin:wrong@{search}/docs"}),
    Mistake("an index name with capitals", INGEST, "use lower-case letters, digits and - _ . only for the index", settings={"DOCS_STORE": "opensearch://127.0.0.1:{closed}/Docs"}),
    Mistake("http:// for opensearch://", INGEST, "unknown scheme. Name a directory, or write opensearch://", settings={"DOCS_STORE": "http://127.0.0.1:9200/docs"}),
    Mistake("another embedder than the index has", "ask|Gauge 1?", f"was built with the embedder {WORDS}, and fake is set: set the embedder of the index, or index the sites again.", settings=EMBEDDER, indexed=True),
    Mistake("a question before anything is indexed", "ask|Gauge 1?", "Nothing has been indexed yet: run `docs-assistant ingest` first."),
    Mistake("rollback with one generation", "rollback", "There is no earlier generation to go back to", indexed=True),
    Mistake("two runs at the same time", INGEST, "Another run is writing to the index in data: try again when it is done.", before=another_run, indexed=True),
)  # fmt: skip
MODELS = (
    Mistake("a model's address without /v1", "check", "Check the name of the model, and the address, which usually ends in /v1.",
            settings={**MODEL, "DOCS_LLM_URL": "{server}"}, indexed=True),
    Mistake("a model's address without a scheme", "check", "it must be a web address that begins with http://", settings={**MODEL, "DOCS_LLM_URL": "localhost:11434/v1"}),
    Mistake("an embedder's address without its name", "check", "DOCS_EMBEDDING_URL is set, but DOCS_EMBEDDING_MODEL isn't",
            settings={"DOCS_EMBEDDING_URL": "{llm}"}),
    Mistake("an address without a model's name", "check", "DOCS_LLM_URL is set, but DOCS_LLM_MODEL isn't", settings={"DOCS_LLM_URL": "{llm}"}),
    Mistake("a wrong name of a model", "check", "The model `fake` does not exist.", settings=MODEL, indexed=True, model=unknown_model),
    Mistake("a wrong key of a model", "check", "Incorrect API key provided", settings=MODEL, indexed=True, model=wrong_key),
    Mistake("the model's server is down", "check", "can't be reached: Connection refused. Is the server running?",
            settings={**MODEL, "DOCS_LLM_URL": "http://127.0.0.1:{closed}/v1"}, indexed=True),
    Mistake("an unknown local embedder", "check", "local:bge-smal-en: no such model comes with this package. Download its ONNX export", settings={"DOCS_EMBEDDING_MODEL": "local:bge-smal-en"}),
)  # fmt: skip
SERVING = (
    Mistake("a port in use", "serve --port {port}", "Port {port} on 127.0.0.1 is taken by another program. Stop it, or choose another port: DOCS_PORT={next}"),
    Mistake("a port in use, with run", "run --port {port}", "Port {port} on 127.0.0.1 is taken by another program."),
    Mistake("a replacement without sites", "run --replace", "--replace needs the sites"),
    Mistake("a port below 1024", "serve --port 80", "Only root may use port 80, like all ports below 1024.", nobody=True),
    Mistake("an address of another machine", "serve --host 192.0.2.1", "DOCS_HOST must be an address of this machine", settings=KEYS),
    Mistake("other machines may use it, without keys", "serve --host 0.0.0.0", "DOCS_OPEN=true"),
    Mistake("an unknown assistant", "ask --assistant manual|x", "There is no model 'manual' here. Available: docs-assistant."),
    Mistake("an unknown persona", "ask --assistant docs-assistant:pirate|x", "Tones of docs-assistant, as docs-assistant:name, are: beginner,"),
    Mistake("eval without its question file", "eval retrieval questions.jsonl", "questions.jsonl can't be read: No such file or directory.", 2),
    Mistake("eval with a wrong question file", "eval retrieval q.jsonl", "q.jsonl:1: 'lang' is missing or empty.", 2, files={"q.jsonl": '{"question": "x"}\n'}),
)  # fmt: skip
HTTP = (
    Mistake("a client without a key", f"{CHAT}||{ASKED}", "An API key is required: send the header", 401, settings=KEYS, indexed=True),
    Mistake("a client with a wrong key", f"{CHAT}|wrong|{ASKED}", "This API key is invalid.", 401, settings=KEYS, indexed=True),
    Mistake("a client with a wrong model", f"{CHAT}||" + ASKED.replace("docs-assistant", "gpt-4"), "There is no model 'gpt-4' here.", 404, indexed=True),
    Mistake("a client with a body that isn't JSON", f"{CHAT}||{{model: x}}", "The body isn't valid JSON", 400, indexed=True),
    Mistake("a client that sends prompt instead of messages", CHAT + '||{"model": "docs-assistant", "prompt": "Hi"}', "messages: field required.", 400, indexed=True),
    Mistake("a client without /v1", f"http|POST|/chat/completions||{ASKED}", "The OpenAI API is below /v1/", 404, indexed=True),
    Mistake("a client before anything is indexed", f"{CHAT}||{ASKED}", "Nothing has been indexed yet.", 503),
    Mistake("/health before anything is indexed", "http|GET|/health||", "Nothing has been indexed yet: run `docs-assistant ingest` first.", 503),
)  # fmt: skip
INSTALLING = (
    Mistake("an old Python", "run|make|-C|{root}|PYTHON=false|VENV=/dev/null/venv|/dev/null/venv/bin/python", "Python 3.11 or newer is needed", 2),
)  # fmt: skip
PROCESSES = (
    Mistake("a run that was killed, started again", "ingest {site}/half.xml", "2 new", 0, before=killed_run),
    Mistake("serve before anything is indexed", "start|serve|--port|{closed}",
            "(this machine only, no key needed); index: Nothing has been indexed yet: run `docs-assistant ingest` first.", 0),
)  # fmt: skip
MISTAKES: Mapping[str, tuple[Mistake, ...]] = {
    "Commands": COMMANDS, "Settings": SETTINGS, "Sites": SITES, "Index": STORES, "Models": MODELS,
    "Keys and limits": ACCESS, "Serving and asking": SERVING, "Clients": HTTP, "Installing": INSTALLING, "Processes": PROCESSES,
}  # fmt: skip
