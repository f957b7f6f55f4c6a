"""promote decides only by an evaluation that was logged for the version itself; loading may guess, the gate may not."""

from __future__ import annotations

import json

import mlflow
import numpy as np
import pytest

import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput

NOTHING = r"version 2 of ranker has no evaluation of role 'test' to decide by \(.*log one: rankeval_mlflow\.log"


def scores(gain):
    """Return scores of as many queries as those of version 1, above or below them by about so much."""
    rng = np.random.default_rng(0)
    return rng.uniform(0.3, 0.7, 200) + np.random.default_rng(2).normal(gain, 0.2, 200)


@pytest.mark.parametrize("spelling", ["01", "001", "\uff11", "models:/ranker/01", np.int64(1)])
def test_another_spelling_of_the_holder_is_the_holder(ranker, spelling):
    done = rkm.promote("ranker", spelling, measure="nDCG@10", claim="not_worse", margin=0.05)
    assert (done.outcome, done.version) == ("in place", "1")
    assert "rankeval.promotion.champion" not in ranker.tags("1")


@pytest.mark.usefixtures("ranker")
def test_the_run_that_made_a_version_says_nothing_of_it(client, evaluated):
    """It may hold the evaluation of another system."""
    with mlflow.start_run() as run:
        client.create_model_version("ranker", "s3://models/ranker", run_id=run.info.run_id)
        rkm.log(evaluated(scores(0.2)), role="test")
    with pytest.raises(InvalidInput, match=NOTHING):
        rkm.promote("ranker", 2, measure="nDCG@10", dry_run=True)
    assert rkm.load_evaluation("models:/ranker/2", "test") is not None


@pytest.mark.usefixtures("ranker")
def test_a_run_with_the_dev_evaluation_of_a_version_says_nothing_of_its_test(client, evaluated):
    version = client.create_model_version("ranker", "s3://models/ranker")
    with mlflow.start_run():
        rkm.log(evaluated(scores(-0.1)), role="dev", model_version=version)
        rkm.log(evaluated(scores(0.2)), role="test")
    with pytest.raises(InvalidInput, match=NOTHING):
        rkm.promote("ranker", version, measure="nDCG@10", dry_run=True)


@pytest.mark.usefixtures("ranker")
@pytest.mark.parametrize("role", ["test", "dev"])
def test_the_metrics_of_a_logged_model_count_only_for_their_role(client, evaluated, role):
    """The evaluation of another system in the same run was not logged for the model."""
    model = mlflow.initialize_logged_model("ranker")
    client.create_model_version("ranker", f"models:/{model.model_id}", model_id=model.model_id)
    with mlflow.start_run():
        rkm.log(evaluated(scores(0.1)), role=role, model_id=model.model_id)
        rkm.log(evaluated(scores(0.2)), role="dev" if role == "test" else "test", model_id="")
    if role == "test":
        assert rkm.promote("ranker", 2, measure="nDCG@10").moved
    else:
        with pytest.raises(InvalidInput, match=NOTHING):
            rkm.promote("ranker", 2, measure="nDCG@10")


def test_a_tag_that_leads_to_the_run_of_another_version_is_not_believed(ranker, client):
    """The run itself must say whose evaluation it holds."""
    silent, _ = ranker.add(role=None), ranker.add(0.2)
    run_id = ranker.runs["3"]
    client.set_model_version_tag("ranker", silent, "rankeval.evaluation", json.dumps({"test": {"run_id": run_id}}))
    assert rkm.load_evaluation(f"models:/ranker/{silent}", "test") is not None
    with pytest.raises(InvalidInput, match=r"does not say that it has the evaluation of models:/ranker/2.*log one"):
        rkm.promote("ranker", silent, measure="nDCG@10", dry_run=True)


def test_the_evaluation_of_a_deleted_run_does_not_decide(ranker, client):
    version = ranker.add(0.1)
    client.delete_run(ranker.runs[version])
    with pytest.raises(InvalidInput, match=r"run \w+ was deleted.*mlflow runs restore.*log one"):
        rkm.promote("ranker", version, measure="nDCG@10", dry_run=True)
    with pytest.raises(InvalidInput, match="was deleted"):
        rkm.load_evaluation(ranker.runs[version])
    client.restore_run(ranker.runs[version])
    assert rkm.promote("ranker", version, measure="nDCG@10").moved
