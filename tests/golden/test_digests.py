"""Digests of evaluations, plans and splits are pinned: runs of last year are held against those of next year by them.

They change only knowingly: until issue 9 is done by naming the change in the commit, afterwards by a new version of the
scheme beside the old one. ``python tests/golden/test_digests.py`` prints what they are now.
"""

from __future__ import annotations

import numpy as np
import pytest

import rankeval as rk
from rankeval.collection.convention import Convention
from rankeval.guard.plan import Plan

QRELS = {"a": {"d1": 1, "d2": 0, "d3": 2}, "b": {"d1": 1, "é": -1}, "c": {"d4": 0}}
RUN = {"a": {"d1": 3.0, "d9": 2.0, "d3": 2.0}, "b": {"é": 1.0, "d1": 1.0}, "c": {"d4": 1.0}}
Y, SCORE, QID = [0, 1, 2, 0, 1, 3], [0.5, 0.5, -1.0, 2.0, 2.0, 2.0], [7, 7, 7, 3, 3, 3]


def many_rows():
    rng = np.random.default_rng(0)
    return {"truth": rng.integers(0, 4, 300_000), "ranking": rng.random(300_000), "qid": np.arange(300_000) // 100}


CASES = {
    "rows": lambda: {"truth": Y, "ranking": SCORE, "qid": QID},
    "rows with ids of texts": lambda: {"truth": Y, "ranking": SCORE, "qid": [f"requête {one}" for one in QID]},
    "rows with ids of floats": lambda: {"truth": Y, "ranking": SCORE, "qid": [one / 2 for one in QID]},
    "rows with labels of floats": lambda: {"truth": [one / 2 for one in Y], "ranking": SCORE, "qid": QID},
    "rows with far labels": lambda: {"truth": [100 * one for one in Y], "ranking": SCORE, "qid": QID},
    "rows with 100 labels": lambda: {"truth": list(range(100)), "ranking": [0.5] * 99 + [1], "qid": [1] * 100},
    "rows with 129 labels": lambda: {"truth": list(range(129)), "ranking": [0.5] * 128 + [1], "qid": [1] * 129},
    "rows by docid": lambda: {"truth": Y, "ranking": SCORE, "qid": QID, "docid": [1, 2, 3, 1, 2, 3], "ties": "docid"},
    "rows of more than one chunk": many_rows,
    "a collection": lambda: {"truth": QRELS, "ranking": RUN},
    "a collection by docid": lambda: {"truth": QRELS, "ranking": RUN, "convention": "trec_eval-9.0.8"},
    "a collection of numbers": lambda: {"truth": {1: {7: 1, 8: 0}}, "ranking": {1: {8: 1.0, 9: 0.5}}},
    "a collection by aspect": lambda: {
        "truth": rk.Qrels(["q"] * 3, ["d", "d", "e"], [1, 0, 2], aspect=["1", "2", "1"]),
        "ranking": {"q": {"d": 1.0, "e": 1.0}},
        "measures": ["AP", "alpha_nDCG@3"],
    },
}

DIGESTS = {
    "rows with 100 labels": (
        "7da610e0beab77f628fc1491ef2563fa1807a5fe30d6e4bc92e5a2985e122cfc",
        "6bbd0ea305eebb40807722819606e63724d3115e3770072dcc90f0718a318b83",
    ),
    "rows with 129 labels": (
        "bf55fbe7171afeec32bd2c5281bd66ad956e4a699e79906e3e8b6044442a5dd6",
        "58d0b3d86a3cd4734e258e02f9cc0a254784e717179ffde885ab8a36e3396135",
    ),
    "rows": (
        "f65d371e8800d75d51283efb91546ecffa7a4195588190f6a99dd4882e00d106",
        "d0db67760b84a4f6f1ff469249adacfd4cedc84a1a762998c7647f478686b2a2",
    ),
    "rows with ids of texts": (
        "ee3156ac83871b7b19ad92c84fdac0951b37fe0de026777709e537a281171804",
        "aafd7b724897fa1656e69419a9af083383af61b237fa56f580421c4d70acdc3b",
    ),
    "rows with ids of floats": (
        "400a0bf73a566a0d1fea9f65e692d72c74d688be4d8227b219b237216b82eac8",
        "038b2949b400f2eed5b7b9a4721533b97dcd33557cbb13fb2ca5d7ec297c4cd5",
    ),
    "rows with labels of floats": (
        "f6618b8105c74203d210c4ae4affbdf6fae3cd1a2b4778f7447afe21773e30b4",
        "132ea3b5d714d578b8edaa3e2796188674b03a3f29c38dd6e984e66bfc25f5b4",
    ),
    "rows with far labels": (
        "f1e4aa4ac3474c6267a1f08ab3f67c01628894d16a6f14bcc13a97bde7a670a7",
        "bd64a65070a99fff09aedea2d47a8c2a26f77308acaaaa41660e47e89ca88da1",
    ),
    "rows by docid": (
        "f65d371e8800d75d51283efb91546ecffa7a4195588190f6a99dd4882e00d106",
        "494706677ed809dab72822a41b7d0f7f8089d730e7cd76dddd97279a330c6e48",
    ),
    "rows of more than one chunk": (
        "37fd9c4f02c75fb381b90ffcd9e224b99f1078f93f36a83a0c74705c3faa05fc",
        "bce365b5dec4489f639e6f588e6442c394280d12eda7e29ec9c605da0ecbfe6b",
    ),
    "a collection": (
        "b7940e5927a3382d96f72be90cb38a30658f9b9195c51ac1b09f5ab4283add81",
        "5827e9d0e19e9d8fe7aa2a817a2aa9b0d62c44954f66a152aed5797f040648ea",
    ),
    "a collection by docid": (
        "b7940e5927a3382d96f72be90cb38a30658f9b9195c51ac1b09f5ab4283add81",
        "feccfdd4ee20fb61f15e7676dbb6d9c9b86ba4ef6e85fe761ac59e6feeff4ae8",
    ),
    "a collection of numbers": (
        "66bf745d393b67b4c6d70f7f68fb2bb772b6b8416cfeefc8a4724680e5372a0c",
        "c5f5f28c739eb1fa647a3118189175cc5c9ad9bba28c2e35f6c635c2e036cd95",
    ),
    "a collection by aspect": (
        "28df5eab27be37b0424c1dc77b260c4d941fc925b2b12269a7dc020b96236795",
        "bc3a8efa1722bd3bcbdea122ec4f5afc36f14fb55817161b50bbe6c005dce450",
    ),
}


def digests(case):
    evaluation = rk.evaluate(**{"measures": ["AP", "nDCG@10"], **CASES[case]()})
    return evaluation.judgments_digest, evaluation.ranking_digest


@pytest.mark.parametrize("n_labels", [3, 100, 128, 129, 140])
def test_a_ranking_has_one_digest_in_whatever_order_its_rows_stand(n_labels):
    """However many labels there are, and whether the greatest of them were retrieved or not."""
    qrels = {"q": {f"d{label:03}": label for label in range(n_labels)}}
    listed = [f"d{label:03}" for label in range(0, n_labels - 2, 2)]
    orders = (listed, listed[::-1], listed[1::2] + listed[::2])
    found = {
        rk.evaluate(qrels, {"q": {d: 200.0 - int(d[1:]) // 4 for d in order}}, measures="AP").ranking_digest
        for order in orders
    }
    assert len(found) == 1


@pytest.mark.parametrize("case", CASES)
def test_the_digests_of_judgments_and_of_rankings(case):
    assert digests(case) == DIGESTS[case]


def plan_id():
    systems = (("b", "2" * 64), ("a", "1" * 64))
    return Plan("p", "c", "d" * 64, systems, "a", "nDCG@10", ("AP",), Convention(), 0.05, 99, 0).id


def test_a_plan_has_the_id_that_its_openings_name():
    """The convention's card is part of a plan: a rule that is added to it gives new ids."""
    assert plan_id() == "27dbee884d4d331c8c72"


def held_out(salt):
    data = rk.RankingData(np.zeros((40, 1)), np.zeros(40), np.arange(40))
    return sorted(set(rk.dev_test_split(data, test_size=0.25, salt=salt).test.qid.tolist()))


def test_the_same_queries_are_held_out_by_every_version():
    """By the hash of their ids: a test set that was cut off once stays cut off."""
    assert held_out("") == [1, 4, 6, 8, 11, 12, 14, 17, 22, 34]
    assert held_out("salt") == [0, 1, 4, 5, 6, 9, 13, 16, 19, 29, 30, 33, 37]


if __name__ == "__main__":
    print({case: digests(case) for case in CASES}, plan_id(), held_out(""), held_out("salt"), sep="\n")  # noqa: T201
