"""Measure how often the intervals of weighted queries cover the true weighted mean, and write it for the tests.

    python tests/calibration/measure_weighted.py          # about 4 CPU minutes
    python tests/calibration/measure_weighted.py --quick  # a tenth of the work; prints and writes nothing

A world draws a weight and a score, or a difference of two systems, for each query; its true mean is ``E[w x] / E[w]``.
Each trial draws its own weights, so it is one call of each test's weighted form. The script writes
tests/calibration/weighted_rates.json. `block` is the table of examples/guides/weights_and_groups.md.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from rankeval.io.opening import write_atomically
from rankeval.significance import TESTS
from rankeval.significance.declarations import Settings
from rankeval.significance.weighted import effective_number

if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(Path(__file__).parents[1]))

from calibration.guard_tables import table

FIGURES = Path(__file__).with_name("weighted_rates.json")
SIZES = (50, 200, 1000)
TRIALS = {"t": 8000, "randomization": 1500, "bootstrap": 1500}
RESAMPLES = 499
SPREAD = 1.1
"""Deviation of the logarithms of heavy weights: 200 queries are worth about 68 equal ones."""

Draw = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class World:
    """Weights and scores of queries, drawn together.

    Attributes
    ----------
    words : str
        What it is like.
    draw : callable
        Draws weights and scores of so many queries.
    mean : float
        The true weighted mean.
    """

    words: str
    draw: Draw
    mean: float


def light(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw weights that vary by a half of their mean, and independent differences."""
    return rng.gamma(4.0, 0.25, n), rng.standard_normal(n)


def heavy(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw lognormal weights, as purchases have them, and independent differences."""
    return np.exp(SPREAD * rng.standard_normal(n)), rng.standard_normal(n)


def correlated(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw lognormal weights, and scores from 0 to 1 that rise with them."""
    frequent = rng.standard_normal(n)
    return np.exp(SPREAD * frequent), stats.norm.cdf(0.6 * frequent + 0.8 * rng.standard_normal(n))


def steep(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw lognormal weights, and differences without bounds that rise with them."""
    frequent = rng.standard_normal(n)
    return np.exp(SPREAD * frequent), 0.6 * frequent + 0.8 * rng.standard_normal(n)


# Weighted by exp(s z), a normal z has the mean s; of cdf(.6 z + .8 e), that is cdf(.6 s / sqrt(2)).
WORLDS = {
    "light": World("light weights, independent of the differences", light, 0.0),
    "heavy": World("heavy weights, independent of the differences", heavy, 0.0),
    "correlated": World(
        "heavy weights, scores rise with them", correlated, float(stats.norm.cdf(0.6 * SPREAD / np.sqrt(2)))
    ),
    "steep": World("heavy weights, differences without bounds rise with them", steep, 0.6 * SPREAD),
}
PROMISED = ("light", "heavy", "correlated")
"""The worlds in which intervals of 200 queries cover in 93 to 97 % of samples."""


def covered(world: World, test: str, n: int, seed: list[int]) -> bool:
    """Say whether the interval of one sample holds the true mean."""
    weights, scores = world.draw(np.random.default_rng(seed), n)
    settings = Settings(n_resamples=RESAMPLES, rng=seed[-1])
    found = TESTS[test].weighted(scores[:, None], settings, weights)
    return bool(found.ci_low[0] <= world.mean <= found.ci_high[0])


def measured(name: str, part: int, seed: int) -> Iterator[dict]:
    """Yield the coverage in a world, by a part of the trials."""
    place = [*WORLDS].index(name)
    for n in SIZES:
        for test, trials in TRIALS.items():
            hits = [covered(WORLDS[name], test, n, [seed, place, n, trial]) for trial in range(trials // part)]
            rate = round(float(np.mean(hits)), 4)
            yield {"world": name, "test": test, "n": n, "trials": len(hits), "covered": rate}


def rows() -> list[dict]:
    """Return the measured coverage."""
    return json.loads(FIGURES.read_text("utf-8"))["rows"]


def error(found: dict) -> float:
    """Return the Monte Carlo error of a rate; of 0 and 1, that of one trial."""
    share = np.clip(found["covered"], 1 / found["trials"], 1 - 1 / found["trials"])
    return float(np.sqrt(share * (1 - share) / found["trials"]))


def effective(name: str) -> float:
    """Return the effective number of 200 queries of a world, the median of 200 samples."""
    rng = np.random.default_rng(0)
    return float(np.median([effective_number(WORLDS[name].draw(rng, 200)[0]) for _ in range(200)]))


def block() -> str:
    """Return the table of the guide, in Markdown."""
    found = {(one["world"], one["test"], one["n"]): f"{100 * one['covered']:.1f}" for one in rows()}
    head = ["world", "200 queries are worth", *(f"`{test}` at 50 / 200 / 1,000" for test in TRIALS)]
    lines = []
    for name, world in WORLDS.items():
        rates = [" / ".join(found[name, test, n] for n in SIZES) for test in TRIALS]
        lines.append([world.words, f"{effective(name):.0f}", *rates])
    return table(head, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    part = 10 if parser.parse_args().quick else 1
    found = []
    for name in WORLDS:
        for one in measured(name, part, 1):
            found.append(one)
            print(json.dumps(one), flush=True)
    if part == 1:
        lines = ",\n".join(map(json.dumps, found))
        write_atomically(FIGURES, [f'{{"rows": [\n{lines}\n]}}\n'.encode()])


if __name__ == "__main__":
    main()
