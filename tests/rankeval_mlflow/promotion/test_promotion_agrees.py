"""20 pairs of versions through MLflow: the alias moves where the pure decision, which was calibrated, says so."""

from __future__ import annotations

import numpy as np
import pytest
from circles import choose

import rankeval_mlflow as rkm
from rankeval_mlflow.promotion.deciding import Rule, decide

RULE = Rule("nDCG@10")


@pytest.mark.further
@pytest.mark.random
def test_pairs_through_mlflow_decide_as_the_pure_function(ranker, evaluated):
    """Half of them are equal, the others better by .05, with 200 queries and differences of standard deviation .20."""
    generator, decided, moved = np.random.default_rng(11), [], []
    n_pairs = choose(default=4, full=20)
    for pair in range(n_pairs):
        old = generator.uniform(0.3, 0.7, 200)
        new = old + generator.normal(0.05 * (pair % 2), 0.2, 200)
        holder, candidate = ranker.add(scores=old), ranker.add(scores=new)
        ranker.put(holder)
        decided.append(decide(evaluated(new), evaluated(old), RULE).accepted)
        done = rkm.promote("ranker", candidate, measure="nDCG@10")
        moved.append(done.moved)
        assert ranker.holder() == (candidate if done.moved else holder)
    assert moved == decided
    assert n_pairs / 4 <= sum(moved) <= n_pairs * 3 / 4, "both answers occur"
