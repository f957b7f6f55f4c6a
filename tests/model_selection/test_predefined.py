"""Folds that others have fixed."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import rankeval as rk
from rankeval.errors import InvalidInput, QueryIdError, UnknownName


@pytest.fixture
def letor(tmp_path):
    """Write five folds of ten queries, rotated as LETOR's are: 3 parts to train on, 1 to validate, 1 to test."""
    rng = np.random.default_rng(0)
    parts = [range(start, start + 2) for start in range(1, 11, 2)]
    lines = {
        query: "".join(f"{row % 2} qid:{query} 1:{rng.normal():.3f} 2:{row}\n" for row in range(3))
        for part in parts
        for query in part
    }
    for fold in range(5):
        order = [parts[(fold + step) % 5] for step in range(5)]
        folder = tmp_path / "letor" / f"Fold{fold + 1}"
        folder.mkdir(parents=True)
        for name, chosen in (("train", order[:3]), ("vali", order[3:4]), ("test", order[4:])):
            (folder / f"{name}.txt").write_text("".join(lines[query] for part in chosen for query in part))
    return tmp_path / "letor"


def whole(folder):
    parts = rk.datasets.load_letor_parts(folder / "Fold1").values()
    return (np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y", "qid"))


def test_letors_folds_are_found_by_their_ids(letor):
    """Rows in another order change nothing; the part for validation is trained on, unless it is left out."""
    X, y, qid = whole(letor)
    order = np.random.default_rng(1).permutation(len(y))
    X, y, qid = X[order], y[order], qid[order]
    cv = rk.PredefinedFolds.read(letor)
    splits = list(cv.split(X, qid=qid))
    assert cv.get_n_splits() == len(splits) == 5
    assert [sorted(set(qid[test])) for _, test in splits] == [[9, 10], [1, 2], [3, 4], [5, 6], [7, 8]]
    assert all(len(set(qid[train])) == 8 for train, _ in splits)
    without = rk.PredefinedFolds.read(letor, train=["train"], test=["vali"])
    train, test = next(without.split(X, qid=qid))
    assert sorted(set(qid[train])) == [1, 2, 3, 4, 5, 6]
    assert sorted(set(qid[test])) == [7, 8]


def test_folds_print_as_they_are_made():
    cv = rk.PredefinedFolds([(["b", "a"], ["c"]), ([1], np.array([2, 3]))])
    assert repr(cv) == "PredefinedFolds([(['a', 'b'], ['c']), (['1'], ['2', '3'])])"
    again = eval(repr(cv), {"PredefinedFolds": rk.PredefinedFolds})  # noqa: S307 - our own text
    assert again.splitter.folds == cv.splitter.folds


def test_cross_validation_takes_them(letor):
    X, y, qid = whole(letor)
    cv = rk.PredefinedFolds.read(letor)
    result = rk.cross_validate(Ridge(), X, y, qid=qid, cv=cv, measures="AP")
    assert result.evaluation.n_queries == 10
    assert result.folds["n_queries"].tolist() == [2] * 5
    spelled = rk.cross_validate(Ridge(), X, y, qid=qid.astype(str), cv=cv, measures="AP")
    assert spelled.folds["AP"].tolist() == result.folds["AP"].tolist()


def test_bad_folds_are_errors(letor, tmp_path):
    X, _, qid = whole(letor)
    cv = rk.PredefinedFolds.read(letor)
    with pytest.raises(QueryIdError, match=r"fold 0 has 2 queries that the data lacks, such as '10'"):
        list(cv.split(X[qid < 9], qid=qid[qid < 9]))
    with pytest.raises(InvalidInput, match="no folders Fold1"):
        rk.PredefinedFolds.read(tmp_path)
    with pytest.raises(UnknownName, match="vali"):
        rk.PredefinedFolds.read(letor, train=["valid"])
    for folds, words in (([], "empty"), ([([1], [])], "no test"), ([([1, 2], [2])], "trains and tests on query '2'")):
        with pytest.raises(InvalidInput, match=words):
            rk.PredefinedFolds(folds)


@pytest.mark.shared
def test_cranfields_folds_hold_each_query_out_once(shared):
    X, y, qid = whole(shared / "letor_cranfield")
    result = rk.cross_validate(
        Ridge(), X, y, qid=qid, cv=rk.PredefinedFolds.read(shared / "letor_cranfield"), measures="nDCG@10"
    )
    assert result.folds["n_queries"].tolist() == [45] * 5
    assert result.evaluation.n_queries == 225
