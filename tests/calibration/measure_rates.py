"""Measure the error rates of all tests, corrections and claims, and write them for the documentation.

    python tests/calibration/measure_rates.py                  # all: about 40 CPU minutes
    python tests/calibration/measure_rates.py --names sign bh  # these alone; the other rates stay
    python tests/calibration/measure_rates.py --only all_pairs # experiments whose label has this
    python tests/calibration/measure_rates.py --quick          # a twentieth of the work; prints and writes nothing

The full form takes 20,000 replications for tests by a formula and 4,000 for those that resample, with each of the seeds
1, 2 and 3, and writes rankeval/significance/error_rates.json. What is measured is kept under --cache, one file for
each experiment and seed, so that a run that was stopped goes on: give --fresh after a change to the code measured.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections import defaultdict
from pathlib import Path

# One thread a process: the processes stand side by side.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from calibration import document
from calibration.experiments import ALPHA, EXPERIMENTS, Effort, Experiment, Row, declared
from calibration.worlds import WORLDS
from joblib import Parallel, delayed

from rankeval import __version__
from rankeval.io.opening import write_atomically
from rankeval.significance import catalogue as rates

SEEDS = (1, 2, 3)
N_KEYS = Row._fields.index("sides")
"""The rates of a line share so many columns."""

FULL = Effort(of_t=20_000, of_others=4_000)
QUICK = Effort(of_t=1_000, of_others=200)


def main() -> None:
    given = _arguments()
    os.nice(given.nice)
    chosen = [one for one in EXPERIMENTS if given.only is None or any(text in one.label for text in given.only)]
    effort, seeds = (QUICK, SEEDS[:1]) if given.quick else (FULL, SEEDS)
    calls = [(one, seed) for one in chosen for seed in seeds]
    cache = None if given.quick else given.cache
    work = Parallel(n_jobs=given.jobs, verbose=5)
    parts = work(delayed(measured)(one, seed, effort, given.names, cache, given.fresh) for one, seed in calls)
    rows = pooled(parts, effort)
    if given.quick:
        for row in rows:
            print(*row.values(), sep="\t")
        return
    partly = given.names or given.only
    write(rates.PATH, kept_and_new(rows) if partly else rows)
    rates.measured.cache_clear()
    document.main()


def measured(experiment: Experiment, seed, effort, names, cache, fresh):
    """Return rows with their number of replications, sum and sum of squares; read from the cache if they are there."""
    digest = hashlib.sha256(repr((experiment.label, seed, effort, sorted(names or ()))).encode()).hexdigest()[:16]
    path = cache / f"{digest}.json" if cache else None
    if path is not None and path.exists() and not fresh:
        return seed, [(Row(*row), sums) for row, sums in json.loads(path.read_text("utf-8"))]
    outcomes = experiment.run(seed, effort, (lambda name: name in names) if names else (lambda _: True))
    found = [
        (row, [len(values), float(np.sum(values)), float(np.sum(np.square(values, dtype=float)))])
        for row, values in outcomes.items()
    ]
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, [json.dumps(found).encode()])
    return seed, found


def pooled(parts, effort):
    """Return one dict a rate: all seeds together, and each by itself."""
    by_row = defaultdict(dict)
    for seed, found in parts:
        for row, sums in found:
            by_row[row][seed] = sums
    return [_pooled_row(row, by_seed, effort) for row, by_seed in by_row.items()]


def _pooled_row(row, by_seed, effort):
    count, total, squares = np.sum(list(by_seed.values()), axis=0)
    rate = total / count
    error = np.sqrt(max(squares / count - rate**2, 0.0) / count)
    return row._asdict() | {
        "rate": round(float(rate), 5),
        "standard_error": round(float(error), 5),
        "replications": int(count),
        "seeds": list(by_seed),
        "rate_by_seed": [round(sums[1] / sums[0], 5) for sums in by_seed.values()],
        "n_resamples": effort.in_families if row.comparisons > 1 else effort.n_resamples,
        "version": __version__,
    }


def kept_and_new(rows):
    """Return the rates in the file, those measured now in their places."""
    known = rates.all_rows()
    return list({tuple(row[name] for name in Row._fields): row for row in (*known, *rows)}.values())


def write(path, rows) -> None:
    """Write a line for each declaration, world and size, so that differences between two runs can be read."""
    rows, words, lines = _in_order(rows), {}, defaultdict(list)
    for kind, name in dict.fromkeys((row["kind"], row["name"]) for row in rows):
        words.setdefault(kind, {})[name] = declared(kind)[name].words
    head = {
        "level": ALPHA,
        "worlds": {name: world.words for name, world in WORLDS.items()},
        "words": words,
        "columns": list(rows[0]),
    }
    for row in rows:
        values = list(row.values())
        lines[tuple(values[:N_KEYS])].append(values[N_KEYS:])
    text = ",\n".join(json.dumps([*key, own]) for key, own in lines.items())
    write_atomically(path, [f'{json.dumps(head, indent=1)[:-2]},\n "rates": [\n{text}\n]}}\n'.encode()])
    print(f"{len(rows)} rates written to {path}")


def _in_order(rows):
    """Put the rates of a world together, in the order of the declarations, whichever were measured first."""
    worlds = list(dict.fromkeys(row["world"] for row in rows))

    def place(row):
        names = list(declared(row["kind"]))
        return worlds.index(row["world"]), row["n"], row["comparisons"], row["kind"], names.index(row["name"])

    return sorted(rows, key=place)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--names", nargs="+", metavar="NAME")
    parser.add_argument("--only", nargs="+", metavar="TEXT")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--nice", type=int, default=5)
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "rankeval-error-rates")
    parser.add_argument("--fresh", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
