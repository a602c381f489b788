"""The benchmark in rounds: each contestant in turn, again and again, so that a machine that others use slows all alike.

rounds.py BENCH CONTESTANT... [--rounds 3]; prints a Markdown table with CPU as a multiple of the first contestant's.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

LOADS = {
    "8 streams": ("load_0ms", "8"),
    "32 streams": ("load_0ms", "32"),
    "128 paced streams": ("load_real", "128"),
}
OPTIONS = ["--parts", "load,stream", "--reps", "1", "--conc", "8,32", "--sconc", "128", "--secs", "4"]
COLUMNS = ["", "load", "CPU ms/request", "x", "requests/s", "TTFT p50 / p99 ms", "errors", "others' CPU share"]
Round = Mapping[str, Mapping[str, Any]]


def measure(bench: Path, names: Sequence[str], number: int) -> Round:
    """One round: the loads of each contestant, by its name."""
    out = f"results/round{number}"
    (bench / out).mkdir(parents=True, exist_ok=True)
    for name in names:
        (bench / out / f"{name}.json").unlink(missing_ok=True)  # bench.py adds to what is there
        subprocess.run(
            [bench / "venvs/bench/bin/python", "bench.py", name, *OPTIONS, "--out", out], cwd=bench, check=True
        )
        if not (bench / out / f"{name}.json").exists():
            sys.exit(f"{name} gave no results: see {bench}/logs/serve_{name}.log")
    return {name: json.loads((bench / out / f"{name}.json").read_text(encoding="utf-8")) for name in names}


def row(name: str, load: str, rounds: Sequence[Round], against: str) -> str:
    """One line of the table: medians over the rounds, with the range of the CPU's."""
    kind, streams = LOADS[load]
    mine = [found[name][kind][streams] for found in rounds]
    base = [found[against][kind][streams] for found in rounds]
    cpu = [load["cpu_ms_per_req"]["med"] for load in mine]
    times = [own / other["cpu_ms_per_req"]["med"] for own, other in zip(cpu, base, strict=True)]
    ideal = f" of {mine[0]['ideal_rps']:.0f}" if "ideal_rps" in mine[0] else ""
    cells = [
        name,
        load,
        f"{statistics.median(cpu):.2f} ({min(cpu):.2f}–{max(cpu):.2f})",
        f"{statistics.median(times):.2f}",
        f"{_median(mine, 'rps'):.0f}{ideal}",
        f"{_median(mine, 'ttft_p50_ms'):.0f} / {_median(mine, 'ttft_p99_ms'):.0f}",
        f"{sum(load['errors']['med'] for load in mine):.0f}",
        f"{_median(mine, 'background_share'):.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def _median(loads: Sequence[Mapping[str, Any]], key: str) -> float:
    values: list[float] = [load[key]["med"] for load in loads]
    return statistics.median(values)


def main() -> None:
    """Run the rounds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bench", type=Path, help="a copy of the benchmark, with its fake model running")
    parser.add_argument(
        "names", nargs="+", help="contestants whose index is there; the first is what others are compared to"
    )
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    bench = arguments.bench.resolve()
    rounds = [measure(bench, arguments.names, number) for number in range(1, arguments.rounds + 1)]
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for load in LOADS:
        print("\n".join(row(name, load, rounds, arguments.names[0]) for name in arguments.names))


if __name__ == "__main__":
    main()
