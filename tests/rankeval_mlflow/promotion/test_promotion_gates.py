"""promote with a gate of the guard: its budget is counted, and nothing but accepted or rejected comes out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import mlflow
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput, LedgerError
from rankeval_mlflow.run_names import DECISION


class Scores(mlflow.pyfunc.PythonModel):
    """Scores rows by weights."""

    def __init__(self, weights):
        self.weights = weights

    def predict(self, context, model_input, params=None):
        return np.asarray(model_input) @ self.weights


@pytest.fixture(scope="module")
def data():
    """Return 120 queries on which the first feature tells much of the label."""
    return rk.datasets.make_ranking(120, 10, 4, rng=3)


@pytest.fixture
def guard(tmp_path):
    return rk.Guard("shop", ledger=str(tmp_path / "ledger"), who="ann")


@pytest.fixture
def models(client, data):
    """Register a weak version, which is champion, a perfect one, and one as weak as the first."""
    client.create_registered_model("ranker")
    weights = np.linalg.lstsq(data.X, data.y, rcond=None)[0]
    noise = np.array([0.0, 0.0, 0.0, 1.0])
    for one in (noise, weights, -noise):
        with mlflow.start_run():
            made = mlflow.pyfunc.log_model(name="model", python_model=Scores(one), pip_requirements=[])
        client.create_model_version("ranker", made.model_uri, run_id=made.run_id)
    client.set_registered_model_alias("ranker", "champion", 1)


def everything(client, folder, promotions):
    """Return all that runs and versions show, but for the numbers of the model's own runs."""
    shown = []
    for run in promotions(client):
        shown += [json.dumps(run.data.to_dictionary())]
        path = Path(client.download_artifacts(run.info.run_id, "", str(folder / run.info.run_id)) or "")
        shown += [file.read_text("utf-8", errors="replace") for file in path.rglob("*") if file.is_file()]
    for version in client.search_model_versions("name='ranker'"):
        shown.append(json.dumps({key: str(value) for key, value in version.tags.items()}))
    return "\n".join(shown)


@pytest.mark.usefixtures("models")
def test_one_call_decides_by_the_logged_models(client, guard, data, tmp_path, promotions):
    gate = guard.gate(guard.register("shop-test", data), baseline=data.X[:, 3], budget=3)
    done = rkm.promote("ranker", 2, gate=gate)
    assert (done.moved, done.comparison, done.floors) == (True, None, None)
    assert done.decision.remaining == gate.remaining == 2
    assert re.fullmatch(
        r"Gate 'gate' on 'shop-test' accepts it; decision 1 of 3. It is shown to be better than ranker v1 \(ranking "
        r"[0-9a-f]{12}, on record since 20\d\d-\d\d-\d\d by ann\) by nDCG@10, one-sided at 0.017.",
        done.reason,
    )
    assert client.get_run(done.run_id).data.params["counted"] == "decision 1 of 3"
    rejected = rkm.promote("ranker", 3, gate=gate)
    assert (rejected.outcome, bool(rejected)) == ("rejected", False)
    assert gate.remaining == 1
    assert gate.decisions()[["system", "accepted"]].to_numpy().tolist() == [["ranker v2", True], ["ranker v3", False]]
    (tmp_path / "found").mkdir()
    shown = everything(client, tmp_path / "found", promotions)
    assert '"decision": "accepted"' in shown
    assert "shop-test" in shown
    for word in ("difference", "p_value", "mean_", "ci_low", "nDCG_at_10"):
        assert word not in shown
    truth = rk.evaluate(data.y, data.X[:, 3], qid=data.qid, measures="nDCG@10")
    assert not re.search(rf"{truth.mean().iloc[0]:.4f}", shown)
    for run in promotions(client):
        assert run.data.metrics == {}


@pytest.mark.usefixtures("models")
def test_the_same_question_again_is_free(guard, data):
    gate = guard.gate(guard.register("shop-test", data), baseline=data.X[:, 3], budget=3)
    assert not rkm.promote("ranker", 3, gate=gate)
    again = rkm.promote("ranker", 3, gate=gate)
    assert (again.outcome, again.decision.is_new, gate.remaining) == ("rejected", False, 2)
    assert "which is free" in again.reason


