"""Measure how often the intervals of a calibrated machine judge hold, and write it for the tests.

    python tests/calibration/measure_machine.py          # about a CPU minute
    python tests/calibration/measure_machine.py --quick  # a tenth of the work; prints and writes nothing
    python tests/calibration/measure_machine.py --ppi    # also ppi-python, if it can be imported: 8 CPU minutes more

A world is a population of queries, each with a score by people and one by the machine for one system or two. A trial
draws N queries of it. People judged the first n. The trial estimates the mean of the system, or of the difference, over
the population. Trials are the columns of one call of the estimator. The worlds of RAG25 and cranfield read the
shared collections. The script writes tests/calibration/machine_rates.json and, from it, the table in
examples/guides/llm_judge.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import special, stats

import rankeval as rk
from rankeval.io.opening import write_atomically
from rankeval.judging.machine import HEAVY, LITTLE
from rankeval.significance.columns import two_phase

if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(Path(__file__).parents[1]))

from calibration.guard_tables import filled, table
from calibration.worlds import beta

FIGURES = Path(__file__).with_name("machine_rates.json")
GUIDE = Path(__file__).parents[2] / "examples" / "guides" / "llm_judge.md"
COMMENTS = (
    "<!-- measured by tests/calibration/measure_machine.py -->",
    "<!-- end of what measure_machine.py measured -->",
)
SHARED = Path(__file__).parents[2].parent / "shared" / "data"
TRIALS, AT_ONCE, ALPHA = 16_000, 500, 0.05
JUDGED, PPI = (10, 25, 50, 100), 25
EVERY = 4
"""Every so many trials are also shown to ppi-python, which is slow."""

POPULATION = 20_000
FIELDS = ("world", "n", "n_machine", "trials")
"""The first keys of a row of figures."""
OF_PPI = ("held_ppi", "width_ppi")
"""Those that stay as they are if ppi-python is not tried again: the trials are the same."""


@dataclass(frozen=True)
class World:
    """A population of queries: scores of shape (n_queries, n_systems) by people and by the machine.

    Attributes
    ----------
    words : str
        What it is like.
    n_machine : int
        Queries of a trial.
    human, machine : ndarray of shape (n_queries, n_systems)
        Scores; of two systems, the difference of the second from the first is estimated.
    """

    words: str
    n_machine: int
    human: np.ndarray
    machine: np.ndarray

    @property
    def columns(self) -> tuple[np.ndarray, np.ndarray]:
        """The scores whose mean is estimated, by people and by the machine: those of a system, or differences."""
        if self.human.shape[1] == 1:
            return self.human[:, 0], self.machine[:, 0]
        return self.human[:, 1] - self.human[:, 0], self.machine[:, 1] - self.machine[:, 0]

    def trials(self, n: int, trials: int, rng) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield blocks of trials: scores of the judged by people and by the machine, and of all by the machine."""
        human, machine = self.columns
        for start in range(0, trials, AT_ONCE):
            drawn = rng.integers(len(human), size=(self.n_machine, min(AT_ONCE, trials - start)))
            yield human[drawn[:n]], machine[drawn[:n]], machine[drawn]


def latent(rng, n_systems: int, within: float, judges: float) -> tuple[np.ndarray, np.ndarray]:
    """Return shares in [0, 1] of the systems by people and by the machine, tied by normal variables."""
    shape = (POPULATION, n_systems)
    true = np.sqrt(within) * rng.standard_normal((POPULATION, 1)) + np.sqrt(1 - within) * rng.standard_normal(shape)
    seen = judges * true + np.sqrt(1 - judges**2) * rng.standard_normal(shape)
    return special.ndtr(true), special.ndtr(seen)


