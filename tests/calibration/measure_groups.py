"""Measure how often a difference is claimed where there is none if queries come in groups, and write it for the tests.

    python tests/calibration/measure_groups.py          # about 2 CPU minutes
    python tests/calibration/measure_groups.py --quick  # a tenth of the work; prints and writes nothing

A world is a list of group sizes and an intraclass correlation. A trial draws the differences of two systems that are
equally good: ``sqrt(icc)`` times a number of the group and ``sqrt(1 - icc)`` times one of the query. Trials are the
columns of one call of a test, over the queries as if they were independent, and over the means of the groups, which
`rankeval.compare` takes for ``groups=``. The script writes
tests/calibration/group_rates.json and, from it, the table in examples/guides/significance.md.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rankeval.comparison.groups import Groups
from rankeval.io.opening import write_atomically
from rankeval.significance import CORRECTIONS, adjust, paired_test
from rankeval.significance.declarations import Settings

if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(Path(__file__).parents[1]))

from calibration.guard_tables import table

FIGURES = Path(__file__).with_name("group_rates.json")
TRIALS, AT_ONCE, RESAMPLES = 8000, 500, 999
TESTS = ("t", "randomization", "bootstrap")
ADJUSTED = ("holm", "max_t")
FAMILIES = ("conversations", "unequal")
"""The worlds in which variants are compared with one baseline."""

WAYS = ("query", "group")
VARIANTS = 5

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return numbers of mean 0 and variance 1."""
    return rng.standard_normal(shape)


