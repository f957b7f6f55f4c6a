"""Measure how often a promotion moves its alias, and write the rates for the guide.

    python tests/calibration/measure_promotion.py            # 2,000 pairs a seed, 1,000 histories: 20 CPU minutes
    python tests/calibration/measure_promotion.py --only budget   # the histories and the power; the pairs stay
    python tests/calibration/measure_promotion.py --quick    # 100 pairs with one seed; prints and writes nothing

The full form writes tests/calibration/promotion_rates.json, which test_promotion_rates.py holds the code against.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

# One thread a process: the processes stand side by side.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from calibration.guard_experiments import STREAMS
from calibration.promotions import EXPERIMENTS, HISTORIES, POWERS, N, histories, power
from joblib import Parallel, delayed

from rankeval import __version__
from rankeval.io.opening import write_atomically

PATH = Path(__file__).with_name("promotion_rates.json")
GUIDE = Path(__file__).parents[2] / "examples" / "guides" / "promoting.md"
MARKS = ("<!-- measured by tests/calibration/measure_promotion.py -->", "<!-- end of the measured figures -->")
BUDGET_MARKS = ("<!-- the budget, measured by tests/calibration/measure_promotion.py -->", MARKS[1])
N_PAIRS = 2000
N_HISTORIES = 1000
SEED = 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=["pairs", "budget"])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--nice", type=int, default=10)
    given = parser.parse_args()
    os.nice(given.nice)
    work = Parallel(n_jobs=given.jobs, verbose=20)
    found = json.loads(PATH.read_text("utf-8")) if PATH.exists() else {}
    if given.only != "budget":
        found |= of_pairs(work, 100 if given.quick else N_PAIRS, quick=given.quick)
    if given.only != "pairs":
        found |= of_budgets(work, 40 if given.quick else N_HISTORIES, 100 if given.quick else N_PAIRS)
    if given.quick:
        print(json.dumps(found, indent=1))
        return
    write_atomically(PATH, [f"{json.dumps(found, indent=1)}\n".encode()])
    write_tables()


def of_pairs(work, n_pairs, *, quick):
    """Return how many pairs move, of each kind."""
    calls = [(one, seed) for one in EXPERIMENTS for seed in one.seeds[: 1 if quick else None]]
    found = work(delayed(one.moved)(n_pairs, seed) for one, seed in calls)
    rows = []
    for one in EXPERIMENTS:
        parts = [result for (asked, _), result in zip(calls, found, strict=True) if asked is one]
        rates = [float(np.mean(moved)) for moved, _ in parts]
        rows.append(
            {
                "name": one.name,
                "words": one.words,
                "moved": round(float(np.mean(rates)), 4),
                "moved_by_seed": [round(rate, 4) for rate in rates],
                "sd": round(float(np.mean([sd for _, sd in parts])), 3),
            }
        )
        print(*rows[-1].values(), sep="\t")
    return {"n_queries": N, "n_pairs": n_pairs, "alpha": 0.025, "version": __version__, "rates": rows}


def of_budgets(work, n_histories, n_pairs):
    """Return the histories with a false promotion, and how many better candidates move."""
    false = work(delayed(histories)(stream, n_histories, SEED) for stream in HISTORIES)
    shown = work(delayed(power)(n, gain, n_pairs, SEED) for n, gain in POWERS)
    rows = [
        {"name": stream, "budget": float(moved[:, 0].mean()), "without": float(moved[:, 1].mean())}
        for stream, moved in zip(HISTORIES, false, strict=True)
    ]
    names = ("budget 20", "budget 1", "without")
    powers = [
        {"n": n, "gain": gain} | dict(zip(names, map(float, moved.mean(axis=0)), strict=True))
        for (n, gain), moved in zip(POWERS, shown, strict=True)
    ]
    for row in (*rows, *powers):
        print(*row.values(), sep="\t")
    return {"n_histories": n_histories, "n_power": n_pairs, "histories": rows, "power": powers}


def table(file):
    """Return the figures of pairs as a table in Markdown."""
    rows = [f"| {row['words']} | {len(row['moved_by_seed']) * file['n_pairs']:,} | {100 * row['moved']:.2f} |"
            for row in file["rates"]]  # fmt: skip
    return "\n".join(["| pairs of versions | pairs | moved, in percent |", "| --- | --- | --- |", *rows])


def budget_tables(file):
    """Return the figures of histories and of better candidates as tables in Markdown."""
    rows = [f"| {STREAMS[row['name']].words} | {100 * row['budget']:.1f} | {100 * row['without']:.1f} |"
            for row in file["histories"]]  # fmt: skip
    powers = [f"| {row['n']:,} | {row['gain']:.2f} | "
              f"{' | '.join(f'{100 * row[name]:.1f}' for name in ('budget 20', 'budget 1', 'without'))} |"
              for row in file["power"]]  # fmt: skip
    return "\n".join(
        [
            "| 20 candidates that are not better | with a budget of 20, in percent | without, in percent |",
            "| --- | --- | --- |",
            *rows,
            "",
            "| queries | true gain | budget of 20, in percent | budget of 1, in percent | without, in percent |",
            "| --- | --- | --- | --- | --- |",
            *powers,
        ]
    )


def write_tables() -> None:
    """Write the tables into the guide."""
    file, text = json.loads(PATH.read_text("utf-8")), GUIDE.read_text("utf-8")
    for marks, shown in ((MARKS, table(file)), (BUDGET_MARKS, budget_tables(file))):
        before, _, rest = text.partition(marks[0])
        after = rest.partition(marks[1])[2]
        text = f"{before}{marks[0]}\n\n{shown}\n\n{marks[1]}{after}"
    write_atomically(GUIDE, [text.encode()])


if __name__ == "__main__":
    main()
