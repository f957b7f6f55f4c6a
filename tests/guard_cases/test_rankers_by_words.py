"""Rankers by words are tuned on dev topics; on registered test topics their runs are refused as any other system's."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

import rankeval as rk
from rankeval.errors import GuardRefusal
from rankeval.text import BM25, VectorSpace


@pytest.fixture(scope="module")
def collection():
    """Return documents, 80 queries of two words each, and judgments that follow from other words."""
    rng = np.random.default_rng(3)
    words = np.array([f"w{number}" for number in range(60)])
    docs = {f"d{number}": " ".join(rng.choice(words, 25)) for number in range(400)}
    queries = {f"q{number}": " ".join(rng.choice(words, 2)) for number in range(80)}
    judged = {qid: rng.choice(list(docs), 20, replace=False) for qid in queries}
    qrels = {qid: {str(docid): int(rng.integers(0, 3)) for docid in docids} for qid, docids in judged.items()}
    return docs, queries, qrels


def part(texts, first, last):
    return {qid: texts[qid] for qid in list(texts)[first:last]}


def tune(ranker, grid, docs, queries, qrels):
    """Return the parameters with the largest mean: scikit-learn's grid and clone, and `evaluate`."""

    def value(options):
        run = clone(ranker).set_params(**options).fit(docs).search(queries)
        return rk.evaluate(qrels, run, measures=["AP"]).mean()["AP"]

    return max(ParameterGrid(grid), key=value)


@pytest.mark.parametrize(
    ("ranker", "grid"),
    [
        (VectorSpace(), {"scheme": ["ltc.ltc", "Lnu.ltc"], "slope": [0.1, 0.3]}),
        (BM25(), {"k1": [0.5, 2], "b": [0, 1]}),
    ],
    ids=repr,
)
def test_weights_are_tuned_on_dev_topics_and_not_on_registered_ones(guard, collection, ranker, grid):
    """The loop runs on dev topics, is refused on the test topics of the same documents, and these are opened once."""
    docs, queries, qrels = collection
    test = guard.register("test", qrels=part(qrels, 40, 80), queries=part(queries, 40, 80))
    best = tune(ranker, grid, docs, part(queries, 0, 40), part(qrels, 0, 40))
    with pytest.raises(GuardRefusal):
        tune(ranker, grid, docs, part(queries, 40, 80), part(qrels, 40, 80))
    with pytest.raises(GuardRefusal):
        tune(ranker, grid, docs, queries, qrels)
    runs = {
        "untuned": ranker.fit(docs).search(part(queries, 40, 80)),
        "tuned": clone(ranker).set_params(**best).fit(docs).search(part(queries, 40, 80)),
    }
    plan = guard.freeze(test, systems=runs, baseline="untuned", measure="AP", n_resamples=99)
    assert len(guard.open(plan, test).table) == 1
