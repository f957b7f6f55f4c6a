"""promote(groups=): the claim and the floors are tested over groups, and the record says so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput
from rankeval_mlflow.promotion.promoting import promote

CONVERSATIONS = pd.Series(np.arange(200) // 5, name="conversation")


def decision_of(client, run_id, folder):
    path = client.download_artifacts(run_id, "rankeval/promotion/decision.json", str(folder))
    return json.loads(Path(path).read_text("utf-8"))


def test_the_numbers_are_those_of_compare_over_groups(ranker, client, tmp_path):
    done = promote("ranker", ranker.add(0.1), measure="nDCG@10", groups=CONVERSATIONS)
    old, new = (rkm.load_evaluation(f"models:/ranker/{version}", "test") for version in "12")
    same = rk.compare({"ranker v1": old, "ranker v2": new}, baseline="ranker v1", claim="better", alpha=0.05 / 20,
                      correction="none", groups=CONVERSATIONS)  # fmt: skip
    pd.testing.assert_frame_equal(done.comparison.table, same.table)
    assert "on 40 conversations of 200 queries" in done.reason
    assert decision_of(client, done.run_id, tmp_path)["rule"]["groups"] == "40 conversations of 200 queries"


@pytest.mark.further
def test_other_groups_are_another_question(ranker, client, tmp_path):
    """The same groups under other names have the recorded answer, for free."""
    candidate = ranker.add(0.0)
    first = promote("ranker", candidate, measure="nDCG@10")
    assert "groups" not in decision_of(client, first.run_id, tmp_path)["rule"]
    asked = [CONVERSATIONS, CONVERSATIONS.map("c{}".format), CONVERSATIONS // 2]
    assert [promote("ranker", candidate, measure="nDCG@10", groups=one).decision.is_new for one in asked] == [
        True, False, True,
    ]  # fmt: skip


def test_floors_are_tested_over_groups(ranker):
    kind = pd.Series(np.where(CONVERSATIONS < 20, "head", "tail"), name="kind")
    done = promote("ranker", ranker.add(0.1), measure="nDCG@10", groups=CONVERSATIONS, slices=kind, floors=0.5)
    assert done.floors["n_queries"].tolist() == [20, 20]
    few = pd.Series(np.where(CONVERSATIONS < 4, "few", "many"))
    with pytest.raises(InvalidInput, match=r"need 5 conversations or more, found 'few' \(4\)"):
        promote("ranker", ranker.add(0.1), measure="nDCG@10", groups=CONVERSATIONS, slices=few, floors=0.5)


def test_a_logged_comparison_has_the_groups_as_a_parameter(ranker, client):
    ranker.add(0.1)
    systems = {version: rkm.load_evaluation(f"models:/ranker/{version}", "test") for version in "12"}
    runs = [rkm.log(rk.compare(systems, **options)) for options in ({"groups": CONVERSATIONS}, {})]
    params = [client.get_run(run.run_id).data.params for run in runs]
    assert (params[0]["groups"], params[0]["unit"]) == ("40 conversations of 200 queries", "conversation")
    assert "groups" not in params[1]
    back = rkm.load_comparison(runs[0])
    assert "40 conversations of 200 queries" in back.headline
    with pytest.raises(InvalidInput, match="scores of every conversation are needed"):
        _ = back.effects


def test_groups_do_not_go_with_a_gate():
    """It has terms of its own."""
    with pytest.raises(InvalidInput, match="a gate counts its decisions") as caught:
        promote("ranker", "1", gate="gate", groups=CONVERSATIONS)
    assert caught.value.argument == "groups"


def test_query_ids_as_groups_are_refused(ranker):
    with pytest.raises(InvalidInput, match="has a group of its own"):
        promote("ranker", ranker.add(0.1), measure="nDCG@10", groups=np.arange(200))
    assert ranker.holder() == "1"


def test_weighted_evaluations_decide_by_their_weighted_means(client, ranker, evaluated, scores_of):
    """The path is that of compare; the weights come back from the store."""
    weights = np.exp(0.5 * np.random.default_rng(2).standard_normal(200))
    versions = []
    for gain in (None, 0.15):
        made = client.create_model_version("ranker", "s3://models/ranker")
        evaluation = replace(evaluated(scores_of(gain, seed=3)), weights=weights)
        rkm.log(evaluation, role="test", model_version=made)
        versions.append(str(made.version))
    ranker.put(versions[0])
    done = promote("ranker", versions[1], measure="nDCG@10")
    old, new = (rkm.load_evaluation(f"models:/ranker/{version}", "test") for version in versions)
    names = [f"ranker v{version}" for version in versions]
    same = rk.compare(dict(zip(names, (old, new), strict=True)), baseline=names[0], claim="better", alpha=0.05 / 20,
                      correction="none")  # fmt: skip
    pd.testing.assert_frame_equal(done.comparison.table, same.table)
    assert old.weights.tolist() == weights.tolist()
    assert "weighted, effective number" in done.reason