@pytest.mark.usefixtures("models")
def test_a_budget_that_is_used_up_moves_nothing(client, guard, data):
    gate = guard.gate(guard.register("shop-test", data), baseline=data.X[:, 3], budget=1)
    assert not rkm.promote("ranker", 3, gate=gate)
    with pytest.raises(LedgerError, match="has made its 1 decision on 'shop-test', and decides no more"):
        rkm.promote("ranker", 2, gate=gate)
    assert str(client.get_registered_model("ranker").aliases["champion"]) == "1"


def test_scores_may_be_given_for_versions_without_a_model(ranker, client, guard, data, tmp_path):
    gate = guard.gate(guard.register("shop-test", data), baseline=data.X[:, 3], budget=3)
    version = ranker.add(role=None)
    with pytest.raises(
        InvalidInput, match=r"models:/ranker/2 gives no scores for 'shop-test' .*by candidate= or holder="
    ):
        rkm.promote("ranker", version, gate=gate)
    assert gate.remaining == 3
    done = rkm.promote("ranker", version, gate=gate, candidate=data.y, holder=data.X[:, 3])
    assert done.moved
    assert "The caller gave the scores of the candidate and the holder; no model was asked for them." in done.reason
    said = json.loads(Path(client.download_artifacts(done.run_id, DECISION, str(tmp_path))).read_text("utf-8"))
    assert said["scores_given_by_caller"] == ["candidate", "holder"]


def test_a_collection_of_judgments_takes_runs(ranker, guard):
    truth = {f"q{number}": {"a": 1, "b": 0, "c": number % 2} for number in range(60)}
    good, bad = ({q: {"a": sign, "b": 0, "c": sign / 2} for q in truth} for sign in (1, -1))
    gate = guard.gate(guard.register("shop-test", qrels=rk.Qrels.from_dict(truth)), baseline=bad, budget=3)
    version = ranker.add(role=None)
    with pytest.raises(InvalidInput, match="was registered without features, so no model can score it"):
        rkm.promote("ranker", version, gate=gate)
    assert rkm.promote("ranker", version, gate=gate, candidate=good, holder=bad).moved


@pytest.mark.usefixtures("ranker")
def test_a_first_version_is_compared_with_the_baseline_of_the_gate(guard, data):
    gate = guard.gate(guard.register("shop-test", data), baseline=data.X[:, 3], budget=3)
    with pytest.raises(InvalidInput, match="first=True"):
        rkm.promote("ranker", 1, "canary", gate=gate, candidate=data.y)
    assert gate.remaining == 3
    assert not rkm.promote("ranker", 1, "canary", gate=gate, candidate=-data.y, first=True)
    assert rkm.promote("ranker", 1, "canary", gate=gate, candidate=data.y, first=True).moved


def test_the_record_the_tag_and_the_description_name_what_the_gate_compared_with(ranker, client, guard, data, tmp_path):
    """Also of a first version: `alias_before` is null, and yet something was compared."""
    test = guard.register("shop-test", data)
    gate = guard.gate(test, baseline=data.X[:, 3], baseline_name="first stage", budget=3, margin=0.01)
    asked = {"gate": gate, "first": True}
    no = rkm.promote("ranker", 1, "canary", candidate=-data.y, **asked)
    done = rkm.promote("ranker", 1, "canary", candidate=data.y, **asked)
    claim = (
        r"better than the gate's baseline 'first stage' \(ranking ([0-9a-f]{12}), on record since 20[\d-]{8} by ann\) "
        r"by more than 0.01 nDCG@10, one-sided at 0.017"
    )
    run, tags = client.get_run(done.run_id), ranker.tags("1")
    tag = rf"accepted over none in {done.run_id}; shown to be {claim}"
    assert re.fullmatch(tag, tags["rankeval.promotion.canary"])
    for told in (done.reason, done.words, run.data.tags["mlflow.note.content"], run.data.tags["rankeval.headline"]):
        assert re.search(f"It is shown to be {claim}", told), told
    assert re.search(f"It is not shown to be {claim}", no.reason)
    said = json.loads(Path(client.download_artifacts(done.run_id, DECISION, str(tmp_path))).read_text("utf-8"))
    assert (said["alias_before"], said["baseline"]["name"], said["baseline"]["by"]) == (None, "first stage", "ann")
    assert said["baseline"]["since"].startswith("20")
    assert said["baseline"]["ranking"].startswith(re.search(claim, done.reason)[1])
    assert re.fullmatch(f"shown to be {claim}", said["gate"]["claim"])
    assert {name: said["rule"][name] for name in ("measure", "claim", "margin")} == {
        "measure": "nDCG@10", "claim": "better", "margin": 0.01,
    }  # fmt: skip
    assert said["rule"]["level"] == pytest.approx(0.05 / 3)
    assert (run.data.params["baseline"], run.data.params["level"][:6]) == ("first stage", "0.0166")
    given = rkm.promote("ranker", 1, "other", candidate=data.y, holder=data.X[:, 2], **asked)
    assert "better than the baseline that the caller gave (ranking " in given.reason
    assert "on record since" not in given.reason


