"""A site of an experiment has the runs that `load` reads, and the champion that a promotion moved."""

from __future__ import annotations

import shutil
from pathlib import Path

import mlflow
import pytest
from projects import Page, evaluated, run_page

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.errors import UnknownName
from rankeval.site import write_site


def experiment_of(client, run_id):
    return client.get_experiment(client.get_run(run_id).info.experiment_id).name


def test_the_version_that_was_promoted_last_is_the_champion(ranker, client, tmp_path):
    better = ranker.add(0.1)
    rkm.promote("ranker", version=int(better), alias="champion", measure="nDCG@10", margin=0.0, who="ann")
    public = tmp_path / "public"
    site = write_site(None, public, experiment=experiment_of(client, ranker.runs[better]))
    assert site.faults == ()
    page = Page(site.index)
    assert "The champion is" in page.text
    assert "The champion's time line" in page.text
    assert "ranker v2 beats ranker v1" in page.text
    rkm.rollback("ranker", "champion", reason="<b>slow</b>", who="bob")
    page = Page(write_site(None, public, experiment=experiment_of(client, ranker.runs[better])).index)
    assert "slow" in page.text
    assert "b" not in page.tags


@pytest.mark.parametrize("linked", ["by the run of the version", "by model_version="])
def test_a_gate_moves_the_champion_of_the_experiment_that_made_the_versions(client, tmp_path, linked):
    """The record of a gate's decision names no run of an evaluation: the version leads to it."""
    mlflow.set_experiment("letor")
    data = rk.datasets.make_ranking(60, 10, rng=3)
    guard = rk.Guard("shop", ledger=str(tmp_path / "ledger"), who="ann")
    flat = data.X[:, -1]
    gate = guard.gate(guard.register("shop-test", data), baseline=flat, budget=3)
    client.create_registered_model("shop")
    clear = data.y.astype(float)
    for name, scores, holder in (("clear", clear, None), ("flat", flat, clear)):
        if linked == "by model_version=":
            version = client.create_model_version("shop", "s3://models/shop").version
            rkm.log(evaluated(name), role="dev", model_version=f"shop/{version}")
        else:
            run = rkm.log(evaluated(name), role="dev")
            version = client.create_model_version("shop", "s3://models/shop", run_id=run.run_id).version
        rkm.promote("shop", version, gate=gate, first=True, candidate=scores, holder=holder)
    mlflow.set_experiment("elsewhere")
    rkm.log(evaluated("clear"), role="dev")
    index = write_site(None, tmp_path / "public", experiment="letor").index
    page = Page(index)
    assert "The champion is clear" in page.text
    assert "The champion's time line" in page.text
    assert "shop v2 for champion: rejected" in page.text
    assert "shop" not in Page(write_site(None, tmp_path / "other", experiment="elsewhere").index).text


def test_runs_of_every_kind_are_read(store, tmp_path):
    mlflow.set_experiment("letor")
    systems = {name: evaluated(name, noise) for name, noise in (("good", 0.6), ("poor", 3.0))}
    for evaluation in systems.values():
        rkm.log(evaluation, role="test")
    with mlflow.start_run(run_name="both"):
        rkm.log(systems["good"], role="dev")
        rkm.log(evaluated("third", 0.9), role="test")
    rkm.log(rk.compare(systems))
    rkm.log(rk.cross_validate({"a": _line()}, rk.datasets.make_ranking(20, 6, rng=0), cv=2))
    with mlflow.start_run(run_name="foreign"):
        mlflow.log_param("api_key", "canary")
        mlflow.log_metric("loss", 1.0)
    with mlflow.start_run(run_name="empty"):
        mlflow.log_param("depth", 3)
    public = tmp_path / "public"
    site = write_site(None, public, experiment="letor", uri=store, queries=True)
    assert (site.faults, site.n_pages) == ((), 8)
    page = Page(site.index)
    assert [row[0] for row in page.rows[1:4]] == ["good", "third", "poor"]
    assert "1 run left out without results" in page.text
    assert "canary" not in run_page(public, "foreign").read_text("utf-8")
    with pytest.raises(UnknownName):
        write_site(None, tmp_path / "other", experiment="letr", uri=store)


def test_a_run_whose_artifacts_are_gone_is_a_line(client, tmp_path):
    mlflow.set_experiment("letor")
    runs = [rkm.log(evaluated(name), role="test") for name in ("kept", "gone")]
    place = client.get_run(runs[1].run_id).info.artifact_uri.removeprefix("file://")
    shutil.rmtree(Path(place) / "rankeval")
    site = write_site(None, tmp_path / "public", experiment="letor")
    assert [fault.place for fault in site.faults] == [runs[1].run_id]
    assert site.n_pages == 2


def _line():
    return rk.ColumnRanker(0)
