"""A reranker that repeats the scores of a file: `python -m bench.recorded_reranker FILE [--missing FILE] [--port N]`.

It speaks Cohere's form of `/rerank`. A request with a passage that has no score is answered with 404, and what was asked
is kept, to be scored: the file is JSONL with `key`, `question`, `passage` and, once it is judged, `score` (0..1).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException

from app.pipeline.steps.optional.rerank import SCORE_TEST
from eval.cache import fingerprint
from eval.files import json_lines


def main() -> None:
    """Serves until it is interrupted."""
    parser = argparse.ArgumentParser(prog="python -m bench.recorded_reranker", description=__doc__)
    parser.add_argument("file", type=Path, help="scores, .jsonl")
    parser.add_argument("--missing", type=Path, help="where to write what has no score yet")
    parser.add_argument("--port", type=int, default=8871)
    options = parser.parse_args()
    scores = {row["key"]: float(row["score"]) for _, row in json_lines(options.file)}
    uvicorn.run(create_app(scores, options.missing), port=options.port, log_level="warning")


def create_app(scores: dict[str, float], missing: Path | None) -> FastAPI:
    """`/rerank` on these scores by key."""
    app = FastAPI(openapi_url=None)
    told: set[str] = set()
    scores |= {
        fingerprint(SCORE_TEST[0], passage): score for passage, score in zip(SCORE_TEST[1], (0.99, 0.01), strict=True)
    }

    @app.post("/rerank")
    def rerank(body: dict[str, Any]) -> dict[str, Any]:
        keys = {fingerprint(body["query"], passage): passage for passage in body["documents"]}
        unknown = {key: passage for key, passage in keys.items() if key not in scores}
        for key, passage in unknown.items():
            if missing and key not in told:
                told.add(key)
                with missing.open("a", encoding="utf-8") as file:
                    line = {"key": key, "question": body["query"], "passage": passage}
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
        if unknown:
            raise HTTPException(404, f"{len(unknown)} of {len(keys)} passages have no score.")
        places = (fingerprint(body["query"], passage) for passage in body["documents"])
        return {"results": [{"index": i, "relevance_score": scores[key]} for i, key in enumerate(places)]}

    return app


if __name__ == "__main__":
    main()