@pytest.mark.usefixtures("ranker")
def test_a_rejection_by_a_gate_says_against_what(client, guard, data):
    gate = guard.gate(guard.register("shop-test", data), baseline=data.X[:, 3], baseline_name="now", budget=3)
    done = rkm.promote("ranker", 1, "canary", candidate=-data.y, gate=gate, first=True)
    tag = client.get_model_version("ranker", "1").tags["rankeval.rejection.canary"]
    why = "not shown to be better than the gate's baseline 'now' ("
    assert tag.startswith(f"rejected against none in {done.run_id}; {why}")


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"dry_run": True}, "dry_run"),
        ({"slices": "relevant", "floors": 0.1}, "floors"),
        ({"measure": "RR"}, "measure"),
        ({"margin": 0.1}, "margin"),
        ({"claim": "not_worse"}, "claim"),
        ({"alpha": 0.2}, "alpha"),
        ({"budget": 4}, "budget"),
    ],
)
def test_what_a_gate_cannot_do_costs_no_decision(ranker, guard, data, options, argument):
    gate = guard.gate(guard.register("shop-test", data), baseline=data.X[:, 3], budget=3)
    with pytest.raises(InvalidInput) as caught:
        rkm.promote("ranker", ranker.add(role=None), gate=gate, candidate=data.y, holder=data.X[:, 3], **options)
    assert caught.value.argument == argument
    assert gate.remaining == 3


def test_a_model_with_named_columns_gets_them(client, guard, data):
    """A signature of columns refuses a plain array, which is what was registered."""
    import pandas as pd

    frame = pd.DataFrame(data.X, columns=list("abcd"))
    client.create_registered_model("ranker")
    for target in (-data.y, data.y):
        with mlflow.start_run():
            fitted = LinearRegression().fit(frame, target)
            made = mlflow.sklearn.log_model(fitted, name="model", input_example=frame.head(3), pip_requirements=[])
        client.create_model_version("ranker", made.model_uri, run_id=made.run_id)
    client.set_registered_model_alias("ranker", "champion", 1)
    gate = guard.gate(guard.register("shop-test", data), baseline=data.X[:, 3], budget=3)
    assert rkm.promote("ranker", 2, measure="ndcg_cut_10", gate=gate).moved


def test_a_model_that_gives_no_score_a_row_is_refused(client, guard, data):
    class Labels(mlflow.pyfunc.PythonModel):
        def predict(self, context, model_input, params=None):
            return np.zeros((len(model_input), 2))

    client.create_registered_model("ranker")
    with mlflow.start_run():
        made = mlflow.pyfunc.log_model(name="model", python_model=Labels(), pip_requirements=[])
    client.create_model_version("ranker", made.model_uri, run_id=made.run_id)
    gate = guard.gate(guard.register("shop-test", data), baseline=data.X[:, 3], budget=3)
    with pytest.raises(InvalidInput, match=r"predicts an array of shape \(\d+, 2\) for the [\d,]+ rows of 'shop-test'"):
        rkm.promote("ranker", 1, gate=gate, first=True)
    assert gate.remaining == 3
