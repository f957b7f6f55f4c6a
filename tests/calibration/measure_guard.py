"""Measure what the guard promises, and write it for the tests and the guide.

    python tests/calibration/measure_guard.py              # about 25 CPU minutes
    python tests/calibration/measure_guard.py --only gate  # these experiments alone; the other figures stay
    python tests/calibration/measure_guard.py --quick      # a twentieth of the work; prints and writes nothing

The full form takes 4,000 replications with each of the seeds 1, 2 and 3. It writes tests/calibration/guard_rates.json
and, from it, the block of tables in examples/guides/guard_rules.md. As with `measure_rates`, finished parts are kept
under --cache: give --fresh after a change to the code measured.
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

from calibration import guard_tables
from calibration.experiments import Effort, Row
from calibration.guard_experiments import GUARD_EXPERIMENTS
from calibration.measure_rates import SEEDS, measured, pooled
from joblib import Parallel, delayed

from rankeval.io.opening import write_atomically

FULL = Effort(of_t=0, of_others=4_000, n_resamples=9_999, in_families=999)
QUICK = Effort(of_t=0, of_others=200, n_resamples=1_999, in_families=499)
"""A gate needs many resamples, since it asks for alpha over its budget. Batches take those `in_families`."""


def main() -> None:
    given = _arguments()
    os.nice(given.nice)
    chosen = [one for one in GUARD_EXPERIMENTS if given.only is None or any(text in one.label for text in given.only)]
    rows = figures(chosen, *((QUICK, SEEDS[:1], None) if given.quick else (FULL, SEEDS, given.cache)), given)
    if given.quick:
        for row in rows:
            print(*row.values(), sep="\t")
        return
    if given.only:
        rows = list({tuple(row[name] for name in Row._fields): row for row in (*guard_tables.rows(), *rows)}.values())
    lines = ",\n".join(json.dumps(row) for row in rows)
    write_atomically(guard_tables.FIGURES, [f"[\n{lines}\n]\n".encode()])
    guard_tables.main()
    print(guard_tables.block())


def figures(experiments, effort, seeds, cache, given):
    """Return one dict a figure: all seeds together, and each by itself."""
    calls = [(one, seed) for one in experiments for seed in seeds]
    work = Parallel(n_jobs=given.jobs, verbose=5)
    parts = work(delayed(measured)(one, seed, effort, None, cache, given.fresh) for one, seed in calls)
    resamples = {"gate": effort.n_resamples, "climb": 0, "inflation": 0, "choice": effort.n_resamples}
    return [row | {"n_resamples": resamples.get(row["kind"], effort.in_families)} for row in pooled(parts, effort)]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", metavar="TEXT")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--nice", type=int, default=10)
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "rankeval-guard-rates")
    parser.add_argument("--fresh", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