def exponential(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return skewed numbers of mean 0 and variance 1."""
    return rng.standard_exponential(shape) - 1


@dataclass(frozen=True)
class World:
    """Queries in groups.

    Attributes
    ----------
    words : str
        What it is like.
    sizes : tuple of int
        The number of queries of each group.
    icc : float
        The intraclass correlation of the differences.
    draw : callable
        Draws numbers of mean 0 and variance 1.
    """

    words: str
    sizes: tuple[int, ...]
    icc: float
    draw: Draw = normal

    @property
    def of(self) -> np.ndarray:
        """The group of each query."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def differences(self, rng: np.random.Generator, n_columns: int) -> np.ndarray:
        """Return differences of shape (n_queries, n_columns), each column a trial or a system."""
        of_groups = self.draw(rng, (len(self.sizes), n_columns))[self.of]
        return np.sqrt(self.icc) * of_groups + np.sqrt(1 - self.icc) * self.draw(rng, (len(self.of), n_columns))

    def blocks(self, trials: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the differences of trials by query and by group."""
        groups = Groups("group", "query", self.of)
        for start in range(0, trials, AT_ONCE):
            d = self.differences(rng, min(AT_ONCE, trials - start))
            yield d, groups.means(d)


UNEQUAL = (1,) * 6 + (2,) * 5 + (3,) * 4 + (4,) * 3 + (6,) * 2 + (9,) * 2 + (14, 20, 30)
WORLDS = {
    "conversations": World("20 conversations of 5 turns, intraclass correlation .3", (5,) * 20, 0.3),
    "paraphrases": World("25 pairs of paraphrases, .5", (2,) * 25, 0.5),
    "documents": World("50 documents of 20 questions, .1", (20,) * 50, 0.1),
    "unequal": World(f"{len(UNEQUAL)} conversations of 1 to {max(UNEQUAL)} turns, .3", UNEQUAL, 0.3),
    "few": World("10 conversations of 10 turns, .3", (10,) * 10, 0.3),
    "skewed": World("20 conversations of 5 turns, .3, exponential differences", (5,) * 20, 0.3, exponential),
    "independent": World("20 conversations of 5 turns, 0: independent", (5,) * 20, 0.0),
}
PROMISED = ("conversations", "paraphrases", "documents", "unequal", "few", "independent")
"""The worlds in which tests over groups hold their level; strong skew makes them liberal, as it does without groups."""


def one_pair(name: str, trials: int, seed: int) -> Iterator[dict]:
    """Yield the rates of each test in a world, over queries and over groups."""
    rng, claimed = np.random.default_rng([seed, *map(ord, name)]), {}
    for number, by_way in enumerate(WORLDS[name].blocks(trials, rng)):
        for way, d in zip(WAYS, by_way, strict=True):
            for test in TESTS:
                p = paired_test(test, d, n_resamples=RESAMPLES, rng=number).p_value
                claimed.setdefault((test, way), []).append(p <= 0.05)
    for (test, way), found in claimed.items():
        yield row(name, test, way, np.concatenate(found))


def adjusted(d: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Return the adjusted p-values of a family of comparisons by the t test, as `rankeval.compare` has them."""
    p = paired_test("t", d).p_value
    joint = CORRECTIONS["max_t"].function(d, Settings(n_resamples=RESAMPLES, rng=seed))
    return {"holm": adjust(p, "holm"), "max_t": np.maximum(joint, p)}


def family(name: str, trials: int, seed: int) -> Iterator[dict]:
    """Yield how often any of some variants is claimed to differ from a baseline."""
    world, rng = WORLDS[name], np.random.default_rng([seed, *map(ord, name)])
    groups, claimed = Groups("group", "query", world.of), {}
    for number in range(trials):
        scores = world.differences(rng, VARIANTS + 1)
        d = scores[:, 1:] - scores[:, :1]
        for way, one in zip(WAYS, (d, groups.means(d)), strict=True):
            for correction, p in adjusted(one, number).items():
                claimed.setdefault((correction, way), []).append(p.min() <= 0.05)
    for (correction, way), found in claimed.items():
        yield row(name, correction, way, np.array(found))


def row(world: str, test: str, way: str, claimed: np.ndarray) -> dict:
    """Return a rate as the file has it."""
    trials = len(claimed)
    return {"world": world, "test": test, "by": way, "trials": trials, "rate": round(float(claimed.mean()), 4)}


def measured(trials: int, seed: int) -> Iterator[dict]:
    """Yield all rates."""
    for name in WORLDS:
        yield from one_pair(name, trials, seed)
    for name in FAMILIES:
        yield from family(name, trials, seed)


def rows() -> list[dict]:
    """Return the measured rates."""
    return json.loads(FIGURES.read_text("utf-8"))["rows"]


def error(found: dict) -> float:
    """Return the Monte Carlo error of a rate."""
    return float(np.sqrt(found["rate"] * (1 - found["rate"]) / found["trials"]))


INTRODUCTION = """\
## Queries in groups

The tests assume that queries are independent. Turns of one conversation, paraphrases of one need, and questions about
one document are not: they succeed or fail together, so a test over queries mistakes one lucky conversation for several
lucky queries. `rk.compare(..., groups=...)` tests the means of groups. So do `rk.rank_intervals`, the assertions of
`rankeval.testing`, `guard.freeze`, `guard.gate` and `rankeval_mlflow.promote`.
[Comparing](comparing.md#queries-that-go-together) shows how you find out whether queries go together.

False claims about equal systems, in percent, over queries -> over groups. The columns are one pair by each test, and
{variants} variants against one baseline by each correction ({trials:,} trials, Monte Carlo error {small:.1f} near 5 and
{large:.1f} near 25). On skewed differences the tests make slightly too many false claims, as they do without groups.
"""


def block() -> str:
    """Return the section of the guide, in Markdown."""
    found = {(one["world"], one["test"], one["by"]): one for one in rows()}
    head = ["world, intraclass correlation", *(f"`{name}`" for name in TESTS)]
    head += [f"{VARIANTS} variants, `{name}`" for name in ADJUSTED]

    def cell(world: str, test: str) -> str:
        rates = [found[world, test, way]["rate"] for way in WAYS if (world, test, way) in found]
        return " -> ".join(f"{100 * rate:.1f}" for rate in rates)

    lines = [[one.words, *(cell(name, test) for test in (*TESTS, *ADJUSTED))] for name, one in WORLDS.items()]
    small, large = (100 * error({"rate": rate, "trials": TRIALS}) for rate in (0.05, 0.25))
    said = INTRODUCTION.format(trials=TRIALS, variants=VARIANTS, small=small, large=large)
    return "\n".join([said, table(head, lines)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    part = 10 if parser.parse_args().quick else 1
    found = []
    for one in measured(TRIALS // part, 1):
        found.append(one)
        print(json.dumps(one), flush=True)
    if part == 1:
        lines = ",\n".join(map(json.dumps, found))
        write_atomically(FIGURES, [f'{{"rows": [\n{lines}\n]}}\n'.encode()])
        from calibration.document import main as document

        document()


if __name__ == "__main__":
    main()
