"""No hint leads to a measure that gives another number than the tool that spells it so."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.metrics import ndcg_score, roc_auc_score
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput, UnknownName

TOOLS = {
    "recommenders, RecBole, Cornac, LensKit": {
        "HR@5": "Success@5", "hr@10": "Success@10", "hr_10": "Success@10", "HR": "Success", "Hit@10": "Success@10",
        "hit@k": "Success@10", "HitRatio@20": "Success@20", "hit_ratio@5": "Success@5", "hit_rate_at_10": "Success@10",
        "Hits@3": "Success@3", "rec@5": "R@5", "prec@5": "P@5", "f1_score@5": "F@5",
        "mapk@10": "AP(normalizer='min')@10",
        "apk@10": "AP(normalizer='min')@10",
    },
    "torchmetrics": {
        "RetrievalHitRate": "Success", "RetrievalHitRate(top_k=5)": "Success@5", "RetrievalAUROC": "PairAccuracy",
        "RetrievalNormalizedDCG(top_k=10)": "nDCG@10", "retrieval_normalized_dcg": "nDCG", "RetrievalMRR": "RR",
        "RetrievalMAP(top_k=7)": "AP(normalizer='hits')@7", "RetrievalPrecision": "P",
        "RetrievalRecall(top_k=3)": "R@3",
        "RetrievalRPrecision": "Rprec",
    },
    "scikit-learn": {
        "roc_auc": "PairAccuracy", "roc_auc_score": "PairAccuracy", "ndcg_score": "nDCG", "dcg_score": "DCG",
    },
    "CatBoost": {
        "QueryAUC": "PairAccuracy", "NDCG:top=10": "nDCG@10", "NDCG:top=10;type=Base": "nDCG@10",
        "NDCG:top=5;type=Exp": "nDCG(gain='exp')@5", "NDCG:type=Exp;top=5": "nDCG(gain='exp')@5",
        "PrecisionAt:top=5": "P@5", "RecallAt:top=10": "R@10", "MAP:top=10": "AP(normalizer='min')@10",
        "MRR:top=10": "RR@10", "DCG:top=10;type=Exp": "DCG(gain='exp')@10",
    },
    "LightGBM, XGBoost": {
        "auc": "PairAccuracy", "pre@10": "P@10", "mean_average_precision@5": "AP(normalizer='min')@5",
        "eval_ndcg@10": "nDCG@10", "valid_ndcg@5": "nDCG@5",
    },
    "MTEB, BEIR, sentence-transformers": {
        "ndcg_at_10": "nDCG@10", "map_at_100": "AP@100", "recall_at_5": "R@5", "precision_at_1": "P@1",
        "mrr_at_10": "RR@10", "hit_rate_at_5": "Success@5", "accuracy_at_1": "Success@1", "accuracy@1": "Success@1",
        "Accuracy@3": "Success@3", "top_k_accuracy@5": "Success@5", "cosine_accuracy@1": "Success@1",
        "cos_sim-Accuracy@1": "Success@1", "dot_ndcg@10": "nDCG@10", "recall_cap@10": "RelP@10",
        "R_cap@100": "RelP@100",
        "recall_cap_at_10": "RelP@10", "acc@20": "Success@20",
    },
    "Elasticsearch, TF-Ranking": {
        "mean_reciprocal_rank": "RR", "expected_reciprocal_rank": "ERR", "NDCGMetric": "nDCG(gain='exp')",
        "metric/ndcg_10": "nDCG@10", "MeanAveragePrecisionMetric": "AP", "HitsMetric": "Success",
    },
    "spellings": {
        "AUC": "PairAccuracy", "ROC_AUC": "PairAccuracy", "roc-auc": "PairAccuracy", "ROC AUC": "PairAccuracy",
        "AUROC": "PairAccuracy", "uAUC": "PairAccuracy", "ndcg10": "nDCG@10", "ndcg@k": "nDCG@10", "NDCG-10": "nDCG@10",
        "precision at 5": "P@5", "MAP@k": "AP@10",
    },
}  # fmt: skip
ACCURACY = "Accuracy(collection_size=...)", "PairAccuracy@3"
"""What an Accuracy with a cut-off may be besides."""


def hinted(name):
    """Return the measures in quotes that the refusal of a name leads to."""
    with pytest.raises(InvalidInput) as caught:
        rk.measure(name)
    meant = re.split("did you mean |needs ", str(caught.value))[1]
    return [one for _, one in re.findall(r"(['\"])((?:[^'\"]|'(?=\w+'\)))+?'?\)?(?:@\d+)?)\1", meant)]


@each_row("name, expected", [pair for names in TOOLS.values() for pair in names.items()])
def test_names_of_other_tools_lead_to_their_measure(name, expected):
    """By the only measure that is named, or behind the one that lacks a parameter."""
    assert [one for one in hinted(name) if one not in ACCURACY] == [expected]


@each_row(
    "name, expected",
    [
        ("ndcg-l1", "nDCG"),
        ("ndcg-l3", "nDCG(gain={1: 0, 2: 0})"),
        ("ndcg@10-l4", "nDCG(gain={1: 0, 2: 0, 3: 0})@10"),
        ("dcg-l3@5", "DCG(gain={1: 0, 2: 0})@5"),
        ("map@100-l2", "AP(rel=2)@100"),
        ("hits@10-l3", "NumRelRet(rel=3)@10"),
        ("mrr-l2", "RR(rel=2)"),
    ],
)
def test_the_lowest_grade_of_ranx(name, expected):
    """All grades below it gain nothing."""
    with pytest.raises(InvalidInput, match=re.escape(repr(expected))):
        rk.measure(name)


def test_exponential_gains_have_no_lowest_grade():
    """A map of gains would be of linear ones."""
    with pytest.raises(UnknownName) as caught:
        rk.measure("ndcg_burges@10-l3")
    assert caught.value.remedy == "do so in the judgments, and write \"nDCG(gain='exp')@10\""


@each_row("name, expected", [("ndcg@10-", "nDCG@10"), ("map-", "AP"), ("pre@5-", "P@5"), ("map@3-", "AP@3")])
def test_the_minus_of_xgboost(name, expected):
    """It is a rule of the convention here."""
    with pytest.raises(UnknownName) as caught:
        rk.measure(name)
    assert caught.value.remedy == f"write {expected!r} with convention='xgboost' and no_relevant='zero'"


@each_row("name", ["GAUC", "RBO@10", "ERR:top=10", "MedianRank", "gini@10", "Hole@10", "cv_recall@5", "Coverage@10"])
def test_other_measures_have_no_hint(name):
    """Names that look alike are of other measures."""
    with pytest.raises(UnknownName) as caught:
        rk.measure(name)
    assert "did you mean" not in str(caught.value)


def _capped(label):
    return label[:3].sum() / min(3, label.sum())


def _kaggle(label):
    return sum(label[: at + 1].sum() / (at + 1) for at in range(3) if label[at]) / min(3, label.sum())


SCORE = np.arange(8, 0, -1.0)
FORMULAS = {
    "HR@3": lambda label: float(label[:3].any()),
    "accuracy@1": lambda label: float(label[0]),
    "recall_cap@3": _capped,
    "mapk@3": _kaggle,
    "MAP:top=3": _kaggle,
    "AUC": lambda label: roc_auc_score(label, SCORE),
    "ndcg_score": lambda label: ndcg_score([label], [SCORE]),
}


@each_row("name", FORMULAS)
def test_the_hint_has_the_value_of_the_tool(name):
    """By the tool itself, or its formula."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (20, 8))
    labels[:, 5], labels[:, 6] = 1, 0
    values = [FORMULAS[name](label) for label in labels]
    wanted = hinted(name)[-1]
    ev = rk.evaluate(labels.ravel(), np.tile(SCORE, 20), qid=np.repeat(np.arange(20), 8), measures=wanted)
    assert ev.per_query[wanted].tolist() == pytest.approx(values)
