"""How rarely chance looks like misuse, and which misuse is known to go unseen."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import rankeval as rk
from rankeval.contamination import forget
from rankeval.contamination.evidence import IDENTIFIABLE_BITS, REFUSAL_CHANCE, chance_of_labels, evidence_bits
from rankeval.contamination.fingerprint import fingerprint


@pytest.mark.parametrize("docs", [3, 40])
@pytest.mark.parametrize("kind", ["real", "counts", "flags"])
def test_no_identifiable_query_is_met_again_in_other_data_by_accident(kind, docs):
    def features(seed):
        rng = np.random.default_rng(seed)
        values = {
            "real": rng.normal,
            "counts": lambda size: rng.poisson(1, size),
            "flags": lambda size: rng.random(size) < 0.1,
        }
        return np.asarray(values[kind](size=(2000 * docs, 12)), dtype=float)

    qid = np.arange(2000 * docs) // docs
    X = features(1)
    known, other = fingerprint(X, None, qid), fingerprint(features(2), None, qid)
    told = evidence_bits(known, X)["features"] >= IDENTIFIABLE_BITS
    met = np.isin(known.queries["features"], other.queries["features"])
    assert not (told & met).any()
    if (kind, docs) == ("flags", 3):
        assert met.any(), "queries of three rows of flags do come again: they must not be taken as identifiable"


def test_labels_refuse_no_other_data_of_the_same_population_in_two_thousand():
    for seed in range(400):
        rng = np.random.default_rng(seed)
        docs, n_queries, grades = rng.integers(3, 12), rng.integers(8, 60), rng.dirichlet(np.ones(3))
        qid = np.arange(n_queries * docs) // docs

        def labels(rng=rng, grades=grades, qid=qid):
            return fingerprint(None, rng.choice(3, p=grades, size=len(qid)), qid).queries["labels"]

        registered = labels()
        for _ in range(5):
            part = labels()[: rng.integers(1, n_queries + 1)]
            assert chance_of_labels(registered, part) >= REFUSAL_CHANCE


@pytest.mark.parametrize("seed", range(20))
def test_labels_of_a_letor_collection_are_told_from_chance(seed):
    rng = np.random.default_rng(seed)
    y, qid = rng.choice(3, p=[0.8, 0.15, 0.05], size=45 * 40), np.arange(45 * 40) // 40
    labels = fingerprint(None, y, qid).queries["labels"]
    assert chance_of_labels(labels, labels) < REFUSAL_CHANCE


def test_rescaled_features_of_a_part_of_the_test_go_unseen(tmp_path, monkeypatch):
    """A stated limit: the exact content is gone, and the labels of a part prove nothing."""
    data = rk.datasets.make_ranking(40, 12, 5, rng=11)
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger.db"))
    forget()
    rk.Guard("project").register("test", data)
    part = data.qid <= 10
    rk.QueryRanker(Ridge()).fit(3 * data.X[part] + 1, data.y[part], qid=data.qid[part])
    forget()
