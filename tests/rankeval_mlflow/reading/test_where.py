"""Every spelling of a run or a model leads to its evaluation, and every wrong one to what there is."""

from __future__ import annotations

import shutil
from types import SimpleNamespace
from urllib.parse import urlsplit

import mlflow
import pytest

import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput, TrackingError
from rankeval_mlflow.delivery.connection import asking
from rankeval_mlflow.reading.resolving import resolve


@pytest.fixture
def registered(small, client):
    """Evaluate a logged model that is registered as version 1 with an alias; return the names of its run."""
    model = mlflow.initialize_logged_model("ranker")
    tracked = rkm.log(small(), role="test", model_id=model.model_id)
    client.create_registered_model("ranker")
    version = client.create_model_version("ranker", f"models:/{model.model_id}", model_id=model.model_id)
    client.set_registered_model_alias("ranker", "champion", version.version)
    return SimpleNamespace(
        tracked=tracked,
        run=client.get_run(tracked.run_id),
        model=client.get_logged_model(model.model_id),
        version=client.get_model_version("ranker", "1"),
    )


SPELLINGS = {
    "id": lambda there: there.tracked.run_id,
    "runs:/": lambda there: f"runs:/{there.tracked.run_id}",
    "TrackedRun": lambda there: there.tracked,
    "Run": lambda there: there.run,
    "models:/m-": lambda there: there.model.model_uri,
    "m-": lambda there: there.model.model_id,
    "LoggedModel": lambda there: there.model,
    "ModelInfo": lambda there: SimpleNamespace(model_id=there.model.model_id, run_id="0" * 32),
    "models:/name/1": lambda _: "models:/ranker/1",
    "name/1": lambda _: "ranker/1",
    "latest": lambda _: "models:/ranker/latest",
    "alias": lambda _: "models:/ranker@champion",
    "short alias": lambda _: "ranker@champion",
    "ModelVersion": lambda there: there.version,
}


@pytest.mark.further
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_leads_to_the_evaluation(registered, small, assert_same, spelling):
    name = SPELLINGS[spelling](registered)
    assert_same(rkm.load_evaluation(name), small())
    assert_same(rkm.load_evaluation(name, "test"), small())


WRONG = {
    "0" * 32: "there is no run '0{32}' in the store; `rankeval mlflow list` shows",
    "../0": "unknown registered model '..'; known are: ranker",
    "no\nrun": r"there is no run 'no\\nrun'",
    "": "name is ''; expected",
    "models:/": "name is 'models:/'; expected",
    "models:/ranker": "name is 'models:/ranker'; expected",
    "models:/ranker/Production": "name is 'models:/ranker/Production'; expected",
    "models:/a/b/1": "name is 'models:/a/b/1'; expected",
    "runs:/": "name is 'runs:/'; expected",
    "ranker@": "name is 'ranker@'; expected",
    "@champion": "name is '@champion'; expected",
    "ranker@chief": "unknown alias of ranker 'chief'; known are: champion",
    "models:/ranker/7": "ranker has no version 7, or it was deleted; its versions are 1",
    "rankr@champion": "unknown registered model 'rankr'; did you mean 'ranker'",
    "models:/other/latest": "unknown registered model 'other'; known are: ranker",
    f"models:/m-{'0' * 32}": "there is no logged model m-0{32}",
}


@pytest.mark.further
@pytest.mark.parametrize("name", WRONG)
def test_every_wrong_name_is_answered_with_what_there_is(registered, name):  # noqa: ARG001 - it fills the registry
    with pytest.raises(InvalidInput, match=WRONG[name]):
        rkm.load_evaluation(name)


def test_a_model_of_which_nothing_was_evaluated_says_so(client):
    model = mlflow.initialize_logged_model("bare")
    client.create_registered_model("bare")
    client.create_model_version("bare", "s3://models/bare")
    client.create_registered_model("empty")
    with pytest.raises(InvalidInput, match=r"models:/m-\w+ has no evaluation; log one by rankeval_mlflow\.log\(ev"):
        rkm.load_evaluation(model.model_uri)
    with pytest.raises(InvalidInput, match="no run of models:/bare/1 is known: nothing was evaluated with"):
        rkm.load_evaluation("models:/bare/1")
    with pytest.raises(InvalidInput, match="unknown alias of empty 'latest'; none is known"):
        rkm.load_evaluation("models:/empty/latest")


def test_several_evaluations_of_a_model_are_told_apart_by_role_and_content(small, assert_same, client):
    """Two roles need one named; the same content twice is one evaluation, and other content needs a run's id."""
    model = mlflow.initialize_logged_model("ranker")
    client.create_registered_model("ranker")
    client.create_model_version("ranker", "s3://models/ranker")
    given = {"model_id": model.model_id, "model_version": "ranker/1"}
    rkm.log(small(), role="test", **given)
    again = rkm.log(small(), role="test", **given)
    rkm.log(small(seed=1), role="dev", **given)
    for name in (model.model_uri, "models:/ranker/1"):
        with pytest.raises(InvalidInput, match=r"of the roles \['dev', 'test'\]; choose one by role="):
            rkm.load_evaluation(name)
        assert_same(rkm.load_evaluation(name, "dev"), small(seed=1))
        assert_same(rkm.load_evaluation(name, "test"), small())
    with asking(None, "it") as asked:
        assert resolve(asked, model, "test").info.run_id == again.run_id, "the newest of equal ones"
    with pytest.raises(InvalidInput, match="no evaluation of role 'train'"):
        rkm.load_evaluation(model.model_uri, "train")
    rkm.log(small(seed=2), role="test", model_id=model.model_id)
    with pytest.raises(InvalidInput, match="several evaluations of role 'test'; give the id of one of the runs"):
        rkm.load_evaluation(model.model_uri, "test")


def test_an_artifact_that_is_gone_is_named_with_what_is_left(small, client):
    """And not the run, which is there."""
    run = client.get_run(rkm.log(small()).run_id)
    folder = f"{urlsplit(run.info.artifact_uri).path}/rankeval/dev"
    shutil.move(f"{folder}/evaluation.parquet", f"{folder}/elsewhere.parquet")
    gone = "no longer has the artifact 'rankeval/dev/evaluation.parquet': rankeval/dev holds .*elsewhere.parquet"
    with pytest.raises(InvalidInput, match=gone):
        rkm.load_evaluation(run.info.run_id)
    shutil.rmtree(folder)
    with pytest.raises(InvalidInput, match=r"'rankeval/dev/manifest\.json': rankeval/dev holds nothing"):
        rkm.load_evaluation(run.info.run_id)


def test_a_store_that_does_not_answer_is_no_wrong_name(small, monkeypatch):
    run_id = rkm.log(small()).run_id
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    mlflow.set_tracking_uri("http://user:secret@127.0.0.1:9")
    with pytest.raises(TrackingError, match=r"store http://127\.0\.0\.1:9 did not give") as caught:
        rkm.load_evaluation(run_id)
    assert "secret" not in str(caught.value)


def test_an_empty_registry_is_said_to_be_empty(client):
    """Not a list of known models without an end."""
    with pytest.raises(InvalidInput, match=r"^unknown registered model 'ranker'; none is known$"):
        resolve(client, "ranker@champion")
