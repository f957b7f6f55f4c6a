"""One cross-validation fitted with several seeds: the seeds of an estimator, and the mean over seeds.

The folds are the same for all seeds, so seeds and queries are crossed. What is averaged is the
score of each query::

    seed          0     1     2     mean
    query a       .4    .6    .5    .5
    query b       .9    .9    .6    .8
    aggregate     .65   .75   .55   .65

The mean of the last column is that of the last row. The trap is the mean of the *predictions* over
seeds: it ranks by an ensemble, which is another system and usually a better one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from rankeval._checks import refuse, require, whole_number
from rankeval.evaluation.merging import averaged
from rankeval.model_selection import boosters
from rankeval.model_selection.parameters import kind_of
from rankeval.model_selection.ranker import QueryRanker
from rankeval.model_selection.results import CrossValidation
from rankeval.significance.columns import FOLD

_SEED = re.compile(r"(?:^|_)(?:random_state|seed)$")
_MOST = 1000
_EXPECTED = f"their number, from 2 to {_MOST:,}, or a list of as many different seeds"


def seeds_of(seeds: int | Sequence[int] | None) -> list[int | None]:
    """Return the seeds that were asked for; one None if none were."""
    if seeds is None:
        return [None]
    asked = [*(seeds if isinstance(seeds, Iterable) else range(min(seeds, _MOST + 1)))]
    numbers = [whole_number(seed) for seed in asked]
    fits = None not in numbers and 2 <= len({*numbers}) == len(numbers) <= _MOST
    require(fits, "seeds", seeds, _EXPECTED)
    return numbers


def seeded(ranker: QueryRanker, seed: int | None) -> QueryRanker:
    """Return a copy of a ranker in which every parameter that is a seed has this value."""
    if seed is None:
        return ranker
    names = seed_parameters(ranker)
    lacking = f"{kind_of(ranker)} has no parameter random_state, random_seed or seed"
    remedy = "leave seeds out: each would fit the same model"
    refuse((not names, lacking, remedy), argument="seeds")
    copied: QueryRanker = boosters.cloned(ranker)
    copied.set_params(**dict.fromkeys(names, seed))
    return copied


def seed_parameters(ranker: QueryRanker) -> list[str]:
    """Return the names of all parameters that are seeds, those of nested estimators too."""
    params = ranker.get_params()
    names = [name for name in params if _SEED.search(name)]
    for name, part in params.items():
        seed = boosters.booster_of(part).seed
        if seed and not any(map(_SEED.search, part.get_params())):
            names.append(f"{name}__{seed}")
    return names


def over_seeds(by_seed: Mapping[Any, CrossValidation]) -> CrossValidation:
    """Return the mean over seeds of cross-validations on the same folds."""
    results, sums = [*by_seed.values()], ("fit_seconds", "score_seconds")
    how = dict.fromkeys(results[0].folds, "mean") | dict.fromkeys(sums, "sum")
    how["n_queries"] = "first"
    folds = pd.concat([result.folds for result in results]).groupby(level=FOLD).agg(how)
    estimators = [fitted for result in results for fitted in result.estimators or ()]
    chosen = {}
    for seed, result in by_seed.items():
        if result.best_params is not None:
            chosen[seed] = result.best_params.add_prefix(f"seed {seed} ")
    return CrossValidation(
        averaged({seed: result.evaluation for seed, result in by_seed.items()}),
        folds,
        np.column_stack([result.predictions for result in results]),
        tuple(estimators) or None,
        best_params=pd.concat(chosen.values(), axis="columns") if chosen else None,
    )
