"""Over a real socket: the bytes of a stream, clients that hang up, and the official client."""

import re
import select
import socket
import time
from contextlib import ExitStack
from urllib.parse import urlsplit

import openai
import orjson
import pytest

from app.core.errors import ModelTimeout, NoIndex
from app.core.settings import Settings
from app.core.turn import Done, Text, Usage
from app.routes.server import create_app
from tests.app.routes.scripted import CHAT, HELLO, Scripted, ScriptedAssistants, chat, serving, wait_for

pytestmark = pytest.mark.server
HEAD = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n".encode()


@pytest.fixture
def serve():
    """Starts a service with a script: (assistant, base address)."""
    with ExitStack() as running:

        def start(*script, settings=None, **options):
            assistant = Scripted(script=script)
            app = create_app(ScriptedAssistants((assistant,)), settings or Settings.load(None), **options)
            return assistant, running.enter_context(serving(app))

        yield start


def connect(base):
    address = urlsplit(base)
    return socket.create_connection((address.hostname, address.port), timeout=60)


def request(stream, *, headers=b""):
    body = orjson.dumps(chat(stream=stream))
    return HEAD + b"x-request-id: r-1\r\n" + headers + b"content-length: %d\r\n\r\n" % len(body) + body


def read_all(connection):
    data = b""
    while piece := connection.recv(65536):
        data += piece
    return data


def dechunked(body):
    """The bytes inside HTTP chunks, each chunk apart."""
    pieces = []
    while body:
        size, _, body = body.partition(b"\r\n")
        n = int(size, 16)
        pieces.append(body[:n])
        body = body[n + 2 :]
    assert pieces.pop() == b""
    return pieces


