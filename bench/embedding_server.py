"""An OpenAI-compatible server with the weights of local:multilingual-e5-small, as a model server of one's own would be.

python -m bench.embedding_server: prints the port it took on loopback, and serves POST /v1/embeddings. It tells questions from
passages by the prefixes that the client writes, and one text is computed at a time.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from app.models.e5 import PREFIXES, E5Engine


class Handler(BaseHTTPRequestHandler):
    """Answers requests for embeddings."""

    protocol_version = "HTTP/1.1"
    engine: E5Engine
    lock = threading.Lock()

    def do_POST(self) -> None:
        """Send a vector for each text."""
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        with self.lock:
            rows = [self._vector(text) for text in texts]
        body = json.dumps({"data": [{"index": i, "embedding": row} for i, row in enumerate(rows)]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _vector(self, text: str) -> list[float]:
        question = text.startswith(PREFIXES[0])
        bare = text.removeprefix(PREFIXES[0] if question else PREFIXES[1])  # the engine writes it itself
        row: list[float] = self.engine.embed([bare], question=question)[0].tolist()
        return row

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


if __name__ == "__main__":
    Handler.engine = E5Engine()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