@cache
def simulated() -> dict[str, World]:
    """Return the simulated worlds."""
    rng = np.random.default_rng(28)
    true, seen = latent(rng, 1, 0.0, 0.845)
    mean = World("a mean; the judge is biased by .15", 500, beta(0.45, 0.22)(true), beta(0.6, 0.22)(seen))
    true, seen = latent(rng, 1, 0.0, 0.27)
    weak = World("a mean; the judge knows little", 500, beta(0.45, 0.22)(true), beta(0.6, 0.22)(seen))
    true, seen = latent(rng, 2, 0.6, 0.745)
    better = World("a difference of .05", 500, *map(_two, (true, seen), (0.45, 0.55), (0.5, 0.6)))
    true, seen = latent(rng, 2, 0.6, 0.745)
    human, machine = _two(true, 0.45, 0.45), _two(seen, 0.5, 0.55)
    # No true difference, to the last bit, and .05 by the machine: the population is centred.
    human[:, 1] += (human[:, 0] - human[:, 1]).mean()
    kin = World("no difference; the judge favours the second system by .05", 1000, human, machine)
    true, seen = latent(rng, 1, 0.0, 0.6)
    near = [np.minimum(1.0, beta(0.45, 0.28)(shares) + 0.7) for shares in (true, seen)]
    tenths = [np.round(beta(0.93, 0.12)(shares), 1) for shares in (true, seen)]
    punished, ignored, exponential = _odd_queries(), _odd_queries(loss=0.0), _exponential()
    rng = np.random.default_rng(29)
    skewed, noise = rng.beta(0.5, 3, (POPULATION, 1)), rng.standard_normal((POPULATION, 1))
    return {
        "mean, strong judge": mean,
        "mean, weak judge": weak,
        "difference": better,
        "judge favours its kin": kin,
        "ceiling": World("a mean; two thirds of the scores are 1", 500, *near),
        "ceiling, tenths": World("P@10; two thirds of the scores are 1, and few are low", 500, *tenths),
        "unequal noise": World(
            "the spread of people's scores grows with the machine's", 500, 0.3 + (0.9 * skewed + 0.05) * noise, skewed
        ),
        "curve": World("people's scores are the square of the machine's, which are skewed", 500, skewed**2, skewed),
        "kin on lost queries": World("the judge likes 5 % of the queries, which people punish", 500, *punished),
        "kin on some queries": World("the judge likes 5 % of the queries, and people do not care", 500, *ignored),
        "exponential, saturating": World("exponential differences, which the judge sees up to .5", 500, *exponential),
    }