def test_the_bytes_of_a_stream_are_exact(serve):
    _, base = serve(Text('a"č'), 0.05, Text("b\n"), Usage(1, 2), Done())
    with connect(base) as connection:
        connection.sendall(request(stream=True, headers=b"connection: close\r\n"))
        head, _, body = read_all(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    for line in (b"content-type: text/event-stream; charset=utf-8", b"cache-control: no-cache", b"x-request-id: r-1"):
        assert line in head.split(b"\r\n")
    created = re.search(rb'"created":(\d+)', body)[1]
    about = b'data: {"id":"chatcmpl-r-1","object":"chat.completion.chunk","created":' + created
    about += b',"model":"docs-assistant","choices":[{"index":0,"delta":'

    def chunk(delta, reason=b"null", more=b""):
        return about + delta + b',"finish_reason":' + reason + b"}]" + more + b"}\n\n"

    assert dechunked(body) == [
        chunk(b'{"role":"assistant","content":""}') + chunk('{"content":"a\\"č"}'.encode()),
        chunk(b'{"content":"b\\n"}') + chunk(b"{}", b'"stop"', b',"sources":[]') + b"data: [DONE]\n\n",
    ]


def test_pieces_that_are_there_already_go_out_in_one_write(serve):
    _, base = serve(*(Text(str(i)) for i in range(100)), Done())
    with connect(base) as connection:
        connection.sendall(request(stream=True, headers=b"connection: close\r\n"))
        _, _, body = read_all(connection).partition(b"\r\n\r\n")
    (write,) = dechunked(body)
    assert write.count(b"data: ") == 103


def test_hanging_up_cancels_the_work_at_once(serve, caplog):
    """Before the first text, after it, and in a stream that is open but silent; streams and whole answers."""
    caplog.set_level("INFO", "app.http")
    for stream in (False, True):
        for script in ((30.0, Text("late"), Done()), (Text("a"), 30.0, Done())):
            assistant, base = serve(*script, open_after=0.05, keep_alive=0.1)
            caplog.clear()
            with connect(base) as connection:
                connection.sendall(request(stream=stream))
                wait_for(lambda assistant=assistant: assistant.asked)
                if stream and script[0] == 30.0:
                    assert b": keep-alive" in connection.recv(4096) + connection.recv(4096)
            wait_for(lambda assistant=assistant: assistant.closed == ["cancelled"])
            wait_for(lambda: "status=499" in caplog.text or "status=200" in caplog.text)
            assert not [r for r in caplog.records if r.levelname == "ERROR"]


def test_hanging_up_before_the_body_is_sent_asks_nothing(serve, caplog):
    assistant, base = serve(*HELLO)
    caplog.set_level("INFO", "app.http")
    with connect(base) as connection:
        connection.sendall(request(stream=True)[:-5])
        time.sleep(0.05)
    wait_for(lambda: "status=499" in caplog.text)
    assert not assistant.asked


def test_a_client_that_does_not_read_keeps_no_model_busy(serve):
    assistant, base = serve(*(Text("x" * 10_000) for _ in range(2000)), Done())
    with connect(base) as connection:
        connection.sendall(request(stream=True))
        wait_for(lambda: assistant.closed == ["finished"])


def test_a_connection_serves_many_answers(serve):
    assistant, base = serve(*HELLO)
    with connect(base) as connection:
        for n in range(1, 4):
            connection.sendall(request(stream=n != 2))
            data = b""
            while not (data.endswith(b"0\r\n\r\n") if n != 2 else data.endswith(b"}")):
                data += connection.recv(65536)
            assert len(assistant.asked) == n
    assert assistant.closed == ["finished"] * 3


@pytest.fixture
def official():
    with ExitStack() as clients:

        def client(base, key="none"):
            made = openai.OpenAI(base_url=f"{base}/v1", api_key=key, max_retries=0, timeout=60)
            return clients.enter_context(made)

        yield client


MESSAGES = [{"role": "user", "content": "How?"}]


def test_the_official_client_reads_keep_alive_comments_over(serve, official):
    _, base = serve(0.2, Text("a"), Done(), open_after=0.02, keep_alive=0.05)
    chunks = official(base).chat.completions.create(model="docs-assistant", messages=MESSAGES, stream=True)
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == "a"


def test_the_official_client_knows_our_errors(serve, official):
    for script, model, key, kind in (
        (HELLO, "gpt-4o", "first-key-of-tests", openai.NotFoundError),
        (HELLO, "docs-assistant", "second-key-of-tests", openai.AuthenticationError),
        ((NoIndex("x"),), "docs-assistant", "first-key-of-tests", openai.InternalServerError),
        ((ModelTimeout("x"),), "docs-assistant", "first-key-of-tests", openai.InternalServerError),
    ):
        _, base = serve(*script, settings=Settings.load(None, api_keys="first-key-of-tests"))
        for stream in (False, True):
            with pytest.raises(kind) as raised:
                official(base, key).chat.completions.create(model=model, messages=MESSAGES, stream=stream)
            assert raised.value.code


def test_the_official_client_raises_an_error_in_mid_answer(serve, official):
    _, base = serve(Text("a"), 0.03, ModelTimeout("x"))
    read = []
    with pytest.raises(openai.APIError, match="took too long"):
        for chunk in official(base).chat.completions.create(model="docs-assistant", messages=MESSAGES, stream=True):
            read.append(chunk.choices[0].delta.content)
    assert "".join(filter(None, read)) == "a"


def unfinished(base, sent, *, path=CHAT, headers=b"", of=1_990_000):
    """A connection that sends so many bytes of a larger body, and stops."""
    head = HEAD.replace(CHAT.encode(), path.encode())
    connection = connect(base)
    connection.sendall(head + headers + b"content-length: %d\r\n\r\n" % of + b" " * sent)
    return connection


def answer_of(connection):
    """The status that is sent although the body hasn't ended."""
    return int(connection.recv(65536).split()[1])


def test_unfinished_bodies_have_one_budget(serve):
    """A thousand of them filled 2.5 GB. Beyond 64 MB they are refused; small bodies and the others' answers go on."""
    _, base = serve(*HELLO)
    connections = [unfinished(base, 1_950_000) for _ in range(40)]
    refused = select.select(connections, [], [], 60)[0]
    assert refused
    assert {answer_of(one) for one in refused} == {503}
    with connect(base) as another:
        another.sendall(request(stream=False))
        assert another.recv(65536).startswith(b"HTTP/1.1 200")
    for connection in connections:
        connection.close()
    wait_for(lambda: answer_after(base, 1_950_000) != 503)


def answer_after(base, size):
    """The status of a request with so large a body, which is no JSON."""
    with unfinished(base, size, of=size) as connection:
        return answer_of(connection)


def test_an_address_has_few_unfinished_bodies(serve):
    """The 33rd is refused while the 32 before it last, and only for that address; one that hangs up makes room."""
    _, base = serve(*HELLO, settings=Settings.load(None, trusted_proxies="127.0.0.1"))
    named = b"x-forwarded-for: 203.0.113.5\r\n"
    connections = [unfinished(base, 70_000, headers=named) for _ in range(32)]
    time.sleep(0.3)
    with unfinished(base, 70_000, headers=named) as more:
        assert answer_of(more) == 429
    for headers in (named, b"x-forwarded-for: 203.0.113.6\r\n"):
        with connect(base) as another:  # a body in one piece, and another address
            another.sendall(request(stream=False, headers=headers))
            assert another.recv(65536).startswith(b"HTTP/1.1 200")
    connections[0].close()
    time.sleep(0.3)
    with unfinished(base, 70_000, headers=named) as room:
        room.settimeout(1)
        with pytest.raises(TimeoutError):
            room.recv(1)
    for connection in connections:
        connection.close()


def test_a_search_has_a_small_body(serve):
    _, base = serve(*HELLO)
    with unfinished(base, 70_000, path="/v1/search") as connection:
        assert answer_of(connection) == 413


H2C = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABk\r\n"


@pytest.mark.parametrize(
    "offer",
    [
        pytest.param(H2C, id="Java"),
        pytest.param(b"Connection: Upgrade\r\nUpgrade: TLS/1.2\r\n", id="TLS"),
        pytest.param(b"Connection: Upgrade\r\nUpgrade: websocket\r\n", id="websocket"),
        pytest.param(b"Upgrade: h2c\r\n", id="without Connection"),
        pytest.param(b"Connection: upgrade\r\n", id="of nginx"),
    ],
)
def test_an_offer_of_another_protocol_is_ignored(serve, offer):
    """The body arrives, in one piece, byte by byte and chunked; the connection stays open for the next request."""
    assistant, base = serve(Text("Yes."), Done())
    body = orjson.dumps(chat(stream=False))
    chunked = HEAD + offer + b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    whole = request(stream=False, headers=offer)
    with connect(base) as connection:
        for sent in (whole, chunked, *(whole[i : i + 1] for i in range(len(whole)))):
            connection.sendall(sent)
        connection.sendall(request(stream=False, headers=offer + b"connection: close\r\n"))
        answers = read_all(connection)
    assert answers.count(b"HTTP/1.1 200 OK") == answers.count(b'"Yes."') == 4
    assert len(assistant.asked) == 4
