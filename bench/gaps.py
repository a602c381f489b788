"""How long the report of gaps takes over many questions in PostgreSQL, and how much memory.

    python -m bench.gaps [--questions 1000000] [--before 250000]

The questions are made up: a tenth fails, of 200 subjects, and two thirds of the questions are different. PostgreSQL runs in a
temporary directory; there is no index.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psycopg

from app.conversations.database import Database, url_of
from tests.postgres import Cluster, cluster

DAY = 86_400
DIMENSION = 384
SUBJECTS = 200
COLUMNS = (
    "id, created, assistant, language, text, digest, outcome, evidence, needed, nearest, used, vector, embedder, rating"
)


def rows(count: int, since: float, days: float, name: str) -> Iterator[tuple[object, ...]]:
    """Rows of the question log, spread over these days."""
    draw = random.Random(name)
    centres = np.random.default_rng(0).normal(size=(SUBJECTS, DIMENSION)).astype(np.float32)
    noise = np.random.default_rng(1).normal(size=(1_000, DIMENSION)).astype(np.float32) * 0.8
    for number in range(count):
        subject = min(int(draw.expovariate(0.02)), SUBJECTS - 1)
        language = draw.choice(("cs", "en"))
        wording = draw.randrange(max(count // 150, 1)) if draw.random() < 0.8 else number
        fails = draw.random() < 0.1
        text = f"How do I use product{subject} with part{wording % 17} in case {wording}?"
        vector = (centres[subject] + noise[wording % 1_000]).astype(np.float16).tobytes()
        nearest = {
            "url": f"https://docs.test/{subject}",
            "title": f"Page {subject}",
            "section": "Use",
            "language": "en",
        }
        used = [] if fails else [f"https://docs.test/{draw.randrange(5_000)}#s{n}" for n in range(4)]
        outcome = "refused" if fails and draw.random() < 0.7 else "written"
        evidence = 0.2 if outcome == "refused" else 0.36 if fails else 0.8
        yield (
            f"{name}-{number}", since + days * DAY * number / count, "docs-assistant", language, text,
            f"{subject:08x}{wording:016x}{language == 'cs':08x}", outcome, evidence, 0.32, json.dumps(nearest), json.dumps(used),
            vector, "local:e5", "down" if draw.random() < 0.01 else "",
        )  # fmt: skip


def cpu_of(running: Cluster) -> float:
    """Seconds of CPU of PostgreSQL's first process and of its children that have ended."""
    pid = (running.folder / "data" / "postmaster.pid").read_text("utf-8").split()[0]
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=1_000_000)
    parser.add_argument("--before", type=int, default=250_000, help="questions of the time before, for the trend")
    options = parser.parse_args()
    now = time.time()
    with cluster() as running, tempfile.TemporaryDirectory() as folder:
        address = running.new_database()
        database = Database(url_of(address, Path(folder)))
        database.migrate()
        database.close()
        began = time.perf_counter()
        write = f"COPY questions ({COLUMNS}) FROM STDIN"
        with psycopg.connect(address) as connection, connection.cursor() as cursor, cursor.copy(write) as copy:
            for row in rows(options.before, now - 60 * DAY, 29.9, "before"):
                copy.write_row(row)
            for row in rows(options.questions, now - 30 * DAY + 60, 29.9, "now"):
                copy.write_row(row)
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE questions")  # as PostgreSQL does by itself in a log that grows slowly
        print(f"written in {time.perf_counter() - began:.0f} s")
        began, used = time.perf_counter(), cpu_of(running)
        script = (
            "import resource, sys\nfrom app.cli import main\ncode = main(['report', '--since', '30d', '--json'])\n"
            "used = resource.getrusage(resource.RUSAGE_SELF)\n"
            "print(f'{used.ru_utime + used.ru_stime:.1f} s CPU, {used.ru_maxrss / 1024:.0f} MB', file=sys.stderr)\nsys.exit(code)"
        )
        environment = {
            "DOCS_DATABASE": address,
            "DOCS_STORE": f"{folder}/none",
            "PATH": "/usr/bin:/bin",
            "HOME": folder,
        }
        environment["PYTHONPATH"] = str(Path(__file__).parents[1])
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, cwd=folder, capture_output=True, text=True, check=False
        )
        took = time.perf_counter() - began
        if done.returncode:
            sys.exit(done.stderr)
        report = json.loads(done.stdout)
        totals = report["totals"]
        print(
            f"{totals['questions']} questions, {totals['different']} different, {totals['failed']} failures of"
            f" {report['failed_different']} different questions, {report['clustered']} compared, {len(report['clusters'])} clusters"
            f" and {report['smaller']} smaller"
        )
        database_cpu = cpu_of(running) - used
        print(f"the command took {took:.1f} s, {done.stderr.strip()}; PostgreSQL {database_cpu:.1f} s CPU")


if __name__ == "__main__":
    main()