def _odd_queries(loss: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Return differences by people and by a judge who likes 5 % of the queries by .8; elsewhere sd .1, r = .6."""
    rng = np.random.default_rng(42)
    true, other = rng.standard_normal((2, POPULATION, 1))
    odd = rng.random((POPULATION, 1)) < 0.05
    return 0.1 * true - loss * odd, 0.06 * true + 0.08 * other + 0.8 * odd


def _exponential() -> tuple[np.ndarray, np.ndarray]:
    """Return exponential differences of mean 0 by people, and by a judge who sees no more than .5 of them."""
    rng = np.random.default_rng(43)
    true = rng.exponential(size=(POPULATION, 1)) - 1
    return true, np.minimum(true, 0.5) + 0.5 * rng.standard_normal(true.shape)


def _two(shares: np.ndarray, first: float, second: float) -> np.ndarray:
    return np.column_stack([beta(first, 0.24)(shares[:, 0]), beta(second, 0.24)(shares[:, 1])])


def _qrels(path: Path) -> pd.DataFrame:
    with gzip.open(path, "rt") as file:
        columns = {"qid": str, "zero": str, "docid": str, "grade": int}
        return pd.read_csv(file, sep=r"\s+", header=None, names=list(columns), dtype=columns)


def rag25(shared: Path = SHARED) -> pd.DataFrame:
    """Return the pairs that both judged: qid, docid, people (NIST) and machine (UMBRELA)."""
    people, machine = (_qrels(shared / "agreement_rag25" / f"qrels.{name}.txt.gz") for name in ("nist", "umbrela"))
    both = people.merge(machine, on=["qid", "docid"], suffixes=("", "_machine"))
    return both.rename(columns={"grade": "people", "grade_machine": "machine"})[["qid", "docid", "people", "machine"]]


MEASURES = ["nDCG@10", "P(rel=2)@10", "P(rel=1)@10"]


def _scores(pairs: pd.DataFrame, rankings: list[np.ndarray], judge: str) -> dict[str, np.ndarray]:
    """Return the scores of each query by a judge, for each measure a column for each ranking."""
    found = [
        rk.evaluate(pairs[judge].to_numpy(), scores, qid=pairs["query"].to_numpy(), measures=MEASURES)
        for scores in rankings
    ]
    return {name: np.column_stack([one.per_query[name] for one in found]) for name in MEASURES}


@cache
def of_rag25(shared: Path = SHARED, draws: int = 20) -> dict[str, World]:
    """Return the worlds of RAG25: its 22 topics, each ranked some times by noisy systems.

    The systems see people's grades through noise, and the population is their rankings of all topics. The third one is
    nearly perfect: most of its scores are at the ceiling.
    """
    rng, labels = np.random.default_rng(25), rag25(shared)
    pairs = pd.concat([labels.assign(query=labels["qid"] + f"-{k}") for k in range(draws)], ignore_index=True)
    rankings = [pairs["people"].to_numpy() + rng.normal(0, noise, len(pairs)) for noise in (6.0, 4.5, 1.6)]
    human, machine = (_scores(pairs, rankings, judge) for judge in ("people", "machine"))
    found = {}
    for name in ("nDCG@10", "P(rel=2)@10"):
        two, words = slice(0, 2), f"{name} on RAG25's topics"
        found[f"RAG25 {name}, mean"] = World(words, 225, human[name][:, 1:2], machine[name][:, 1:2])
        found[f"RAG25 {name}, difference"] = World(words, 225, human[name][:, two], machine[name][:, two])
    for name in ("P(rel=2)@10", "P(rel=1)@10"):
        words = f"{name} of a nearly perfect ranking of RAG25's topics"
        found[f"RAG25 {name}, ceiling"] = World(words, 225, human[name][:, 2:], machine[name][:, 2:])
    return found


@cache
def of_cranfield(shared: Path = SHARED, draws: int = 20) -> dict[str, World]:
    """Return the worlds of cranfield: two of its runs, and a machine that errs as UMBRELA does on RAG25.

    The first 20 documents of each run and all judged ones are labelled; documents that people did not judge are grade
    0. The population is the queries under so many draws of the machine's labels.
    """
    rng, labels, folder = np.random.default_rng(14), rag25(shared), shared / "cranfield"
    confusion = pd.crosstab(labels["people"], labels["machine"], normalize="index").reindex(
        columns=range(5), fill_value=0
    )
    runs = []
    for name in ("tfidf_cos", "bm25_k12_b75"):
        run = rk.Run.read(folder / "runs" / f"{name}.run.gz").to_frame()
        run["place"] = run.groupby("qid")["score"].rank(ascending=False, method="first")
        runs.append(run[run["place"] <= 20][["qid", "docid", "score"]].astype({"qid": str, "docid": str}))
    qrels = _qrels(folder / "qrels.graded.txt.gz")[["qid", "docid", "grade"]]
    pool = qrels.merge(pd.concat(runs)[["qid", "docid"]].drop_duplicates(), on=["qid", "docid"], how="outer")
    pool = pool.assign(people=pool.pop("grade").fillna(0).astype(int))
    for place, run in enumerate(runs):
        pool = pool.merge(run.rename(columns={"score": f"score{place}"}), on=["qid", "docid"], how="left")
    pairs = pd.concat([pool.assign(query=pool["qid"] + f"-{k}") for k in range(draws)], ignore_index=True)
    edges = confusion.to_numpy().cumsum(axis=1)[pairs["people"].to_numpy()]
    pairs["machine"] = (rng.random(len(pairs))[:, None] > edges).sum(axis=1).clip(0, 4)
    rankings = [pairs[f"score{place}"].fillna(-1e9).to_numpy() for place in range(2)]
    by = {judge: _scores(pairs, rankings, judge)["nDCG@10"] for judge in ("people", "machine")}
    return {
        "cranfield nDCG@10, mean": World(
            "nDCG@10 of BM25 on cranfield", 225, by["people"][:, 1:], by["machine"][:, 1:]
        ),
        "cranfield nDCG@10, difference": World(
            "nDCG@10 of BM25 and tf-idf on cranfield", 225, by["people"], by["machine"]
        ),
    }


def worlds(shared: Path = SHARED) -> dict[str, World]:
    """Return all worlds by name."""
    return simulated() | of_rag25(shared) | of_cranfield(shared)


def measured(name: str, world: World, n: int, trials: int, seed: int, *, ppi: bool = False) -> dict:
    """Return the figures of a world with n judged queries."""
    human, machine = world.columns
    truth, rng, parts = human.mean(), np.random.default_rng([seed, n]), []
    for by_people, judged, everything in world.trials(n, trials, rng):
        found = two_phase(by_people, judged, everything)
        estimate, reach = found["estimate"].to_numpy(), stats.t.isf(ALPHA / 2, found["degrees"]) * found["std_error"]
        reach = reach.to_numpy()
        low, high, gain = estimate - reach, estimate + reach, found["gain"].to_numpy()
        part = {"estimate": estimate, "mean_human": by_people.mean(axis=0), "gain": gain}
        part |= {"held": (low <= truth) & (truth <= high), "claimed": (low > 0) | (high < 0), "width": high - low}
        even = _even_reach(found, everything)
        part |= {"held_even": np.abs(estimate - truth) <= even, "width_even": 2 * even}
        part |= {"little": gain < LITTLE, "heavy": found["leverage"].to_numpy() > HEAVY}
        for judge, scores in (("people", by_people), ("machine", everything)):
            mean, k = scores.mean(axis=0), len(scores)
            reach = stats.t.isf(ALPHA / 2, k - 1) * scores.std(axis=0, ddof=1) / np.sqrt(k)
            part |= {f"held_{judge}": np.abs(mean - truth) <= reach, f"claimed_{judge}": np.abs(mean) > reach}
        part["held_advised"] = np.where(part["little"], part["held_people"], part["held"])
        rest = everything[n:]
        some = range(0, judged.shape[1], 8)
        part["alarm"] = np.array([stats.ks_2samp(judged[:, k], rest[:, k], method="asymp").pvalue < 0.01 for k in some])
        if ppi:
            part["held_ppi"], part["width_ppi"] = _by_ppi(by_people, judged, rest, truth)
        parts.append(part)
    all_trials = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    estimate, mean_human = (all_trials.pop(key) for key in ("estimate", "mean_human"))
    rates = {
        key: round(float(np.median(values) if "width" in key else values.mean()), 4)
        for key, values in all_trials.items()
    }
    ratio = mean_human.var() / estimate.var()
    return {
        **dict(zip(FIELDS, (name, n, world.n_machine, trials), strict=True)),
        "truth": round(float(truth), 4),
        "bias": round(float(machine.mean() - truth), 4),
        "correlation": round(float(np.corrcoef(human, machine)[0, 1]), 3),
        **rates,
        "gain_median": round(float(np.median(all_trials["gain"])), 4),
        "variance_ratio": round(float(ratio), 4),
    }


def _even_reach(found: pd.DataFrame, machine: np.ndarray) -> np.ndarray:
    """Return the half width of the interval that takes people's scores to scatter evenly about the line."""
    far = found["slope"] ** 2 * machine.var(axis=0, ddof=1) / len(machine)
    error = np.sqrt((found["std_error"] ** 2 - far) / found["inflation"] + far)
    return (stats.t.isf(ALPHA / 2, found["degrees"]) * error).to_numpy()


def _by_ppi(human, judged, rest, truth) -> tuple[np.ndarray, np.ndarray]:
    """Return whether ppi-python's intervals, which tune their weight as it does by default, hold, and their widths."""
    from ppi_py import ppi_mean_ci

    ends = [ppi_mean_ci(human[:, k], judged[:, k], rest[:, k], alpha=ALPHA) for k in range(0, human.shape[1], EVERY)]
    low, high = (np.array([float(np.ravel(one[side])[0]) for one in ends]) for side in (0, 1))
    return (low <= truth) & (truth <= high), high - low


def rows() -> list[dict]:
    """Return the measured figures."""
    return json.loads(FIGURES.read_text("utf-8"))["rows"]


TOLD = {
    "mean, strong judge": "a mean, the machine biased by .15",
    "mean, weak judge": "the same, a weak machine",
    "difference": "a difference of .05",
    "judge favours its kin": "no difference, one ranker favoured by .05",
    "RAG25 nDCG@10, mean": "TREC RAG 2025, UMBRELA: nDCG@10",
    "RAG25 P(rel=2)@10, difference": "TREC RAG 2025, difference in P(rel=2)@10",
    "cranfield nDCG@10, difference": "Cranfield, difference in nDCG@10",
    "ceiling": "a mean, two thirds of the scores are 1",
    "ceiling, tenths": "P@10, two thirds are 1, few are low",
    "RAG25 P(rel=1)@10, ceiling": "TREC RAG 2025, P(rel=1)@10 near 1",
    "unequal noise": "people's spread grows with the machine's score",
    "curve": "people's score is the square of the machine's",
    "kin on lost queries": "the machine favours a ranker on 5 % of the queries, people punish it there",
    "kin on some queries": "the machine favours a ranker on 5 % of the queries, people do not care",
    "exponential, saturating": "skewed differences, the machine sees the small ones",
}
"""The worlds of the guide's table, in its words."""


def block() -> str:
    """Return the table of the guide, in Markdown."""
    held, found = json.loads(FIGURES.read_text("utf-8")), {(row["world"], row["n"]): row for row in rows()}
    people, ppi = JUDGED[:3], f"ppi, n = {PPI}"
    head = ["world", "r", "gain", *(f"n = {n}" for n in JUDGED), *(f"people, n = {n}" for n in people), "wider", ppi]
    lines = []
    for name, words in TOLD.items():
        at = {n: found[name, n] for n in JUDGED}
        rates = [at[n]["held"] for n in JUDGED] + [at[n]["held_people"] for n in people]
        lines.append(
            [
                words,
                f"{at[50]['correlation']:.2f}",
                f"{at[50]['variance_ratio']:.2f}",
                *(f"{100 * rate:.1f}" for rate in rates),
                f"{100 * at[PPI]['width'] / at[PPI]['width_even'] - 100:.0f} %",
                f"{100 * at[PPI]['held_ppi']:.1f}" if "held_ppi" in at[PPI] else "",
                f"{100 * at[50]['held_machine']:.0f}",
            ]
        )
    error = 100 * (0.05 * 0.95 / TRIALS) ** 0.5
    version = held["versions"]["ppi-python"]
    said = INTRODUCTION.format(trials=TRIALS, error=error, some=TRIALS // EVERY, version=version, n=PPI)
    return "\n".join([said, table([*head, "machine alone"], lines)])


INTRODUCTION = """\
The cells show in what share of {trials:,} trials, in percent, the 95 % interval contains the truth (Monte Carlo error
{error:.1f} near 95). People judge n queries, and the machine judges 225 (TREC RAG 2025 and Cranfield, redrawn), 500 or
1,000. The gain is the ratio of variances at n = 50. "people" is Student's t over people's scores. "wider" shows how
much wider the median interval is, at n = {n}, than an interval that assumes even scatter. "ppi" is `ppi_mean_ci` of
ppi-python {version} (prediction-powered inference, by default with a tuned weight) on {some:,} of the trials. "machine
alone" is Student's t over the machine's scores.
"""


def write_guide() -> None:
    """Write the table into the guide."""
    GUIDE.write_text(filled(GUIDE.read_text("utf-8"), block(), COMMENTS), "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--ppi", action="store_true")
    given = parser.parse_args()
    trials, kept = TRIALS // 10 if given.quick else TRIALS, json.loads(FIGURES.read_text("utf-8"))
    versions, known = kept["versions"], {(row["world"], row["n"]): row for row in kept["rows"]}
    if given.ppi:
        from importlib.metadata import version

        versions = {name: version(name) for name in ("ppi-python", "numba", "numpy")}
    found = []
    for name, world in worlds().items():
        for n in JUDGED:
            by_ppi = {key: value for key, value in known.get((name, n), {}).items() if key in OF_PPI}
            found.append(by_ppi | measured(name, world, n, trials, 1, ppi=given.ppi))
            print(json.dumps(found[-1]), flush=True)
    if not given.quick:
        lines = ",\n".join(json.dumps(row) for row in found)
        write_atomically(FIGURES, [f'{{"versions": {json.dumps(versions)}, "rows": [\n{lines}\n]}}\n'.encode()])
        write_guide()


if __name__ == "__main__":
    main()
