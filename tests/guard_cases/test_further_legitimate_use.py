"""Further legitimate use beside a registered test collection: nothing is refused, and nothing is warned about."""

import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler

import rankeval as rk
from rankeval.contamination import forget
from rankeval.errors import GuardRefusal, RankevalWarning

N_QUERIES = 45


def split(seed=21):
    """Split one population: 45 queries are the test, 135 are for development."""
    whole = rk.datasets.make_ranking(180, 12, 5, rng=seed)
    return whole.take(whole.qid > 180 - N_QUERIES), whole.take(whole.qid <= 180 - N_QUERIES)


@pytest.fixture
def guard(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger.db"))
    forget()
    guard = rk.Guard("project")
    guard.register("test", split()[0])
    yield guard
    forget()


def opened(guard):
    """Open two systems and return the test data with the scores of one."""
    test, _ = split()
    systems = {"first": test.X[:, 0], "both": test.X[:, 0] + test.X[:, 1]}
    guard.open(guard.freeze(guard.register("test", test), systems=systems, baseline="first"))
    return test, systems["both"]


# Work on development data -------------------------------------------------------------------------------------------


def evaluate_dev_under_the_ids_of_the_test(_guard):
    test, dev = split()
    rows = slice(0, len(test))
    rk.evaluate(dev.y[rows], dev.X[rows, 0], qid=test.qid)


def evaluate_many_dev_splits_of_the_size_of_the_test(_guard):
    _, dev = split()
    rng = np.random.default_rng(0)
    for _ in range(50):
        part = np.isin(dev.qid, rng.choice(np.unique(dev.qid), N_QUERIES, replace=False))
        rk.evaluate(dev.y[part], dev.X[part, 0], qid=dev.qid[part])


def cross_val_score_on_dev(_guard):
    _, dev = split()
    cv = [(np.flatnonzero(dev.qid % 3 != 0), np.flatnonzero(dev.qid % 3 == 0))]
    scorer = rk.make_scorer("nDCG@10", qid=pd.Series(dev.qid))
    assert np.isfinite(cross_val_score(Ridge(), dev.X, pd.Series(dev.y), scoring=scorer, cv=cv)).all()


# Data that looks alike ----------------------------------------------------------------------------------------------


def other_data_from_the_same_maker(_guard):
    for seed in range(30):
        other = rk.datasets.make_ranking(N_QUERIES, 12, 5, rng=seed)
        rk.evaluate(other.y, other.X[:, 0], qid=other.qid, docid=other.docid)


def collection_whose_queries_all_look_alike(guard):
    """Three relevant documents of ten in every query: labels alone prove nothing."""
    y, qid = np.tile([1] * 3 + [0] * 7, 60), np.arange(600) // 10
    rng = np.random.default_rng(0)
    guard.register("alike", rng.normal(size=(600, 4)), y, qid=qid)
    rk.evaluate(y[:500], rng.normal(size=500), qid=qid[:500])
    rk.cross_validate(Ridge(), rng.normal(size=(600, 4)), y, qid=qid, measures="AP", cv=2)


def collection_in_which_all_documents_are_judged_for_all_queries(guard):
    rng = np.random.default_rng(3)

    def qrels():
        return {f"q{q}": {f"d{d}": int(rng.random() < 0.5) for d in range(60)} for q in range(30)}

    with pytest.warns(RankevalWarning, match="RG001"):  # documents that all queries share tell none from another
        guard.register("whole", qrels=qrels())
    other = qrels()
    rk.evaluate(other, {q: dict.fromkeys(docs, 1.0) for q, docs in other.items()})


# Reproduction of what was opened ------------------------------------------------------------------------------------


def an_opened_model_scored_again(guard):
    test, dev = split()
    models = {"small": Ridge(1).fit(dev.X, dev.y), "large": Ridge(1000).fit(dev.X, dev.y)}
    guard.open(guard.freeze(guard.register("test", test), systems=models))
    rk.make_scorer("AP")(models["large"], test.X, test.y, qid=test.qid)


def the_same_plan_again_and_again(guard):
    for _ in range(3):
        opened(guard)
    assert len(guard.looks("test")) == 1


def transform_features(_guard):
    test, _ = split()
    StandardScaler().fit(test.X)


LEGITIMATE = [
    evaluate_dev_under_the_ids_of_the_test,
    evaluate_many_dev_splits_of_the_size_of_the_test,
    cross_val_score_on_dev,
    other_data_from_the_same_maker,
    collection_whose_queries_all_look_alike,
    collection_in_which_all_documents_are_judged_for_all_queries,
    an_opened_model_scored_again,
    the_same_plan_again_and_again,
    transform_features,
]


@pytest.mark.parametrize("use", LEGITIMATE)
def test_legitimate_use_is_not_refused(guard, use):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RankevalWarning)
        use(guard)


def test_another_ranking_of_an_opened_collection_is_refused(guard):
    test, scores = opened(guard)
    scores = scores.copy()
    scores[0] += 100
    with pytest.raises(GuardRefusal):
        rk.evaluate(test.y, scores, qid=test.qid)


def test_nothing_is_refused_where_the_ledger_is_switched_off(guard, monkeypatch):
    test, _ = split()
    monkeypatch.setenv("RANKEVAL_LEDGER", "off")
    rk.evaluate(test.y, test.X[:, 0], qid=test.qid)
    rk.QueryRanker(Ridge()).fit(test.X, test.y, qid=test.qid)
    assert guard.status(test.X, test.y, qid=test.qid).why.endswith("switched off in this process")


def test_labels_that_may_be_the_tests_by_chance_are_warned_about(guard):
    y, qid = np.tile([1] * 3 + [0] * 7, 60), np.arange(600) // 10
    guard.register("alike", np.random.default_rng(0).normal(size=(600, 4)), y, qid=qid)
    with pytest.warns(RankevalWarning, match="which may be chance.*too little to refuse"):
        rk.evaluate(y, np.random.default_rng(1).normal(size=600), qid=qid)


def test_what_was_opened_in_one_process_is_accepted_in_the_next(guard, tmp_path):
    opened(guard)
    program = """
import sys
sys.path.insert(0, sys.argv[1])
import rankeval as rk
whole = rk.datasets.make_ranking(180, 12, 5, rng=21)
test = whole.take(whole.qid > 135)
print(rk.evaluate(test.y, test.X[:, 0] + test.X[:, 1], qid=test.qid, measures="AP").n_queries)
try:
    rk.evaluate(test.y, test.X[:, 2], qid=test.qid)
except rk.errors.GuardRefusal:
    print("refused")
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["45", "refused"]


@pytest.mark.shared
@pytest.mark.parametrize("fold", [2, 3, 4, 5])
def test_another_fold_of_a_real_benchmark_is_free_and_its_own_test_is_not(guard, shared, fold):
    """The folds share training queries, so test folds are what differs."""
    folder = shared / "letor_cranfield"
    test = rk.datasets.load_letor(folder / "Fold1" / "test.txt.gz")
    other = rk.datasets.load_letor(folder / f"Fold{fold}" / "test.txt.gz")
    guard.register("fold 1", test)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RankevalWarning)
        rk.evaluate(other.y, np.arange(len(other)), qid=other.qid)
        rk.QueryRanker(Ridge()).fit(other.X, other.y, qid=other.qid)
    order = np.random.default_rng(0).permutation(len(test))
    with pytest.raises(GuardRefusal, match="labels are those of 45"):
        rk.evaluate(test.y[order], np.arange(len(test)), qid=np.array([f"x{q}" for q in test.qid])[order])
