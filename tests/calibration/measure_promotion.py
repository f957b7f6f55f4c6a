"""Measure how often a promotion moves its alias, and write the rates for the guide.

    python tests/calibration/measure_promotion.py            # 2,000 pairs a seed: about 10 CPU minutes
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
from calibration.promotions import EXPERIMENTS, N
from joblib import Parallel, delayed

from rankeval import __version__
from rankeval.io.opening import write_atomically

PATH = Path(__file__).with_name("promotion_rates.json")
GUIDE = Path(__file__).parents[2] / "examples" / "guides" / "promoting.md"
MARKS = ("<!-- measured by tests/calibration/measure_promotion.py -->", "<!-- end of the measured figures -->")
N_PAIRS = 2000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--nice", type=int, default=10)
    given = parser.parse_args()
    os.nice(given.nice)
    n_pairs = 100 if given.quick else N_PAIRS
    calls = [(one, seed) for one in EXPERIMENTS for seed in one.seeds[: 1 if given.quick else None]]
    work = Parallel(n_jobs=given.jobs, verbose=20)
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
    if not given.quick:
        head = {"n_queries": N, "n_pairs": n_pairs, "alpha": 0.025, "version": __version__}
        text = json.dumps({**head, "rates": rows}, indent=1)
        write_atomically(PATH, [f"{text}\n".encode()])
        write_table()


def table(file):
    """Return the figures as a table in Markdown."""
    rows = [f"| {row['words']} | {len(row['moved_by_seed']) * file['n_pairs']:,} | {100 * row['moved']:.2f} |"
            for row in file["rates"]]  # fmt: skip
    return "\n".join(["| pairs of versions | pairs | moved, in percent |", "| --- | --- | --- |", *rows])


def write_table() -> None:
    """Write the table into the guide."""
    before, _, rest = GUIDE.read_text("utf-8").partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    shown = table(json.loads(PATH.read_text("utf-8")))
    whole = f"{before}{MARKS[0]}\n\n{shown}\n\n{MARKS[1]}{after}"
    write_atomically(GUIDE, [whole.encode()])


if __name__ == "__main__":
    main()
