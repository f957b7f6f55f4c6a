"""Digests of evaluations, plans and splits are pinned: runs of last year are held against those of next year by them.

They change only knowingly: until issue 9 is done by naming the change in the commit, afterwards by a new version of the
scheme beside the old one. ``python tests/golden/test_digests.py`` prints what they are now.
"""

from __future__ import annotations

import numpy as np
from tables import each_row

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
        "9439cb31ee1a220e9f0b9ec3182fdbaec7901c80f6842d907f7384def54b1bd6",
    ),
    "rows with 129 labels": (
        "bf55fbe7171afeec32bd2c5281bd66ad956e4a699e79906e3e8b6044442a5dd6",
        "7d0ba045511b668c48f011e59b2169223252042152621ec549ba988e6a03e8ea",
    ),
    "rows": (
        "f65d371e8800d75d51283efb91546ecffa7a4195588190f6a99dd4882e00d106",
        "d981d693b587ec8f83f84e6b6be715949f52f9607954310d3884ba0197d67931",
    ),
    "rows with ids of texts": (
        "ee3156ac83871b7b19ad92c84fdac0951b37fe0de026777709e537a281171804",
        "c75f5af78962f0ecb13313b02b23409cf15f3aad97aa579f3d46ae68dd79254c",
    ),
    "rows with ids of floats": (
        "400a0bf73a566a0d1fea9f65e692d72c74d688be4d8227b219b237216b82eac8",
        "12934afe58d1604233f9b33a5df1972535abf01277009cc2574dd3de75ddfd32",
    ),
    "rows with labels of floats": (
        "f6618b8105c74203d210c4ae4affbdf6fae3cd1a2b4778f7447afe21773e30b4",
        "0f3b6730fc79baff3e846c15094c56f233257c889a9daa920610d00f9f95bc78",
    ),
    "rows with far labels": (
        "f1e4aa4ac3474c6267a1f08ab3f67c01628894d16a6f14bcc13a97bde7a670a7",
        "d33fbd7d58de84a8584634fc0e134598d787a52ffc904722f2b6dfcc5d47b407",
    ),
    "rows by docid": (
        "f65d371e8800d75d51283efb91546ecffa7a4195588190f6a99dd4882e00d106",
        "2c77b381f660857b61b7a7b72c01b6f9470763f82f3dafcc23db84f2e23f5f08",
    ),
    "rows of more than one chunk": (
        "37fd9c4f02c75fb381b90ffcd9e224b99f1078f93f36a83a0c74705c3faa05fc",
        "515c57b844cb8cb3e2b4d9eb20e6902862642ed05d9ffe5f4bcaf306ca878de4",
    ),
    "a collection": (
        "b7940e5927a3382d96f72be90cb38a30658f9b9195c51ac1b09f5ab4283add81",
        "7e3117d0dc2aba78c0dd4fe564fcc1cd60a5409f1472752b7a0b758ad309c9d3",
    ),
    "a collection by docid": (
        "b7940e5927a3382d96f72be90cb38a30658f9b9195c51ac1b09f5ab4283add81",
        "c8af45c0881df29befc1bd14298502d9979e74eb97d567f118ad15347b6bc043",
    ),
    "a collection of numbers": (
        "66bf745d393b67b4c6d70f7f68fb2bb772b6b8416cfeefc8a4724680e5372a0c",
        "c5f5f28c739eb1fa647a3118189175cc5c9ad9bba28c2e35f6c635c2e036cd95",
    ),
    "a collection by aspect": (
        "28df5eab27be37b0424c1dc77b260c4d941fc925b2b12269a7dc020b96236795",
        "8294a32eaf7d377d1cd99ff87ed30c83417871430bad5b9dfd1bf41b0458db82",
    ),
}


def digests(case):
    evaluation = rk.evaluate(**{"measures": ["AP", "nDCG@10"], **CASES[case]()})
    return evaluation.judgments_digest, evaluation.ranking_digest


@each_row("n_labels", [3, 100, 128, 129, 140])
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


@each_row("case", CASES)
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
