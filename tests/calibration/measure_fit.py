"""Measure how often each check of a fit finds what was planted, and what is not there, and write it for the tests.

    python tests/calibration/measure_fit.py          # about 6 CPU minutes
    python tests/calibration/measure_fit.py --quick  # a tenth of the work; prints and writes nothing

A trial draws data, cross-validates a small ranker on it, and asks `CrossValidation.diagnose`. In a world of one check a
fault of its kind is planted; in a clean world nothing is wrong, and whatever any check finds is a false alarm. The
script writes tests/calibration/fit_rates.json and, from it, the tables in examples/guides/fit_checks.md.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import BaggingRegressor
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Lasso, Ridge
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeRegressor

import rankeval as rk
from rankeval.io.opening import write_atomically
from rankeval.model_selection.fit_checks import CHECKS

if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(Path(__file__).parents[1]))

from calibration.guard_tables import filled, table

FIGURES = Path(__file__).with_name("fit_rates.json")
GUIDE = Path(__file__).parents[2] / "examples" / "guides" / "fit_checks.md"
COMMENTS = "<!-- measured by tests/calibration/measure_fit.py -->", "<!-- end of the measured figures -->"
TRIALS = 100
MEASURE = "nDCG@10"
BEST_COLUMNS = make_pipeline(SelectKBest(f_regression), Ridge())
K = "estimator__selectkbest__k"
EQUAL, FEW = np.ones(10), np.repeat([1.0, 0.0], [3, 57])
"""Weights of columns: all ten count alike, and three of sixty count."""

Made = tuple[object, dict]
"""A cross-validation, and the arguments of `diagnose`."""


@dataclass(frozen=True)
class World:
    """Data and a ranker.

    Attributes
    ----------
    check : str
        The check that must find something; "" if nothing is wrong.
    words : str
        What was planted, or what is usual.
    make : callable
        Draws the data and cross-validates.
    """

    check: str
    words: str
    make: Callable[[int], Made]


def made(seed: int, **options) -> rk.RankingData:
    """Return 60 queries of 10 rows; grades of 0 to 4 by a sum of ten columns and noise."""
    return rk.datasets.make_ranking(60, 10, **options, rng=seed)


def validated(estimator, X, y, qid, **options):
    return rk.cross_validate(estimator, X, y, qid=qid, measures=MEASURE, **options)


def plain(estimator, seed: int, **options) -> Made:
    data = made(seed, **options)
    return validated(estimator, data.X, data.y, data.qid), {}


def with_gaps(seed: int) -> tuple[pd.DataFrame, rk.RankingData]:
    """Return features with a column of each query, and some values missing, in queries as a whole and in rows."""
    data, rng = made(seed), np.random.default_rng([seed, 1])
    X = pd.DataFrame(data.X, columns=data.feature_names)
    queries = pd.factorize(data.qid)[0]
    X["length"] = rng.integers(1, 4, 60)[queries]
    X["f2"] = X["f2"].mask((rng.random(60) < 0.1)[queries])
    X["f3"] = X["f3"].mask(rng.random(len(X)) < 0.05)
    return X, data


def served(spoil: Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]) -> Callable[[int], Made]:
    def make(seed: int) -> Made:
        X, data = with_gaps(seed)
        rows, _ = with_gaps(10_000 + seed)
        result = validated(make_pipeline(SimpleImputer(), Ridge()), X, data.y, data.qid)
        return result, {"serving": spoil(rows, np.random.default_rng(seed))}

    return make


def stuck(seed: int) -> Made:
    """Let a flag of 65 % of the queries have its usual value in all of 40 requests."""
    X, data = with_gaps(seed)
    rows, other = with_gaps(10_000 + seed)
    flag = np.random.default_rng([seed, 2]).random(60) < 0.65
    known = X.assign(mobile=flag[pd.factorize(data.qid)[0]].astype(int))
    result = validated(make_pipeline(SimpleImputer(), Ridge()), known, data.y, data.qid)
    return result, {"serving": rows.assign(mobile=1, qid=other.qid)[pd.factorize(other.qid)[0] < 40]}


def often_missing(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return rows.assign(f2=rows["f2"].mask(rng.random(len(rows)) < 0.5))


def leak(seed: int) -> Made:
    """Add a column that is the label and noise, negated: only the other direction ranks well."""
    data, rng = made(seed), np.random.default_rng(seed)
    X = np.column_stack([data.X, -data.y + 0.3 * rng.standard_normal(len(data.y))])
    return validated(Ridge(), X, data.y, data.qid), {}


def enough(seed: int) -> Made:
    """Let one column decide, so that the others only add noise."""
    data, rng = made(seed), np.random.default_rng(seed)
    utility = data.X[:, 0] + 0.5 * rng.standard_normal(len(data.y))
    y = np.digitize(utility, np.quantile(utility, [0.5, 0.75, 0.9]))
    return validated(Ridge(), data.X, y, data.qid), {}


def first_stage(seed: int) -> Made:
    """Let one column have most of the signal, as the score of a first stage does, and four others the rest."""
    rng = np.random.default_rng(seed)
    X, qid = rng.standard_normal((3000, 5)), np.repeat(np.arange(300), 10)
    utility = X @ [1, 0.25, 0.25, 0.25, 0.25] + 0.5 * rng.standard_normal(3000)
    y = np.digitize(utility, np.quantile(utility, [0.5, 0.75, 0.9]))
    return validated(Ridge(), X, y, qid), {}


def other_source(seed: int) -> Made:
    """Let the labels of the last fold come from a source that does not know the columns."""
    data, rng = made(seed), np.random.default_rng(seed)
    fold = (pd.factorize(data.qid)[0] // 12).astype(int)
    y = data.y.copy()
    y[fold == 4] = rng.permutation(y[fold == 4])
    cv = [(np.flatnonzero(fold != place), np.flatnonzero(fold == place)) for place in range(5)]
    return validated(Ridge(), data.X, y, data.qid, cv=cv), {}


def searched(search: type, space: dict, weights: np.ndarray, estimator: object = BEST_COLUMNS, **options) -> Callable:
    """Return a search inside each of three folds of 150 queries; columns have these weights in the grades."""

    def make(seed: int) -> Made:
        rng = np.random.default_rng(seed)
        X, qid = rng.standard_normal((1500, len(weights))), np.repeat(np.arange(150), 10)
        utility = X @ (weights / np.linalg.norm(weights)) + 0.5 * rng.standard_normal(1500)
        y = np.digitize(utility, np.quantile(utility, [0.5, 0.75, 0.9]))
        scoring, inner = rk.make_scorer(MEASURE), rk.QueryKFold(3)
        inside = search(rk.QueryRanker(estimator), space, scoring=scoring, cv=inner, **options)
        return validated(inside, X, y, qid, cv=3), {}

    return make


class OneOfThree(RegressorMixin, BaseEstimator):
    """Adds one of three columns of noise to the sum of four that know the grade: its parameter does nothing."""

    def __init__(self, column: int = 0) -> None:
        self.column = column

    def fit(self, X, y) -> OneOfThree:
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X) -> np.ndarray:
        return X[:, :4].sum(axis=1) + X[:, 4 + self.column]


def idle(seed: int) -> Made:
    """Search a parameter that does nothing, which often ends at the same edge in folds that overlap."""
    rng = np.random.default_rng(seed)
    y, qid = rng.integers(0, 4, 1500), np.repeat(np.arange(150), 10)
    X = np.repeat([1, 0], [4, 3]) * y[:, None] + 2 * rng.standard_normal((1500, 7))
    scoring, inner = rk.make_scorer(MEASURE), rk.QueryKFold(3)
    inside = GridSearchCV(rk.QueryRanker(OneOfThree()), {"estimator__column": [0, 1, 2]}, scoring=scoring, cv=inner)
    return validated(inside, X, y, qid, cv=3), {}


def seeded(claimed: float) -> Callable[[int], Made]:
    def make(seed: int) -> Made:
        data, bagged = made(seed), BaggingRegressor(Ridge(), 3)
        seeds = [5 * seed + place for place in range(5)]
        return validated(bagged, data.X, data.y, data.qid, seeds=seeds, cv=2), {"difference": claimed}

    return make


WORLDS = {
    "grid": World(
        "edge", "a grid of 1, 2 and 4 columns, where all ten count", searched(GridSearchCV, {K: [1, 2, 4]}, EQUAL)
    ),
    "range": World(
        "edge",
        "six draws of 1 to 4 columns, where all ten count",
        searched(RandomizedSearchCV, {K: stats.randint(1, 5)}, EQUAL, n_iter=6, random_state=0),
    ),
    "tree": World("overfit", "a tree without a limit", lambda seed: plain(DecisionTreeRegressor(random_state=0), seed)),
    "neighbour": World("overfit", "one nearest neighbour", lambda seed: plain(KNeighborsRegressor(1), seed)),
    "leak": World("single_column", "a column of the label, negated, with noise", leak),
    "enough": World("single_column", "one column that decides alone", enough),
    "source": World("folds", "labels of another source in one fold of five", other_source),
    "claim": World("seed", "a claim of .002 for three bagged linear rankers", seeded(0.002)),
    "lasso": World("constant", "a Lasso that keeps no column", lambda seed: plain(Lasso(10.0), seed)),
    "stump": World("constant", "a tree with one split", lambda seed: plain(DecisionTreeRegressor(max_depth=1), seed)),
    "faint": World("constant", "a penalty of a million million", lambda seed: plain(Ridge(1e12), seed)),
    "absent": World("serving", "a column absent", served(lambda rows, _: rows.drop(columns="f1"))),
    "always": World("serving", "a column always 0", served(lambda rows, _: rows.assign(length=0))),
    "stuck": World("serving", "a flag, 65 % of the queries, always 1 in 40 requests", stuck),
    "missing": World("serving", "a column missing in half of the rows, not in a tenth", served(often_missing)),
    "usual": World("", "a linear ranker, missing values, and new rows at serving", served(lambda rows, _: rows)),
    "inside": World(
        "",
        "a grid of 1, 3, 10 and 60 columns, where three count",
        searched(GridSearchCV, {K: [1, 3, 10, 60]}, FEW),
    ),
    "flat": World(
        "",
        "a grid of penalties that hardly matter",
        searched(GridSearchCV, {"estimator__alpha": [0.1, 1.0, 10.0]}, EQUAL, Ridge()),
    ),
    "idle": World("", "a grid of a parameter that does nothing", idle),
    "first_stage": World("", "one column with most of the signal, and a model that is better", first_stage),
    "lead": World("", "three bagged linear rankers, a claim of .200", seeded(0.2)),
}


def found_in(name: str, seed: int) -> set[str]:
    """Return the checks that find something in a trial."""
    result, arguments = WORLDS[name].make(seed)
    rows = result.diagnose(**arguments).table
    return set(rows.loc[rows["outcome"] == "found", "check"])


def made_in(name: str) -> set[str]:
    """Return the checks that a world allows."""
    result, arguments = WORLDS[name].make(0)
    rows = result.diagnose(**arguments).table
    return set(rows.loc[rows["outcome"] != "not made", "check"])


def measured(names: list[str], seeds: range) -> Iterator[dict]:
    """Yield the counts: of the planted check in its world, of every check that could be made in a clean one."""
    for name in names:
        checks = [WORLDS[name].check] if WORLDS[name].check else [check for check in CHECKS if check in made_in(name)]
        trials = [found_in(name, seed) for seed in seeds]
        for check in checks:
            yield {"world": name, "check": check, "trials": len(trials), "found": sum(check in one for one in trials)}


def rows() -> list[dict]:
    """Return the measured counts."""
    return json.loads(FIGURES.read_text("utf-8"))["rows"]


INTRODUCTION = """\
The next table counts the findings in {n} simulated data sets, at level .01. A data set has 60 queries with 10 rows
each, or 150 queries if there is a search. A false alarm is a finding in data without a planted fault. The number of
false alarms is the highest one over all kinds of such data.
"""


def block() -> str:
    """Return the tables of the guide, in Markdown."""
    found = {(row["world"], row["check"]): row["found"] for row in rows()}
    clean = [name for name, world in WORLDS.items() if not world.check]
    lines = []
    for check in CHECKS:
        planted = {name: world for name, world in WORLDS.items() if world.check == check}
        alarms = max(found[name, check] for name in clean if (name, check) in found)
        for name, world in planted.items():
            lines.append([f"`{check}`", world.words, found[name, check], alarms])
    head = ["check", "planted", "found", "false alarms"]
    kinds = [[f"`{check}`", one.words, one.figure, one.limit.format(alpha=0.01)] for check, one in CHECKS.items()]
    of_kinds = table(["check", "finds", "figure", "found if"], kinds)
    return "\n".join([of_kinds, INTRODUCTION.format(n=TRIALS), table(head, lines)])


def write_guide() -> None:
    GUIDE.write_text(filled(GUIDE.read_text("utf-8"), block(), COMMENTS), "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("names", nargs="*", default=list(WORLDS))
    asked = parser.parse_args()
    found = []
    for row in measured(asked.names, range(1, 1 + (TRIALS // 10 if asked.quick else TRIALS))):
        found.append(row)
        print(json.dumps(row), flush=True)
    if not asked.quick and asked.names == list(WORLDS):
        lines = ",\n".join(map(json.dumps, found))
        write_atomically(FIGURES, [f'{{"rows": [\n{lines}\n]}}\n'.encode()])
        write_guide()


if __name__ == "__main__":
    main()
