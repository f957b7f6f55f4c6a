"""Why a version has an alias or has not: the records alone tell it, and say what to do next."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput, TrackingError
from rankeval_mlflow.commands import app
from rankeval_mlflow.run_names import DECISION, OUTCOME


def test_each_standing_by_its_records(champions, client):
    """Versions 2 and 3 were promoted; 4 is rejected, 5 is not tried, 3 is rolled back, and 1 gets it by hand."""
    assert rkm.why("ranker", 3).standing == "in use"
    replaced = rkm.why("ranker", 2)
    assert replaced.standing == "replaced"
    assert replaced.headline.endswith("; version 3 has the alias champion.")
    assert replaced.table["version"].tolist() == ["3", "2"], "newest first"
    fourth, fifth = champions.add(-0.1), champions.add()
    done = rkm.promote("ranker", fourth, measure="nDCG@10", who="ann")
    found = rkm.why("ranker", fourth)
    row = found.table.iloc[0]
    assert found.standing == "rejected"
    assert found.reason == done.reason
    expected = done.comparison.table.iloc[0]
    for name in ("mean_baseline", "mean_system", "difference", "p_value", "n_queries"):
        assert row[name] == expected[name], name
    assert (row["against"], row["who"], row["run_id"]) == ("version 3", "ann", done.run_id)
    assert (row["measure"], row["claim"], row["margin"], row["level"]) == ("nDCG@10", "better", 0, 0.05 / 20)
    assert row["counted"] == done.decision.counted
    untried = rkm.why("ranker", fifth)
    assert (untried.standing, untried.table.empty) == ("never tried", True)
    assert "Next: log its evaluation" in str(untried)
    rkm.promote("ranker", fifth, override="an order", override_by="bob")
    assert rkm.why("ranker", fifth).table["decision"].tolist() == ["forced"]
    assert "an order" in rkm.why("ranker", fifth).reason
    rkm.rollback("ranker", reason="empty pages")
    back = rkm.why("ranker", fifth)
    assert (back.standing, back.reason) == ("rolled back", "Rolled back: empty pages")
    assert rkm.why("ranker", 3).standing == "in use"
    assert rkm.why("ranker", 3).headline == "Version 3 of ranker has the alias champion."
    champions.put("1")
    assert rkm.why("ranker", 3).standing == "moved"
    assert rkm.why("ranker", 1).standing == "in use by hand"
    client.delete_registered_model_alias("ranker", "champion")
    assert rkm.why("ranker", 1).headline.endswith("no version has the alias champion.")


def test_a_version_that_lost_against_one_that_lost_the_alias_since_may_be_promoted_again(champions):
    fourth = champions.add(-0.1)
    rkm.promote("ranker", fourth, measure="nDCG@10")
    assert rkm.why("ranker", fourth).next_step.startswith("compare on fresh queries")
    rkm.rollback("ranker", reason="empty pages")
    assert rkm.why("ranker", fourth).next_step.startswith("promote it again")


def test_a_record_without_an_outcome_is_of_an_unknown_one(champions, client):
    fourth = champions.add(-0.1)
    done = rkm.promote("ranker", fourth, measure="nDCG@10")
    client.delete_tag(done.run_id, OUTCOME)
    assert rkm.why("ranker", fourth).standing == ""


def test_a_gate_tells_its_baseline_and_no_number(client, tmp_path):
    """The ranking that the version was compared with has its name and its hash."""
    data = rk.datasets.make_ranking(60, 10, 4, rng=3)
    guard = rk.Guard("shop", ledger=str(tmp_path / "ledger"), who="ann")
    test = guard.register("test", data)
    gate = guard.gate(test, baseline=data.X[:, 0], baseline_name="first stage", budget=5, measure="nDCG@10")
    client.create_registered_model("gated")
    client.create_model_version("gated", "s3://models/gated")
    rkm.promote("gated", 1, gate=gate, candidate=-data.y.astype(float), first=True)
    found = rkm.why("gated", 1)
    row = found.table.iloc[0]
    assert (found.standing, row["against"], row["counted"]) == ("rejected", "first stage", "decision 1 of 5")
    assert found.table[["difference", "p_value", "mean_system"]].isna().all(axis=None)
    assert "first stage" in found.reason
    record = json.loads(rkm_artifact(client, row["run_id"]))
    assert record["baseline"]["ranking"][:8] in found.reason


def rkm_artifact(client, run_id):
    from rankeval_mlflow.delivery.connection import artifact

    return artifact(client, client.get_run(run_id), DECISION)


def test_the_answer_is_in_the_description_of_the_version_with_links(champions, client):
    """Written again, it takes the place of the first; the text of the user stays."""
    fourth = champions.add(-0.1)
    done = rkm.promote("ranker", fourth, measure="nDCG@10")
    mine = client.get_model_version("ranker", fourth).description
    client.update_model_version("ranker", fourth, f"Of our team.\n\n{mine}")
    for _ in range(2):
        rkm.why("ranker", fourth, log=True)
    text = client.get_model_version("ranker", fourth).description
    assert text.startswith("Of our team.")
    assert text.count("was tried and rejected") == 1
    assert f"(#/runs/{done.run_id})" in text
    assert f"(#/runs/{champions.runs[fourth]})" in text, "the run of its evaluation"


def test_a_record_that_cannot_be_read_is_an_error_and_so_is_a_version_that_is_not_there(champions, client):
    fourth = champions.add(-0.1)
    done = rkm.promote("ranker", fourth, measure="nDCG@10")
    client.log_text(done.run_id, "{", DECISION)
    with pytest.raises(TrackingError) as caught:
        rkm.why("ranker", fourth)
    assert caught.value.where == done.run_id
    with pytest.raises(InvalidInput):
        rkm.why("ranker", 99)
    with pytest.raises(InvalidInput) as caught:
        rkm.why("ranker", fourth, "latest")
    assert caught.value.argument == "alias"


@pytest.mark.usefixtures("champions")
def test_the_shell_tells_it_too():
    done = CliRunner().invoke(app, ["why", "ranker", "--version", "2"])
    assert done.exit_code == 0
    assert "had the alias until another version was promoted" in done.stdout
    assert done.stderr.splitlines()[-1] == "next: rankeval mlflow compare ranker/2 ranker@champion"
    rows = json.loads(CliRunner().invoke(app, ["why", "ranker", "--version", "2", "--format", "json"]).stdout)
    assert [row["version"] for row in rows] == ["3", "2"]
